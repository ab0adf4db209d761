"""The driver's functions: what they refuse."""

from collections.abc import Callable
from typing import Any

import pytest

import relaxlang
from relaxlang import RelaxlangError
from relaxlang.base.diagnostics import DiagnosticError

MODULE = relaxlang.parse('@R.function\ndef main(x: R.Tensor((n,), "float32")):\n    return R.add(x, x)\n')
LOOK_UP: Any = MODULE


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda wrong: relaxlang.build(wrong("model.rlx")), "`relaxlang.load` reads a file"),
        (lambda wrong: relaxlang.build(wrong(MODULE["main"])), "holds a function"),
        (lambda wrong: relaxlang.lower(wrong(None)), "not `NoneType`"),
        (lambda wrong: relaxlang.interpret(wrong(3), "main"), "not `int`"),
        (lambda wrong: relaxlang.parse(wrong(b"x")), "takes `str`, not `bytes`"),
        (lambda wrong: relaxlang.lower(MODULE, wrong(None)), "a pipeline is a name"),
        (lambda wrong: relaxlang.lower(MODULE, wrong([3])), "a pipeline is a name"),
        (lambda wrong: LOOK_UP[wrong(3)], "no function `3`"),
        (lambda wrong: relaxlang.get_global_func(wrong(3)), "found by its name, not by a `int`"),
    ],
)
def test_wrong_types_are_errors_of_the_user(call: Callable[[Callable[[Any], Any]], object], words: str) -> None:
    with pytest.raises(RelaxlangError, match=words):
        call(lambda value: value)


def test_what_nests_too_deeply_for_a_pass_is_a_diagnostic() -> None:
    long = "A[i]" + " + A[i]" * 31_000
    text = f'@T.prim_func\ndef f(A: T.Buffer((4,), "float32")):\n    for i in range(4):\n        A[i] = {long}\n'
    with pytest.raises(DiagnosticError, match="nested too deeply for the pass"):
        relaxlang.lower(relaxlang.parse(text), "stmt-simplify")
