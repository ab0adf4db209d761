"""Equal functions are found: few by comparing, many by their hashes."""

from __future__ import annotations

import pytest

import relaxlang
from relaxlang.ir import equal_functions, relax
from relaxlang.ir.equal_functions import EqualFunctions
from relaxlang.ir.tir import PrimFunc

KERNEL = """
@T.prim_func
def f({x}: T.Buffer(({n},), "float32"), B: T.Buffer(({n},), "float32")):
    for i in range({n}):
        with T.block("scaled"):
            vi = T.axis.spatial({n}, i)
            B[vi] = {x}[vi] * T.float32({factor})
"""


def kernel(factor: int, n: int | str = 8, x: str = "A") -> PrimFunc:
    made = relaxlang.parse(KERNEL.format(factor=factor, n=n, x=x))["f"]
    assert isinstance(made, PrimFunc)
    return made


def function(op: str, name: str = "x") -> relax.Function:
    text = f'@R.function\ndef f({name}: R.Tensor((n, 4), "float32")):\n    y = R.{op}({name})\n    return y\n'
    made = relaxlang.parse(text)["f"]
    assert isinstance(made, relax.Function)
    return made


@pytest.mark.parametrize("count", [1, equal_functions.FEW, 3 * equal_functions.FEW])
def test_kernels_that_look_alike(count: int) -> None:
    known = EqualFunctions()
    assert not known and known.find(kernel(0)) is None
    for factor in range(count):
        known.add(f"by_{factor}", kernel(factor))
        assert known.find(kernel(factor, x="other")) == f"by_{factor}"
    assert known
    assert [known.find(kernel(f)) for f in range(count)] == [f"by_{f}" for f in range(count)]
    assert known.find(kernel(count)) is known.find(kernel(0, n=9)) is known.find(kernel(0, n="n")) is None


def test_symbolic_dimensions_and_relax_functions() -> None:
    known = EqualFunctions()
    known.add("symbolic", kernel(3, n="n"))
    known.add("exp", function("exp"))
    known.add("first", function("tanh"))
    known.add("second", function("tanh"))
    assert known.find(kernel(3, n="rows")) == "symbolic"
    assert known.find(function("exp", "other")) == "exp"
    assert known.find(function("tanh")) == "first"
    assert known.find(function("sin")) is None
