"""Parallel loops: the same results from any number of threads, from anywhere."""

import os
import threading

import numpy as np
import pytest
from compiled import compiled, prim_func

from relaxlang.base.diagnostics import DiagnosticError, RelaxlangError
from relaxlang.codegen import get_num_threads, set_num_threads

ROWS = prim_func(
    'A: T.Buffer((n, m), "float32"), B: T.Buffer((n,), "float32")',
    """
    for i in T.parallel(n):
        with T.block("init"):
            vi = T.axis.spatial(n, i)
            B[vi] = T.float32(0)
        for k in range(m):
            with T.block("sum"):
                vi = T.axis.spatial(n, i)
                vk = T.axis.reduce(m, k)
                B[vi] = B[vi] + T.exp(A[vi, vk])
    """,
)


@pytest.fixture
def threads():
    before = get_num_threads()
    yield set_num_threads
    set_num_threads(before)


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (3, 7), (1000, 33), (7, 20000), (501, 501)])
def test_results_do_not_depend_on_the_number_of_threads(shape, threads) -> None:
    kernel = compiled(ROWS)
    a = np.random.default_rng(1).standard_normal(shape).astype("float32")
    results = []
    for count in (1, 2, 3, 8):
        threads(count)
        made = np.full(shape[0], 7, "float32")
        kernel(a, made)
        results.append(made)
    np.testing.assert_allclose(results[0], np.exp(a.astype("float64")).sum(1), rtol=1e-5)
    assert all(np.array_equal(results[0], r) for r in results)


def test_many_threads_launch_at_once(threads) -> None:
    threads(3)
    kernel = compiled(ROWS)
    a = np.random.default_rng(2).standard_normal((400, 300)).astype("float32")
    wanted = np.zeros(400, "float32")
    kernel(a, wanted)
    wrong: list[int] = []

    def run() -> None:
        made = np.zeros(400, "float32")
        for turn in range(30):
            kernel(a, made)
            if not np.array_equal(made, wanted):
                wrong.append(turn)

    workers = [threading.Thread(target=run) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own(threads) -> None:
    threads(2)
    kernel = compiled(ROWS)
    a = np.ones((300, 300), "float32")
    wanted, made = np.zeros(300, "float32"), np.zeros(300, "float32")
    kernel(a, wanted)
    child = os.fork()
    if not child:
        kernel(a, made)
        os._exit(0 if np.array_equal(made, wanted) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_nested_parallel_loops_and_captured_values() -> None:
    mod = prim_func(
        'A: T.Buffer((64, 128), "int64"), s: T.int32, B: T.Buffer((64, 128), "int64")',
        """
        for i in T.parallel(64):
            x: T.int64 = T.Cast("int64", i * s)
            row = T.alloc_buffer((128,), "int64")
            for j in T.parallel(128):
                row[j] = A[i, j] + x
            for j in range(128):
                B[i, j] = row[127 - j]
        """,
    )
    a = np.arange(64 * 128).reshape(64, 128)
    made = np.zeros_like(a)
    compiled(mod)(a, 3, made)
    np.testing.assert_array_equal(made, (a + 3 * np.arange(64)[:, None])[:, ::-1])


def test_a_failed_assertion_in_a_parallel_loop() -> None:
    mod = prim_func(
        'A: T.Buffer((100000,), "int32")',
        """
        for i in T.parallel(100000):
            assert A[i] != 77777, "found it"
            A[i] = A[i] + 1
        """,
    )
    kernel = compiled(mod)
    kernel(np.zeros(100000, "int32"))
    with pytest.raises(DiagnosticError, match="found it"):
        kernel(np.arange(100000, dtype="int32"))


@pytest.mark.parametrize("count", [0, -1, 1.5, True, "2", 100000])
def test_numbers_of_threads_that_make_no_sense(count: object) -> None:
    with pytest.raises(RelaxlangError, match="whole number"):
        set_num_threads(count)  # type: ignore[arg-type]
