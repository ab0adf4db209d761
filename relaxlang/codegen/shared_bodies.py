"""Loops that several kernels of a program have: their bodies are written and compiled once.

Convolutions that differ in what is fused behind them transform the same data by the same code. The bodies of parallel
loops are functions of their own anyway, which know of their surroundings what they are given: so the kernels can call
the same one, in an object of its own. So can they for long stages within such a loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from relaxlang.base.record import record
from relaxlang.codegen.function import KernelText
from relaxlang.codegen.target import Target
from relaxlang.ir import prim, tir
from relaxlang.ir.prim import Var
from relaxlang.ir.structural import structural_equal
from relaxlang.ir.tir import PrimFunc, Stmt
from relaxlang.ir.visit import walk
from relaxlang.schedule.stmts import child_stmts, walk_stmts

PREFIX = "rlx.body."
LEAST, LEAST_STAGE = 50, 200
"""Nodes of the IR from which on the body of a parallel loop, or a stage, is worth an object of its own."""


@record
class Surroundings:
    """What the text of a body depends on besides its loop: the operands of variables that are constants ("" for those
    that are given to the function), which pointers may overlap with others, whether it runs in other parallel loops
    (None: it is one), and which variables are stored to past the caches."""

    target: Target
    operands: tuple[str, ...]
    overlaps: tuple[bool, ...]
    parallel: bool | None
    streaming: tuple[bool, ...]


class SharedBody:
    """A loop that occurs several times, and the functions that were made of it, by what they know; None where it has to
    be written in the kernel itself."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.made: dict[Surroundings, KernelText | None] = {}


class Occurrence(NamedTuple):
    """One place of a loop that occurs several times, with the variables that it uses there, in the order of all."""

    shared: SharedBody
    used: tuple[Var, ...]


class SharedBodies:
    """The loops that occur several times in the flat kernels of a program."""

    def __init__(self, funcs: Mapping[str, PrimFunc]) -> None:
        self._found: dict[Stmt, Occurrence] = {}
        alike: dict[object, list[tuple[str, PrimFunc]]] = {}
        for name, func in funcs.items() if len(funcs) > 1 else ():
            for loop, used, size in _candidates(func.body):
                of_used = PrimFunc(tuple(used), loop, {})
                alike.setdefault((size, tuple(v.dtype for v in used)), []).append((name, of_used))
        for loops in alike.values():
            while len(loops) > 1:
                loops = self._group(loops)

    def _group(self, loops: list[tuple[str, PrimFunc]]) -> list[tuple[str, PrimFunc]]:
        """Find those that are equal to the first of some loops, which are functions of what they use, each with its
        kernel's name; the others."""
        name, first = loops[0]
        are_equal = [True, *(structural_equal(first, func) for _, func in loops[1:])]
        same = [func for (_, func), is_equal in zip(loops, are_equal) if is_equal]
        if len(same) > 1:
            shared = SharedBody(f"{PREFIX}{name}.{len(self._found)}")
            self._found.update((func.body, Occurrence(shared, func.params)) for func in same)
        return [loop for loop, is_equal in zip(loops, are_equal) if not is_equal]

    def of(self, loop: tir.For) -> Occurrence | None:
        """The loop as one of several equal ones; None when there is no other."""
        return self._found.get(loop)


def _candidates(body: Stmt) -> Iterator[tuple[tir.For, list[Var], int]]:
    """The parallel loops of a kernel, and the loops that run, one after the other, in each turn of one; with what they
    use and how large they are."""
    seen: set[Stmt] = set()
    for stmt in walk_stmts(body):
        if not isinstance(stmt, tir.For) or stmt.kind != "parallel" or stmt in seen:
            continue
        used, size = used_in(stmt)
        if size >= LEAST:
            yield stmt, used, size
        for inner in walk_stmts(stmt.body) if size > LEAST_STAGE else ():
            stages = () if isinstance(inner, tir.For) else child_stmts(inner)
            for stage in stages:
                if isinstance(stage, tir.For) and stage not in seen and _is_stage(stage):
                    seen.add(stage)
                    used, size = used_in(stage)
                    if size >= LEAST_STAGE:
                        yield stage, used, size


def _is_stage(loop: tir.For) -> bool:
    """Whether a loop can be in a function of its own: it runs, and nothing in it leaves it."""
    extent = loop.extent
    if loop.kind == "unroll" or not isinstance(extent, prim.IntImm) or extent.value < 1:
        return False
    return not any(isinstance(s, (tir.Break, tir.Continue)) for s in walk_stmts(loop.body))


def used_in(root: Stmt) -> tuple[list[Var], int]:
    """The variables that occur in a statement, data pointers of buffers included, each once; and how many nodes it
    consists of."""
    found: dict[Var, None] = {}
    size = 0
    for node in walk(root):
        size += 1
        if isinstance(node, Var):
            found[node] = None
        elif isinstance(node, (prim.BufferLoad, tir.BufferStore)):
            found[node.buffer.data] = None
    return list(found), size
