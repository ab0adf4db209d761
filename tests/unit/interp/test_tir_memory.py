"""TensorIR: vectors, views of memory, regions, pointers, calls out of the module."""

import numpy as np
import pytest
from interpreted import call, kernel, module

from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.base.dtype import dtype
from relaxlang.interp import Interpreter
from relaxlang.ir import prim, tir
from relaxlang.ir.module import IRModule


def zeros(*shape, of="float32"):
    return np.zeros(shape, of)


# --- vectors ----------------------------------------------------------------------------------------------------------
def test_ramps_load_and_store_lanes() -> None:
    mod = kernel(
        'A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")',
        """
        for i in range(4):
            B[T.Ramp(i * 8, 1, 8)] = A[T.Ramp(i * 8 + 7, -1, 8)] * T.Broadcast(T.float32(2), 8) + T.Broadcast(A[i], 8)
        """,
    )
    a, b = np.arange(32, dtype="float32"), zeros(32)
    call(mod, a, b)
    np.testing.assert_array_equal(b, (a.reshape(4, 8)[:, ::-1] * 2 + a[:4, None]).ravel())


def test_shuffles_take_lanes() -> None:
    mod = kernel(
        'A: T.Buffer((8,), "int32"), B: T.Buffer((3,), "int32")',
        "B[T.Ramp(0, 1, 3)] = T.Shuffle([A[T.Ramp(0, 1, 4)], A[T.Ramp(4, 1, 4)]], [7, 0, 5])",
    )
    a, b = np.arange(8, dtype="int32"), zeros(3, of="int32")
    call(mod, a, b)
    assert b.tolist() == [7, 0, 5]


def test_lanes_out_of_bounds_are_reported() -> None:
    mod = kernel('A: T.Buffer((8,), "int32")', "A[T.Ramp(5, 1, 4)] = T.Broadcast(1, 4)")
    with pytest.raises(DiagnosticError, match=r"`A\[8\]` is out of bounds"):
        call(mod, zeros(8, of="int32"))


def test_predicates_of_loads_and_stores() -> None:
    a = tir.Buffer("A", (prim.IntImm(prim.INT32, 5),), dtype("int32"), prim.Var("A", prim.HANDLE))
    handle, lanes = prim.Var("a", prim.HANDLE), prim.Ramp(prim.IntImm(prim.INT32, 3), prim.IntImm(prim.INT32, 1), 4)
    inside = prim.LT(lanes, prim.Broadcast(prim.IntImm(prim.INT32, 5), 4))
    load = prim.BufferLoad(a, (lanes,), inside)
    store = tir.BufferStore(a, prim.Add(load, prim.Broadcast(prim.IntImm(prim.INT32, 10), 4)), (lanes,), inside)
    array = np.arange(5, dtype="int32")
    call(IRModule({"f": tir.PrimFunc((handle,), store, {handle: a})}), array)
    assert array.tolist() == [0, 1, 2, 13, 14]


def test_buffers_of_vectors() -> None:
    of = dtype("float32x4")
    a, b = (tir.Buffer(n, (prim.IntImm(prim.INT32, 3),), of, prim.Var(n, prim.HANDLE)) for n in "AB")
    x, y, i = prim.Var("x", prim.HANDLE), prim.Var("y", prim.HANDLE), prim.Var("i")
    body = tir.BufferStore(
        b, prim.Add(prim.BufferLoad(a, (prim.IntImm(prim.INT32, 2) - i,)), prim.BufferLoad(a, (i,))), (i,)
    )
    loop = tir.For(i, prim.IntImm(prim.INT32, 0), prim.IntImm(prim.INT32, 3), "serial", body)
    source, target = np.arange(12, dtype="float32").reshape(3, 4), zeros(3, 4)
    call(IRModule({"f": tir.PrimFunc((x, y), loop, {x: a, y: b})}), source, target)
    np.testing.assert_array_equal(target, source + source[::-1])


# --- views and regions ------------------------------------------------------------------------------------------------
def test_declared_strides_and_offsets() -> None:
    mod = module("""
        @T.prim_func
        def f(a: T.handle, b: T.handle):
            s0 = T.int64()
            s1 = T.int64()
            A = T.match_buffer(a, (3, 4), "float32", strides=[s0, s1])
            B = T.match_buffer(b, (3, 4), "float32")
            for i, j in T.grid(3, 4):
                B[i, j] = A[i, j] + T.Cast("float32", s0 * T.int64(100) + s1)
    """)
    whole = np.arange(48, dtype="float32").reshape(6, 8)
    b = zeros(3, 4)
    Interpreter(mod).run("f", whole[::2, ::-2], b)
    np.testing.assert_array_equal(b, whole[::2, ::-2] + 1600 - 2)


def test_flat_views_of_memory() -> None:
    mod = kernel(
        'A: T.Buffer((3, 4), "float32")',
        """
        flat = T.decl_buffer((12,), "float32", data=A.data)
        tail = T.decl_buffer((4,), "float32", data=A.data, elem_offset=8)
        bits = T.decl_buffer((12,), "int32", data=A.data)
        for i in range(12):
            flat[i] = flat[i] + T.float32(1)
        for i in range(4):
            tail[i] = tail[i] * T.float32(2)
        bits[0] = 0
        """,
    )
    a = np.ones((3, 4), "float32")
    call(mod, a)
    want = np.full((3, 4), 2, "float32")
    want[2], want[0, 0] = 4, 0
    np.testing.assert_array_equal(a, want)


def test_a_view_beyond_its_memory_is_reported() -> None:
    mod = kernel('A: T.Buffer((4,), "float32")', 'B = T.decl_buffer((9,), "float32", data=A.data)\nB[6] = T.float32(1)')
    with pytest.raises(DiagnosticError, match="`B` reaches beyond its memory of 4 elements"):
        call(mod, zeros(4))


def test_regions_as_buffers() -> None:
    mod = kernel(
        'A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")',
        """
        for io, jo in T.grid(2, 2):
            with T.block("tile"):
                vi, vj = T.axis.remap("SS", [io, jo])
                T.reads(A[vi * 4 : vi * 4 + 4, vj * 4 : vj * 4 + 4])
                T.writes(B[vi * 4 : vi * 4 + 4, vj * 4 : vj * 4 + 4])
                s0 = T.int32()
                s1 = T.int32()
                X = T.match_buffer(A[vi * 4 : vi * 4 + 4, vj * 4 : vj * 4 + 4], (4, 4), "float32", strides=[s0, s1],
                                   offset_factor=1)
                Y = T.match_buffer(B[vi * 4 : vi * 4 + 4, vj * 4 : vj * 4 + 4], (4, 4), "float32", offset_factor=1)
                for i, j in T.grid(4, 4):
                    Y[j, i] = X[i, j] * T.Cast("float32", s0)
        """,
    )
    a, b = np.random.rand(8, 8).astype("float32"), zeros(8, 8)
    call(mod, a, b)
    want = a.reshape(2, 4, 2, 4).transpose(0, 3, 2, 1).reshape(8, 8) * 8
    np.testing.assert_array_equal(b, want)


def test_allocated_memory_and_constants() -> None:
    mod = kernel(
        'B: T.Buffer((4,), "int32")',
        """
        memory = T.allocate([4], "int32", "global")
        M = T.decl_buffer((4,), "int32", data=memory)
        table = T.allocate_const([3, 1, 0, 2], "int32", [4])
        C = T.decl_buffer((4,), "int32", data=table)
        for i in range(4):
            M[C[i]] = i * 10
        for i in range(4):
            B[i] = M[i]
        """,
    )
    b = zeros(4, of="int32")
    call(mod, b)
    assert b.tolist() == [20, 10, 30, 0]


# --- calls ------------------------------------------------------------------------------------------------------------
def test_packed_functions_take_scalars_and_memory() -> None:
    mod = kernel(
        'A: T.Buffer((4,), "float32")',
        """
        T.evaluate(T.call_packed("note", A.data, 7, A[1]))
        T.evaluate(T.call_packed("note", T.address_of(A[2]), "text"))
        """,
    )
    seen = []

    def note(*args):
        seen.append([a.tolist() if isinstance(a, np.ndarray) else a for a in args])

    Interpreter(mod, packed={"note": note}.get).run("f", np.arange(4, dtype="float32"))
    assert seen == [[[0, 1, 2, 3], 7, 1.0], [[2, 3], "text"]]
    with pytest.raises(DiagnosticError, match="there is no packed function `note`"):
        Interpreter(mod).run("f", zeros(4))


def test_what_cannot_be_interpreted_says_so() -> None:
    mod = kernel('A: T.Buffer((4,), "float32")', 'T.evaluate(T.tvm_storage_sync("shared"))')
    with pytest.raises(DiagnosticError, match="tvm_storage_sync` cannot be interpreted"):
        Interpreter(mod).run("f", zeros(4))


def test_assumptions_are_checked() -> None:
    mod = kernel('A: T.Buffer((8,), "int32")', "for i in range(8):\n    T.assume(A[i] >= 0)")
    call(mod, np.arange(8, dtype="int32"))
    with pytest.raises(DiagnosticError, match="assumption"):
        call(mod, np.arange(8, dtype="int32") - 1)
