"""Well-formedness of TensorIR functions: what passes and schedules may do wrong."""

import pytest

from relaxlang import parse
from relaxlang.analysis.well_formed_tir import well_formed_prim_func
from relaxlang.ir import prim, tir

TEXT = """@T.prim_func
def f(A: T.Buffer((n, 4), "float32"), B: T.Buffer((16,), "float32")):
    C = T.alloc_buffer((4,), "float32")
    for i, j in T.grid(n, 4):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", [i, j])
            D = T.match_buffer(A[vi, 0:4], (1, 4), "float32", strides=("s", 1))
            with T.init():
                C[vj] = T.float32(0)
            C[vj] = D[0, vj] * T.float32(2)
    x = T.allocate([4], "float32")
    E = T.decl_buffer((4,), "float32", data=x)
    y = E[0] + T.Let(z + T.float32(1), where={z: C[1]})
    B[0] = y
""".replace("    C = T.alloc", "    z = T.float32()\n    C = T.alloc")


def codes(function: tir.PrimFunc) -> list[str]:
    """The codes of the breaches."""
    return [d.code for d in well_formed_prim_func("f", function)]


def function(body: tir.Stmt) -> tir.PrimFunc:
    """A function over one buffer, `A`, with this body."""
    return tir.PrimFunc((HANDLE,), body, {HANDLE: A})


HANDLE = prim.Var("a", prim.HANDLE)
DATA = prim.Var("A", prim.HANDLE, prim.PointerType(prim.FLOAT32))
A = tir.Buffer("A", (prim.const(16, "int32"),), prim.FLOAT32, DATA)
I = prim.Var("i")  # noqa: E741
ONE = prim.const(1.0, "float32")


def loop(body: tir.Stmt) -> tir.For:
    """`for i in range(16)`."""
    return tir.For(I, prim.const(0, "int32"), prim.const(16, "int32"), "serial", body)


def test_text_is_well_formed() -> None:
    found = parse(TEXT)["f"]
    assert isinstance(found, tir.PrimFunc) and codes(found) == []


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (tir.BufferStore(A, ONE, (I,)), "RLX0438"),
        (loop(loop(tir.BufferStore(A, ONE, (I,)))), "RLX0436"),
        (loop(tir.BufferStore(A, prim.const(1, "int32"), (I,))), "RLX0314"),
        (loop(tir.BufferStore(A, ONE, (I, I))), "RLX0301"),
        (loop(tir.BufferStore(A, ONE, (ONE,))), "RLX0302"),
        (loop(tir.Evaluate(prim.Add(I, prim.const(1, "int64")))), "RLX0325"),
        (tir.Break(), "RLX0319"),
        (tir.LetStmt(I, I, tir.Evaluate(I)), "RLX0438"),
    ],
)
def test_breaches(body: tir.Stmt, code: str) -> None:
    assert code in codes(function(body))


def test_axes_and_values() -> None:
    axis = tir.IterVar(prim.Var("v"), tir.Range(prim.const(0, "int32"), prim.const(16, "int32")), "spatial")
    block = tir.Block((axis,), None, None, "b", tir.BufferStore(A, ONE, (axis.var,)))
    assert codes(function(tir.BlockRealize((), prim.const(1, "bool"), block))) == ["RLX0310"]
    assert codes(function(loop(tir.BlockRealize((I,), prim.const(1, "bool"), block)))) == []
