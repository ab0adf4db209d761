"""What of each operator is tested: `stdlib/OPERATORS.md` and `stdlib/tested.json`, derived from the tables of cases.

    python -m tests.unit.stdlib.tested            write both
    python -m tests.unit.stdlib.tested --check    fail unless they are what the tables give

A column does not apply to an operator whose signature refuses such arguments: that is asked of the operator itself, by
lowering its first cases with shapes replaced. `test_values` runs every case in the interpreter, with known and with
symbolic dimensions, `test_native` as compiled code, as bytecode, and on arrays with gaps.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.base.resources import resource_dir
from tests.unit.stdlib.calls import CALLS
from tests.unit.stdlib.cases import CASES
from tests.unit.stdlib.harness import OPERATORS
from tests.unit.stdlib.table import Array, Case
from tests.unit.stdlib.test_values import depth_is_known
from tests.unit.stdlib.variants import LARGE, arrays, changed, lowered, with_dimension

TRIED = 6
PAGE, DATA = resource_dir("stdlib") / "OPERATORS.md", resource_dir("stdlib") / "tested.json"
YES, NO, NOT = "yes", "no", "n/a"
HOW = ("interpreter", "native", "bytecode")
AXES = ("axis", "axes")
WHY = {
    "print": "an effect, tested by what is printed (`test_scalars.py`)",
    "assert_op": "an effect, tested by when it fails (`test_scalars.py`)",
    "ccl": "for several workers: parsed, inferred and printed only (`tests/unit/ops/test_distributed.py`)",
    "dist": "for several devices: parsed, inferred and printed only (`tests/unit/ops/test_distributed.py`)",
}
"""Why an operator, or those of a prefix, has no table of values."""


def accepts(cases: Iterable[Case], shape_of: Callable[[Case], Callable[[Array], tuple[int, ...]]]) -> bool:
    """Whether the operator takes the arguments of a case in other shapes."""
    for case in cases:
        try:
            lowered(case.name, changed(case.args, shape_of(case)), case.attrs)
        except DiagnosticError:
            continue
        return True
    return False


def negative(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return any(negative(v) for v in value)
    return isinstance(value, int) and not isinstance(value, bool) and value < 0


def has_special(case: Case) -> bool:
    return any(a.dtype.kind == "f" and not np.isfinite(a).all() for a in arrays(case.args))


def state(applies: bool, tested: bool) -> str:
    return YES if tested else NO if applies else NOT


def columns(name: str, cases: list[Case]) -> dict[str, str]:
    """What is tested of an operator with cases; one column that the tables have not is `no`, or `n/a`."""
    definition = OPERATORS.get(name)
    some = cases[:TRIED]
    tensors = [a for c in cases for a in arrays(c.args)]
    takes = any(p.kinds[0] in ("tensor", "tensors") for p in definition.arg_params)
    axis = [p for p in definition.attr_params if p.name in AXES]
    floats = any(a.dtype.kind == "f" for a in tensors)
    shaped = any(a.ndim for a in tensors)
    places = {p.name: k for k, p in enumerate(definition.params)}
    given = [_value(c, p, places[p.name]) for c in cases for p in axis]
    return {
        "ordinary": state(True, any(all(a.size for a in arrays(c.args)) for c in cases)),
        "scalar": state(takes and accepts(some, lambda c: lambda a: ()), any(a.ndim == 0 for a in _firsts(cases))),
        "empty": state(takes and shaped and accepts(some, with_dimension(0)), any(a.size == 0 for a in tensors)),
        "size 1": state(takes and shaped and accepts(some, with_dimension(1)), any(1 in a.shape for a in tensors)),
        "large": state(takes and shaped, any(a.size >= LARGE for a in tensors)),
        "NaN, inf": state(floats, any(has_special(c) for c in cases)),
        "negative axis": state(bool(axis), any(negative(v) for v in given)),
        "gaps in memory": state(shaped, shaped),
        "symbolic shape": state(shaped, any(depth_is_known(c) for c in cases)),
        **dict.fromkeys(HOW, YES),
    }


def _firsts(cases: list[Case]) -> Iterator[Array]:
    for case in cases:
        yield from list(arrays(case.args))[:1]


def _value(case: Case, param: Any, place: int) -> Any:
    """What a case gives for a parameter; an int of its default when it gives nothing."""
    if param.name in case.attrs or place < len(case.args):
        return case.attrs.get(param.name, case.args[place] if place < len(case.args) else None)
    text = param.default.span.text if param.default is not None and param.default.span is not None else ""
    return int(text) if text.removeprefix("-").isdigit() else None


def table() -> dict[str, dict[str, str]]:
    """For each operator the reference of its cases and its columns; both are empty for those without cases."""
    by_name: dict[str, list[Case]] = defaultdict(list)
    for case in CASES:
        by_name[case.name].append(case)
    numpy = set(by_name)
    for name, args, attrs in CALLS:
        by_name[name].append(Case(name, args, attrs, None, 0))
    found = {}
    for name in OPERATORS.names():
        cases = by_name.get(name)
        reference = "numpy" if name in numpy else "apache-tvm"
        found[name] = {"reference": reference, **columns(name, cases)} if cases else {}
    return found


def passes(row: dict[str, str]) -> bool:
    """Whether an operator is tested in every column that applies."""
    return bool(row) and NO not in row.values()


def page(rows: dict[str, dict[str, str]]) -> str:
    """The table as Markdown."""
    heads = next(list(row) for row in rows.values() if row)
    marks = {YES: "✓", NO: "·", NOT: "–"}
    complete, tested = sum(passes(r) for r in rows.values()), sum(bool(r) for r in rows.values())
    lines = [
        "# Operators and what of them is tested",
        "",
        "Derived from the tables of the tests (`tests/unit/stdlib/table*.py`, `calls.py`) by",
        "`python -m tests.unit.stdlib.tested`; a test fails when it is out of date. ✓: cases compare the operator's",
        "values with the reference's; ·: none does; –: the operator does not take such arguments. Large:",
        f"{LARGE} elements or more. Operators without a table of values stand at the end, with the reason.",
        "",
        f"Of {len(rows)} operators, {tested} have tables, and {complete} are tested in every column that applies.",
        "",
        "| operator | " + " | ".join(heads) + " |",
        "|---" * (len(heads) + 1) + "|",
    ]
    for name, row in rows.items():
        if not row:
            continue
        lines.append(f"| `{name}` | " + " | ".join(marks.get(row.get(h, ""), row.get(h, "")) for h in heads) + " |")
    lines += ["", "| operator without a table | why |", "|---|---|"]
    lines += [f"| `{name}` | {WHY[name.split('.')[0]]} |" for name, row in rows.items() if not row]
    return "\n".join(lines) + "\n"


def texts() -> dict[Path, str]:
    """The two files and what they must hold."""
    rows = table()
    body = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
    return {PAGE: page(rows), DATA: "{\n" + body + "\n}\n"}


if __name__ == "__main__":
    stale = [path for path, text in texts().items() if not path.exists() or path.read_text("utf-8") != text]
    if sys.argv[1:] == ["--check"]:
        sys.exit(f"out of date: {', '.join(p.name for p in stale)}" if stale else 0)
    for path, text in texts().items():
        path.write_text(text, "utf-8")
