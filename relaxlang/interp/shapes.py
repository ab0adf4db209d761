"""Symbolic dimensions at run time: equations between dimensions and values, which define variables and check them."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any, NamedTuple

from relaxlang.interp import numeric
from relaxlang.ir import prim
from relaxlang.ir.prim import PrimExpr
from relaxlang.ir.struct_info import lone_var
from relaxlang.ir.visit import free_vars


class Equation(NamedTuple):
    """`expr` must be `value`; `refuse(expected)` reports that it is `expected`."""

    expr: PrimExpr
    value: int | float
    refuse: Callable[[Any], None]


class Equations:
    """Equations over variables in `values`.

    One whose left side is a variable without a value defines it; the others wait until their variables have values, and
    are then checked. `evaluate` computes an expression.
    """

    def __init__(self, values: MutableMapping[prim.Var, Any], evaluate: Callable[[PrimExpr], Any]) -> None:
        self.values = values
        self.evaluate = evaluate
        self.waiting: list[Equation] = []

    def add(self, expr: PrimExpr, value: int | float, refuse: Callable[[Any], None]) -> None:
        """State an equation; it counts from the next `solve` on."""
        self.waiting.append(Equation(expr, value, refuse))

    def solve(self) -> None:
        """Define and check all that can be; raises what `refuse` does for an equation that does not hold."""
        progress = True
        while progress and self.waiting:
            waiting, self.waiting = self.waiting, []
            for equation in waiting:
                if not self._settle(equation):
                    self.waiting.append(equation)
            progress = len(self.waiting) < len(waiting)

    def _settle(self, equation: Equation) -> bool:
        expr, value, refuse = equation
        var = lone_var(expr)
        if var is not None and var not in self.values:
            self.values[var] = scalar(value, var)
            if var is expr:
                return True
        if any(v not in self.values for v in free_vars(expr)):
            return False
        expected = self.evaluate(expr).item()
        if expected != value:
            refuse(expected)
        return True


def scalar(value: int | float, var: prim.Var) -> Any:
    """A number as a scalar of a variable's type."""
    of = var.dtype
    return numeric.scalar_type(of)(value) if of.is_float else numeric.integer(int(value), of)
