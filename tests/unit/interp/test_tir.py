"""TensorIR: every statement, both ways of running loops."""

import numpy as np
import pytest
from interpreted import call, kernel, module

from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.interp import Interpreter


def zeros(*shape, of="float32"):
    return np.zeros(shape, of)


def test_reduction_block_initialises_at_the_first_value_of_its_reduction_axes() -> None:
    mod = kernel(
        'A: T.Buffer((5, 6, 7), "int32"), B: T.Buffer((5,), "int32")',
        """
        for i, j, k in T.grid(5, 6, 7):
            with T.block("sum"):
                vi, vj, vk = T.axis.remap("SRR", [i, j, k])
                with T.init():
                    B[vi] = 100
                B[vi] = B[vi] + A[vi, vj, vk]
        """,
    )
    a, b = np.arange(210, dtype="int32").reshape(5, 6, 7), zeros(5, of="int32")
    call(mod, a, b)
    np.testing.assert_array_equal(b, 100 + a.sum((1, 2)))


def test_reduction_over_nothing_initialises_every_point_once() -> None:
    mod = kernel(
        'a: T.handle, B: T.Buffer((6,), "float32")',
        """
        n = T.int64()
        A = T.match_buffer(a, (6, n), "float32")
        for k0, i, k1 in T.grid((n + 3) // 4, 6, 4):
            with T.block("sum"):
                T.where(k0 * 4 + k1 < n)
                vi = T.axis.spatial(6, i)
                vk = T.axis.reduce(n, k0 * 4 + k1)
                with T.init():
                    B[vi] = T.float32(3)
                B[vi] = B[vi] + A[vi, vk]
        """,
    )
    for n in (0, 1, 6):
        a, b = np.ones((6, n), "float32"), zeros(6)
        call(mod, a, b)
        np.testing.assert_array_equal(b, np.full(6, 3 + n))


def test_reduction_over_nothing_under_a_condition_and_in_a_nested_block() -> None:
    mod = kernel(
        'B: T.Buffer((8,), "int32")',
        """
        for i in range(8):
            if i % 2 == 0:
                with T.block("outer"):
                    vo = T.axis.spatial(8, i)
                    for k in range(0):
                        with T.block("inner"):
                            vi = T.axis.spatial(8, vo)
                            vk = T.axis.reduce(0, k)
                            with T.init():
                                B[vi] = vi
                            B[vi] = B[vi] + vk
        """,
    )
    b = np.full(8, -1, "int32")
    call(mod, b)
    assert b.tolist() == [0, -1, 2, -1, 4, -1, 6, -1]


def test_fused_loop_and_predicate() -> None:
    mod = kernel(
        'A: T.Buffer((3, 7), "float32"), B: T.Buffer((3, 7), "float32")',
        """
        for f0, f1 in T.grid(6, 4):
            with T.block("copy"):
                T.where(f0 * 4 + f1 < 21)
                vi = T.axis.spatial(3, (f0 * 4 + f1) // 7)
                vj = T.axis.spatial(7, (f0 * 4 + f1) % 7)
                B[vi, vj] = A[vi, vj] * T.float32(2)
        """,
    )
    a, b = np.random.rand(3, 7).astype("float32"), zeros(3, 7)
    call(mod, a, b)
    np.testing.assert_array_equal(b, a * 2)


def test_if_then_else_guards_loads_and_select_does_not() -> None:
    body = """
        for i in range(6):
            with T.block("shift"):
                vi = T.axis.spatial(6, i)
                B[vi] = {}(vi < 5 and A[vi + 1] > T.float32(-1), A[vi + 1], T.float32(0))
        """
    params = 'A: T.Buffer((6,), "float32"), B: T.Buffer((6,), "float32")'
    a, b = np.arange(6, dtype="float32"), zeros(6)
    call(kernel(params, body.format("T.if_then_else")), a, b)
    assert b.tolist() == [1, 2, 3, 4, 5, 0]
    for vectorize in (True, False):
        with pytest.raises(DiagnosticError, match=r"`A\[6\]` is out of bounds: index 6 in dimension 0.*extent is 6"):
            Interpreter(kernel(params, body.format("T.Select")), vectorize=vectorize).run("f", a, b)


def test_out_of_bounds_names_the_first_instance_and_the_line() -> None:
    mod = kernel(
        'A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 7), "float32")',
        """
        for i, j in T.grid(8, 8):
            B[i, j] = A[i, j]
        """,
    )
    for vectorize in (True, False):
        with pytest.raises(DiagnosticError) as caught:
            Interpreter(mod, vectorize=vectorize).run("f", np.ones((8, 8), "float32"), zeros(8, 7))
        (diagnostic,) = caught.value.diagnostics
        assert diagnostic.code == "RLX6030"
        assert "`B[0, 7]` is out of bounds: index 7 in dimension 1, whose extent is 7" in diagnostic.message
        assert diagnostic.span is not None and diagnostic.span.line == 6


def test_negative_indices_are_out_of_bounds() -> None:
    mod = kernel('A: T.Buffer((8,), "float32")', "for i in range(8):\n    A[i - 1] = T.float32(0)")
    with pytest.raises(DiagnosticError, match=r"`A\[-1\]` is out of bounds"):
        call(mod, zeros(8))


def test_loops_that_carry_values_keep_their_order() -> None:
    mod = kernel(
        'A: T.Buffer((50,), "int32"), S: T.Buffer((1,), "int32")',
        """
        for i in range(1, 50):
            A[i] = A[i - 1] * 3 + A[i]
        for i in T.parallel(50):
            S[0] = S[0] * 5 + A[i]
        for i in range(25):
            A[49 - i] = A[i]
        for i in range(49):
            A[i] = A[i + 1]
        """,
    )
    a, s = np.arange(50, dtype="int32"), zeros(1, of="int32")
    want, total = a.astype("int64"), 0
    for i in range(1, 50):
        want[i] = (want[i - 1] * 3 + want[i] + 2**31) % 2**32 - 2**31
    for i in range(50):
        total = (total * 5 + want[i] + 2**31) % 2**32 - 2**31
    for i in range(25):
        want[49 - i] = want[i]
    want[:49] = want[1:].copy()
    call(mod, a, s)
    np.testing.assert_array_equal(a, want)
    assert s[0] == total


def test_scatter_with_repeated_places_keeps_the_last_value() -> None:
    mod = kernel(
        'I: T.Buffer((20,), "int32"), A: T.Buffer((8,), "int32")',
        "for i in range(20):\n    A[I[i]] = i",
    )
    for index in (np.arange(20, dtype="int32") * 3 % 8, np.arange(20, dtype="int32") % 8):
        a = zeros(8, of="int32")
        call(mod, index, a)
        want = zeros(8, of="int32")
        for i in range(20):
            want[index[i]] = i
        np.testing.assert_array_equal(a, want)


def test_overlapping_arguments_are_one_memory() -> None:
    mod = kernel(
        'A: T.Buffer((19,), "int32"), B: T.Buffer((19,), "int32")',
        "for i in range(19):\n    B[i] = A[i] + 1",
    )
    results = []
    for vectorize in (True, False):
        data = np.zeros(20, "int32")
        Interpreter(mod, vectorize=vectorize).run("f", data[:19], data[1:])
        results.append(data.tolist())
    assert results == [list(range(20))] * 2


def test_ragged_loops() -> None:
    mod = kernel(
        'A: T.Buffer((9,), "int32"), B: T.Buffer((9,), "int32")',
        """
        for i in range(9):
            for j in range(i // 2, i):
                A[i] = A[i] * 2 + B[j]
        """,
    )
    a, b = np.arange(9, dtype="int32"), np.arange(9, dtype="int32")
    call(mod, a, b)
    for i in range(9):
        total = i
        for j in range(i // 2, i):
            total = total * 2 + j
        assert a[i] == total


def test_while_break_continue_and_conditions() -> None:
    mod = kernel(
        'A: T.Buffer((10,), "int32"), N: T.Buffer((1,), "int32")',
        """
        while N[0] < 5:
            N[0] = N[0] + 1
            if N[0] == 3:
                continue
            A[N[0]] = 1
        for i in range(10):
            if i == 8:
                break
            if i % 2 == 0:
                A[i] = A[i] + 10
            elif i % 3 == 0:
                A[i] = A[i] + 20
            else:
                A[i] = A[i] + 30
        """,
    )
    a, n = zeros(10, of="int32"), zeros(1, of="int32")
    call(mod, a, n)
    assert a.tolist() == [10, 31, 11, 20, 11, 31, 10, 30, 0, 0]


def test_allocations_belong_to_one_iteration() -> None:
    mod = kernel(
        'A: T.Buffer((12, 4), "float32"), B: T.Buffer((12,), "float32")',
        """
        for i in range(12):
            with T.block("row"):
                vi = T.axis.spatial(12, i)
                local = T.alloc_buffer((5,), "float32", scope="local")
                local[4] = T.float32(0)
                for j in range(4):
                    local[j] = A[vi, j] * T.float32(2)
                for j in range(4):
                    local[4] = local[4] + local[3 - j]
                B[vi] = local[4]
        """,
    )
    a, b = np.random.rand(12, 4).astype("float32"), zeros(12)
    call(mod, a, b)
    np.testing.assert_allclose(b, 2 * a.sum(1), rtol=1e-6)


def test_fresh_memory_shows() -> None:
    mod = kernel(
        'B: T.Buffer((4,), "float32"), C: T.Buffer((4,), "int8")',
        """
        X = T.alloc_buffer((4,), "float32")
        Y = T.alloc_buffer((4,), "int8")
        for i in range(4):
            B[i] = X[i]
            C[i] = Y[i]
        """,
    )
    b, c = zeros(4), zeros(4, of="int8")
    call(mod, b, c)
    assert np.isnan(b).all() and c.tolist() == [-128] * 4


def test_lets_hold_the_value_of_their_moment() -> None:
    mod = kernel(
        'A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")',
        """
        for i in range(8):
            x: T.int32 = A[i]
            A[i] = B[i]
            B[i] = x
        """,
    )
    a, b = np.arange(8, dtype="int32"), np.arange(8, dtype="int32") * 10
    call(mod, a, b)
    assert a.tolist() == list(range(0, 80, 10)) and b.tolist() == list(range(8))


def test_assertions_report_their_message() -> None:
    mod = kernel('A: T.Buffer((8,), "int32")', 'assert A[3] > 0, "three must be positive"\nA[0] = 5')
    call(mod, np.ones(8, "int32"))
    with pytest.raises(DiagnosticError, match="assertion failed: three must be positive"):
        call(mod, zeros(8, of="int32"))


def test_symbolic_shapes_and_scalars() -> None:
    mod = module("""
        @T.prim_func
        def f(a: T.handle, b: T.handle, scale: T.float32):
            n = T.int64()
            m = T.int64()
            A = T.match_buffer(a, (n, m), "float32")
            B = T.match_buffer(b, (m, n * 2), "float32")
            for i, j in T.grid(m, n * 2):
                B[i, j] = A[j // 2, i] * scale
    """)
    a, b = np.random.rand(3, 5).astype("float32"), zeros(5, 6)
    call(mod, a, b, 0.5)
    np.testing.assert_array_equal(b, np.repeat(a.T, 2, axis=1) * np.float32(0.5))
    with pytest.raises(DiagnosticError, match="dimension 1 is 7, expected") as caught:
        call(mod, a, zeros(5, 7), 0.5)
    assert caught.value.diagnostics[0].code == "RLX6005"
    with pytest.raises(DiagnosticError, match="`f` takes 3 arguments"):
        call(mod, a, b)
    with pytest.raises(DiagnosticError, match="expected dtype float32"):
        call(mod, a.astype("float64"), b, 0.5)


def test_strided_arguments_are_written_in_place() -> None:
    mod = kernel('A: T.Buffer((4, 3), "float32")', "for i, j in T.grid(4, 3):\n    A[i, j] = A[i, j] + T.float32(1)")
    whole = np.arange(24, dtype="float32").reshape(3, 8)
    before = whole.copy()
    Interpreter(mod).run("f", whole.T[::2])
    before[:, ::2] += 1
    np.testing.assert_array_equal(whole, before)


def test_read_only_arguments_are_refused_when_written() -> None:
    mod = kernel('A: T.Buffer((4,), "float32")', "A[0] = T.float32(1)")
    array = zeros(4)
    array.flags.writeable = False
    with pytest.raises(DiagnosticError, match="read-only"):
        Interpreter(mod).run("f", array)


def test_calls_of_other_kernels() -> None:
    mod = module("""
        @T.prim_func(private=True)
        def double(A: T.Buffer((4,), "float32")):
            for i in range(4):
                A[i] = A[i] * T.float32(2)

        @T.prim_func
        def f(A: T.Buffer((4,), "float32")):
            Module.double(A.data)
            Module.double(A.data)
    """)
    a = np.ones(4, "float32")
    call(mod, a)
    assert a.tolist() == [4.0] * 4


def test_return_value() -> None:
    mod = module("""
        @T.prim_func
        def f(n: T.int64) -> T.int64:
            T.ret(n * T.int64(3))
    """)
    assert call(mod, 14) == 42


def test_a_matmul_of_64_is_computed_in_bulk() -> None:
    mod = kernel(
        'A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32"), C: T.Buffer((64, 64), "float32")',
        """
        for i, j, k in T.grid(64, 64, 64):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
        """,
    )
    a, b, c = np.random.rand(64, 64).astype("float32"), np.random.rand(64, 64).astype("float32"), zeros(64, 64)
    Interpreter(mod).run("f", a, b, c)
    want = zeros(64, 64)
    for k in range(64):  # the order of the additions is the loop's
        want += a[:, k : k + 1] * b[k]
    np.testing.assert_array_equal(c, want)
