"""Padding of iterators: the longer iterators that divisors go into."""

from __future__ import annotations

from math import lcm

from relaxlang.arith.analyzer import Analyzer
from relaxlang.arith.iter_sum import IterMark, IterSplit, IterSum, split_expr
from relaxlang.ir.prim import BOOL, IntImm, Or, PrimExpr, as_prim


class Unmapped(Exception):
    """Why an index is no sum of splits."""


class _Padding:
    """`split` as the values `before`, `before + 1`, … of `mark`, whose extent `divisor` divides."""

    __slots__ = ("split", "divisor", "before", "mark")

    def __init__(self, split: IterSplit, divisor: PrimExpr, before: PrimExpr, mark: IterMark) -> None:
        self.split = split
        self.divisor = divisor
        self.before = before
        self.mark = mark


class Paddings:
    """The padded iterators of one map. All divisors of an iterator share one padding; when one is met that does not fit
    it, the padding grows, `changed` is set, and what was made of it before is to be made again."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self.changed = False
        self.made: dict[tuple[object, ...], _Padding] = {}

    def of(self, split: IterSplit) -> _Padding | None:
        """The padding of a split, if it has one."""
        return self.made.get(_key(split))

    def padded(self, split: IterSplit, at: PrimExpr, offset: PrimExpr) -> tuple[IterSplit, PrimExpr]:
        """A whole padded iterator P, and q with (split + offset) // at == P // at + q, P % at the remainder.

        `offset` is in steps of the split. Raises Unmapped where the offset differs from one that was padded before, and
        for parts of iterators, whose values repeat.
        """
        simplify = self.analyzer.simplify
        known = self.of(split)
        if known is None:
            if not self.analyzer.can_prove_equal(split.lower * split.extent, split.mark.extent):
                raise Unmapped("a part of an iterator whose values repeat can't be padded")
            known = self._pad(split, at, simplify(offset % at))
        elif not self._divides(at, known.divisor):
            known = self._pad(split, self._common(at, known.divisor), known.before)
        behind = simplify(offset - known.before)
        if not self._divides(at, behind):
            raise Unmapped("an iterator is divided from several offsets")
        one = as_prim(1, known.mark.extent.dtype)
        return IterSplit(known.mark, one, known.mark.extent, split.scale), simplify(behind // at)

    def _pad(self, split: IterSplit, divisor: PrimExpr, before: PrimExpr) -> _Padding:
        one = as_prim(1, split.extent.dtype)
        extent = self.analyzer.simplify((split.extent + before + (divisor - 1)) // divisor * divisor)
        mark = IterMark(IterSum((split.scaled(one),), before), extent, as_prim(0, extent.dtype))
        made = self.made[_key(split)] = _Padding(split, divisor, before, mark)
        self.changed = True
        return made

    def _common(self, a: PrimExpr, b: PrimExpr) -> PrimExpr:
        if isinstance(a, IntImm) and isinstance(b, IntImm):
            return as_prim(lcm(a.value, b.value), a.dtype)
        if self._divides(b, a):
            return a
        raise Unmapped("an iterator is divided by numbers without a known common multiple")

    def _divides(self, by: PrimExpr, value: PrimExpr) -> bool:
        left = self.analyzer.simplify(value % by)
        return isinstance(left, IntImm) and left.value == 0

    def condition(self) -> PrimExpr:
        """Where the padding is, as a condition on the loop variables: those of a padded iterator are out of range."""
        parts: list[PrimExpr] = []
        for made in self.made.values():
            one = as_prim(1, made.split.extent.dtype)
            value = split_expr(made.split.scaled(one), self.analyzer)
            end = self.analyzer.simplify(made.before + made.split.extent)
            if not self.analyzer.can_prove_equal(made.before, 0):
                parts.append(value < 0)
            if not self.analyzer.can_prove_equal(end, made.mark.extent):
                parts.append(value >= made.split.extent)
        result: PrimExpr | None = None
        for part in parts:
            result = part if result is None else Or(result, part)
        return IntImm(BOOL, 0) if result is None else result


def _key(split: IterSplit) -> tuple[object, ...]:
    return (split.mark, split.lower, split.extent)
