"""Primitives against apache-tvm's: the same instructions give the same program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import relaxlang
from relaxlang.ir.attrs import EMPTY
from relaxlang.ir.module import IRModule
from relaxlang.ir.tir import PrimFunc
from relaxlang.schedule import Schedule

HEAD = "from tvm.script import tirx as T\n\n"
MATMUL = """@T.prim_func(s_tir=True)
def main(A: T.Buffer((16, 12), "float32"), B: T.Buffer((12, 30), "float32"), C: T.Buffer((16, 30), "float32")):
    for i, j, k in T.grid(16, 30, 12):
        with T.sblock("mm"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""
CHAIN = """@T.prim_func(s_tir=True)
def main(A: T.Buffer((16, 30), "float32"), C: T.Buffer((16, 30), "float32")):
    B = T.sblock_alloc_buffer((16, 30), "float32")
    for i, j in T.grid(16, 30):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(16, 30):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)
"""


def tiles(sch: Any) -> None:
    i, j, k = sch.get_loops(sch.get_sblock("mm"))
    i0, i1 = sch.split(i, [None, 4])
    j0, j1 = sch.split(j, [None, 8])
    sch.reorder(i0, j0, k, i1, j1)


def fused(sch: Any) -> None:
    i, j = sch.get_loops(sch.get_sblock("C"))
    a, b = sch.split(sch.fuse(i, j), [None, 16])
    sch.vectorize(b)
    sch.parallel(a)


def moved(sch: Any) -> None:
    i, _ = sch.get_loops(sch.get_sblock("C"))
    sch.compute_at(sch.get_sblock("B"), i)


def moved_after(sch: Any) -> None:
    i, _ = sch.get_loops(sch.get_sblock("B"))
    sch.reverse_compute_at(sch.get_sblock("C"), i)


def inlined(sch: Any) -> None:
    sch.compute_inline(sch.get_sblock("B"))


def inlined_after(sch: Any) -> None:
    sch.reverse_compute_inline(sch.get_sblock("C"))


def decomposed(sch: Any) -> None:
    block = sch.get_sblock("mm")
    sch.decompose_reduction(block, sch.get_loops(block)[2])


def partial(sch: Any) -> None:
    k = sch.get_loops(sch.get_sblock("mm"))[2]
    _, k1 = sch.split(k, [None, 4])
    sch.rfactor(k1, 2)


def cached(sch: Any) -> None:
    block = sch.get_sblock("mm")
    sch.cache_write(block, 0, "local")
    sch.cache_read(block, 0, "local")


PROGRAMS: list[tuple[str, Callable[[Any], None]]] = [
    (MATMUL, tiles), (CHAIN, fused), (CHAIN, moved), (CHAIN, moved_after), (CHAIN, inlined), (CHAIN, inlined_after),
    (MATMUL, decomposed), (MATMUL, partial), (MATMUL, cached),
]  # fmt: skip


@pytest.mark.extra("tvm")
@pytest.mark.parametrize("text, act", PROGRAMS, ids=[act.__name__ for _, act in PROGRAMS])
def test_same_program_as_tvm(text: str, act: Callable[[Any], None]) -> None:
    import tvm
    from tvm import s_tir

    theirs = s_tir.Schedule(tvm.script.from_source(text))
    act(theirs)
    mine = Schedule(relaxlang.parse(HEAD + text))
    act(mine)
    func = mine.mod["main"]
    assert isinstance(func, PrimFunc)
    wanted = relaxlang.parse(theirs.mod.script())
    relaxlang.assert_structural_equal(only_main(func), only_main(wanted["main"]))


def only_main(func: Any) -> Any:
    """A module of one function, without its attributes."""
    return IRModule({"main": func.replace(attrs=EMPTY)})
