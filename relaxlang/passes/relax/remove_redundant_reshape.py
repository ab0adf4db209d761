"""RemoveRedundantReshape: reshapes of reshapes, and reshapes that change nothing."""

from __future__ import annotations

from collections.abc import Iterable

from relaxlang.base.record import record
from relaxlang.ir import relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.struct_info import TensorStructInfo
from relaxlang.passes.base import FunctionPass, PassContext
from relaxlang.passes.bindings import BindingRewriter
from relaxlang.syntax.struct_info import BaseCheck, base_check

RESHAPES = frozenset({"reshape", "flatten", "expand_dims", "squeeze"})
"""Operators that give the same elements in the same order another shape."""


@record
class RemoveRedundantReshape(FunctionPass):
    """A reshape of a reshape becomes one reshape, and one to the shape that the tensor has goes.

    `flatten`, `expand_dims` and `squeeze` count as reshapes of what they are applied to. What a function gives back is
    never its argument in place of a copy.

    Before:

        @R.function
        def main(x: R.Tensor((2, 6), "float32")) -> R.Tensor((3, 4), "float32"):
            a = R.reshape(x, (12,))
            b = R.reshape(a, (3, 4))
            return b

    After:

        @R.function
        def main(x: R.Tensor((2, 6), "float32")) -> R.Tensor((3, 4), "float32"):
            a = R.reshape(x, (12,))
            b = R.reshape(x, (3, 4))
            return b
    """

    def run_function(self, func: relax.Function, mod: IRModule, ctx: PassContext) -> relax.Function:
        made: relax.Function = _Reshapes(func)(func)
        return made


class _Reshapes(BindingRewriter):
    def __init__(self, func: relax.Function) -> None:
        super().__init__()
        self.params = set(func.params)
        self.sources: dict[relax.Expr, relax.Expr] = {}  # what each reshaped variable is made of

    def binding(self, binding: relax.Binding) -> Iterable[relax.Binding]:
        call = binding.value
        if not isinstance(call, relax.Call) or not isinstance(call.op, relax.Op) or call.op.name not in RESHAPES:
            return (binding,)
        source = self.sources.get(call.args[0], call.args[0])
        # A variable that outlives its dataflow block is not traced back to one that does not.
        visible = isinstance(binding.var, relax.DataflowVar) or not isinstance(source, relax.DataflowVar)
        if visible:
            self.sources[binding.var] = source
        have, want = source.struct_info, binding.var.struct_info
        if isinstance(source, relax.Var) and isinstance(have, TensorStructInfo) and have.dims is not None:
            fresh = source not in self.params or isinstance(binding.var, relax.DataflowVar)
            if fresh and base_check(want, have) is base_check(have, want) is BaseCheck.HOLDS:
                if visible:
                    self.replaced[binding.var] = source
                return (binding.replace(value=source),)
        if source is call.args[0] or call.op.name != "reshape":
            return (binding,)
        return (binding.replace(value=call.replace(args=(source, *call.args[1:]))),)
