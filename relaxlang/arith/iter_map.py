"""Iteration maps: indices that take loop variables apart and put them together again.

A *mark* is an iterator from 0 to its extent (excluded): a loop variable, or a sum that runs through all numbers below
its extent. A *split* is `mark // lower % extent * scale`, a *sum* is splits plus a base that does not iterate.
`detect_iter_map` reads index expressions as sums over marks, provided that every split stands for itself: the splits
of a mark do not overlap (surjective), or make up the whole of it (bijective). Then the map can be inverted
(`iter_inverse`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from relaxlang.arith.analyzer import Analyzer
from relaxlang.arith.iter_sum import IterMark, IterSplit, IterSum, sum_expr
from relaxlang.arith.padding import Paddings, Unmapped
from relaxlang.base.recursion import deep_recursion
from relaxlang.ir.prim import (
    BOOL,
    LE,
    LT,
    Add,
    And,
    Cast,
    FloorDiv,
    FloorMod,
    IntImm,
    Mul,
    PrimExpr,
    Sub,
    Var,
    as_prim,
    cast,
)
from relaxlang.ir.tir import Range
from relaxlang.ir.visit import free_vars

Level = Literal["bijective", "surjective", "no-check"]


class IterMap:
    """The outcome of `detect_iter_map`: one sum for each index; empty with the reasons in `errors` when there is none.

    `marks` are all iterators, those that were put together after those that they consist of; `fixed` the loop variables
    that have one value only. `padding` is the condition on the loop variables under which they are out of their ranges,
    in the gaps that padded iterators have; false where nothing was padded.
    """

    __slots__ = ("indices", "errors", "marks", "fixed", "padding")

    def __init__(
        self,
        indices: Sequence[IterSum],
        errors: Sequence[str],
        marks: Sequence[IterMark],
        fixed: Mapping[Var, PrimExpr],
        padding: PrimExpr | None = None,
    ) -> None:
        self.padding: PrimExpr = IntImm(BOOL, 0) if padding is None else padding
        self.indices = tuple(indices)
        self.errors = tuple(errors)
        self.marks = tuple(marks)
        self.fixed = dict(fixed)

    def __bool__(self) -> bool:
        return not self.errors


def detect_iter_map(
    indices: Sequence[PrimExpr],
    iters: Mapping[Var, Range],
    *,
    predicate: PrimExpr | None = None,
    level: Level = "surjective",
    padded: bool | None = None,
    analyzer: Analyzer | None = None,
) -> IterMap:
    """Read `indices` as sums of splits of the loop variables `iters`.

    A `predicate` such as `i * 8 + j < 60` limits the sum that it names. `level`: whether the splits must cover every
    mark ("bijective"), must not overlap ("surjective"), or may be anything ("no-check"). With `padded` (by default at
    level "no-check") an iterator whose extent a divisor does not divide, or that does not begin at a multiple of it, is
    taken as a part of a longer one that it does; see `IterMap.padding`.
    """
    analyzer = analyzer or Analyzer()
    with analyzer.assuming(), deep_recursion():
        reader = _Reader(analyzer, iters, level == "no-check" if padded is None else padded)
        try:
            if predicate is not None:
                reader.limit(predicate)
            sums = reader.read_all(indices)
            if level != "no-check":
                sums = [reader.contiguous(one) for one in sums]
                reader.check(sums, level)
        except Unmapped as reason:
            return IterMap((), (str(reason),), reader.marks, reader.fixed)
        return IterMap(sums, (), reader.marks, reader.fixed, reader.paddings.condition())


def is_bijective(indices: Sequence[PrimExpr], iters: Mapping[Var, Range], analyzer: Analyzer | None = None) -> bool:
    """Whether different values of the loop variables give different indices, and every split is used."""
    return bool(detect_iter_map(indices, iters, level="bijective", analyzer=analyzer))


class _Reader:
    """Turns expressions into sums; knows the marks made so far."""

    def __init__(self, analyzer: Analyzer, iters: Mapping[Var, Range], padded: bool) -> None:
        self.analyzer = analyzer
        self.paddings = Paddings(analyzer)
        self.padded = padded
        self.marks: list[IterMark] = []
        self.of_var: dict[Var, IterMark] = {}
        self.fused: dict[tuple[object, ...], IterMark] = {}
        self.limits: dict[tuple[object, ...], PrimExpr] = {}
        self.fixed: dict[Var, PrimExpr] = {}
        for var, dom in iters.items():
            analyzer.bind(var, dom)
        for var, dom in iters.items():
            extent = analyzer.simplify(cast(dom.extent, var.dtype))
            if not (isinstance(extent, IntImm) and extent.value == 1):
                self.of_var[var] = self._mark(var, extent, analyzer.simplify(cast(dom.min, var.dtype)))
            else:
                analyzer.bind(var, dom.min)
                self.fixed[var] = analyzer.simplify(cast(dom.min, var.dtype))

    def _mark(self, source: Var | IterSum, extent: PrimExpr, start: PrimExpr) -> IterMark:
        made = IterMark(source, extent, start)
        self.marks.append(made)
        return made

    # --- reading ------------------------------------------------------------------------------------------------------
    def contiguous(self, total: IterSum) -> IterSum:
        """A sum with its splits by falling scale; one that a predicate limits is a single split."""
        if len(total.args) < 2:
            return total
        ordered = self.chain(total.args)
        if ordered is None:
            raise Unmapped("an index leaves gaps between its iterators, or mixes them")
        fused = self.try_fuse(ordered)
        if fused is not None and isinstance(fused.mark.source, IterSum) and _key(fused.mark.source.args) in self.limits:
            return IterSum((fused,), total.base)
        return IterSum(ordered, total.base)

    def read_all(self, exprs: Sequence[PrimExpr]) -> list[IterSum]:
        """All indices; again as long as one of them makes more padding necessary than those before it knew of."""
        while True:
            self.paddings.changed = False
            sums = [self._read_index(expr) for expr in exprs]
            if not self.paddings.changed:
                return sums

    def _read_index(self, expr: PrimExpr) -> IterSum:
        """An index in simplest form, or else as it stands: `(i * 5 + j) // 4` is simpler as `(i + j) // 4 + i`, which
        hides that the dividend runs through all numbers."""
        made = dict(self.paddings.made)
        try:
            return self.read(self.analyzer.simplify(expr))
        except Unmapped as reason:
            self.paddings.made = made
            try:
                return self.read(expr)
            except Unmapped:
                raise reason from None

    def read(self, expr: PrimExpr) -> IterSum:
        """Any expression over the loop variables."""
        if not any(var in self.of_var for var in free_vars(expr)):
            return IterSum((), expr)
        if isinstance(expr, Var):
            mark = self.of_var[expr]
            one = as_prim(1, expr.dtype)
            return IterSum((IterSplit(mark, one, mark.extent, one),), mark.start)
        if isinstance(expr, Cast):
            return self._cast(expr)
        if isinstance(expr, Add | Sub):
            return self.add(self.read(expr.a), self.read(expr.b), 1 if isinstance(expr, Add) else -1)
        if isinstance(expr, Mul):
            a, b = self.read(expr.a), self.read(expr.b)
            if a.args and b.args:
                raise Unmapped(f"a product of iterators is no split: {expr!r}")
            return self._times(a, b.base) if a.args else self._times(b, a.base)
        if isinstance(expr, FloorDiv | FloorMod):
            if self.read(expr.b).args:
                raise Unmapped(f"the divisor iterates: {expr!r}")
            return self._divided(expr, self.read(expr.a), expr.b)
        raise Unmapped(f"{type(expr).__name__} of iterators is no split")

    def _cast(self, expr: Cast) -> IterSum:
        inner = self.read(expr.value)
        args = (
            IterSplit(a.mark, cast(a.lower, expr.of), cast(a.extent, expr.of), cast(a.scale, expr.of))
            for a in inner.args
        )
        return IterSum(tuple(args), cast(inner.base, expr.of))

    def add(self, a: IterSum, b: IterSum, sign: int) -> IterSum:
        """a + sign * b; equal splits are added up."""
        args = list(a.args)
        for split in b.args:
            scale = split.scale * sign
            for k, other in enumerate(args):
                if (
                    other.mark is split.mark
                    and self.equal(other.lower, split.lower)
                    and self.equal(other.extent, split.extent)
                ):
                    total = self.analyzer.simplify(other.scale + scale)
                    args[k : k + 1] = [] if isinstance(total, IntImm) and total.value == 0 else [other.scaled(total)]
                    break
            else:
                args.append(split.scaled(self.analyzer.simplify(scale)))
        return IterSum(args, self.analyzer.simplify(a.base + b.base * sign))

    def _times(self, a: IterSum, factor: PrimExpr) -> IterSum:
        simplify = self.analyzer.simplify
        if isinstance(factor, IntImm) and factor.value == 0:
            return IterSum((), factor)
        return IterSum([s.scaled(simplify(s.scale * factor)) for s in a.args], simplify(a.base * factor))

    def _divided(self, expr: FloorDiv | FloorMod, a: IterSum, by: PrimExpr) -> IterSum:
        """`a // by` or `a % by`: terms that `by` divides first, then the rest as one split, taken apart at `by`."""
        divides = isinstance(expr, FloorDiv)
        simplify = self.analyzer.simplify
        out = [s.scaled(simplify(s.scale // by)) for s in a.args if self.divisible(s.scale, by)]
        rest = [s for s in a.args if not self.divisible(s.scale, by)]
        quotient, left = simplify(a.base // by), simplify(a.base % by)
        if not rest:
            return IterSum(out, quotient) if divides else IterSum((), left)
        split = rest[0] if len(rest) == 1 else self.try_fuse(rest)
        if split is None:
            raise Unmapped(f"the dividend is no contiguous iterator: {expr!r}")
        known = self.paddings.of(split)
        small = isinstance(left, IntImm) and self.analyzer.can_prove(left < split.scale)
        if known is None and small and self.divisible(by, split.scale):
            at = simplify(by // split.scale)
            if self.analyzer.can_prove(split.extent <= at):
                return IterSum(out, quotient) if divides else IterSum((split,), left)
            if self.divisible(split.extent, at):
                upper, lower = _taken_apart(split, at, simplify)
                return IterSum([*out, upper], quotient) if divides else IterSum((lower,), left)
        if not self.padded:
            raise Unmapped(f"the divisor does not divide the extent or the offset of the dividend: {expr!r}")
        if not self.divisible(by, split.scale):
            raise Unmapped(f"the scale of the dividend does not go into the divisor: {expr!r}")
        at, offset = simplify(by // split.scale), simplify(left // split.scale)
        whole, behind = self.paddings.padded(split, at, offset)
        if whole.mark not in self.marks:
            self.marks.append(whole.mark)
        upper, lower = _taken_apart(whole, at, simplify)
        left = simplify(left % split.scale)
        return IterSum([*out, upper], simplify(quotient + behind)) if divides else IterSum((lower,), left)

    # --- putting together ---------------------------------------------------------------------------------------------
    def try_fuse(self, args: Sequence[IterSplit]) -> IterSplit | None:
        """The splits as one split of a new mark, when each continues the one below it; None when they do not."""
        ordered = self.chain(args)
        if ordered is None:
            return None
        scale = ordered[-1].scale
        simplify = self.analyzer.simplify
        source = IterSum([s.scaled(simplify(s.scale // scale)) for s in ordered], as_prim(0, scale.dtype))
        key = _key(source.args)
        mark = self.fused.get(key)
        if mark is None:
            top = source.args[0]
            extent = self.limits.get(key, simplify(top.scale * top.extent))
            mark = self.fused[key] = self._mark(source, extent, as_prim(0, scale.dtype))
        return IterSplit(mark, as_prim(1, scale.dtype), mark.extent, scale)

    def chain(self, args: Sequence[IterSplit]) -> list[IterSplit] | None:
        """The splits by falling scale, when each scale is scale * extent of the next one; else None."""
        left = list(args)
        first = next((s for s in left if all(s is o or self.divisible(o.scale, s.scale) for o in left)), None)
        if first is None or not self.analyzer.can_prove(first.scale > 0):
            return None
        result = [first]
        left.remove(first)
        while left:
            wanted = result[0].scale * result[0].extent
            found = next((s for s in left if self.equal(s.scale, wanted)), None)
            if found is None:
                return None
            left.remove(found)
            result.insert(0, found)
        return result

    def limit(self, predicate: PrimExpr) -> None:
        """Note the extents that a conjunction of upper bounds on sums implies."""
        predicate = self.analyzer.simplify(predicate)
        if isinstance(predicate, And):
            self.limit(predicate.a)
            self.limit(predicate.b)
            return
        if isinstance(predicate, IntImm) and predicate.value:
            return
        if not isinstance(predicate, LT | LE):
            raise Unmapped("the predicate is no upper bound of a sum of iterators")
        low, high = self.read(predicate.a), self.read(predicate.b)
        if high.args or not low.args:
            raise Unmapped("the predicate is no upper bound of a sum of iterators")
        end = high.base - low.base + (1 if isinstance(predicate, LE) else 0)
        ordered = self.chain(low.args)
        if ordered is None or not self.equal(ordered[-1].scale, as_prim(1, end.dtype)):
            raise Unmapped("the predicate bounds a sum that is not contiguous")
        if len(ordered) == 1 and isinstance(ordered[0].mark.source, Var):
            ordered[0].mark.extent = self.analyzer.simplify(end)
        else:
            self.limits[_key(ordered)] = self.analyzer.simplify(end)

    # --- checking -----------------------------------------------------------------------------------------------------
    def check(self, sums: Sequence[IterSum], level: Level) -> None:
        """Refuse splits of one mark that overlap; for "bijective" also marks that are not covered by their splits."""
        used: dict[IterMark, list[IterSplit]] = {}
        work = [split for one in sums for split in one.args]
        seen: set[IterMark] = set()
        while work:
            split = work.pop()
            used.setdefault(split.mark, []).append(split)
            source = split.mark.source
            if isinstance(source, IterSum) and split.mark not in seen:
                seen.add(split.mark)
                work.extend(source.args)
        for mark, splits in used.items():
            self._check_mark(mark, splits, level)
        if level == "bijective" and not all(mark in used for mark in self.of_var.values()):
            raise Unmapped("a loop variable does not occur in the indices")

    def _check_mark(self, mark: IterMark, splits: list[IterSplit], level: Level) -> None:
        left = list(splits)
        reached = as_prim(1, mark.extent.dtype)
        while left:
            following = next((s for s in left if self.equal(s.lower, reached)), None)
            if following is None and level == "surjective":
                following = next((s for s in left if all(self.divisible(o.lower, s.lower) for o in left)), None)
                if following is not None and not self.divisible(following.lower, reached):
                    following = None
            if following is None:
                raise Unmapped("the splits of an iterator overlap or leave a gap")
            left.remove(following)
            reached = self.analyzer.simplify(following.lower * following.extent)
        if level == "bijective" and not self.equal(reached, mark.extent):
            raise Unmapped("the splits of an iterator do not cover it")

    # --- proving ------------------------------------------------------------------------------------------------------
    def equal(self, a: PrimExpr, b: PrimExpr) -> bool:
        """Whether two extents are provably equal."""
        return self.analyzer.can_prove_equal(a, b)

    def divisible(self, a: PrimExpr, by: PrimExpr) -> bool:
        """Whether `by` provably divides `a`."""
        left = self.analyzer.simplify(a % by)
        return isinstance(left, IntImm) and left.value == 0


def _taken_apart(
    split: IterSplit, at: PrimExpr, simplify: Callable[[PrimExpr], PrimExpr]
) -> tuple[IterSplit, IterSplit]:
    """The quotient and the remainder of a split, divided at one of its divisors."""
    upper = IterSplit(split.mark, simplify(split.lower * at), simplify(split.extent // at), as_prim(1, at.dtype))
    return upper, IterSplit(split.mark, split.lower, at, split.scale)


def _key(args: Sequence[IterSplit]) -> tuple[object, ...]:
    return tuple((s.mark, s.lower, s.extent, s.scale) for s in args)


# --- back to expressions ----------------------------------------------------------------------------------------------
def iter_map_simplify(
    indices: Sequence[PrimExpr],
    iters: Mapping[Var, Range],
    *,
    predicate: PrimExpr | None = None,
    analyzer: Analyzer | None = None,
) -> list[PrimExpr]:
    """The indices in the form that their splits give them; simplified as they are when they are no iteration map."""
    analyzer = analyzer or Analyzer()
    found = detect_iter_map(indices, iters, predicate=predicate, analyzer=analyzer)
    with analyzer.assuming():
        for var, dom in iters.items():
            analyzer.bind(var, dom)
        if not found:
            return [analyzer.simplify(index) for index in indices]
        return [sum_expr(total, analyzer) for total in found.indices]


def iter_inverse(found: IterMap, outputs: Sequence[PrimExpr], analyzer: Analyzer | None = None) -> dict[Var, PrimExpr]:
    """The value of each loop variable, given the values `outputs` of the indices of a bijective iteration map."""
    analyzer = analyzer or Analyzer()
    values: dict[IterMark, PrimExpr] = {}

    def spread(total: IterSum, value: PrimExpr) -> None:
        """Give each split of a sum its share of the sum's value."""
        for k, split in enumerate(total.args):
            share = value // split.scale
            share = (share % split.extent if k else share) * split.lower
            old = values.get(split.mark)
            values[split.mark] = share if old is None else old + share

    for total, output in zip(found.indices, outputs):
        spread(total, output - total.base)
    result = dict(found.fixed)
    for mark in reversed(found.marks):
        if mark not in values:
            continue
        value = analyzer.simplify(values[mark])
        if isinstance(mark.source, IterSum):
            spread(mark.source, value - mark.source.base)
        else:
            result[mark.source] = analyzer.simplify(cast(value, mark.source.dtype) + mark.start)
    return result


def subspace_divide(
    bindings: Sequence[PrimExpr],
    iters: Mapping[Var, Range],
    inner_iters: Sequence[Var],
    *,
    predicate: PrimExpr | None = None,
    analyzer: Analyzer | None = None,
) -> list[tuple[PrimExpr, PrimExpr, PrimExpr]] | None:
    """Each binding as (outer, inner, extent) with binding = outer * extent + inner and 0 <= inner < extent.

    `inner` iterates over `inner_iters` only and `outer` over the others only; None when a binding is not divided so.
    """
    analyzer = analyzer or Analyzer()
    found = detect_iter_map(bindings, iters, predicate=predicate, analyzer=analyzer)
    if not found:
        return None
    inside = frozenset(inner_iters)
    with analyzer.assuming():
        for var, dom in iters.items():
            analyzer.bind(var, dom)
        divided = [_divide(total, inside, analyzer) for total in found.indices]
    return None if None in divided else [part for part in divided if part is not None]


def _divide(total: IterSum, inside: frozenset[Var], analyzer: Analyzer) -> tuple[PrimExpr, PrimExpr, PrimExpr] | None:
    outer, inner = [], []
    extent = as_prim(1, total.base.dtype)
    for split in total.args:  # by falling scale: the inner ones must come last
        variables = _variables(split.mark)
        if variables <= inside:
            inner.append(split)
            extent = extent * split.extent
        elif variables & inside or inner:
            return None
        else:
            outer.append(split)
    if inner and not analyzer.can_prove_equal(inner[-1].scale, 1):
        return None
    zero = as_prim(0, total.base.dtype)
    base = total.base
    if not outer:
        return zero, sum_expr(IterSum(inner, base), analyzer), analyzer.simplify(extent + base if inner else base + 1)
    if not analyzer.can_prove_equal(base % extent, 0):
        return None
    simplify = analyzer.simplify
    above = IterSum([s.scaled(simplify(s.scale // extent)) for s in outer], simplify(base // extent))
    return sum_expr(above, analyzer), sum_expr(IterSum(inner, zero), analyzer), simplify(extent)


def _variables(mark: IterMark) -> set[Var]:
    """The loop variables in a mark."""
    if isinstance(mark.source, Var):
        return {mark.source}
    return set().union(*(_variables(split.mark) for split in mark.source.args))
