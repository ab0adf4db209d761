"""ToNonDataflow: dataflow blocks become plain ones."""

from __future__ import annotations

from relaxlang.analysis.uses import expressions
from relaxlang.base.record import record
from relaxlang.ir import relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.visit import Rewriter, on
from relaxlang.passes.base import FunctionPass, PassContext


@record
class ToNonDataflow(FunctionPass):
    """Turn dataflow blocks into plain blocks and their variables into plain variables.

    Before:

        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            with R.dataflow():
                y = R.exp(x)
                R.output(y)
            return y

    After:

        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            y = R.exp(x)
            return y
    """

    def run_function(self, func: relax.Function, mod: IRModule, ctx: PassContext) -> relax.Function:
        if not any(map(_is_of_dataflow, (*func.params, *expressions(func)))):
            return func
        made: relax.Function = _ToNonDataflow()(func)
        return made


def _is_of_dataflow(value: relax.Expr) -> bool:
    """Whether a value is a dataflow variable, or binds one, or has a dataflow block itself."""
    if not isinstance(value, relax.SeqExpr):
        return isinstance(value, relax.DataflowVar)
    bound = (b.var for block in value.blocks for b in block.bindings)
    return any(isinstance(part, (relax.DataflowBlock, relax.DataflowVar)) for part in (*value.blocks, *bound))


class _ToNonDataflow(Rewriter):
    def __init__(self) -> None:
        self.vars: dict[relax.Var, relax.Var] = {}

    @on(relax.DataflowVar)
    def var(self, node: relax.DataflowVar) -> relax.Var:
        made = self.vars.get(node)
        if made is None:
            made = self.vars[node] = relax.Var(node.name, node.struct_info, span=node.span)
        return made

    @on(relax.DataflowBlock)
    def block(self, node: relax.DataflowBlock) -> relax.BindingBlock:
        return relax.BindingBlock(self.value(node.bindings), span=node.span)

    @on(relax.SeqExpr)
    def seq(self, node: relax.SeqExpr) -> relax.SeqExpr:
        """Plain blocks that now stand next to each other become one."""
        made = self.below(node)
        if made is node:
            return node
        bindings = tuple(b for block in made.blocks for b in block.bindings)
        return made.replace(blocks=(relax.BindingBlock(bindings),) if bindings else ())
