"""The simplifier: rewrites an expression bottom-up, each different one once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from relaxlang.arith import bounds, canonical, classify, compare, division, modular
from relaxlang.arith.classify import EFFECT, INDEX, RING, is_integer, type_range
from relaxlang.arith.compare import FALSE, TRUE
from relaxlang.arith.facts import Bound, Facts, Residue
from relaxlang.arith.linear import Linear
from relaxlang.arith.memo import Memo
from relaxlang.arith.rewrite_rules import rewrite
from relaxlang.base.dtype import DType
from relaxlang.ir import prim
from relaxlang.ir.prim import IntImm, Let, PrimExpr, Var, const, fold

_UNORDERED = frozenset({prim.Min, prim.Max, prim.EQ, prim.NE})
_MAX_REWRITES = 64  # of one node; the rule tables shrink what they touch, this is a belt to the braces


class HasEffects(Exception):
    """A call with effects was met by a simplifier that was not told to look out for them (`effects`)."""


class Simplifier:
    """Simplifies under `facts`. With `strict`, no result overflows where the argument does not; without, results are
    right as mathematical integers, which is what proofs want. Counts its steps in `stats`.
    """

    def __init__(self, facts: Facts, strict: bool, stats: Counter[str]) -> None:
        self.facts = facts
        self.strict = strict
        self.stats = stats
        self.effects = False
        self._asking = False
        self.forget()

    def forget(self) -> None:
        """Drop every memoised result."""
        self.simplify: Memo[PrimExpr] = Memo(self._simplify, _operands)
        self.ring: Memo[Linear] = Memo(lambda expr: canonical.ring_of(self, expr), _operands)
        self.linear: Memo[Linear] = Memo(self._linear, _operands)
        self.bound: Memo[Bound] = Memo(lambda expr: bounds.bound_of(self, expr), _operands)
        self.residue: Memo[Residue] = Memo(lambda expr: modular.residue_of(self, expr), _operands)
        self.taint: Memo[int] = Memo(self._taint, classify.operands)
        self.factors: dict[PrimExpr, tuple[PrimExpr, ...]] = {}
        self.monomials: dict[Any, PrimExpr] = {}
        self.written: dict[Any, tuple[PrimExpr | None, int]] = {}
        self.commuted: dict[Any, PrimExpr] = {}
        self.divisions: dict[Any, PrimExpr | None] = {}

    # --- the linear form ----------------------------------------------------------------------------------------------
    def _linear(self, expr: PrimExpr) -> Linear:
        """The form of a simplified integer expression over the mathematical integers."""
        form = self.ring(expr)
        if expr.__class__ in RING and self.taint(expr) != INDEX:
            low, high = type_range(expr.dtype)
            bound = bounds.bound_of_linear(self, form)
            if not (low <= bound.min and bound.max <= high):
                return Linear({expr: 1})
        return form

    def try_expr(self, form: Linear, dtype: DType) -> PrimExpr | None:
        """A form as an expression of an integer type; None when a number in it does not fit the type."""
        if not form.terms:
            low, high = type_range(dtype)
            return IntImm(dtype, form.const) if low <= form.const <= high else None
        key = (form.key(), dtype)
        known = self.written.get(key)
        if known is None:
            known = self.written[key] = canonical.emit(form, dtype), canonical.cost(form, dtype)
        made = known[0]
        if made is not None and made.__class__ in RING and made not in form.terms:
            self.ring.table[made] = form
        return made

    def expr(self, form: Linear, dtype: DType, otherwise: PrimExpr) -> PrimExpr:
        """A form as an expression, or `otherwise` when it cannot be written."""
        made = self.try_expr(form, dtype)
        return otherwise if made is None else made

    # --- cheap proofs -------------------------------------------------------------------------------------------------
    def holds(self, form: Linear) -> bool:
        """Whether `form` >= 0 follows from bounds and from one known inequality."""
        if bounds.bound_of_linear(self, form).min >= 0:
            return True
        return self._follows(form)

    def sign(self, form: Linear) -> bool | None:
        """True when `form` >= 0 holds, False when `form` < 0 holds, None when neither is known."""
        low, high = bounds.bound_of_linear(self, form)
        if low >= 0:
            return True
        if high < 0:
            return False
        if self._follows(form):
            return True
        return False if self._follows(form.times(-1).shifted(-1)) else None

    def _follows(self, form: Linear) -> bool:
        """Whether p * form = q * fact + rest with p, q > 0 and rest > -p, for some known fact >= 0.

        The bounds of `rest` may ask for simplifications of their own; these do without the facts, or would never end.
        """
        if self._asking or not self.facts.inequalities:
            return False
        self._asking = True
        try:
            return any(self._follows_from(form, fact) for fact in self.facts.inequalities)
        finally:
            self._asking = False

    def _follows_from(self, form: Linear, fact: Linear) -> bool:
        for atom, k in fact.terms.items():
            share = form.terms.get(atom, 0)
            if share * k > 0:
                rest = form.times(abs(k)).plus(fact, -abs(share))
                if bounds.bound_of_linear(self, rest).min > -abs(k):
                    return True
        return False

    def holds_nonzero(self, expr: PrimExpr) -> bool:
        """Whether an inequality says that an expression is not 0."""
        form = self.linear(expr)
        known = self.facts.conditions.get(prim.NE(expr, const(0, expr.dtype)))
        return bool(known) or self.holds(form.shifted(-1)) or self.holds(form.times(-1).shifted(-1))

    # --- what compiled rules ask ------------------------------------------------------------------------------------
    def exact(self, expr: PrimExpr) -> bool:
        """Whether a sum or product has its mathematical value: index arithmetic, or data that provably fits."""
        if not is_integer(expr.dtype):
            return False
        if self.taint(expr) == INDEX:
            return True
        form = self.ring(expr)
        factors = self.factors.get(expr) if form.terms.keys() == {expr} else None
        bound = bounds.bound_of_linear(self, form) if factors is None else bounds.product(self, factors)
        low, high = type_range(expr.dtype)
        return low <= bound.min and bound.max <= high

    def visible(self, expr: PrimExpr) -> bool:
        """Whether an expression that becomes an operand of something other than a sum keeps its mathematical value."""
        return expr.__class__ not in RING or canonical.fits(self, self.ring(expr), expr.dtype)

    def imm(self, value: int, dtype: DType) -> PrimExpr | None:
        """An integer constant; None when the type does not hold it."""
        low, high = type_range(dtype)
        return IntImm(dtype, value) if low <= value <= high else None

    # --- simplification -----------------------------------------------------------------------------------------------
    def _taint(self, expr: PrimExpr) -> int:
        if expr.__class__ is Var and expr in self.facts.data:
            return classify.DATA
        return max([classify.own_class(expr), *(self.taint(operand) for operand in classify.operands(expr))])

    def _simplify(self, expr: PrimExpr) -> PrimExpr:
        self.stats["steps"] += 1
        if self.effects and self.taint(expr) == EFFECT:
            return rebuilt(self, expr)
        rule = _NATIVE.get(expr.__class__, rebuilt)
        result = rule(self, expr)
        if result is not expr:
            known = self.simplify.table.get(result)
            if known is not None:
                return known
        for _ in range(_MAX_REWRITES):
            better = rewrite(result, self)
            if better is None:
                break
            self.stats["rewrites"] += 1
            result = self.simplify(better)
        result = self._told(result)
        if result.__class__ in _UNORDERED:
            result = self.commuted.setdefault(compare.unordered(result), result)
        if result == expr:
            return expr
        self.simplify.table[result] = result
        return result

    def _told(self, expr: PrimExpr) -> PrimExpr:
        """The constant that an expression is known to be equal to, or the expression."""
        if expr.dtype.kind == "bool":
            known = self.facts.conditions.get(expr) if self.facts.conditions else None
            return expr if known is None else TRUE if known else FALSE
        if self.facts.bounds and expr.__class__ is not IntImm:
            bound = self.facts.bounds.get(expr)
            if bound is not None and bound.is_point:
                return IntImm(expr.dtype, int(bound.min))
        return expr


def _operands(expr: PrimExpr) -> Iterable[PrimExpr]:
    """What is worth finishing before an expression: the leaves of a sum at once, not its partial sums."""
    if expr.__class__ in RING and is_integer(expr.dtype):
        parts = canonical.ring_parts(expr)
        return [part for part in parts if part.__class__ not in RING] if len(parts) > 1 else classify.operands(expr)
    return classify.operands(expr)


def rebuilt(s: Simplifier, expr: PrimExpr) -> PrimExpr:
    """A node with its operands simplified; itself when none changed."""
    changes: dict[str, Any] = {}
    for name in expr.FIELDS:
        old = getattr(expr, name)
        if isinstance(old, PrimExpr):
            new: Any = s.simplify(old)
        elif old.__class__ is tuple:
            new = tuple(s.simplify(item) if isinstance(item, PrimExpr) else item for item in old)
            if all(x is y for x, y in zip(old, new)):
                continue
        else:
            continue
        if new is not old:
            changes[name] = new
    return expr.replace(**changes) if changes else expr


def _binary(s: Simplifier, expr: Any) -> PrimExpr:
    """Operands simplified, constants folded."""
    a, b = s.simplify(expr.a), s.simplify(expr.b)
    if a is expr.a and b is expr.b and not (a.__class__ is IntImm and b.__class__ is IntImm):
        unchanged: PrimExpr = expr
        return unchanged
    return fold(expr.__class__, a, b) if is_integer(a.dtype) or a.dtype.kind == "bool" else expr.__class__(a, b)


def _sum(s: Simplifier, expr: Any) -> PrimExpr:
    return canonical.simplify_ring(s, expr) if is_integer(expr.dtype) else _binary(s, expr)


def _floor_div(s: Simplifier, expr: Any) -> PrimExpr:
    return division.simplify_floordiv(s, expr) if is_integer(expr.dtype) else _binary(s, expr)


def _floor_mod(s: Simplifier, expr: Any) -> PrimExpr:
    return division.simplify_floormod(s, expr) if is_integer(expr.dtype) else _binary(s, expr)


def _var(s: Simplifier, expr: Any) -> PrimExpr:
    value = s.facts.definitions.get(expr)
    return expr if value is None else s.simplify(value)


def _cast(s: Simplifier, expr: Any) -> PrimExpr:
    value = s.simplify(expr.value)
    if value.dtype is expr.of or isinstance(value, IntImm):
        return prim.cast(value, expr.of)
    return expr if value is expr.value else prim.Cast(expr.of, value)


def _call(s: Simplifier, expr: Any) -> PrimExpr:
    if not s.effects and classify.own_class(expr) == EFFECT:
        raise HasEffects
    return rebuilt(s, expr)


def _let(s: Simplifier, expr: Let) -> PrimExpr:
    """`var = value in body`: without the binding where the value is a constant or variable, or where it is not used."""
    value = s.simplify(expr.value)
    if isinstance(value, IntImm | Var) and value is not expr.var:
        s.facts.definitions[expr.var] = value
        return s.simplify(expr.body)
    s.facts.bounds[expr.var] = s.bound(value)
    if s.taint(value) != INDEX:
        s.facts.data.add(expr.var)
    body = s.simplify(expr.body)
    if isinstance(body, IntImm) or body is value:
        return body
    return expr if value is expr.value and body is expr.body else Let(expr.var, value, body)


_NATIVE: dict[type, Callable[[Simplifier, Any], PrimExpr]] = {
    prim.IntImm: lambda s, e: e, prim.FloatImm: lambda s, e: e, prim.StringImm: lambda s, e: e,
    prim.Var: _var, prim.SizeVar: _var, prim.Add: _sum, prim.Sub: _sum, prim.Mul: _sum,
    prim.FloorDiv: _floor_div, prim.FloorMod: _floor_mod, prim.Div: _binary, prim.Mod: _binary,
    prim.Min: compare.simplify_minmax, prim.Max: compare.simplify_minmax,
    **dict.fromkeys((prim.EQ, prim.NE, prim.LT, prim.LE, prim.GT, prim.GE), compare.simplify_compare),
    prim.And: _binary, prim.Or: _binary, prim.Cast: _cast, prim.Call: _call, Let: _let,
}  # fmt: skip
