"""Shapes at run time: values and errors, compiled through both pipelines and interpreted at every stage."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relaxlang
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.interp import Interpreter
from tests.unit.passes.checking import assert_same
from tests.unit.passes.shape_programs import PROGRAMS, Error, Program


@relaxlang.register_func("test.halved", override=True)
def half(dims: Any) -> Any:
    return relaxlang.ShapeTuple(d // 2 for d in dims)


def outcome(call: Any, args: tuple[Any, ...], want: Any) -> None:
    """The call gives the value, or the error."""
    given = tuple(np.copy(a) if isinstance(a, np.ndarray) else a for a in args)
    if not isinstance(want, Error):
        assert_same(call(*given), want)
        return
    with pytest.raises(DiagnosticError) as caught:
        call(*given)
    found = caught.value.diagnostics[0]
    assert not want.code or found.code == want.code, found
    assert all(word in found.message for word in want.words), found.message


@pytest.mark.parametrize("pipeline", ["default", "minimum"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_compiled(program: Program, pipeline: str) -> None:
    vm = relaxlang.VirtualMachine(relaxlang.build(program.module, pipeline=pipeline), relaxlang.cpu())
    for args, want in program.calls:
        outcome(vm["main"], args, want)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_interpreted(program: Program) -> None:
    for mod in (program.module, relaxlang.lower(program.module)):
        for args, want in program.calls:
            outcome(lambda *a, mod=mod: Interpreter(mod, verify=True).run("main", *a), args, want)


def test_more_than_two_to_the_31_elements() -> None:
    """Indices are 64 bits wide. The zeros take no memory until they are written."""
    program = next(p for p in PROGRAMS if p.name.startswith("a tensor of more than"))
    x = np.zeros(2**31 + 8, "int8")
    x[2**31 + 2 : 2**31 + 6] = [1, 2, 3, 4]
    vm = relaxlang.VirtualMachine(relaxlang.build(program.module), relaxlang.cpu())
    got = vm["main"](x, np.array([2**31 + 5, -1]) % len(x))
    assert np.asarray(got).tolist() == [4, 0, 1, 2, 3]


def test_a_dimension_that_overflows_is_an_error() -> None:
    text = "@R.function\ndef main(s: R.Shape([n, m])):\n    z = R.zeros((n * m * 2,), 'int8')\n    return z\n"
    mod = relaxlang.parse(text)
    runs = [lambda s: relaxlang.interpret(mod, "main", s)]
    runs += [relaxlang.build(mod, pipeline=name)["main"] for name in ("minimum", "default")]
    for run in runs:
        assert run(relaxlang.ShapeTuple((2, 3))).shape == (12,)
        for dims in ((1 << 40, 1 << 40), (1 << 62, 1)):  # the product is 0 in 64 bits
            with pytest.raises(DiagnosticError, match="the dimension `n \\* m \\* 2` overflows"):
                run(relaxlang.ShapeTuple(dims))
