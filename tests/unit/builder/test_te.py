"""Tensor expressions: PrimFuncs that compute what numpy computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relaxlang
from relaxlang import te
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.ir.module import IRModule
from relaxlang.ir.tir import PrimFunc


def run(func: PrimFunc, *args: Any) -> None:
    """Run a PrimFunc, compiled and interpreted; both write the same to the arrays."""
    mod = IRModule({"f": func.replace(attrs=func.attrs.set("global_symbol", "f"))})
    relaxlang.assert_structural_equal(relaxlang.parse(mod.script()), mod)
    copies = [np.copy(a) if isinstance(a, np.ndarray) else a for a in args]
    relaxlang.interpret(mod, "f", *copies)
    relaxlang.build(mod)["f"](*args)
    for a, b in zip(args, copies):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_matmul_and_what_follows() -> None:
    n = te.var("n")
    A, B = te.placeholder((n, 8), name="A"), te.placeholder((8, 4), name="B")
    k = te.reduce_axis((0, 8), name="k")
    C = te.compute((n, 4), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    D = te.compute((n, 4), lambda *i: te.max(te.exp(C[i]), 1.0), name="D")
    a, b = np.random.default_rng(0).standard_normal((2, 8, 8)).astype("float32")
    b, out = np.ascontiguousarray(b[:, :4]), np.zeros((8, 4), "float32")
    run(te.create_prim_func([A, B, D]), a, b, out)
    np.testing.assert_allclose(out, np.maximum(np.exp(a @ b), 1), rtol=1e-4)


def test_parameters_keep_their_order_unused_ones_and_scalars_too() -> None:
    m = te.var("m")
    A, unused = te.placeholder(3, "int32", "A"), te.placeholder((2,), name="unused")
    B = te.compute(3, lambda i: A[i] + te.cast(m, "int32"), name="B")
    func = te.create_prim_func([B, m, unused, A])
    assert [p.name for p in func.params] == ["B", "m", "unused", "A"]
    out = np.zeros(3, "int32")
    run(func, out, 5, np.zeros(2, "float32"), np.arange(3, dtype="int32"))
    assert out.tolist() == [5, 6, 7]


def test_a_reduction_from_a_first_index_with_a_window() -> None:
    A, k = te.placeholder((10,), name="A"), te.reduce_axis((2, 5))
    B = te.compute((6,), lambda i: te.min(A[i + k - 1], axis=k), name="B")
    a, out = np.array([9, 8, 7, 1, 5, 6, 4, 3, 2, 0], "float32"), np.zeros(6, "float32")
    run(te.create_prim_func([A, B]), a, out)
    np.testing.assert_array_equal(out, [min(a[i + 1 : i + 4]) for i in range(6)])


def test_two_values_reduced_together() -> None:
    n = te.var("n")
    first_of = te.comm_reducer(
        lambda x, y: (te.Select(x[1] >= y[1], x[0], y[0]), te.max(x[1], y[1])),
        lambda i, v: (te.const(-1, i), te.min_value(v)),
    )
    X, r = te.placeholder((n, 3), name="X"), te.reduce_axis(n, name="r")
    index, value = te.compute((3,), lambda j: first_of((te.cast(r, "int64"), X[r, j]), axis=r), name="best")
    x = np.random.default_rng(1).standard_normal((7, 3)).astype("float32")
    i, v = np.zeros(3, "int64"), np.zeros(3, "float32")
    run(te.create_prim_func([X, index, value]), x, i, v)
    np.testing.assert_array_equal(i, x.argmax(0))
    np.testing.assert_array_equal(v, x.max(0))


@pytest.mark.parametrize("make, code", [
    (lambda A: te.compute((2, 2), lambda i: A[i]), "RLX0135"),
    (lambda A: te.compute((2,), lambda i: A[i, i]), "RLX0301"),
    (lambda A: te.compute((2,), lambda i: A[te.cast(i, "float32")]), "RLX0302"),
    (lambda A: te.compute((2,), lambda i: "x"), "RLX0451"),
    (lambda A: te.compute((2,), lambda i: te.sum(A[te.reduce_axis(2)], axis=te.var("k"))), "RLX0138"),
    (lambda A: _sum_plus_one(A), "RLX0451"),
    (lambda A: te.create_prim_func([A]), "RLX0451"),
    (lambda A: te.create_prim_func([te.compute((2,), lambda i: A[i])]), "RLX0451"),
    (lambda A: te.create_prim_func([A, te.compute((2,), lambda i: A[i] * te.var("s", "float32"))]), "RLX0451"),
])  # fmt: skip
def test_misuse_is_a_diagnostic(make: Any, code: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        make(te.placeholder((2,), name="A"))
    assert caught.value.diagnostics[0].code == code


def _sum_plus_one(A: Any) -> Any:
    k = te.reduce_axis(2)
    return te.compute((), lambda: te.sum(A[k], axis=k) + 1.0)
