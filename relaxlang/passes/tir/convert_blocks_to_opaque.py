"""ConvertBlocksToOpaque: block axes give way to the expressions that they are bound to."""

from __future__ import annotations

from relaxlang.base.record import record
from relaxlang.ir import prim
from relaxlang.ir.tir import BlockRealize, PrimFunc
from relaxlang.ir.visit import Substitute, on
from relaxlang.passes.base import PassContext, PrimFuncPass
from relaxlang.passes.tir.lower_init_block import lower_init_block


@record
class ConvertBlocksToOpaque(PrimFuncPass):
    """Blocks lose their axes: in the body, each axis variable becomes the value it is bound to.

    What is left of `init` goes first, as `lower-init-block` does it: without reduction axes nothing says when it runs.

    Before:

        @T.prim_func
        def f(A: T.Buffer((32,), "float32")):
            for i, j in T.grid(8, 4):
                with T.block("zero"):
                    vi = T.axis.spatial(32, i * 4 + j)
                    A[vi] = T.float32(0)

    After:

        @T.prim_func
        def f(A: T.Buffer((32,), "float32")):
            for i, j in T.grid(8, 4):
                with T.block("zero"):
                    A[i * 4 + j] = T.float32(0.0)
    """

    def run_prim_func(self, func: PrimFunc, ctx: PassContext) -> PrimFunc:
        return convert_blocks_to_opaque(func)


def convert_blocks_to_opaque(func: PrimFunc) -> PrimFunc:
    """The function without block axes."""
    return func.replace(body=_Convert()(lower_init_block(func).body))


class _Convert(Substitute):
    def __init__(self) -> None:
        super().__init__({})
        self.mapping: dict[prim.Var, prim.PrimExpr] = {}

    @on(BlockRealize)
    def realize(self, node: BlockRealize) -> BlockRealize:
        """A block: its axes are added to what is substituted, in its body and its predicate."""
        block = node.block
        for axis, value in zip(block.iter_vars, node.iter_values):
            self.mapping[axis.var] = prim.cast(self.visit(value), axis.var.dtype)
        predicate = self.visit(node.predicate)
        return node.replace(iter_values=(), predicate=predicate, block=self.below(block.replace(iter_vars=())))
