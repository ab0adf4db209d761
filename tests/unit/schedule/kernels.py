"""What the tests of schedules share: kernels from text, and the proof that a schedule changes no result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from textwrap import dedent, indent
from typing import Any

import numpy as np

import relaxlang
from relaxlang.codegen import build_kernels, load_kernels
from relaxlang.interp import Interpreter
from relaxlang.ir.module import IRModule
from relaxlang.ir.tir import PrimFunc
from relaxlang.schedule import Schedule
from relaxlang.schedule.trace import run_lines

MATMUL = """
@T.prim_func
def main(A: T.Buffer((M, K), "float32"), B: T.Buffer((K, N), "float32"), C: T.Buffer((M, N), "float32")):
    for i, j, k in T.grid(M, N, K):
        with T.block("mm"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""
CHAIN = """
@T.prim_func
def main(A: T.Buffer((M, N), "float32"), D: T.Buffer((M, N), "float32")):
    B = T.alloc_buffer((M, N), "float32")
    C = T.alloc_buffer((M, N), "float32")
    for i, j in T.grid(M, N):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(M, N):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)
    for i, j in T.grid(M, N):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = T.exp(C[vi, vj]) * A[vi, vj]
"""
STENCIL = """
@T.prim_func
def main(A: T.Buffer((M,), "float32"), C: T.Buffer((N,), "float32")):
    B = T.alloc_buffer((M,), "float32")
    for i in range(M):
        with T.block("B"):
            vi = T.axis.spatial(M, i)
            B[vi] = A[vi] * T.float32(3)
    for i in range(N):
        with T.block("C"):
            vi = T.axis.spatial(N, i)
            C[vi] = B[vi] + B[vi + 1] + B[vi + 2]
"""
SUM = """
@T.prim_func
def main(A: T.Buffer((M, N), "float32"), B: T.Buffer((M,), "float32")):
    for i, k in T.grid(M, N):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]
"""


def module(text: str, **sizes: int | str) -> IRModule:
    """A kernel with its sizes put in: numbers, or names of variables."""
    for name, value in sizes.items():
        text = (
            text.replace(f"({name},", f"({value},")
            .replace(f" {name})", f" {value})")
            .replace(f" {name},", f" {value},")
        )
        text = text.replace(f"range({name})", f"range({value})")
    return relaxlang.parse("@I.ir_module\nclass Module:\n" + indent(dedent(text).strip(), "    ") + "\n", "test.rlx")


def arguments(mod: IRModule, values: Mapping[str, int], seed: int = 0) -> list[np.ndarray[Any, Any]]:
    """Random arrays for the parameters of `main`; `values` are those of its dimensions."""
    rng = np.random.default_rng(seed)
    func = mod["main"]
    assert isinstance(func, PrimFunc)
    made = []
    for param in func.params:
        buffer = func.buffer_map[param]
        shape = [int(d.value) if hasattr(d, "value") else values[d.name] for d in buffer.shape]  # type: ignore[attr-defined]
        made.append(rng.integers(-8, 8, shape).astype(buffer.dtype.numpy))
    return made


def same(mod: IRModule, sch: Schedule, rtol: float = 0.0, **values: int) -> None:
    """The scheduled program, interpreted and compiled, gives what the original gives; its trace replays to it; and its
    text reads back as it."""
    args = arguments(mod, values)
    runs: list[Callable[..., Any]] = [
        lambda *a: Interpreter(mod).run("main", *a),
        lambda *a: Interpreter(sch.mod).run("main", *a),
        load_kernels(build_kernels(dict(sch.mod.prim_funcs())))["main"],
    ]
    results = []
    for run in runs:
        copies = [a.copy() for a in args]
        run(*copies)
        results.append(copies)
    for found in results[1:]:
        for mine, wanted in zip(found, results[0]):
            np.testing.assert_allclose(mine, wanted, rtol=rtol, atol=rtol)
    again = Schedule(mod)
    run_lines(again, sch.trace.lines())
    relaxlang.assert_structural_equal(again.mod, sch.mod)
    relaxlang.assert_structural_equal(relaxlang.parse(sch.mod.script()), sch.mod)
