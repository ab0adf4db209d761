"""Floor division and modulo, by way of the linear form of the dividend.

With a constant divisor c > 0 and the dividend L, in this order:

    c*Q + R           //  c  ==  Q + R // c                 % c  ==  R % c            (terms that c divides)
    g*R + r           // g*c ==  R // c                     % g*c ==  g * (R % c) + r   for 0 <= r < g
    g*R + Y           // g*c ==  R // c                     % g*c ==  g * (R % c) + Y   where 0 <= Y < g is proved
    R                 //  c  ==  k                          % c  ==  R - c*k          where k*c <= R < (k+1)*c is proved
    x // k            //  c  ==  x // (k*c)
    (x % (c*k))       //  c  ==  x // c % k                 % c  ==  x % c
    (x // k + r)      //  c  ==  (x + r*k) // (k*c)

A divisor 0 is never touched: the program fails there, and must go on doing so.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd, inf
from typing import TYPE_CHECKING, Any

from relaxlang.arith.bounds import bound_of_linear
from relaxlang.arith.canonical import fits
from relaxlang.arith.classify import type_range
from relaxlang.arith.linear import Linear
from relaxlang.arith.modular import residue_of_linear
from relaxlang.arith.monomials import multiply
from relaxlang.base.dtype import DType
from relaxlang.ir.prim import FloorDiv, FloorMod, IntImm, PrimExpr, fold

if TYPE_CHECKING:
    from relaxlang.arith.simplify import Simplifier


def simplify_floordiv(s: Simplifier, node: Any) -> PrimExpr:
    """`a // b` of integers."""
    a = s.simplify(node.a)
    b = node.b if node.b.__class__ is IntImm else s.simplify(node.b)
    if isinstance(b, IntImm):
        if b.value == 0 or isinstance(a, IntImm):
            return fold(FloorDiv, a, b)
        if b.value > 0:
            return _floordiv_const(s, node, a, b.value)
        negated = s.linear(a).times(-1)
        if b.value == -1 and fits(s, negated, node.dtype):
            return s.expr(negated, node.dtype, fold(FloorDiv, a, b))
        return fold(FloorDiv, a, b)
    return _floordiv_symbolic(s, a, b)


def simplify_floormod(s: Simplifier, node: Any) -> PrimExpr:
    """`a % b` of integers."""
    a = s.simplify(node.a)
    b = node.b if node.b.__class__ is IntImm else s.simplify(node.b)
    if isinstance(b, IntImm):
        if b.value == 0 or isinstance(a, IntImm):
            return fold(FloorMod, a, b)
        if b.value > 0:
            return _floormod_const(s, node, a, b.value)
        return IntImm(node.dtype, 0) if b.value == -1 else fold(FloorMod, a, b)
    return _floormod_symbolic(s, a, b)


def _take_out(linear: Linear, c: int) -> tuple[Linear, Linear]:
    """(Q, R) of L = c*Q + R: the terms that c divides, and the rest with its constant in [0, c)."""
    quotient, rest = {}, {}
    for atom, coefficient in linear.terms.items():
        if coefficient % c == 0:
            quotient[atom] = coefficient // c
        else:
            rest[atom] = coefficient
    return Linear(quotient, linear.const // c), Linear(rest, linear.const % c)


def _take_out_fitting(s: Simplifier, whole: Linear, c: int, dtype: DType) -> tuple[Linear, Linear]:
    """As `_take_out`, where the rest of a form that fits is known to fit; else nothing is taken out."""
    quotient, rest = _take_out(whole, c)
    return (quotient, rest) if fits(s, rest, dtype, whole) else (Linear({}), whole)


def _take_small(s: Simplifier, linear: Linear, c: int) -> tuple[int, Linear, Linear] | None:
    """(g, R, Y) of L = g*R + Y with g > 1 a divisor of c and 0 <= Y < g, for the greatest such g; None without one."""
    candidates = sorted({gcd(k, c) for k in linear.terms.values()} - {1}, reverse=True)
    for g in candidates:
        big = {atom: k // g for atom, k in linear.terms.items() if k % g == 0}
        if len(big) == len(linear.terms):
            return g, Linear(big, linear.const // g), Linear({}, linear.const % g)
        small = Linear({atom: k for atom, k in linear.terms.items() if k % g}, linear.const % g)
        low, high = bound_of_linear(s, small)
        if low >= 0 and high < g:
            return g, Linear(big, linear.const // g), small
    return None


def _constant_quotient(s: Simplifier, linear: Linear, c: int) -> int | None:
    low, high = bound_of_linear(s, linear)
    if abs(low) == inf or abs(high) == inf or low // c != high // c:
        return None
    return int(low) // c


def _floordiv_const(s: Simplifier, node: Any, a: PrimExpr, c: int) -> PrimExpr:
    quotient, rest = _take_out_fitting(s, s.linear(a), c, node.dtype)
    inner = _quotient(s, rest, c, node.dtype)
    kept = _kept(FloorDiv, node, a, c)
    return kept if inner is None else s.expr(quotient.plus(inner), node.dtype, kept)


def _quotient(s: Simplifier, rest: Linear, c: int, dtype: DType) -> Linear | None:
    """rest // c, for a form that is fit to be an operand; None when it cannot be written."""
    if not rest.terms:
        return Linear({}, rest.const // c)
    known = _constant_quotient(s, rest, c)
    if known is not None:
        return Linear({}, known)
    taken = _take_small(s, rest, c)
    if taken is not None:
        g, big, _ = taken  # big == rest // g fits, because rest does
        more, inner = _take_out_fitting(s, big, c // g, dtype)
        found = _quotient(s, inner, c // g, dtype)
        if found is not None:
            return more.plus(found)
    if len(rest.terms) == 1:
        nested = _nested_quotient(s, rest, c, dtype)
        if nested is not None:
            return nested
    return division_atom(s, FloorDiv, rest, c, dtype)


def _nested_quotient(s: Simplifier, rest: Linear, c: int, dtype: DType) -> Linear | None:
    ((atom, coefficient),) = rest.terms.items()
    if coefficient != 1 or atom.dtype is not dtype:
        return None
    if isinstance(atom, FloorDiv) and isinstance(atom.b, IntImm) and atom.b.value > 0:
        k = atom.b.value
        inner = s.linear(atom.a).shifted(rest.const * k)
        if k * c <= type_range(dtype)[1] and fits(s, inner, dtype):
            more, inner = _take_out_fitting(s, inner, k * c, dtype)
            found = _quotient(s, inner, k * c, dtype)
            return None if found is None else more.plus(found)
    if isinstance(atom, FloorMod) and isinstance(atom.b, IntImm) and rest.const == 0:
        k = atom.b.value
        if k > 0 and k % c == 0:  # x % (c*k) // c == x // c % k
            return s.linear(s.simplify(FloorMod(FloorDiv(atom.a, IntImm(dtype, c)), IntImm(dtype, k // c))))
    return None


def _floormod_const(s: Simplifier, node: Any, a: PrimExpr, c: int) -> PrimExpr:
    dtype, whole = node.dtype, s.linear(a)
    _, rest = _take_out_fitting(s, whole, c, dtype)
    small = Linear({atom: k % c if k > 0 else -(-k % c) for atom, k in rest.terms.items() if k % c}, rest.const % c)
    if fits(s, small, dtype):
        rest = small
    inner = _remainder(s, rest, c, dtype)
    kept = _kept(FloorMod, node, a, c)
    return kept if inner is None else s.expr(inner, dtype, kept)


def _remainder(s: Simplifier, rest: Linear, c: int, dtype: DType) -> Linear | None:
    """rest % c, for a form that is fit to be an operand; None when it cannot be written."""
    if not rest.terms:
        return Linear({}, rest.const % c)
    known = _constant_quotient(s, rest, c)
    if known is not None:
        return rest.shifted(-c * known)
    modulus, remainder = residue_of_linear(s, rest)
    if modulus % c == 0:
        return Linear({}, remainder % c)
    taken = _take_small(s, rest, c)
    if taken is not None:
        g, big, small = taken
        _, inner = _take_out_fitting(s, big, c // g, dtype)
        found = _remainder(s, inner, c // g, dtype)
        if found is not None:
            return found.times(g).plus(small)
    if len(rest.terms) == 1 and rest.const == 0:
        ((atom, coefficient),) = rest.terms.items()
        if coefficient == 1 and isinstance(atom, FloorMod) and isinstance(atom.b, IntImm) and atom.b.value % c == 0:
            return s.linear(s.simplify(FloorMod(atom.a, IntImm(atom.dtype, c)))) if atom.b.value else None
    return division_atom(s, FloorMod, rest, c, dtype)


def _kept(kind: type[FloorDiv] | type[FloorMod], node: Any, a: PrimExpr, c: int) -> PrimExpr:
    return node if a is node.a and isinstance(node.b, IntImm) else fold(kind, a, IntImm(node.dtype, c))


# --- divisors that are no constants -----------------------------------------------------------------------------------
def exact_quotient(s: Simplifier, a: Linear, b: Linear, dtype: DType) -> tuple[Linear, Linear] | None:
    """(Q, R) of a = b*Q + R: for a divisor of one term, R is what it does not divide; for any other, a = k*b."""
    for atom, coefficient in b.terms.items():
        k, odd = divmod(a.terms.get(atom, 0), coefficient)
        if k and not odd and a == b.times(k):
            return Linear({}, k), Linear({})
        break
    if len(b.terms) != 1 or b.const:
        return None
    ((divisor, coefficient),) = b.terms.items()
    quotient, rest = Linear({}), Linear({}, a.const)
    for atom, k in a.terms.items():
        left = _without(s, atom, s.factors.get(divisor, (divisor,)), dtype)
        if left is None or k % coefficient:
            rest = rest.with_term(atom, k)
        else:
            quotient = quotient.plus(left, k // coefficient)
    return (quotient, rest) if quotient.terms or quotient.const else None


def _without(s: Simplifier, atom: PrimExpr, factors: Iterable[PrimExpr], dtype: DType) -> Linear | None:
    """A monomial divided by some of its factors; None when one is missing, or when the product may have wrapped."""
    if atom in s.factors and not s.exact(atom):
        return None
    left = list(s.factors.get(atom, (atom,)))
    for factor in factors:
        if factor not in left:
            return None
        left.remove(factor)
    result = Linear({}, 1)
    for factor in left:
        result = multiply(s, result, Linear({factor: 1}), dtype)
    return result


def _nonzero(s: Simplifier, b: PrimExpr) -> bool:
    low, high = s.bound(b)
    return low > 0 or high < 0 or s.holds_nonzero(b)


def _floordiv_symbolic(s: Simplifier, a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """x // y: (y*q + r) // y == q + r // y;  x // y == 0 for 0 <= x < y, -1 for -y <= x < 0."""
    numerator, divisor, dtype = s.linear(a), s.linear(b), a.dtype
    quotient = Linear({})
    kept = FloorDiv(a, b)
    if _nonzero(s, b):
        parts = exact_quotient(s, numerator, divisor, dtype)
        if parts is not None and fits(s, parts[1], dtype, numerator):
            quotient, numerator = parts
        if not numerator.terms and numerator.const == 0:
            return s.expr(quotient, dtype, kept)
    if s.holds(divisor.minus(numerator).shifted(-1)):
        if s.holds(numerator):
            return s.expr(quotient, dtype, kept)
        if s.holds(numerator.times(-1).shifted(-1)) and s.holds(divisor.plus(numerator)):
            return s.expr(quotient.shifted(-1), dtype, kept)
    if not quotient.terms and not quotient.const:
        return kept
    return s.expr(quotient.plus(Linear({FloorDiv(s.expr(numerator, dtype, a), b): 1})), dtype, kept)


def _floormod_symbolic(s: Simplifier, a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """x % y: (y*q + r) % y == r % y;  x % y == x for 0 <= x < y, x + y for -y <= x < 0."""
    numerator, divisor, dtype = s.linear(a), s.linear(b), a.dtype
    rest = numerator
    kept = FloorMod(a, b)
    if _nonzero(s, b):
        parts = exact_quotient(s, numerator, divisor, dtype)
        if parts is not None and fits(s, parts[1], dtype, numerator):
            rest = parts[1]
        if not rest.terms and rest.const == 0:
            return IntImm(dtype, 0)
    if s.holds(divisor.minus(rest).shifted(-1)):
        if s.holds(rest):
            return s.expr(rest, dtype, kept)
        if s.holds(rest.times(-1).shifted(-1)) and s.holds(divisor.plus(rest)):
            return s.expr(rest.plus(divisor), dtype, kept)
    return kept if rest is numerator else FloorMod(s.expr(rest, dtype, a), b)


def division_atom(
    s: Simplifier, kind: type[FloorDiv] | type[FloorMod], form: Linear, c: int, dtype: DType
) -> Linear | None:
    """`form // c` or `form % c` as an atom, the same for the same form; None when a number does not fit the type."""
    key = (kind, form.key(), c, dtype)
    if key not in s.divisions:
        dividend = s.try_expr(form, dtype)
        s.divisions[key] = None if dividend is None or c > type_range(dtype)[1] else kind(dividend, IntImm(dtype, c))
    atom = s.divisions[key]
    return None if atom is None else Linear({atom: 1})
