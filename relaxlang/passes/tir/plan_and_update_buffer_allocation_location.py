"""PlanAndUpdateBufferAllocationLocation: memory that one parallel loop uses belongs to its iterations."""

from __future__ import annotations

from dataclasses import dataclass

from relaxlang.base.node import Node
from relaxlang.ir import prim
from relaxlang.ir.prim import BOOL, IntImm, Var
from relaxlang.ir.tir import Block, BlockRealize, Buffer, BufferRegion, BufferStore, For, PrimFunc, Stmt
from relaxlang.ir.visit import LEAVES, Rewriter, children, on, walk
from relaxlang.passes.base import PassContext, PrimFuncPass


@dataclass(frozen=True)
class PlanAndUpdateBufferAllocationLocation(PrimFuncPass):
    """A buffer of a block that is used within one parallel loop only is allocated inside that loop.

    Iterations of a parallel loop hand nothing on to each other, so each may have a buffer of its own; one for all of
    them would be a race. Buffers of serial loops stay where they are: iterations may carry values in them, and one
    allocation is cheaper than many.

    Before:

        @T.prim_func
        def f(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8, 4), "float32")):
            row = T.sblock_alloc_buffer((4,), "float32")
            for i in T.parallel(8):
                for j in range(4):
                    row[j] = A[i, j]
                for j in range(4):
                    B[i, j] = row[3 - j]

    After:

        @T.prim_func
        def f(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8, 4), "float32")):
            for i in T.parallel(8):
                with T.block("row"):
                    row = T.alloc_buffer((4,), "float32")
                    for j in range(4):
                        row[j] = A[i, j]
                    for j in range(4):
                        B[i, j] = row[3 - j]
    """

    def run_prim_func(self, func: PrimFunc, ctx: PassContext) -> PrimFunc:
        return plan_buffer_allocation(func)


def plan_buffer_allocation(func: PrimFunc) -> PrimFunc:
    """The function with the buffers of parallel loops inside them."""
    return func.replace(body=_Plan()(func.body))


class _Plan(Rewriter):
    """`moved` are the buffers to allocate inside a loop, by the loop's identity."""

    def __init__(self) -> None:
        self.moved: dict[int, list[Buffer]] = {}

    @on(Block)
    def block(self, node: Block) -> Block:
        """A block: which of its buffers belong to a parallel loop below?"""
        if not node.alloc_buffers:
            return self.below(node)
        homes = _homes(node)
        kept = []
        for buffer in node.alloc_buffers:
            loops = homes.get(buffer.data, set())
            home = next(iter(loops)) if len(loops) == 1 else None
            if home is None:
                kept.append(buffer)
            else:
                self.moved.setdefault(home, []).append(buffer)
        return self.below(node.replace(alloc_buffers=tuple(kept)))

    @on(For)
    def loop(self, node: For) -> Stmt:
        """A loop, with the buffers that moved into it."""
        buffers = self.moved.pop(id(node), ())
        made = self.below(node)
        if not buffers:
            return made
        block = Block((), None, None, buffers[0].name, made.body, alloc_buffers=tuple(buffers), span=node.span)
        return made.replace(body=BlockRealize((), IntImm(BOOL, 1), block, span=node.span))


def _homes(block: Block) -> dict[Var, set[int | None]]:
    """For each data pointer used in a block, the outermost parallel loops around its uses (by identity; None: none)."""
    found: dict[Var, set[int | None]] = {}
    work: list[Node] = [block.body] if block.init is None else [block.body, block.init]
    while work:
        node = work.pop()
        for data in _used(node):
            found.setdefault(data, set()).add(None)
        if isinstance(node, For) and node.kind == "parallel":
            work += [node.min, node.extent]
            for below in walk(node.body):
                for data in _used(below):
                    found.setdefault(data, set()).add(id(node))
        elif node.__class__ not in LEAVES:
            work += children(node)
    return found


def _used(node: Node) -> tuple[Var, ...]:
    if isinstance(node, (prim.BufferLoad, BufferStore, BufferRegion)):
        return (node.buffer.data,)
    return (node,) if isinstance(node, Var) else ()
