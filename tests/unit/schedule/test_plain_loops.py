"""Loops that somebody cut, joined or permuted: one loop an axis again, and the same values."""

from __future__ import annotations

import numpy as np
import pytest

import relaxlang
from relaxlang.codegen import build_kernels, load_kernels
from relaxlang.ir.module import IRModule
from relaxlang.ir.tir import PrimFunc
from relaxlang.schedule.rules import Processor, schedule_function
from relaxlang.schedule.rules.plain_loops import with_plain_loops

TEXT = """
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((M, K), "float32"), B: T.Buffer((K, N), "float32"), C: T.Buffer((M, N), "float32")):
        for LOOPS:
            with T.block("mm"):
                vi = T.axis.spatial(DOM, I)
                vj = T.axis.spatial(N, J)
                vk = T.axis.reduce(K, R)
                T.where(HOLDS)
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""
M, N, K = 20, 36, 24
PLAIN = ("i, j, k in T.grid(20, 36, 24)", "i", "j", "k", "True")


def program(loops: str, i: str, j: str, k: str, holds: str, dom: str = "20") -> IRModule:
    text = TEXT.replace("LOOPS", loops).replace("HOLDS", holds).replace("DOM", dom)
    text = text.replace(", I)", f", {i})").replace(", J)", f", {j})").replace(", R)", f", {k})")
    return relaxlang.parse(text.replace("M,", f"{M},").replace("N)", f"{N})").replace("(N,", f"({N},")
                           .replace("K)", f"{K})").replace("(K,", f"({K},"))  # fmt: skip


def plain(mod: IRModule) -> PrimFunc:
    func = mod["main"]
    assert isinstance(func, PrimFunc)
    return with_plain_loops(func)


@pytest.mark.parametrize("form", [
    ("k, i, j in T.grid(24, 20, 36)", "i", "j", "k", "True"),
    ("j, k, i in T.grid(36, 24, 20)", "i", "j", "k", "True"),
    ("i0, i1, j, k0, k1 in T.grid(5, 4, 36, 4, 6)", "i0 * 4 + i1", "j", "k0 * 6 + k1", "True"),
    ("i0, j0, k, i1, j1 in T.grid(5, 6, 24, 4, 6)", "i0 * 4 + i1", "j0 * 6 + j1", "k", "True"),
    ("i0, i1, j, k in T.grid(3, 7, 36, 24)", "i0 * 7 + i1", "j", "k", "i0 * 7 + i1 < 20"),
    ("ij, k in T.grid(720, 24)", "ij // 36", "ij % 36", "k", "True"),
    ("i, u, j, k in T.grid(20, 1, 36, 24)", "i + u", "j", "k", "True"),
])  # fmt: skip
def test_loops_that_run_through_all_axes_are_one_an_axis(form: tuple[str, str, str, str, str]) -> None:
    mod = program(*form)
    wanted = program(*PLAIN)["main"]
    assert isinstance(wanted, PrimFunc)
    made = plain(mod)
    relaxlang.assert_structural_equal(made, wanted)
    kernel = load_kernels(build_kernels({"main": schedule_function(made, Processor())}))["main"]
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-9, 9, s).astype("float32") for s in ((M, K), (K, N)))
    c = np.full((M, N), np.nan, "float32")
    kernel(a, b, c)
    np.testing.assert_array_equal(c, a @ b)


@pytest.mark.parametrize("form", [
    PLAIN,
    ("i, j, k in T.grid(10, 36, 24)", "i * 2", "j", "k", "True"),
    ("i, j, k in T.grid(10, 36, 24)", "i", "j", "k", "True"),
    ("i, j, k in T.grid(20, 36, 24)", "i", "j", "k", "i + j < 30"),
    ("i0, i1, j, k in T.grid(2, 10, 36, 24)", "i0 * 9 + i1", "j", "k", "True"),
    ("i, j, k, r in T.grid(20, 36, 24, 2)", "i", "j", "k", "True"),
])  # fmt: skip
def test_other_loops_stay(form: tuple[str, str, str, str, str]) -> None:
    mod = program(*form)
    assert plain(mod) is mod["main"]


def test_loops_of_symbolic_extent() -> None:
    text = """
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((n, 64), "float32"), B: T.Buffer((n, 64), "float32")):
        n = T.int64()
        for j, i in T.grid(64, n):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.float32(1)
"""
    mod = relaxlang.parse(text)
    assert "for i, j in T.grid(n, " in plain(mod).script()


def test_what_no_rule_schedules_keeps_its_loops() -> None:
    mod = program(*PLAIN)
    func = program("k, i, j in T.grid(24, 20, 36)", "i", "j", "k", "True")["main"]
    assert isinstance(func, PrimFunc)
    assert schedule_function(func, Processor(), least=1 << 30) is func
    assert schedule_function(func, Processor()).script() == schedule_function(plain(mod), Processor()).script()
