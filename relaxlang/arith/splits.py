"""Splits: quotients and remainders of one dividend by constants, and the sums of them that collapse.

Every split is a sum of pure quotients q(l) = x // l:  x // l % k = q(l) - k * q(l * k).  So the terms of one dividend
x in a sum form a vector over the q(l), with q(1) = x itself; the vector is written back with as few terms as
possible, and replaces what was there when it is shorter: (x // 4 % 8) + 8 * (x // 32) = x // 4, x - x % 8 = x // 8 *
8.

Where the divisor is no constant, only a quotient and a remainder that stand together collapse: x // n * n + x % n = x,
also as parts of products, as in the flat index (x // n * n + x % n) * k + j.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from relaxlang.arith.classify import INDEX
from relaxlang.arith.linear import Linear
from relaxlang.arith.monomials import multiply
from relaxlang.ir.prim import FloorDiv, FloorMod, IntImm, Mul, PrimExpr

if TYPE_CHECKING:
    from relaxlang.arith.simplify import Simplifier

_Vector = dict[int, int]
_SPLITTING = frozenset({FloorDiv, FloorMod, Mul})


def as_split(atom: Any) -> tuple[PrimExpr, int, int] | None:
    """(x, lower, upper) of an atom `x % upper // lower`, however written; upper 0: no upper end. None for others."""
    cls = atom.__class__
    if cls is FloorDiv and atom.b.__class__ is IntImm and atom.b.value > 0:
        return atom.a, atom.b.value, 0
    if cls is FloorMod and atom.b.__class__ is IntImm and atom.b.value > 0:
        a, k = atom.a, atom.b.value
        if a.__class__ is FloorDiv and a.b.__class__ is IntImm and a.b.value > 0:
            return a.a, a.b.value, a.b.value * k
        return a, 1, k
    return None


def merge_splits(s: Simplifier, linear: Linear) -> Linear:
    """The form with the splits of each dividend collapsed."""
    if _SPLITTING.isdisjoint([atom.__class__ for atom in linear.terms]):
        return linear
    linear = _merge_symbolic(s, linear)
    groups: dict[PrimExpr, list[tuple[PrimExpr, int, int]]] = {}
    exact: list[tuple[PrimExpr, tuple[PrimExpr, int, int]]] = []
    for atom in linear.terms:
        if atom.__class__ is FloorDiv or atom.__class__ is FloorMod:
            split = as_split(atom)
            if split is not None and not (split[2] == 0 and _leaves_known(s, split, linear.terms[atom])):
                groups.setdefault(split[0], []).append((atom, split[1], split[2]))
            elif split is not None:
                exact.append((atom, split))
    for atom, (dividend, divisor, _) in exact:
        times, rest = linear.terms[atom] // divisor, s.residue(dividend).remainder % divisor
        linear = linear.with_term(atom, 0).plus(s.linear(dividend), times).shifted(-rest * times)
    for dividend, splits in groups.items():
        linear = _merge(s, linear, dividend, splits)
    return linear


def _leaves_known(s: Simplifier, split: tuple[PrimExpr, int, int], coefficient: int) -> bool:
    """Whether x // c * c is x - r because x is known to be r modulo c."""
    dividend, divisor, _ = split
    if coefficient % divisor:
        return False
    modulus = s.residue(dividend).modulus
    return modulus != 0 and modulus % divisor == 0


def _merge(s: Simplifier, linear: Linear, x: PrimExpr, splits: list[tuple[PrimExpr, int, int]]) -> Linear:
    terms = linear.terms
    form = s.linear(x)
    share = _share(terms, form)
    if len(splits) == 1 and not share:
        return linear
    vector: _Vector = {1: share}
    for atom, lower, upper in splits:
        coefficient = terms[atom]
        vector[lower] = vector.get(lower, 0) + coefficient
        if upper:
            vector[upper] = vector.get(upper, 0) - coefficient * (upper // lower)
    whole = vector.pop(1)
    written = _written(vector, whole)
    changes = {atom: terms.get(atom, 0) - c * share for atom, c in form.terms.items()}
    kept = written.pop((1, 0), 0)
    before = (len(splits), sum(1 for atom in form.terms if atom in terms))
    for atom, c in form.terms.items():
        changes[atom] += c * kept
    after = (len(written), sum(1 for c in changes.values() if c))
    # No split at all is best; else fewer terms are: i % 8 + i // 8 * 3 stays as it is.
    if after[0] and (after[0] > before[0] or sum(after) >= sum(before)):
        return linear
    result = Linear(dict(terms), linear.const - share * form.const + kept * form.const)
    for atom, _, _ in splits:
        changes[atom] = 0
    for atom, c in changes.items():
        result = result.with_term(atom, c)
    for (lower, upper), c in written.items():
        result = result.plus(s.linear(_split(s, x, lower, upper)), c)
    return result


def _share(terms: dict[PrimExpr, int], form: Linear) -> int:
    """How many times `form` is contained in a sum: such that its first term cancels."""
    for atom, c in form.terms.items():
        found = terms.get(atom, 0)
        return found // c if found % c == 0 else 0
    return 0


def _written(vector: _Vector, whole: int) -> dict[tuple[int, int], int]:
    """The vector as few splits (lower, upper): an entry that the next one cancels is a remainder."""
    lowers = [lower for lower in sorted(vector) if vector[lower]]
    if whole:
        lowers.insert(0, 1)
        vector = {**vector, 1: whole}
    result: dict[tuple[int, int], int] = {}
    while lowers:
        lower = lowers.pop(0)
        upper = lowers[0] if lowers else 0
        if upper and upper % lower == 0 and vector[upper] == -vector[lower] * (upper // lower):
            result[lower, upper] = vector[lower]
            lowers.pop(0)
        else:
            result[lower, 0] = vector[lower]
    return result


def _split(s: Simplifier, x: PrimExpr, lower: int, upper: int) -> PrimExpr:
    quotient = x if lower == 1 else FloorDiv(x, IntImm(x.dtype, lower))
    return s.simplify(FloorMod(quotient, IntImm(x.dtype, upper // lower)) if upper else quotient)


def _merge_symbolic(s: Simplifier, linear: Linear) -> Linear:
    """The form with c * (x // y * y + x % y) written as c * x, for each y that is positive and no constant."""
    if len(linear.terms) < 2:
        return linear
    for atom in linear.terms:
        factors = s.factors.get(atom, (atom,))
        for remainder in factors:
            if remainder.__class__ is FloorMod and remainder.b.__class__ is not IntImm:
                merged = _without_remainder(s, linear, atom, factors, remainder)
                if merged is not None:
                    return _merge_symbolic(s, merged)
    return linear


def _without_remainder(
    s: Simplifier, linear: Linear, atom: PrimExpr, factors: tuple[PrimExpr, ...], remainder: Any
) -> Linear | None:
    """The form without the remainder in one of its atoms; None where its quotient does not stand beside it."""
    if s.taint(atom) != INDEX or s.bound(remainder.b).min <= 0:
        return None
    around = Linear({}, 1)
    for factor in factors:
        if factor is not remainder:
            around = multiply(s, around, Linear({factor: 1}), atom.dtype)
    times = linear.terms[atom]
    for dividend, divided in _divisions(s, linear, remainder):
        quotient = s.linear(s.simplify(divided))
        beside = multiply(s, multiply(s, quotient, s.linear(remainder.b), atom.dtype), around, atom.dtype)
        if not beside.const and all(linear.terms.get(part) == c * times for part, c in beside.terms.items()):
            whole = multiply(s, s.linear(dividend), around, atom.dtype)
            return linear.with_term(atom, 0).plus(beside, -times).plus(whole, times)
    return None


def _divisions(s: Simplifier, linear: Linear, remainder: Any) -> Iterator[tuple[PrimExpr, PrimExpr]]:
    """What leaves the remainder x % y, with its quotient by y: x and x // y; where x is z // w, x and z // (w * y); and
    each x % (y * z) that stands divided by y."""
    x, y = remainder.a, remainder.b
    yield x, FloorDiv(x, y)
    if isinstance(x, FloorDiv) and s.bound(x.b).min > 0:
        yield x, FloorDiv(x.a, x.b * y)
    for atom in linear.terms:
        for factor in s.factors.get(atom, (atom,)):
            if not isinstance(factor, FloorDiv) or factor.b != y or not isinstance(factor.a, FloorMod):
                continue
            if factor.a.a == x and _is_factor(s, y, factor.a.b):
                yield factor.a, factor


def _is_factor(s: Simplifier, part: PrimExpr, whole: PrimExpr) -> bool:
    """Whether a product has all factors of another one."""
    form = s.linear(whole)
    if form.const or len(form.terms) != 1:
        return False
    (monomial,) = form.terms
    left = list(s.factors.get(monomial, (monomial,)))
    for factor in s.factors.get(part, (part,)):
        if factor not in left:
            return False
        left.remove(factor)
    return True
