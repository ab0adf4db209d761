"""Operators whose results are no tensors, and those that are called for their effect."""

from __future__ import annotations

import numpy as np
import pytest

import relaxlang
from tests.unit.stdlib.harness import run

X = np.zeros((2, 3, 4), "float16")


def program(expr: str) -> str:
    return f"""@I.ir_module
class Module:
    @R.function(pure=False)
    def main(x: R.Tensor((n, 3, 4), "float16"), ok: R.Tensor((), "bool")):
        o = {expr}
        return o
"""


@pytest.mark.parametrize(
    ("expr", "value"),
    [
        ("R.inspect.tensor_ndim(x)", 3),
        ("R.inspect.tensor_dtype_code(x)", 2),
        ("R.inspect.tensor_dtype_bits(x)", 16),
        ("R.inspect.tensor_dtype_lanes(x)", 1),
        ("R.inspect.tensor_shape_i(x, axis=-1)", 4),
        ("R.inspect.tensor_shape_i(x, axis=0)", 2),
        ("R.inspect.tensor_stride_i(x, axis=0)", 12),
        ("R.inspect.tensor_byte_offset(x)", 0),
        ("R.inspect.tensor_elem_offset(x)", 0),
    ],
)
def test_scalars(expr: str, value: int) -> None:
    mod = relaxlang.parse(program(expr))
    vm = relaxlang.VirtualMachine(relaxlang.build(mod), relaxlang.cpu())
    assert vm["main"](X, np.array(True)) == value
    assert relaxlang.interpret(mod, "main", X, np.array(True)) == value


def test_print_and_assert(capsys: pytest.CaptureFixture[str]) -> None:
    mod = relaxlang.parse(program('R.print(R.size(x), format="{} elements")'))
    relaxlang.VirtualMachine(relaxlang.build(mod), relaxlang.cpu())["main"](X, np.array(True))
    assert capsys.readouterr().out == "24 elements\n"
    mod = relaxlang.parse(program('R.assert_op(ok, R.size(x), format="of {}")'))
    vm = relaxlang.VirtualMachine(relaxlang.build(mod), relaxlang.cpu())
    vm["main"](X, np.array(True))
    with pytest.raises(relaxlang.RelaxlangError, match="assertion failed: of 24"):
        vm["main"](X, np.array(False))


def test_many_tensors_are_joined_and_parted() -> None:
    parts = [np.full((2, 1 + k % 2), k, "int32") for k in range(250)]
    np.testing.assert_array_equal(run("concat", parts, axis=1), np.concatenate(parts, 1))
    whole = np.arange(500, dtype="int32").reshape(2, 250)
    for got, want in zip(run("split", whole, 250, axis=1), np.split(whole, 250, 1), strict=True):
        np.testing.assert_array_equal(got, want)
