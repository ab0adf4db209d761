"""What a match has found so far. States are values: a pattern that fails leaves nothing behind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from relaxlang.ir import prim, relax
from relaxlang.ir.prim import PrimExpr
from relaxlang.ir.structural import structural_equal

if TYPE_CHECKING:
    from relaxlang.builder.dpl.patterns import Pattern

Values = Mapping[relax.Var, relax.Expr]
"""What variables are bound to."""


class State(NamedTuple):
    """`found`: what each pattern matched; `dims`: what the patterns' symbolic dimensions are; `values`: what the
    function's variables are bound to."""

    values: Values
    found: Mapping[Pattern, relax.Expr] = {}
    dims: Mapping[prim.Var, PrimExpr] = {}

    def bind(self, pattern: Pattern, expr: relax.Expr) -> State:
        """The state in which `pattern` has matched `expr`."""
        return self._replace(found={**self.found, pattern: expr})

    def value(self, expr: relax.Expr) -> relax.Expr:
        """An expression, or what the variable is bound to that it is."""
        while isinstance(expr, relax.Var):
            held = self.values.get(expr)
            if held is None:
                return expr
            expr = held
        return expr

    def same(self, a: relax.Expr, b: relax.Expr) -> bool:
        """Whether two expressions are one value: one variable, or leaves that are equal."""
        if a is b:
            return True
        a, b = self._leaf(a), self._leaf(b)
        return a is b or (not isinstance(a, (relax.Call, relax.If, relax.Function)) and structural_equal(a, b))

    def _leaf(self, expr: relax.Expr) -> relax.Expr:
        """What a variable is another name for."""
        while isinstance(expr, relax.Var):
            held = self.values.get(expr)
            if held is None or isinstance(held, (relax.Call, relax.If, relax.Function)):
                return expr
            expr = held
        return expr
