"""Rewriting Relax binding by binding: the shared ground of passes that turn one binding into several."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from relaxlang.base.source import Span
from relaxlang.ir import prim, relax
from relaxlang.ir.struct_info import StructInfo
from relaxlang.ir.visit import Rewriter, Substitute, on

_E = TypeVar("_E", relax.Function, relax.SeqExpr)


class BindingRewriter(Rewriter):
    """Rebuilds functions binding by binding, inner functions and branches included.

    A subclass overrides `binding`; what it emits with `emit` stands before the binding it returns. `replaced` maps
    variables to what stands for them from now on.
    """

    def __init__(self) -> None:
        self.replaced: dict[relax.Var, relax.Expr] = {}
        self.pending: list[relax.Binding] = []
        self.in_dataflow = False

    # --- for subclasses -----------------------------------------------------------------------------------------------
    def binding(self, binding: relax.Binding) -> Iterable[relax.Binding]:
        """What stands in place of a binding; its operands are rewritten already."""
        return (binding,)

    def emit(self, hint: str, value: relax.Expr, info: StructInfo, span: Span | None = None) -> relax.Var:
        """Bind `value` to a new variable before the current binding."""
        kind = relax.DataflowVar if self.in_dataflow else relax.Var
        var = kind(hint, info, span=span)
        self.pending.append(relax.VarBinding(var, value, span=span))
        return var

    # --- traversal ----------------------------------------------------------------------------------------------------
    @on(relax.Var, relax.DataflowVar)
    def var(self, node: relax.Var) -> relax.Expr:
        """What stands for a variable."""
        return self.replaced.get(node, node)

    @on(relax.BindingBlock, relax.DataflowBlock)
    def block(self, node: relax.BindingBlock) -> relax.BindingBlock:
        """A block with its bindings rewritten."""
        outer, self.pending = self.pending, []
        was, self.in_dataflow = self.in_dataflow, isinstance(node, relax.DataflowBlock)
        made: list[relax.Binding] = []
        for old in node.bindings:
            new = self.operands(old)
            results = list(self.binding(new))
            made += self.pending
            made += results
            self.pending = []
        self.pending, self.in_dataflow = outer, was
        if len(made) == len(node.bindings) and all(a is b for a, b in zip(made, node.bindings)):
            return node
        return node.replace(bindings=tuple(made))

    def operands(self, binding: relax.Binding) -> relax.Binding:
        """A binding with its value rewritten; the bound variable stays."""
        value = self(binding.value)
        return binding if value is binding.value else binding.replace(value=value)

    @on(relax.Function)
    def function(self, node: relax.Function) -> relax.Function:
        """A function with its body rewritten; parameters stay."""
        body: Any = self(node.body)
        return node if body is node.body else node.replace(body=body)


class Specialize(Substitute):
    """Replaces symbolic dimensions; variables get new ones of the new struct info, which `vars` remembers."""

    def __init__(self, dims: Mapping[prim.Var, prim.PrimExpr]) -> None:
        super().__init__(dims)
        self.vars: dict[relax.Var, relax.Var] = {}

    @on(relax.Var, relax.DataflowVar)
    def variable(self, node: relax.Var) -> relax.Var:
        """One new variable for each old one whose struct info changes."""
        made = self.vars.get(node)
        if made is None:
            made = self.vars[node] = node.replace(struct_info=self.value(node.struct_info))
        return made


def specialize(node: _E, dims: Mapping[prim.Var, prim.PrimExpr]) -> _E:
    """A function or its body with symbolic dimensions replaced, in the struct info of its variables too."""
    made: _E = Specialize(dims)(node) if dims else node
    return made


def promised_pure(func: relax.Function) -> relax.Function:
    """A function that now has effects which its callers need not know of: to them it is pure if it was."""
    if not func.is_pure or "relax.force_pure" in func.attrs:
        return func
    return func.replace(attrs=func.attrs.set("relax.force_pure", True))
