"""The work of kernels: counted by hand here."""

import pytest

import relaxlang
from relaxlang.analysis.flops import work_of
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.ir.tir import PrimFunc
from relaxlang.passes.tir.lowering import lower
from relaxlang.transform import LegalizeOps

MATMUL = """
@R.function
def main(x: R.Tensor((n, 8), "float32"), w: R.Tensor((8, 16), "float32")):
    return R.matmul(x, w)
"""
GELU = """
@R.function
def main(x: R.Tensor((n, 8), "float32")):
    return R.add(R.exp(x), x)
"""


def kernels(text: str) -> dict[str, PrimFunc]:
    return dict(LegalizeOps()(relaxlang.parse(text)).prim_funcs())


def test_matmul() -> None:
    func = kernels(MATMUL)["matmul"]
    assert work_of(func).at(func, [(4, 8), (8, 16), (4, 16)]) == (2 * 4 * 8 * 16, 4 * (32 + 128 + 64))


def test_lowering_changes_nothing() -> None:
    func = kernels(MATMUL)["matmul"]
    flat = lower(func)
    assert work_of(flat).at(flat, [(4, 8), (8, 16), (4, 16)])[0] == 2 * 4 * 8 * 16


def test_functions_count_as_one_and_indices_not_at_all() -> None:
    made = kernels(GELU)
    shapes = [(3, 8), (3, 8)]
    assert work_of(made["exp"]).at(made["exp"], shapes) == (24, 2 * 24 * 4)
    assert work_of(made["add"]).at(made["add"], [*shapes, (3, 8)])[0] == 24


def test_a_triangle_counts_by_its_middle() -> None:
    text = """
@T.prim_func
def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        for j in range(i):
            B[i] = B[i] + A[j]
"""
    (func,) = (f for _, f in relaxlang.parse(text).prim_funcs())
    assert work_of(func).at(func, [(64,), (64,)])[0] == 64 * 32


def test_a_dimension_without_a_value() -> None:
    func = kernels(MATMUL)["matmul"]
    with pytest.raises(DiagnosticError) as caught:
        work_of(func).at(func, [])
    assert caught.value.diagnostics[0].code == "RLX3112"
