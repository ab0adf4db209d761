"""Comparisons, minima and maxima, by way of the difference of their operands.

A comparison is decided when the bounds, residues and known inequalities of `a - b` decide it; else common terms
cancel and the greatest common divisor is divided out, where the new operands provably do not overflow.
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING, Any

from relaxlang.arith.bounds import bound_of_linear
from relaxlang.arith.canonical import cost, fits
from relaxlang.arith.classify import is_integer
from relaxlang.arith.linear import Linear
from relaxlang.arith.modular import residue_of_linear
from relaxlang.base.dtype import DType
from relaxlang.ir.prim import BOOL, EQ, GE, GT, LE, LT, NE, CmpOp, IntImm, Max, Min, PrimExpr, fold

if TYPE_CHECKING:
    from relaxlang.arith.simplify import Simplifier

_MAX_OPERANDS = 8  # of a nested minimum or maximum that is recognised in any order
TRUE, FALSE = IntImm(BOOL, 1), IntImm(BOOL, 0)


def simplify_compare(s: Simplifier, node: Any) -> PrimExpr:
    """Any of the six comparisons; `a > b` and `a >= b` become `b < a` and `b <= a`."""
    kind: type[CmpOp] = node.__class__
    a, b = s.simplify(node.a), s.simplify(node.b)
    if kind is GT or kind is GE:
        kind, a, b = (LT if kind is GT else LE), b, a
    if a.__class__ is IntImm and kind in (EQ, NE):
        a, b = b, a
    if not is_integer(a.dtype):
        return kind(a, b)
    decided = decide(s, kind, a, b)
    if decided is not None:
        return TRUE if decided else FALSE
    a, b = _cancelled(s, kind, a, b)
    return fold(kind, a, b)


def decide(s: Simplifier, kind: type, a: PrimExpr, b: PrimExpr) -> bool | None:
    """Whether the comparison (EQ, NE, LT or LE) of two integers holds always or never; None when neither is known."""
    if a is b or a == b:
        return kind is EQ or kind is LE
    difference = s.linear(b).minus(s.linear(a))
    if kind is LT or kind is LE:
        known = s.sign(difference.shifted(-1) if kind is LT else difference)
        return _apart_as_written(s, kind, a, b) if known is None else known
    equal = _is_zero(s, difference)
    return equal if equal is None or kind is EQ else not equal


def _apart_as_written(s: Simplifier, kind: type, a: PrimExpr, b: PrimExpr) -> bool | None:
    """Whether the bounds of each side decide a < b or a <= b: they can be better than those of the difference."""
    left, right = s.bound(a), s.bound(b)
    if left.max < right.min or (kind is LE and left.max <= right.min):
        return True
    return False if right.max < left.min or (kind is LT and right.max <= left.min) else None


def _is_zero(s: Simplifier, form: Linear) -> bool | None:
    if not form.terms:
        return form.const == 0
    low, high = bound_of_linear(s, form)
    if low > 0 or high < 0:
        return False
    modulus, remainder = residue_of_linear(s, form)
    if (remainder % modulus if modulus else remainder) != 0:
        return False
    if s.holds(form.shifted(-1)) or s.holds(form.times(-1).shifted(-1)):
        return False
    if s.facts.inequalities and s.holds(form) and s.holds(form.times(-1)):
        return True
    return None


def _cancelled(s: Simplifier, kind: type, a: PrimExpr, b: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
    """The operands without what they have in common."""
    left, right = s.linear(a), s.linear(b)
    new_left, new_right = _apart(left, right)
    new_left, new_right = _divided(kind, new_left, new_right)
    dtype = a.dtype
    if _price(new_left, new_right, dtype) > _price(left, right, dtype):
        return a, b
    if new_left == left and new_right == right:
        return a, b
    if not (fits(s, new_left, dtype, left) and fits(s, new_right, dtype, right)):
        return a, b
    written_left, written_right = s.try_expr(new_left, dtype), s.try_expr(new_right, dtype)
    if written_left is None or written_right is None:
        return a, b
    return written_left, written_right


def _price(left: Linear, right: Linear, dtype: DType) -> int:
    return sum(cost(side, dtype) for side in (left, right) if side.terms)


def _apart(left: Linear, right: Linear) -> tuple[Linear, Linear]:
    """Both sides without common terms; constants go to the side that has one alone or stands without terms."""
    common = {}
    for atom, k in left.terms.items():
        other = right.terms.get(atom)
        if other is not None and (k > 0) == (other > 0):
            common[atom] = min(k, other, key=abs)
        elif other is not None:
            common[atom] = k
    shared = Linear(common)
    left, right = left.minus(shared), right.minus(shared)
    if left.const and (right.const or not right.terms):
        return left.shifted(-left.const), right.shifted(-left.const)
    if right.const and not left.terms:
        return left.shifted(-right.const), right.shifted(-right.const)
    return left, right


def _divided(kind: type, left: Linear, right: Linear) -> tuple[Linear, Linear]:
    """Both sides divided by the common divisor g of their coefficients.

    g*L + p < g*R + q  ==  L < R + ceil((q - p) / g)       g*L + p <= g*R + q  ==  L <= R + floor((q - p) / g)
    """
    g = gcd(left.content(), right.content())
    if g <= 1:
        return left, right
    offset = right.const - left.const
    if kind is LT:
        offset = -(-offset // g)
    elif offset % g == 0 or kind is LE:
        offset = offset // g
    else:
        return left, right
    new_left = Linear({atom: k // g for atom, k in left.terms.items()})
    new_right = Linear({atom: k // g for atom, k in right.terms.items()})
    if right.terms and not left.terms:
        return new_left.shifted(-offset), new_right
    return new_left, new_right.shifted(offset)


def simplify_minmax(s: Simplifier, node: Any) -> PrimExpr:
    """`min(a, b)` or `max(a, b)`; the smaller one where it is known which it is."""
    kind, a, b = node.__class__, s.simplify(node.a), s.simplify(node.b)
    if is_integer(a.dtype):
        difference = s.linear(b).minus(s.linear(a))
        if s.holds(difference):
            return a if kind is Min else b
        if s.holds(difference.times(-1)):
            return b if kind is Min else a
        if a.__class__ is IntImm:
            a, b = b, a
        outside = _common_outside(s, kind, a, b)
        if outside is not None:
            return outside
        return fold(kind, a, b)
    return a if a == b else fold(kind, a, b)


def unordered(expr: Any) -> tuple[type, frozenset[PrimExpr]]:
    """A key for a minimum, maximum, == or !=, the same whatever the order of the operands (a few levels deep)."""
    kind = expr.__class__
    if kind is EQ or kind is NE:
        return kind, frozenset((expr.a, expr.b))
    flat: set[PrimExpr] = set()
    work = [expr.a, expr.b]
    while work:
        operand = work.pop()
        if operand.__class__ is kind and len(flat) + len(work) < _MAX_OPERANDS:
            work += (operand.a, operand.b)
        else:
            flat.add(operand)
    return kind, frozenset(flat)


def _common_outside(s: Simplifier, kind: type[Min] | type[Max], a: PrimExpr, b: PrimExpr) -> PrimExpr | None:
    """min(x + z, y + z) == min(x, y) + z, where that takes fewer operations and x and y do not overflow."""
    left, right = s.linear(a), s.linear(b)
    if not (left.terms and right.terms):
        return None
    new_left, new_right = _apart(left, right)
    outside = left.minus(new_left)
    dtype = a.dtype
    if _price(new_left, new_right, dtype) + cost(outside, dtype) + 1 >= _price(left, right, dtype):
        return None
    if not (fits(s, new_left, dtype, left) and fits(s, new_right, dtype, right)):
        return None
    x, y = s.try_expr(new_left, dtype), s.try_expr(new_right, dtype)
    if x is None or y is None:
        return None
    return s.try_expr(s.linear(s.simplify(kind(x, y))).plus(outside), dtype)
