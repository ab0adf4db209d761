"""LowerOpaqueBlock: blocks become plain statements."""

from __future__ import annotations

from relaxlang.base.diagnostics import fail
from relaxlang.base.record import record
from relaxlang.ir import prim
from relaxlang.ir.prim import IntImm
from relaxlang.ir.tir import (
    Allocate,
    Block,
    BlockRealize,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    IfThenElse,
    PrimFunc,
    SeqStmt,
    Stmt,
    seq,
)
from relaxlang.ir.visit import Substitute, on
from relaxlang.passes.base import PassContext, PrimFuncPass
from relaxlang.passes.tir.layout import size_of


@record
class LowerOpaqueBlock(PrimFuncPass):
    """Blocks without axes become their bodies: under `if` when they have a predicate, within allocations for their
    buffers. Loops of one iteration go too.

    Before:

        @T.prim_func
        def f(A: T.Buffer((8,), "float32")):
            for i in range(8):
                with T.block(""):
                    T.where(i < 6)
                    B = T.alloc_buffer((2,), "float32")
                    B[0] = A[i]
                    A[i] = B[0] * T.float32(2)

    After:

        @T.prim_func
        def f(A: T.Buffer((8,), "float32")):
            for i in range(8):
                if i < 6:
                    B = T.allocate([2], "float32", "global")
                    B_1 = T.decl_buffer((2,), "float32", data=B)
                    B_1[0] = A[i]
                    A[i] = B_1[0] * T.float32(2.0)
    """

    def run_prim_func(self, func: PrimFunc, ctx: PassContext) -> PrimFunc:
        return lower_opaque_block(func)


def lower_opaque_block(func: PrimFunc) -> PrimFunc:
    """The function without blocks."""
    return func.replace(body=_Lower()(func.body))


class _Lower(Substitute):
    def __init__(self) -> None:
        super().__init__({})
        self.mapping: dict[prim.Var, prim.PrimExpr] = {}

    @on(BlockRealize)
    def realize(self, node: BlockRealize) -> Stmt:
        """A block as a statement."""
        body: Stmt = self._body(node.block)
        predicate = self.visit(node.predicate)
        if isinstance(predicate, IntImm) and predicate.value:
            return body
        return IfThenElse(predicate, body, span=node.span)

    @on(Block)
    def bare(self, node: Block) -> Stmt:
        """A block without a realize (`no_realize=True`)."""
        return self._body(node)

    def _body(self, block: Block) -> Stmt:
        if block.iter_vars or block.init is not None or block.match_buffers:
            what = f"the block `{block.name_hint}` still has axes, an init or match buffers"
            fail("RLX3121", what, block.span, node=block,
                 help="run `lower-init-block`, `convert-blocks-to-opaque` and `lower-match-buffer` first")  # fmt: skip
        body: Stmt = self.visit(block.body)
        for old in reversed(block.alloc_buffers):
            buffer = self.visit(old)
            true = IntImm(prim.BOOL, 1)
            extents = (size_of(buffer),) if buffer.strides else buffer.shape
            body = Allocate(buffer.data, buffer.dtype, extents, true, DeclBuffer(buffer, body), span=block.span)
        return body

    @on(BufferStore, Evaluate)
    def innermost(self, node: Stmt) -> Stmt:
        """A statement of expressions: nothing in it changes while no loop has gone."""
        return self.below(node) if self.mapping else node

    @on(SeqStmt)
    def sequence(self, node: SeqStmt) -> Stmt:
        """A sequence, flattened: a block's body may be a sequence itself."""
        return seq(*[self.visit(s) for s in node.seq])

    @on(For)
    def loop(self, node: For) -> Stmt:
        """A loop; one of a single iteration is its body."""
        if isinstance(node.extent, IntImm) and node.extent.value == 1 and node.kind != "thread_binding":
            if not node.annotations:
                self.mapping[node.loop_var] = prim.cast(self.visit(node.min), node.loop_var.dtype)
                made: Stmt = self.visit(node.body)
                return made
        return self.below(node)
