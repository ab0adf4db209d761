"""The table of diagnostic codes, and the long text that `relaxc --explain CODE` shows.

The first two digits say where a fault belongs: 00 text and syntax, 01 names, 02 struct info and shapes, 03 TIR and
buffers, 04 well-formedness, 10 schedules, 31 passes, 50 code generation and targets, 60 run time, 90 faults of
relaxlang itself. A code keeps its meaning for ever; one that is no longer raised stays in the table.
"""

from __future__ import annotations

from textwrap import indent
from typing import NamedTuple

from relaxlang.base.diagnostics import RelaxlangError
from relaxlang.base.suggest import did_you_mean


class CodeInfo(NamedTuple):
    """What a code stands for: a `title` of a few words, an `explanation` in sentences, and a short example each of a
    program that has the fault (`wrong`) and of the same program without it (`right`)."""

    title: str
    explanation: str
    wrong: str = ""
    right: str = ""


def explain(code: str) -> str:
    """The long text for a code such as `RLX0203` (`rlx203` and `203` do as well).

    Raises `RelaxlangError`, with a suggestion, for a code that does not exist.
    """
    digits = code.strip().upper().removeprefix("RLX")
    full = f"RLX{digits:0>4}"
    info = CODES.get(full)
    if info is None:
        near = did_you_mean(full, CODES)
        raise RelaxlangError(f"there is no diagnostic code `{code}`" + (f"; did you mean `{near}`?" if near else ""))
    parts = [f"{full}: {info.title}", info.explanation.strip()]
    for heading, program in (("Wrong:", info.wrong), ("Right:", info.right)):
        if program:
            parts.append(heading + "\n\n" + indent(program.strip("\n"), "    "))
    return "\n\n".join(parts)


CODES: dict[str, CodeInfo] = {
    # 00: text and syntax
    # 01: names
    # 02: struct info and shapes
    "RLX0203": CodeInfo(
        "dimensions that must be equal differ",
        "An operator's signature in stdlib names a dimension twice, so both arguments must agree in it: `K` in "
        "`matmul(x1: (M, K), x2: (K, N))`. Here the two have different values. Both places are labelled with the value "
        "that the dimension has there.",
        'x: R.Tensor((16, 784), "float32"), w: R.Tensor((700, 10), "float32")\ny = R.matmul(x, w)',
        'x: R.Tensor((16, 784), "float32"), w: R.Tensor((784, 10), "float32")\ny = R.matmul(x, w)',
    ),
    # 03: TIR and buffers
    # 04: well-formedness
    # 10: schedules
    # 31: passes
    # 50: code generation and targets
    # 60: run time
    # 90: faults of relaxlang itself
    "RLX9001": CodeInfo(
        "internal error",
        "relaxlang met a state that it holds to be impossible. The fault is in relaxlang and not in the program: "
        "please report it, with the program and the command that led to it.",
    ),
}
