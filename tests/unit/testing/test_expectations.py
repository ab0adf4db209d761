"""The comments of test files, and how results are compared."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relaxlang.base.diagnostics import Diagnostic, RelaxlangError
from relaxlang.base.source import Source, Span
from relaxlang.testing import kinds
from relaxlang.testing.expectations import Run, differences, expected_diagnostics, header, run_plan

MARKED = """\
x = 1  # error[RLX0101]: `x` # warning[RLX0203]
# error@+1[RLX0001]
"""


def reported(line: int, code: str, message: str, level: Any = "error") -> Diagnostic:
    source = Source("t.rlx", "\n" * 9)
    return Diagnostic(code, message, Span(source, line - 1, line - 1), level=level)


def test_marks() -> None:
    assert [str(e) for e in expected_diagnostics(MARKED)] == [
        "line 1: error[RLX0101]: `x`",
        "line 1: warning[RLX0203]",
        "line 3: error[RLX0001]",
    ]


def test_differences() -> None:
    right = [reported(3, "RLX0001", "z"), reported(1, "RLX0101", "no `x`"), reported(1, "RLX0203", "w", "warning")]
    expected = expected_diagnostics(MARKED)
    assert differences(expected, right) == []
    assert differences(expected, [*right, reported(1, "RLX0203", "n", "note")]) == []
    assert differences(expected, right[1:]) == ["expected line 3: error[RLX0001]; not reported"]
    assert differences([], right[:1]) == ["not expected: line 3: error[RLX0001]: z"]
    wrong_words = [right[0], reported(1, "RLX0101", "no `y`"), right[2]]
    assert differences(expected, wrong_words) == ["expected line 1: error[RLX0101]: `x`; the message is: no `y`"]
    assert differences(expected, [*right, right[1]]) == ["not expected: line 1: error[RLX0101]: no `x`"]


def test_run_plan() -> None:
    plan = run_plan("""\
# Some words: about it.
# args: rand(2, 3),
#     np.ones(3)
# expect: x0 + x1
# args:
# raises[RLX6003]: dimension `n`
# rtol: 1e-3
# entry: f

@I.ir_module
# args: ignored
""")
    assert plan.entry == "f" and plan.rtol == 1e-3 and plan.atol == 1e-6
    assert plan.runs == (
        Run("rand(2, 3), np.ones(3)", "x0 + x1", None),
        Run("", None, ("RLX6003", "dimension `n`")),
    )


@pytest.mark.parametrize("text", ["x = 1\n", "# expect: 1\n", "# args: 1\n# expect: 1\n# expect: 2\n"])
def test_senseless_run_plans(text: str) -> None:
    with pytest.raises(ValueError, match="args"):
        run_plan(text)


def test_header() -> None:
    assert header("# a\n\n#b\nx\n# c\n") == "# a\n\n#b\n"
    assert header("x") == "" and header("") == ""


def test_files_have_kinds_by_directory() -> None:
    root = Path("tests") / "rlx"
    assert list(kinds.checks_of(root / "run" / "deep" / "a.rlx") or ()) == ["interpreter", "minimum", "default"]
    assert kinds.checks_of(root / "run" / "a.py") is None
    assert kinds.checks_of(root / "a.rlx") is None and kinds.checks_of(Path("examples") / "a.rlx") is None


def check(text: str, call: Callable[..., Any], reference: Callable[..., Any] | None = None) -> None:
    kinds._check_runs(run_plan(text), call, reference)


def test_arguments_are_the_same_every_time() -> None:
    run = Run('rand(2, 2), rand(3, dtype="int32"), 7', None, None)
    first, second = kinds.arguments(run), kinds.arguments(run)
    assert all(np.array_equal(a, b) for a, b in zip(first, second)) and first[0] is not second[0]
    assert first[0].dtype == "float32" and first[1].dtype == "int32" and first[2] == 7


def test_runs_compare_values_shapes_and_kinds() -> None:
    text = "# args: rand(3)\n# expect: (x0 + 1, x0 > 0)\n"
    check(text, lambda x: (x + 1, x > 0))
    with pytest.raises(kinds.Mismatch, match=r"call 1 .*: the result is\n"):
        check(text, lambda x: (x + 2, x > 0))
    with pytest.raises(kinds.Mismatch, match="the result is int64, expected bool"):
        check(text, lambda x: (x + 1, (x > 0).astype("int64")))
    with pytest.raises(kinds.Mismatch, match=r"shape \(1, 3\)"):
        check(text, lambda x: (x[None] + 1, x > 0))
    with pytest.raises(kinds.Mismatch, match="has 1 parts"):
        check(text, lambda x: (x,))
    with pytest.raises(kinds.Mismatch, match="the result is float64, the interpreter's float32"):
        check("# args: rand(3)", lambda x: x.astype("float64"), lambda x: x)


def test_runs_that_must_fail() -> None:
    def fails(*args: object) -> None:
        raise RelaxlangError("dimension `n` is 3")

    check("# args: 1\n# raises: dimension `n`", fails)
    with pytest.raises(kinds.Mismatch, match="another error"):
        check("# args: 1\n# raises: dimension `m`", fails)
    with pytest.raises(kinds.Mismatch, match="another error"):
        check("# args: 1\n# raises[RLX6003]: dimension", fails)
    with pytest.raises(kinds.Mismatch, match="it returned 1"):
        check("# args: 1\n# raises: dimension", lambda x: x)
