"""The table of diagnostic codes, and the long text that `relaxc --explain CODE` shows.

The first two digits say where a fault belongs. In `language` and `elaboration`: 00 text and syntax, 01 names, functions
and compile-time values, 02 struct info and shapes, 03 TIR and buffers, 04 Relax functions and well-formedness. In
`compiler`: 10 schedules, 31 passes, 50 code generation and targets, 60 run time, 90 faults of relaxlang itself. In
`command_line`: 70 what `relaxc` is asked for. In `prompt`: 71 what `relax-repl` is asked for. In `importing`: 80 models
of other frameworks. A new code is appended to its group. A code keeps its meaning for ever; one that is no longer raised stays in the table.
"""

from __future__ import annotations

from textwrap import dedent, indent

from relaxlang.base.codes.building import BUILDING
from relaxlang.base.codes.command_line import COMMAND_LINE
from relaxlang.base.codes.compiler import COMPILER
from relaxlang.base.codes.elaboration import ELABORATION
from relaxlang.base.codes.importing import IMPORTING
from relaxlang.base.codes.info import CodeInfo
from relaxlang.base.codes.language import LANGUAGE
from relaxlang.base.codes.prompt import PROMPT
from relaxlang.base.diagnostics import RelaxlangError
from relaxlang.base.suggest import did_you_mean

__all__ = ["CODES", "CodeInfo", "explain"]

CODES: dict[str, CodeInfo] = {
    **LANGUAGE, **ELABORATION, **BUILDING, **COMPILER, **COMMAND_LINE, **PROMPT, **IMPORTING,
}  # fmt: skip


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
            parts.append(heading + "\n\n" + indent(dedent(program).strip("\n"), "    "))
    return "\n\n".join(parts)
