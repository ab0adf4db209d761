"""PlanAndUpdateBufferAllocationLocation: memory that one parallel loop uses belongs to its iterations."""

from __future__ import annotations

from collections.abc import Iterable

from relaxlang.base.record import record
from relaxlang.ir.prim import BOOL, BufferLoad, IntImm, Var
from relaxlang.ir.tir import Block, BlockRealize, Buffer, BufferRegion, BufferStore, For, PrimFunc, Stmt
from relaxlang.ir.visit import Rewriter, Visitor, on
from relaxlang.passes.base import PassContext, PrimFuncPass
from relaxlang.schedule.stmts import walk_stmts


@record
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
        parallel = any(isinstance(stmt, For) and stmt.kind == "parallel" for stmt in walk_stmts(node.body))
        if not node.alloc_buffers or not parallel:
            return self.below(node)
        homes = _Homes(node.alloc_buffers)
        for part in (node.init, node.body):
            if part is not None:
                homes(part)
        kept = []
        for buffer in node.alloc_buffers:
            loops = homes.found[buffer.data]
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


class _Homes(Visitor):
    """Collects, for the pointer of each buffer, the outermost parallel loops around its uses (by identity; None:
    none), until it is clear that no one loop holds all of them."""

    def __init__(self, buffers: Iterable[Buffer]) -> None:
        self.found: dict[Var, set[int | None]] = {buffer.data: set() for buffer in buffers}
        self.loop: int | None = None

    @on(For)
    def enter(self, node: For) -> None:
        """A loop; its bounds are outside."""
        if all(len(loops) > 1 or None in loops for loops in self.found.values()):
            return
        if node.kind != "parallel" or self.loop is not None:
            self.below(node)
            return
        self.visit(node.min)
        self.visit(node.extent)
        self.loop = id(node)
        self.visit(node.body)
        self.loop = None

    @on(BufferLoad, BufferStore, BufferRegion)
    def access(self, node: BufferLoad | BufferStore | BufferRegion) -> None:
        """A load, a store, or a stated region."""
        self.use(node.buffer.data)
        self.below(node)

    @on(Var)
    def use(self, node: Var) -> None:
        """A variable, which may be a pointer."""
        loops = self.found.get(node)
        if loops is not None:
            loops.add(self.loop)
