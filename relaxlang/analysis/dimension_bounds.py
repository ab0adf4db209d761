"""What a function's attributes promise of its symbolic dimensions."""

from __future__ import annotations

from relaxlang.ir import prim, relax
from relaxlang.syntax.struct_info import bound_vars

Bounds = tuple[int | None, int | None]
"""The least and the greatest value, both inclusive; None where there is no bound."""


def dimension_bounds(func: relax.Function) -> dict[prim.Var, Bounds]:
    """The bounds of the dimensions that the parameters define, from the attributes `tir_var_lower_bound`,
    `tir_var_upper_bound` (name to value) and `tir_non_negative_var` (names). Unmentioned dimensions are left out."""
    lower, upper = func.attrs.get("tir_var_lower_bound", {}), func.attrs.get("tir_var_upper_bound", {})
    never_negative = func.attrs.get("tir_non_negative_var", ())
    found: dict[prim.Var, Bounds] = {}
    for var in bound_vars(tuple(p.struct_info for p in func.params)):
        low, high = _number(lower.get(var.name)), _number(upper.get(var.name))
        if var.name in never_negative:
            low = max(low or 0, 0)
        if low is not None or high is not None:
            found[var] = (low, high)
    return found


def _number(value: object) -> int | None:
    if isinstance(value, prim.IntImm):
        return value.value
    return value if isinstance(value, int) else None
