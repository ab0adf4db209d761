"""Proving conditions, and taking them as known.

`form >= 0` is proved when its negation contradicts what is known of its atoms: their bounds, the known inequalities,
what division means (c*q <= x < c*q + c), what a product of bounded factors means ((x - low) * (y - low') >= 0), and
for each minimum, maximum or choice both of its cases.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING, Any

from relaxlang.arith.bounds import bound_of_linear, tightened
from relaxlang.arith.classify import EFFECT, INDEX, is_integer
from relaxlang.arith.facts import ANY, Bound, Residue
from relaxlang.arith.linear import Linear
from relaxlang.arith.modular import residue_of_linear
from relaxlang.arith.monomials import multiply
from relaxlang.arith.solve import contradictory
from relaxlang.ir import prim
from relaxlang.ir.prim import (
    EQ,
    LE,
    LT,
    NE,
    And,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Not,
    Or,
    PrimExpr,
    Select,
)  # fmt: skip

if TYPE_CHECKING:
    from relaxlang.arith.simplify import Simplifier

_MAX_CASES = 4  # nested case distinctions of one proof
_MAX_ATOMS = 24  # atoms that one proof may look into


def proves(s: Simplifier, condition: PrimExpr) -> bool:
    """Whether a condition holds for all values of its variables."""
    work = [s.simplify(condition)]
    while work:
        goal = work.pop()
        if isinstance(goal, IntImm):
            if not goal.value:
                return False
        elif isinstance(goal, And):
            work += (goal.b, goal.a)
        elif isinstance(goal, Or):
            if not _some(s, goal):
                return False
        elif not _compares(s, goal):
            return False
    return True


def _some(s: Simplifier, goal: Or) -> bool:
    """One alternative holds by itself, or the last one where the others do not."""
    parts: list[PrimExpr] = []
    work: list[PrimExpr] = [goal]
    while work:
        part = work.pop()
        if isinstance(part, Or):
            work += (part.b, part.a)
        else:
            parts.append(part)
    if any(proves(s, part) for part in parts):
        return True
    rows = [row for part in parts for row in rows_of(s, s.simplify(Not(part)))]
    return bool(rows) and _contradicts(s, rows, _MAX_CASES)


def rows_of(s: Simplifier, condition: PrimExpr) -> list[Linear]:
    """The inequalities that a simplified condition says (not everything that it says)."""
    if isinstance(condition, And):
        return rows_of(s, condition.a) + rows_of(s, condition.b)
    if not isinstance(condition, LT | LE | EQ) or not is_integer(condition.a.dtype):
        return []
    difference = s.linear(condition.b).minus(s.linear(condition.a))
    if isinstance(condition, LT):
        return [difference.shifted(-1)]
    return [difference] if isinstance(condition, LE) else [difference, difference.times(-1)]


def _compares(s: Simplifier, goal: PrimExpr) -> bool:
    if not isinstance(goal, LT | LE | EQ | NE) or not is_integer(goal.a.dtype):
        return False
    if s.effects and s.taint(goal) == EFFECT:
        return False
    difference = s.linear(goal.b).minus(s.linear(goal.a))
    if isinstance(goal, LT):
        return proves_nonnegative(s, difference.shifted(-1))
    if isinstance(goal, LE):
        return proves_nonnegative(s, difference)
    opposite = difference.times(-1)
    if isinstance(goal, EQ):
        return proves_nonnegative(s, difference) and proves_nonnegative(s, opposite)
    modulus, remainder = residue_of_linear(s, difference)
    if modulus and remainder % modulus:
        return True
    return proves_nonnegative(s, difference.shifted(-1)) or proves_nonnegative(s, opposite.shifted(-1))


def proves_nonnegative(s: Simplifier, form: Linear) -> bool:
    """Whether `form` >= 0 for all values of its atoms."""
    bound = bound_of_linear(s, form)
    if bound.min < 0:
        bound = tightened(bound, residue_of_linear(s, form))
    if bound.min >= 0:
        return True
    if bound.max < 0:
        return False
    return _contradicts(s, [form.times(-1).shifted(-1)], _MAX_CASES)


# --- contradictions ---------------------------------------------------------------------------------------------------
def _contradicts(s: Simplifier, rows: list[Linear], cases: int) -> bool:
    """Whether no values satisfy `rows` >= 0 together with what is known."""
    system = list(rows)
    atoms = _add_known(s, system)
    if contradictory(system):
        return True
    if cases == 0:
        return False
    for atom in atoms:
        alternatives = list(_alternatives(s, atom))
        if alternatives:
            return all(
                _contradicts(s, [_replaced(row, atom, value) for row in rows] + conditions, cases - 1)
                for value, conditions in alternatives
            )
    return False


def _replaced(row: Linear, atom: PrimExpr, value: Linear) -> Linear:
    share = row.terms.get(atom, 0)
    return row.with_term(atom, 0).plus(value, share) if share else row


def _alternatives(s: Simplifier, atom: Any) -> Iterator[tuple[Linear, list[Linear]]]:
    """The values that a minimum, maximum or choice can have, each with the inequalities of its case."""
    if isinstance(atom, Min | Max):
        x, y = s.linear(atom.a), s.linear(atom.b)
        up = y.minus(x) if isinstance(atom, Min) else x.minus(y)
        yield x, [up]
        yield y, [up.times(-1)]
    elif isinstance(atom, Select) or (isinstance(atom, prim.Call) and atom.op == "if_then_else"):
        condition, x_expr, y_expr = (
            (atom.condition, atom.true_value, atom.false_value) if isinstance(atom, Select) else atom.args
        )
        yield s.linear(x_expr), rows_of(s, condition)
        yield s.linear(y_expr), rows_of(s, s.simplify(Not(condition)))


def _add_known(s: Simplifier, system: list[Linear]) -> list[PrimExpr]:
    """Add to a system what is known of its atoms, and of the atoms that this brings in; returns the atoms."""
    atoms: dict[PrimExpr, None] = {}
    facts = list(s.facts.inequalities)
    position = 0
    while position < len(system) and len(atoms) <= _MAX_ATOMS:
        for atom in system[position].terms:
            if atom not in atoms:
                atoms[atom] = None
                system.extend(_meaning(s, atom))
                related = [fact for fact in facts if atom in fact.terms]
                facts = [fact for fact in facts if atom not in fact.terms]
                system.extend(related)
        position += 1
    for atom in list(atoms):
        if atom in s.factors:
            system.extend(_products(s, atom))
        told = s.facts.residues.get(atom)
        if told is not None and told.modulus > 1:  # x = m*q + r, so that rounding to integers sees the residue
            quotient = FloorDiv(atom, IntImm(atom.dtype, told.modulus))
            value = Linear({quotient: told.modulus}, told.remainder)
            system[:] = [_replaced(row, atom, value) for row in system]
    return list(atoms)


def _meaning(s: Simplifier, atom: Any) -> Iterator[Linear]:
    """Inequalities that hold for an atom because of what it is."""
    low, high = s.bound(atom)
    if low != -inf:
        yield Linear({atom: 1}, -int(low))
    if high != inf:
        yield Linear({atom: -1}, int(high))
    if isinstance(atom, FloorDiv | FloorMod):
        yield from _division(s, atom)
    elif isinstance(atom, Min):
        yield s.linear(atom.a).plus(Linear({atom: -1}))
        yield s.linear(atom.b).plus(Linear({atom: -1}))
    elif isinstance(atom, Max):
        yield Linear({atom: 1}).minus(s.linear(atom.a))
        yield Linear({atom: 1}).minus(s.linear(atom.b))


def _division(s: Simplifier, atom: Any) -> Iterator[Linear]:
    """c*q <= x <= c*q + c - 1 for q = x // c; x % c = x - c*q; x % y <= y - 1 and, for x >= 0, x // y, x % y <= x."""
    dividend, itself = s.linear(atom.a), Linear({atom: 1})
    if isinstance(atom.b, IntImm) and atom.b.value > 0:
        c = atom.b.value
        if isinstance(atom, FloorDiv):
            rest = dividend.plus(itself, -c)
            yield rest
            yield rest.times(-1).shifted(c - 1)
        else:
            quotient = s.linear(s.simplify(FloorDiv(atom.a, atom.b)))
            rest = dividend.plus(quotient, -c).minus(itself)
            yield rest
            yield rest.times(-1)
    elif s.bound(atom.b).min > 0:
        if isinstance(atom, FloorMod):
            yield s.linear(atom.b).minus(itself).shifted(-1)
        if s.bound(atom.a).min >= 0:
            yield dividend.minus(itself)


def _products(s: Simplifier, atom: PrimExpr) -> Iterator[Linear]:
    """For x*y: the products of what bounds x and what bounds y, and of known inequalities in x with y >= 0."""
    factors = s.factors[atom]
    if len(factors) != 2 or s.taint(atom) != INDEX:
        return
    x, y = (Linear({factor: 1}) for factor in factors)
    for p in _margins(s.bound(factors[0]), x):
        for q in _margins(s.bound(factors[1]), y):
            yield multiply(s, p, q, atom.dtype)
    for this, other in (factors, factors[::-1]):
        if s.bound(other).min < 0:
            continue
        for fact in s.facts.inequalities:
            if this in fact.terms and len(fact.terms) <= 3:
                yield multiply(s, fact, Linear({other: 1}), atom.dtype)


def _margins(bound: Bound, form: Linear) -> Iterator[Linear]:
    if bound.min != -inf:
        yield form.shifted(-int(bound.min))
    if bound.max != inf:
        yield form.times(-1).shifted(int(bound.max))


# --- assumptions ------------------------------------------------------------------------------------------------------
def assume(s: Simplifier, condition: PrimExpr) -> None:
    """Take a condition as known from now on. The caller drops what was memoised before."""
    work = [condition]
    while work:
        known = s.simplify(work.pop())
        if isinstance(known, And):
            work += (known.b, known.a)
            continue
        if isinstance(known, IntImm):
            continue
        s.facts.conditions[known] = True
        s.facts.conditions[s.simplify(Not(known))] = False
        if isinstance(known, EQ | NE) and is_integer(known.a.dtype):
            _assume_equality(s, known)
        for row in rows_of(s, known):
            assume_nonnegative(s, row)


def _assume_equality(s: Simplifier, known: EQ | NE) -> None:
    a, b = known.a, known.b
    if not isinstance(b, IntImm):
        return
    if isinstance(known, EQ):
        if isinstance(a, FloorMod) and isinstance(a.b, IntImm) and a.b.value > 0:
            s.facts.residues[a.a] = Residue(a.b.value, b.value % a.b.value)
        return
    low, high = s.bound(a)
    if low == b.value or high == b.value:
        s.facts.bounds[a] = Bound(low + (low == b.value), high - (high == b.value))


def assume_nonnegative(s: Simplifier, form: Linear) -> None:
    """Take `form` >= 0 as known."""
    if len(form.terms) != 1:
        s.facts.inequalities.append(form)
        return
    ((atom, c),) = form.terms.items()
    bound = Bound(-(form.const // c), inf) if c > 0 else Bound(-inf, form.const // -c)
    s.facts.bounds[atom] = s.facts.bounds.get(atom, ANY).meet(bound)
    if (isinstance(atom, Min) and c > 0) or (isinstance(atom, Max) and c < 0):
        for operand in (atom.a, atom.b):
            assume_nonnegative(s, form.with_term(atom, 0).plus(s.linear(operand), c))
    if bound.min > 0 and s.taint(atom) == INDEX:
        _assume_positive(s, atom, int(bound.min))


def _assume_positive(s: Simplifier, atom: PrimExpr, least: int) -> None:
    """What an atom that is at least `least` > 0 says about its parts."""
    if isinstance(atom, FloorDiv) and isinstance(atom.b, IntImm) and atom.b.value > 0:
        assume_nonnegative(s, s.linear(atom.a).shifted(-least * atom.b.value))
    factors = s.factors.get(atom, ())
    if all(s.bound(factor).min >= 0 for factor in factors):
        for factor in factors:
            assume_nonnegative(s, Linear({factor: 1}, -1))
