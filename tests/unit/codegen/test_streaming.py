"""Results larger than the last-level cache go past it, the same as they would through it."""

import numpy as np
import pytest
from compiled import compiled, prim_func

from relaxlang.codegen import asm_text

ADD = """
for i in T.parallel({pieces}, annotations={{"pragma_streaming_stores": 1}}):
    for j in T.vectorized(64):
        if i * 64 + j < {n}:
            C[i * 64 + j] = A[i * 64 + j] + T.float32(1)
"""
LARGE = (8 << 20) + 5


def test_unknown_sizes_and_places_are_looked_at_when_the_code_runs() -> None:
    body = ADD.format(pieces="(n + 63) // 64", n="n")
    add = compiled(prim_func('A: T.Buffer((n,), "float32"), C: T.Buffer((n,), "float32")', body))
    a, memory = np.random.default_rng(0).random(LARGE, np.float32), np.zeros(LARGE + 32, np.float32)
    first = -memory.ctypes.data // 4 % 16
    for n in (0, 1, 63, 64, 65, LARGE):
        for offset in (0, 1):
            memory[:] = 0
            c = memory[first + offset : first + offset + n]
            add(a[:n], c)
            np.testing.assert_array_equal(c, a[:n] + np.float32(1))
            assert not memory[: first + offset].any() and not memory[first + offset + n :].any()


@pytest.mark.parametrize(("n", "found"), [(1 << 24, True), (1 << 10, False)])
def test_known_sizes_decide_while_compiling(n: int, found: bool) -> None:
    body = ADD.format(pieces=n // 64, n=n)
    mod = prim_func(f'A: T.Buffer(({n},), "float32"), C: T.Buffer(({n},), "float32")', body)
    func = next(f for _, f in mod.prim_funcs())
    assert ("movnt" in asm_text(func, "llvm -mcpu=x86-64-v4")) is found
    assert "movnt" not in asm_text(func, "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72")


def test_stores_that_fill_no_lines_go_through_the_caches() -> None:
    body = ADD.format(pieces=1 << 18, n=1 << 24).replace("C[i * 64 + j]", "C[i * 65 + j]")
    shapes = f'A: T.Buffer(({1 << 24},), "float32"), C: T.Buffer(({65 << 18},), "float32")'
    func = next(f for _, f in prim_func(shapes, body).prim_funcs())
    assert "movnt" not in asm_text(func, "llvm -mcpu=x86-64-v4")


def test_a_loop_of_a_task_that_does_not_use_all_of_the_sizes_goes_through_the_caches() -> None:
    body = """
    for task in T.parallel(4):
        for i in T.serial(4, annotations={"pragma_streaming_stores": 1}):
            for j in T.vectorized(64):
                C[task, i * 64 + j] = A[task * 256 + i * 64 + j]
    """
    copy = compiled(prim_func('A: T.Buffer((n,), "float32"), C: T.Buffer((m, 256), "float32")', body))
    a, c = np.random.default_rng(0).random(1024, np.float32), np.zeros((5, 256), np.float32)
    copy(a, c)
    np.testing.assert_array_equal(c[:4].reshape(-1), a)
    assert not c[4].any()
