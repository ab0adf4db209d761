"""Statements and memory: compiled kernels do what the interpreter does."""

import numpy as np
import pytest
from compiled import compiled, module, prim_func, same

from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.codegen import build_kernels

RNG = np.random.default_rng(7)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("float32")


def ints(*shape: int, low: int = -50, high: int = 50) -> np.ndarray:
    return RNG.integers(low, high, shape, dtype="int32")


def zeros(*shape: int, of: str = "float32") -> np.ndarray:
    return np.zeros(shape, of)


MATMUL = prim_func(
    "a: T.handle, b: T.handle, c: T.handle",
    """
    n, m, k = T.int64(), T.int64(), T.int64()
    A = T.match_buffer(a, (n, k), "float32")
    B = T.match_buffer(b, (k, m), "float32")
    C = T.match_buffer(c, (n, m), "float32")
    for i, j, l in T.grid(n, m, k):
        with T.block("mm"):
            vi, vj, vl = T.axis.remap("SSR", [i, j, l])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vl] * B[vl, vj]
    """,
)


@pytest.mark.parametrize("n, m, k", [(1, 1, 1), (3, 5, 7), (17, 63, 65), (0, 4, 4), (4, 0, 4), (64, 64, 64)])
def test_matmul(n: int, m: int, k: int) -> None:
    a, b, c = floats(n, k), floats(k, m), np.full((n, m), 9, "float32")
    compiled(MATMUL)(a, b, c)
    np.testing.assert_allclose(c, a.astype("f8") @ b, rtol=1e-4, atol=1e-5)


def test_reduction_over_nothing_stores_the_start_value() -> None:
    c = np.full((3, 4), 9, "float32")
    compiled(MATMUL)(zeros(3, 0), zeros(0, 4), c)
    assert (c == 0).all()


@pytest.mark.parametrize("n", [0, 1, 4, 10, 13])
def test_split_reduction_with_a_predicate(n: int) -> None:
    mod = prim_func(
        'a: T.handle, B: T.Buffer((6,), "float32")',
        """
        n = T.int64()
        A = T.match_buffer(a, (6, n), "float32")
        for k0, i, k1 in T.grid((n + 3) // 4, 6, 4):
            with T.block("sum"):
                vi = T.axis.spatial(6, i)
                vk = T.axis.reduce(n, k0 * 4 + k1)
                T.where(k0 * 4 + k1 < n)
                with T.init():
                    B[vi] = T.float32(100)
                B[vi] = B[vi] + A[vi, vk]
        """,
    )
    same(mod, floats(6, n), floats(6), rtol=1e-5)


def test_one_loop_that_drives_a_spatial_and_a_reduction_axis() -> None:
    mod = prim_func(
        'A: T.Buffer((4, 6), "float32"), B: T.Buffer((4,), "float32")',
        """
        for f in range(24):
            with T.block("sum"):
                vi = T.axis.spatial(4, f // 6)
                vk = T.axis.reduce(6, f % 6)
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vk]
        """,
    )
    same(mod, floats(4, 6), floats(4), rtol=1e-5)


def test_reduction_whose_output_another_block_also_writes() -> None:
    mod = prim_func(
        'A: T.Buffer((3, 4), "float32"), B: T.Buffer((4,), "float32"), S: T.Buffer((3, 4), "float32")',
        """
        for i in range(3):
            for k in range(4):
                with T.block("sum"):
                    vk = T.axis.reduce(4, k)
                    with T.init():
                        B[0] = T.float32(0)
                    B[0] = B[0] + A[i, vk]
                S[i, k] = B[0]
            B[0] = T.float32(7)
        """,
    )
    same(mod, floats(3, 4), floats(4), zeros(3, 4), rtol=1e-5)


def test_intermediates_of_every_size() -> None:
    mod = prim_func(
        "a: T.handle, c: T.handle",
        """
        n = T.int64()
        A = T.match_buffer(a, (n, n), "float32")
        C = T.match_buffer(c, (n, n), "float32")
        small = T.alloc_buffer((8,), "float32")
        large = T.alloc_buffer((100, 100), "float32")
        shaped = T.alloc_buffer((n, n), "float32")
        for i in range(8):
            small[i] = T.Cast("float32", i)
        for i, j in T.grid(100, 100):
            large[i, j] = T.Cast("float32", i * j)
        for i, j in T.grid(n, n):
            shaped[i, j] = A[i, j] * T.float32(2)
        for i, j in T.grid(n, n):
            C[i, j] = shaped[j, i] + small[i % 8] + large[i % 100, j % 100]
        """,
    )
    for n in (0, 1, 9):
        same(mod, floats(n, n), zeros(n, n))


def test_match_buffer_of_a_region() -> None:
    mod = prim_func(
        'A: T.Buffer((8, 16), "float32"), B: T.Buffer((8, 16), "float32")',
        """
        for i, j in T.grid(4, 4):
            with T.block("tile"):
                vi, vj = T.axis.remap("SS", [i, j])
                s = T.int32()
                a = T.match_buffer(A[vi * 2:vi * 2 + 2, vj * 4:vj * 4 + 4], (2, 4), "float32", strides=[s, 1])
                b = T.match_buffer(B[vi * 2:vi * 2 + 2, vj * 4:vj * 4 + 4], (2, 4), "float32", strides=[16, 1])
                for x, y in T.grid(2, 4):
                    b[x, y] = a[x, y] * T.float32(3) + T.Cast("float32", s)
        """,
    )
    same(mod, floats(8, 16), zeros(8, 16))


def test_while_break_continue_let_and_conditions() -> None:
    mod = prim_func(
        'A: T.Buffer((20,), "int32"), B: T.Buffer((20,), "int32")',
        """
        for i in range(20):
            if A[i] < 0:
                B[i] = -1
                continue
            if i == 17:
                break
            x: T.int32 = A[i]
            B[i] = 0
            while B[i] * B[i] < x:
                B[i] = B[i] + 1
                if B[i] > 5:
                    break
        """,
    )
    same(mod, ints(20), zeros(20, of="int32"))


def test_loops_with_start_and_step() -> None:
    mod = prim_func(
        'A: T.Buffer((20,), "int32")',
        """
        for i in range(3, 17):
            A[i] = i
        for i in T.serial(1, 20, step=4):
            A[i] = A[i] + 100 * i
        for i in range(5, 5):
            A[i] = -7
        """,
    )
    same(mod, zeros(20, of="int32"))


@pytest.mark.parametrize("kind", ["vectorized", "unroll", "parallel"])
def test_kinds_of_loops(kind: str) -> None:
    mod = prim_func(
        'A: T.Buffer((16, 8), "float32"), B: T.Buffer((8, 16), "float32"), C: T.Buffer((16, 8), "float32")',
        f"""
        for i in range(16):
            for j in T.{kind}(8):
                x: T.float32 = A[i, j] + B[j, i]
                if i < 12:
                    C[i, j] = T.exp(x) * T.Cast("float32", j * 3 + i)
                else:
                    C[i, j] = T.if_then_else(x > T.float32(0), A[i, j], T.float32(2)) + A[0, 0]
        """,
    )
    same(mod, floats(16, 8), floats(8, 16), zeros(16, 8), rtol=3e-7)


def test_vectorized_loop_that_shifts_along_memory_keeps_its_order() -> None:
    mod = prim_func(
        'A: T.Buffer((17,), "int32")',
        """
        for j in T.vectorized(16):
            A[j + 1] = A[j] + 1
        """,
    )
    same(mod, ints(17))


def test_vector_expressions() -> None:
    mod = prim_func(
        'A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")',
        """
        B[T.Ramp(0, 1, 8)] = A[T.Ramp(8, 1, 8)] * T.Broadcast(T.float32(2), 8)
        B[T.Ramp(8, 2, 4)] = A[T.Ramp(31, -1, 4)]
        B[20] = T.Shuffle([A[T.Ramp(0, 1, 4)]], [2])
        """,
    )
    same(mod, floats(32), zeros(32))


def test_functions_that_call_each_other_and_return_values() -> None:
    mod = module(
        """
        @T.prim_func(private=True)
        def twice(p: T.handle, n: T.int32):
            A = T.match_buffer(p, (8,), "int32")
            for i in range(n):
                A[i] = A[i] * 2

        @T.prim_func
        def f(A: T.Buffer((8,), "int32")):
            Module.twice(A.data, 3)
            Module.twice(A.data, 8)
        """
    )
    a = np.arange(8, dtype="int32")
    compiled(mod)(a)
    np.testing.assert_array_equal(a, [0, 4, 8, 6, 8, 10, 12, 14])


def test_a_returned_value_is_a_last_buffer_of_the_kernel() -> None:
    mod = module(
        """
        @T.prim_func
        def g(A: T.Buffer((4,), "float32"), n: T.int64) -> T.int64:
            if n > T.int64(2):
                T.ret(n * T.int64(5))
            T.ret(T.int64(0))

        @T.prim_func
        def f(A: T.Buffer((4,), "float32"), B: T.Buffer((2,), "int64")):
            B[0] = Module.g(A.data, T.int64(3))
            B[1] = Module.g(A.data, T.int64(1)) + T.int64(2)
        """
    )
    a, b, result = zeros(4), zeros(2, of="int64"), zeros(of="int64")
    compiled(mod)(a, b)
    np.testing.assert_array_equal(b, [15, 2])
    compiled(mod, name="g")(a, 7, result)
    assert result == 35


def test_c_functions() -> None:
    mod = prim_func(
        'A: T.Buffer((4,), "float64"), B: T.Buffer((4,), "float64")',
        """
        for i in range(4):
            B[i] = T.call_pure_extern("float64", "cbrt", A[i])
        """,
    )
    a, b = np.array([1.0, 8, 27, -64]), np.zeros(4)
    compiled(mod)(a, b)
    np.testing.assert_allclose(b, np.cbrt(a), rtol=1e-15)


def test_failed_assertions_name_their_message() -> None:
    mod = prim_func(
        'A: T.Buffer((4,), "int32")',
        """
        for i in range(4):
            assert A[i] >= 0, "an element is negative"
            A[i] = A[i] + 1
        """,
    )
    kernel = compiled(mod)
    a = np.array([1, 2, -3, 4], "int32")
    with pytest.raises(DiagnosticError, match="an element is negative"):
        kernel(a)
    np.testing.assert_array_equal(a, [2, 3, -3, 4])


def test_an_intermediate_too_large_for_memory_is_an_error() -> None:
    mod = prim_func(
        'A: T.Buffer((1,), "float32"), n: T.int64',
        """
        B = T.alloc_buffer((n, n), "float32")
        for i in range(1):
            B[i, 0] = A[0]
            A[0] = B[i, 0] * T.float32(2)
        """,
    )
    kernel = compiled(mod)
    a = np.ones(1, "float32")
    kernel(a, 3)
    assert a[0] == 2
    for n in (1 << 40, -1, 1 << 30):
        with pytest.raises(DiagnosticError, match="no memory for the intermediate `B`"):
            kernel(a, n)


def test_default_reductions_and_elementwise_loops_use_vectors() -> None:
    mod = prim_func(
        'a: T.handle, B: T.Buffer((1,), "float32")',
        """
        n = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        for k in range(n):
            with T.block("sum"):
                vk = T.axis.reduce(n, k)
                with T.init():
                    B[0] = T.float32(0)
                B[0] = B[0] + T.exp(A[vk])
        """,
    )
    from relaxlang.codegen import asm_text

    text = asm_text(mod["f"], "llvm -mcpu=x86-64-v3 -mtriple=x86_64-unknown-linux-gnu")
    assert "ymm" in text and "call" not in text


def test_a_load_is_repeated_after_a_store_to_its_memory() -> None:
    """A basic block loads a place once; what was stored in between, under this name or another, is loaded again."""
    mod = prim_func(
        'A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")',
        """
    C = T.decl_buffer((4,), "float32", data=A.data)
    p: T.handle("float32") = T.address_of(A[1])
    D = T.decl_buffer((1,), "float32", data=p)
    B[0] = A[0] + A[1]
    A[0] = B[0]
    B[1] = A[0] + A[1]
    C[0] = B[1] + B[0]
    B[2] = A[0] + A[1]
    D[0] = B[2]
    B[3] = A[0] + A[1]
        """,
    )
    same(mod, floats(4), floats(4))
    plain = prim_func(
        'A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")',
        """
    B[0] = A[0]
    B[1] = A[0]
    B[2] = B[0]
        """,
    )
    assert build_kernels(dict(plain.prim_funcs()))["f"].llvm.count("load float, ptr %p0") == 1
