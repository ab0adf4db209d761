"""Interval sets: symbolic lower and upper ends of what an expression runs through while its variables run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from relaxlang.arith.analyzer import Analyzer
from relaxlang.arith.iter_map import detect_iter_map
from relaxlang.base.recursion import deep_recursion
from relaxlang.ir.prim import (
    Add,
    Call,
    Cast,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mul,
    PrimExpr,
    Select,
    Sub,
    Var,
    as_prim,
    cast,
    fold,
)
from relaxlang.ir.tir import Range
from relaxlang.ir.visit import free_vars


class IntSet(NamedTuple):
    """The integers from `min` to `max`, both included; None: no end is known on that side."""

    min: PrimExpr | None
    max: PrimExpr | None

    @staticmethod
    def of(dom: Range) -> IntSet:
        """The integers of a range."""
        return IntSet(dom.min, dom.min + dom.extent - 1)

    @property
    def is_point(self) -> bool:
        """Whether both ends are the same expression."""
        return self.min is not None and self.min == self.max

    def to_range(self, analyzer: Analyzer) -> Range | None:
        """The set as a range; None when an end is not known."""
        if self.min is None or self.max is None:
            return None
        return Range(self.min, analyzer.simplify(self.max - self.min + 1))


EVERYTHING = IntSet(None, None)
Domain = Mapping[Var, "Range | IntSet"]


def int_set(expr: PrimExpr, domain: Domain, analyzer: Analyzer | None = None) -> IntSet:
    """What `expr` can be while the variables of `domain` run through their sets; other variables stay as symbols."""
    analyzer = analyzer or Analyzer()
    sets = {var: IntSet.of(dom) if isinstance(dom, Range) else dom for var, dom in domain.items()}
    with analyzer.assuming(), deep_recursion():
        for var, dom in domain.items():
            if isinstance(dom, Range):
                analyzer.bind(var, dom)
        simple = analyzer.simplify(expr)
        found = _Evaluator(sets, analyzer).of(simple)
    return IntSet(*(None if end is None else analyzer.simplify(end) for end in found))


def union(sets: Sequence[IntSet], analyzer: Analyzer | None = None) -> IntSet:
    """The smallest interval that holds all of the sets (at least one)."""
    analyzer = analyzer or Analyzer()
    low, high = sets[0]
    for one in sets[1:]:
        low = None if low is None or one.min is None else analyzer.simplify(fold(Min, low, one.min))
        high = None if high is None or one.max is None else analyzer.simplify(fold(Max, high, one.max))
    return IntSet(low, high)


def intersect(sets: Sequence[IntSet], analyzer: Analyzer | None = None) -> IntSet:
    """The integers that are in all of the sets (at least one)."""
    analyzer = analyzer or Analyzer()
    low, high = sets[0]
    for one in sets[1:]:
        if one.min is not None:
            low = one.min if low is None else analyzer.simplify(fold(Max, low, one.min))
        if one.max is not None:
            high = one.max if high is None else analyzer.simplify(fold(Min, high, one.max))
    return IntSet(low, high)


class _Evaluator:
    """Interval arithmetic with symbolic ends."""

    def __init__(self, sets: Mapping[Var, IntSet], analyzer: Analyzer) -> None:
        self.sets = sets
        self.analyzer = analyzer

    def of(self, expr: PrimExpr) -> IntSet:
        """The set of a simplified expression."""
        if isinstance(expr, Var) and expr in self.sets:
            return self.sets[expr]
        if not any(var in self.sets for var in free_vars(expr)):
            return IntSet(expr, expr)
        if isinstance(expr, Add):
            return _added(self.of(expr.a), self.of(expr.b))
        if isinstance(expr, Sub):
            b = self.of(expr.b)
            return _added(self.of(expr.a), _negated(b))
        if isinstance(expr, Mul):
            return self._product(self.of(expr.a), self.of(expr.b))
        if isinstance(expr, FloorDiv):
            return self._quotient(self.of(expr.a), self.of(expr.b))
        if isinstance(expr, FloorMod):
            return self._remainder(expr)
        if isinstance(expr, Min | Max):
            a, b = self.of(expr.a), self.of(expr.b)
            ends = [None if x is None or y is None else fold(type(expr), x, y) for x, y in zip(a, b)]
            low, high = ends
            if isinstance(expr, Min):
                return IntSet(low, high if high is not None else a.max if b.max is None else b.max)
            return IntSet(low if low is not None else a.min if b.min is None else b.min, high)
        if isinstance(expr, Cast) and expr.value.dtype.is_integer:
            return IntSet(*(None if end is None else cast(end, expr.of) for end in self.of(expr.value)))
        if isinstance(expr, Select):
            return union([self.of(expr.true_value), self.of(expr.false_value)], self.analyzer)
        if isinstance(expr, Call) and expr.op in ("if_then_else", "likely"):
            return union([self.of(arg) for arg in expr.args[-2:]], self.analyzer)
        return self._constant(expr)

    def _constant(self, expr: PrimExpr) -> IntSet:
        """The constant bounds of an expression whose set cannot be computed."""
        return IntSet(
            *(IntImm(expr.dtype, int(e)) if abs(e) < 1 << 62 else None for e in self.analyzer.const_int_bound(expr))
        )

    def _product(self, a: IntSet, b: IntSet) -> IntSet:
        if a.is_point:
            a, b = b, a
        factor = b.min
        if not b.is_point or factor is None:
            return self._corners(a, b)
        if self.analyzer.can_prove(factor >= 0):
            return IntSet(*(None if end is None else end * factor for end in a))
        if self.analyzer.can_prove(factor <= 0):
            return IntSet(*(None if end is None else end * factor for end in (a.max, a.min)))
        return self._corners(a, b)

    def _corners(self, a: IntSet, b: IntSet) -> IntSet:
        if a.min is None or a.max is None or b.min is None or b.max is None:
            return EVERYTHING
        if self.analyzer.can_prove(a.min >= 0) and self.analyzer.can_prove(b.min >= 0):
            return IntSet(a.min * b.min, a.max * b.max)
        products = [x * y for x in (a.min, a.max) for y in (b.min, b.max)]
        return union([IntSet(p, p) for p in products], self.analyzer)

    def _quotient(self, a: IntSet, b: IntSet) -> IntSet:
        by = b.min
        if not b.is_point or by is None:
            return EVERYTHING
        if self.analyzer.can_prove(by > 0):
            return IntSet(*(None if end is None else end // by for end in a))
        if self.analyzer.can_prove(by < 0):
            return IntSet(*(None if end is None else end // by for end in (a.max, a.min)))
        return EVERYTHING

    def _remainder(self, expr: FloorMod) -> IntSet:
        a, b = self.of(expr.a), self.of(expr.b)
        by = b.max
        if by is None or not self.analyzer.can_prove(expr.b > 0):
            return EVERYTHING
        if b.is_point and a.min is not None and a.max is not None:
            if self.analyzer.can_prove_equal(a.min // by, a.max // by):
                return IntSet(a.min % by, a.max % by)
        return IntSet(as_prim(0, expr.dtype), by - 1)


def _added(a: IntSet, b: IntSet) -> IntSet:
    return IntSet(*(None if x is None or y is None else x + y for x, y in zip(a, b)))


def _negated(a: IntSet) -> IntSet:
    return IntSet(*(None if end is None else 0 - end for end in (a.max, a.min)))


# --- regions ----------------------------------------------------------------------------------------------------------
def estimate_region_upper_bound(
    region: Sequence[Range], domain: Mapping[Var, Range], analyzer: Analyzer | None = None
) -> list[IntSet]:
    """For each dimension an interval that holds everything that `region` touches while `domain` runs."""
    analyzer = analyzer or Analyzer()
    result = []
    for dim in region:
        first, last = int_set(dim.min, domain, analyzer), int_set(dim.min + dim.extent - 1, domain, analyzer)
        result.append(IntSet(first.min, last.max))
    return result


def estimate_region_strict_bound(
    region: Sequence[Range],
    domain: Mapping[Var, Range],
    predicate: PrimExpr | None = None,
    analyzer: Analyzer | None = None,
) -> list[IntSet] | None:
    """For each dimension the interval of exactly what `region` touches while `domain` runs and `predicate` holds: every
    combination of values in the intervals is touched. None when that is not found."""
    analyzer = analyzer or Analyzer()
    firsts = [dim.min for dim in region]
    found = detect_iter_map(firsts, domain, predicate=predicate, level="surjective", analyzer=analyzer)
    if not found:
        return None
    result = []
    for dim, total in zip(region, found.indices):
        steps = analyzer.simplify(as_prim(1, dim.min.dtype))
        scale = total.args[-1].scale if total.args else steps
        for split in total.args:
            steps = steps * split.extent
        wide = analyzer.simplify(dim.extent)
        if any(var in domain for var in free_vars(wide)) or not analyzer.can_prove(scale <= wide):
            return None  # the pieces differ in size, or leave gaps
        last = total.base + (steps - 1) * scale + wide - 1
        result.append(IntSet(analyzer.simplify(total.base), analyzer.simplify(last)))
    return result


def estimate_region_lower_bound(
    region: Sequence[Range],
    domain: Mapping[Var, Range],
    predicate: PrimExpr | None = None,
    analyzer: Analyzer | None = None,
) -> list[IntSet] | None:
    """For each dimension an interval that `region` is known to touch whole; None when there is none."""
    return estimate_region_strict_bound(region, domain, predicate, analyzer)
