"""The passes of lowering run in any order, and a minimum build follows each."""

import itertools

import numpy as np
import pytest

import relaxlang
from relaxlang.base.diagnostics import DiagnosticError

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


BLOCKS = """
@T.prim_func
def main(A: T.Buffer((8, n), "float32"), C: T.Buffer((8, n), "float32")):
    B = T.alloc_buffer((8, n), "float32")
    for i, j in T.grid(8, n):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i in range(8):
        with T.block("o"):
            vi = T.axis.spatial(8, i)
            T.reads(B[vi, 0:n])
            T.writes(C[vi, 0:n])
            M = T.match_buffer(B[vi, 0:n], (n,), "float32", strides=["s"], offset_factor=1)
            for j in range(n):
                C[vi, j] = M[j] + T.float32(1)
"""
KERNEL_PASSES = (
    "lower-init-block", "plan-and-update-buffer-allocation-location", "convert-blocks-to-opaque", "lower-match-buffer",
    "lower-opaque-block", "flatten-buffer",
)  # fmt: skip


@pytest.mark.parametrize("first", KERNEL_PASSES)
@pytest.mark.parametrize("second", KERNEL_PASSES)
def test_passes_of_kernels_apply_or_refuse(first: str, second: str) -> None:
    try:
        lowered = relaxlang.lower(relaxlang.parse(BLOCKS), f"{first},{second}")
    except DiagnosticError as fault:
        assert fault.diagnostics[0].code == "RLX3121"
        return
    again = relaxlang.parse(lowered.script())
    relaxlang.assert_structural_equal(lowered, again)
    a, c = np.arange(40, dtype="float32").reshape(8, 5), np.zeros((8, 5), "float32")
    relaxlang.interpret(again, "main", a, c)
    assert np.array_equal(c, 2 * a + 1)
