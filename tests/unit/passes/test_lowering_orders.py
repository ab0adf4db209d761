"""The passes of lowering run in any order, and a minimum build follows each."""

import itertools

import numpy as np
import pytest

import relaxlang

TEXT = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((n, 3), "float32"), t: R.Tensor(ndim=1, dtype="float32")) -> R.Tensor((n, 3), "float32"):
        with R.dataflow():
            y = R.add(x, x)
            k = R.match_cast(t, R.Tensor((m,), "float32"))
            s = R.sum(k)
            z = R.multiply(y, s)
            R.output(z)
        return z
"""
PASSES = ("to-non-dataflow", "call-tir-rewrite", "vm-memory-lower", "vm-shape-lower")


@pytest.mark.parametrize("order", list(itertools.permutations(PASSES, 2)) + list(itertools.permutations(PASSES, 4)))
def test_order(order: tuple[str, ...]) -> None:
    lowered = relaxlang.lower(relaxlang.parse(TEXT), ",".join(order))
    again = relaxlang.parse(lowered.script())
    relaxlang.assert_structural_equal(lowered, again)
    x, t = np.arange(6, dtype="float32").reshape(2, 3), np.array([1, 2], "float32")
    vm = relaxlang.VirtualMachine(relaxlang.build(again, pipeline="minimum"), relaxlang.cpu())
    assert np.array_equal(vm["main"](x, t), 2 * x * 3)
