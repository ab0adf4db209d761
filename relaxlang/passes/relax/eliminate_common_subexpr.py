"""EliminateCommonSubexpr: what is computed twice is computed once."""

from __future__ import annotations

from collections.abc import Iterable

from relaxlang.analysis.alias import overwritten
from relaxlang.analysis.purity import is_pure
from relaxlang.base.record import record
from relaxlang.ir import relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.struct_info import TensorStructInfo
from relaxlang.ir.structural import structural_equal, structural_hash
from relaxlang.ir.visit import on
from relaxlang.ops import Operators, default_operators
from relaxlang.passes.base import FunctionPass, PassContext
from relaxlang.passes.bindings import BindingRewriter


@record
class EliminateCommonSubexpr(FunctionPass):
    """Replace a value that was computed before by the variable that holds it.

    Only expressions without side effects count; allocations are never merged. With `call_only` only calls are merged.

    Before:

        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            a = R.exp(x)
            b = R.exp(x)
            c = R.add(a, b)
            return c

    After:

        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            a = R.exp(x)
            b = a
            c = R.add(a, a)
            return c
    """

    call_only: bool = False

    def run_function(self, func: relax.Function, mod: IRModule, ctx: PassContext) -> relax.Function:
        operators = default_operators(mod)
        made: relax.Function = _Eliminator(mod, operators, self.call_only, overwritten(func, mod, operators))(func)
        return made


class _Eliminator(BindingRewriter):
    def __init__(self, mod: IRModule, operators: Operators, call_only: bool, written: set[relax.Expr]) -> None:
        super().__init__()
        self.mod = mod
        self.operators = operators
        self.call_only = call_only
        self.written = written  # a value that is overwritten later can't stand for an equal one
        self.seen: dict[object, list[relax.VarBinding]] = {}

    def binding(self, binding: relax.Binding) -> Iterable[relax.Binding]:
        if not isinstance(binding, relax.VarBinding) or not self.may_merge(binding.value):
            return (binding,)
        if binding.var in self.written:
            return (binding,)
        key = _glance(binding.value)
        for earlier in self.seen.get(key, ()):
            same = structural_equal(earlier.var.struct_info, binding.var.struct_info)
            if same and structural_equal(earlier.value, binding.value):
                # A variable that outlives its dataflow block can't be another name for one that does not.
                if isinstance(earlier.var, relax.DataflowVar) and not isinstance(binding.var, relax.DataflowVar):
                    return (binding.replace(value=earlier.var),)
                self.replaced[binding.var] = earlier.var
                return (binding.replace(value=earlier.var),)
        self.seen.setdefault(key, []).append(binding)
        return (binding,)

    def may_merge(self, value: relax.Expr) -> bool:
        """Whether two such values are the same value."""
        if isinstance(value, relax.Call):
            return is_pure(value, self.mod, self.operators)
        return not self.call_only and isinstance(
            value, (relax.Tuple, relax.TupleGetItem, relax.ShapeExpr, relax.PrimValue)
        )

    @on(relax.DataflowBlock)
    def dataflow_block(self, node: relax.DataflowBlock) -> relax.BindingBlock:
        """A dataflow block: its own variables are not there afterwards."""
        made = self.block(node)
        self.seen = {k: [b for b in v if not isinstance(b.var, relax.DataflowVar)] for k, v in self.seen.items()}
        return made

    @on(relax.If)
    def conditional(self, node: relax.If) -> relax.If:
        """What one branch computes is not there in the other, nor afterwards."""
        condition = self(node.condition)
        outside = {k: list(v) for k, v in self.seen.items()}
        true_branch = self(node.true_branch)
        self.seen = {k: list(v) for k, v in outside.items()}
        false_branch = self(node.false_branch)
        self.seen = outside
        return node.replace(condition=condition, true_branch=true_branch, false_branch=false_branch)

    @on(relax.Function)
    def function(self, node: relax.Function) -> relax.Function:
        """An inner function runs at another time: it shares nothing with what surrounds it."""
        outside, self.seen = self.seen, {}
        made = super().function(node)
        self.seen = outside
        return made


def _glance(value: relax.Expr) -> object:
    """What equal expressions have in common and is quickly seen: the operator, and the variables in their places."""
    if isinstance(value, relax.Call):
        attrs = structural_hash(value.attrs, elements=False) if value.attrs else 0
        args = [tuple(map(_leaf, a.fields)) if isinstance(a, relax.Tuple) else _leaf(a) for a in value.args]
        return _leaf(value.op), attrs, tuple(args)
    if isinstance(value, relax.TupleGetItem):
        return _leaf(value.tuple_value), value.index
    return tuple(map(_leaf, value.fields)) if isinstance(value, relax.Tuple) else value.__class__


def _leaf(value: relax.Expr) -> object:
    """An operand that is told from others at once, else its kind."""
    if isinstance(value, (relax.Var, relax.GlobalVar, relax.Op)):
        return value
    info = value.struct_info if isinstance(value, relax.Constant) else None
    return (info.dtype, info.dims) if isinstance(info, TensorStructInfo) else value.__class__
