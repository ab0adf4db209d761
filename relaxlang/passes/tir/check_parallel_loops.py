"""CheckParallelLoops: no parallel loop carries a reduction."""

from __future__ import annotations

from relaxlang.base.diagnostics import Diagnostic, Diagnostics, Label
from relaxlang.base.record import record
from relaxlang.ir import prim
from relaxlang.ir.prim import BufferLoad, PrimExpr, Var
from relaxlang.ir.tir import Allocate, Block, BlockRealize, BufferStore, For, LetStmt, PrimFunc
from relaxlang.ir.visit import Visitor, free_vars, on
from relaxlang.passes.base import PassContext, PrimFuncPass


@record
class CheckParallelLoops(PrimFuncPass):
    """Reports `T.parallel` loops whose iterations update the same element: threads would race for it.

    Such a loop drives a reduction axis of a block, or holds a store that updates an element (`O[0] = O[0] + x`) which
    is the same in every iteration. Changes nothing.

    Before:

        @T.prim_func
        def f(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8,), "float32")):
            for i in T.parallel(8):
                for k in range(16):
                    B[i] = B[i] + A[i, k]

    After:

        @T.prim_func
        def f(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8,), "float32")):
            for i in T.parallel(8):
                for k in range(16):
                    B[i] = B[i] + A[i, k]
    """

    def run_prim_func(self, func: PrimFunc, ctx: PassContext) -> PrimFunc:
        check_parallel_loops(func)
        return func


def check_parallel_loops(func: PrimFunc) -> None:
    """Raise RLX5011 for every parallel loop that carries a reduction."""
    check = _Check()
    check(func.body)
    check.found.check()


class _Check(Visitor):
    """`depending` are, for each parallel loop around, the variables whose values differ between its iterations;
    `private` the memory allocated within it."""

    def __init__(self) -> None:
        self.found = Diagnostics()
        self.loops: list[tuple[For, set[Var], set[Var]]] = []

    @on(For)
    def loop(self, node: For) -> None:
        """A loop; a parallel one is watched within its body."""
        self._derive(node.loop_var, node.min, node.extent)
        if node.kind != "parallel":
            self.below(node)
            return
        self.loops.append((node, {node.loop_var}, set()))
        self.below(node)
        self.loops.pop()

    def _derive(self, var: Var, *sources: PrimExpr) -> None:
        for _, depending, _ in self.loops:
            if depending & set(free_vars(sources)):
                depending.add(var)

    @on(LetStmt)
    def let(self, node: LetStmt) -> None:
        """A variable that may differ between iterations."""
        self._derive(node.var, node.value)
        self.below(node)

    @on(Allocate)
    def allocate(self, node: Allocate) -> None:
        """Memory that each iteration has for itself."""
        for _, _, private in self.loops:
            private.add(node.buffer_var)
        self.below(node)

    @on(BlockRealize)
    def realize(self, node: BlockRealize) -> None:
        """A block: which of its axes does a parallel loop drive?"""
        for axis, value in zip(node.block.iter_vars, node.iter_values):
            for loop, depending, _ in self.loops:
                if axis.kind == "reduce" and depending & set(free_vars(value)):
                    self._report(
                        loop, node.block, f"the reduction axis `{axis.var.name}` of the block `{node.block.name_hint}`"
                    )
            self._derive(axis.var, value)
        self.below(node)

    @on(Block)
    def block(self, node: Block) -> None:
        """A block's own buffers."""
        for _, _, private in self.loops:
            private.update(b.data for b in node.alloc_buffers)
        self.below(node)

    @on(BufferStore)
    def store(self, node: BufferStore) -> None:
        """A store that updates what it stores to."""
        updates = bool(self.loops) and any(
            isinstance(e, BufferLoad) and e.buffer is node.buffer and e.indices == node.indices
            for e in _operands(node.value)
        )
        for loop, depending, private in self.loops:
            if updates and node.buffer.data not in private and not depending & set(free_vars(node.indices)):
                self._report(loop, node, f"an update of `{node.buffer.name}` at the same place in every iteration")

    def _report(self, loop: For, node: Block | BufferStore, what: str) -> None:
        if any(d.span is loop.span for d in self.found.items):
            return
        labels = [Label(node.span, "updated here")] if node.span else []
        message = f"the parallel loop `{loop.loop_var.name}` carries a reduction: {what}"
        self.found.report(Diagnostic(
            "RLX5011", message, loop.span, labels=labels, node=loop,
            help="make it a serial loop, or give each iteration a partial result of its own",
        ))  # fmt: skip


def _operands(e: PrimExpr) -> list[PrimExpr]:
    """The operands of an update: through sums, products, extrema and choices."""
    found, work = [], [e]
    while work:
        one = work.pop()
        if isinstance(one, (prim.BinaryOp, prim.CmpOp)):
            work += [one.a, one.b]
        elif isinstance(one, prim.Cast):
            work.append(one.value)
        elif isinstance(one, prim.Select):
            work += [one.true_value, one.false_value, one.condition]
        elif isinstance(one, prim.Call):
            work += one.args
        else:
            found.append(one)
    return found
