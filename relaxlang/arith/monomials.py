"""Products of linear forms, multiplied out: an atom that is a product is a monomial, known by its factors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relaxlang.arith.linear import Linear
from relaxlang.base.dtype import DType
from relaxlang.ir.prim import Mul, PrimExpr, cast

if TYPE_CHECKING:
    from relaxlang.arith.simplify import Simplifier


def multiply(s: Simplifier, a: Linear, b: Linear, dtype: DType) -> Linear:
    """The product of two forms, multiplied out into monomials of type `dtype`."""
    if not b.terms:
        return a.times(b.const)
    if not a.terms:
        return b.times(a.const)
    result = a.times(b.const).plus(b.times(a.const)).shifted(-a.const * b.const)
    for x, p in a.terms.items():
        for y, q in b.terms.items():
            result = result.plus(Linear({monomial(s, x, y, dtype): p * q}))
    return result


def monomial(s: Simplifier, x: PrimExpr, y: PrimExpr, dtype: DType) -> PrimExpr:
    """The atom for a product of two atoms; the same one whatever the order of the factors."""
    factors = s.factors.get(x, (x,)) + s.factors.get(y, (y,))
    counts: dict[PrimExpr, int] = {}
    for factor in factors:
        counts[factor] = counts.get(factor, 0) + 1
    key = (frozenset(counts.items()), dtype)
    found = s.monomials.get(key)
    if found is None:
        found = cast(factors[0], dtype)
        for factor in factors[1:]:
            found = Mul(found, cast(factor, dtype))
        s.monomials[key] = found
        s.factors[found] = factors
    return found
