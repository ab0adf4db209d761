"""Constant bounds: the smallest and the largest value that an expression can have."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Any

from relaxlang.arith.classify import INDEX, RING, is_integer, type_range
from relaxlang.arith.facts import ANY, TRUTH, Bound, Residue
from relaxlang.arith.linear import Linear
from relaxlang.ir import prim
from relaxlang.ir.prim import Add, Call, Cast, IntImm, Max, Min, Mul, PrimExpr

if TYPE_CHECKING:
    from relaxlang.arith.simplify import Simplifier

_MANY = 16  # terms of a sum that is also looked at as it is written


def bound_of(s: Simplifier, expr: PrimExpr) -> Bound:
    """The bounds of an expression whose operands are simplified; ANY for what is no integer."""
    if isinstance(expr, IntImm):
        return Bound(expr.value, expr.value)
    dtype = expr.dtype
    if dtype.kind == "bool" and dtype.lanes == 1:
        return s.facts.bounds.get(expr, TRUTH)
    if not is_integer(dtype):
        return ANY
    if expr.__class__ in RING:
        linear = s.ring(expr)
        if expr.__class__ is Mul and linear.terms.keys() == {expr}:
            found = product(s, s.factors[expr]).meet(s.facts.bound(expr))
        else:
            found = bound_of_linear(s, linear)
            products = len(linear.terms) <= _MANY and any(atom in s.factors for atom in linear.terms)
            if products and s.taint(expr) == INDEX:
                found = found.meet(_as_written(s, expr))
    else:
        rule = _RULES.get(expr.__class__)
        found = rule(s, expr) if rule is not None else ANY
        found = found.meet(s.facts.bound(expr))
        if expr in s.facts.residues:
            found = tightened(found, s.facts.residues[expr])
    low, high = type_range(dtype)
    if (low <= found.min and found.max <= high) or s.taint(expr) == INDEX:
        return found
    # Data wraps around: bounds that do not fit say nothing, and the type itself bounds it.
    return Bound(low, high).meet(s.facts.bound(expr))


def _as_written(s: Simplifier, expr: Any) -> Bound:
    """The bounds of a sum or product from those of its operands: tighter where multiplying out doubled a factor."""
    a, b = s.bound(expr.a), s.bound(expr.b)
    if expr.__class__ is Mul:
        return multiply(a, b)
    return Bound(a.min + b.min, a.max + b.max) if expr.__class__ is Add else Bound(a.min - b.max, a.max - b.min)


def bound_of_linear(s: Simplifier, linear: Linear) -> Bound:
    """The bounds of a linear form, its atoms taken as independent."""
    low: float = linear.const
    high: float = linear.const
    for atom, coefficient in linear.terms.items():
        least, most = s.bound(atom)
        if coefficient > 0:
            low += coefficient * least
            high += coefficient * most
        else:
            low += coefficient * most
            high += coefficient * least
    return Bound(low, high)


def tightened(bound: Bound, residue: Residue) -> Bound:
    """The bounds with their ends moved inwards to numbers that leave the remainder."""
    modulus, remainder = residue
    if modulus == 0:
        return Bound(remainder, remainder)
    low = bound.min if bound.min == -inf else bound.min + (remainder - bound.min) % modulus
    high = bound.max if bound.max == inf else bound.max - (bound.max - remainder) % modulus
    return Bound(low, high) if low <= high else bound


def _times(a: float, b: float) -> float:
    return 0 if a == 0 or b == 0 else a * b


def multiply(a: Bound, b: Bound) -> Bound:
    """The bounds of a product."""
    corners = [_times(x, y) for x in a for y in b]
    return Bound(min(corners), max(corners))


def _floordiv(a: float, b: float) -> float:
    if abs(b) == inf:
        return 0 if a == 0 or (a > 0) == (b > 0) else -1
    if abs(a) == inf:
        return a if b > 0 else -a
    return a // b


def divide(a: Bound, b: Bound) -> Bound:
    """The bounds of a floor division; the divisor is not 0 (a program that divides by 0 has no result)."""
    corners = []
    for low, high in ((max(b.min, 1), b.max), (b.min, min(b.max, -1))):
        if low <= high:
            corners += [_floordiv(x, y) for x in a for y in (low, high)]
    return Bound(min(corners), max(corners)) if corners else ANY


def product(s: Simplifier, factors: tuple[PrimExpr, ...]) -> Bound:
    """The bounds of a product; those of a square are not negative."""
    result = Bound(1, 1)
    for factor in factors:
        result = multiply(result, s.bound(factor))
    if len(factors) == 2 and factors[0] is factors[1]:
        result = result.meet(Bound(0, inf))
    return result


def _floor_div(s: Simplifier, expr: Any) -> Bound:
    return divide(s.bound(expr.a), s.bound(expr.b))


def _floor_mod(s: Simplifier, expr: Any) -> Bound:
    a, b = s.bound(expr.a), s.bound(expr.b)
    low: float = 0 if b.min >= 0 else b.min + 1
    high: float = 0 if b.max <= 0 else b.max - 1
    if a.min >= 0 and b.min >= 0:
        high = min(high, a.max)
    if not (b.is_point and b.min > 0):
        return Bound(low, high)
    modulus = int(b.min)
    if abs(a.min) != inf and abs(a.max) != inf and a.min // modulus == a.max // modulus:
        return Bound(a.min % modulus, a.max % modulus)
    step, remainder = s.residue(expr)
    if step > 1:  # the residues that occur are remainder, remainder + step, …
        low, high = remainder, remainder + (modulus - 1 - remainder) // step * step
    return Bound(low, min(high, a.max) if a.min >= 0 else high)


def _trunc_div(s: Simplifier, expr: Any) -> Bound:
    a, b = s.bound(expr.a), s.bound(expr.b)
    if a.min >= 0 and b.min >= 0:
        return divide(a, b)
    most = max(abs(a.min), abs(a.max))
    return Bound(-most, most)


def _trunc_mod(s: Simplifier, expr: Any) -> Bound:
    a, b = s.bound(expr.a), s.bound(expr.b)
    most = min(max(abs(b.min), abs(b.max)) - 1, max(abs(a.min), abs(a.max)))
    return Bound(0 if a.min >= 0 else -most, 0 if a.max <= 0 else most)


def _min(s: Simplifier, expr: Any) -> Bound:
    a, b = s.bound(expr.a), s.bound(expr.b)
    return Bound(min(a.min, b.min), min(a.max, b.max))


def _max(s: Simplifier, expr: Any) -> Bound:
    a, b = s.bound(expr.a), s.bound(expr.b)
    return Bound(max(a.min, b.min), max(a.max, b.max))


def _select(s: Simplifier, expr: Any) -> Bound:
    return s.bound(expr.true_value).join(s.bound(expr.false_value))


def _cast(s: Simplifier, expr: Cast) -> Bound:
    low, high = type_range(expr.of)
    if expr.value.dtype.kind not in ("int", "uint", "bool"):
        return Bound(low, high)
    inner = s.bound(expr.value)
    if expr.value.dtype.kind != "bool":
        least, most = type_range(expr.value.dtype)
        inner = Bound(max(inner.min, least), min(inner.max, most))
    return inner if low <= inner.min and inner.max <= high else Bound(low, high)


def _load(s: Simplifier, expr: PrimExpr) -> Bound:
    return Bound(*type_range(expr.dtype))


def _call(s: Simplifier, expr: Call) -> Bound:
    args = expr.args
    if expr.op == "if_then_else":
        return s.bound(args[1]).join(s.bound(args[2]))
    if expr.op == "likely":
        return s.bound(args[0])
    if expr.op == "bitwise_and":
        tops = [s.bound(arg).max for arg in args if s.bound(arg).min >= 0]
        return Bound(0, min(tops)) if tops else ANY
    if expr.op in ("shift_right", "shift_left") and isinstance(args[1], IntImm):
        a, amount = s.bound(args[0]), args[1].value
        if not 0 <= amount < expr.dtype.bits:
            return ANY
        factor = Bound(1 << amount, 1 << amount)
        return divide(a, factor) if expr.op == "shift_right" else multiply(a, factor)
    if expr.op == "vscale":
        return Bound(1, inf)
    if expr.op in ("clz", "popcount"):
        return Bound(0, args[0].dtype.bits)
    return ANY


_RULES: dict[type, Callable[[Simplifier, Any], Bound]] = {
    prim.FloorDiv: _floor_div, prim.FloorMod: _floor_mod, prim.Div: _trunc_div, prim.Mod: _trunc_mod,
    Min: _min, Max: _max, prim.Select: _select, Cast: _cast, Call: _call, prim.BufferLoad: _load,
}  # fmt: skip
