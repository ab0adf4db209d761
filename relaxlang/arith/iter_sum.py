"""Sums of splits of iterators: what indices are made of, and how they are written as expressions."""

from __future__ import annotations

from collections.abc import Sequence

from relaxlang.arith.analyzer import Analyzer
from relaxlang.ir.prim import PrimExpr, Var, cast


class IterMark:
    """An iterator 0 <= mark < `extent`: `source` is a variable less its first value `start`, or a sum of splits."""

    __slots__ = ("source", "extent", "start")

    def __init__(self, source: Var | IterSum, extent: PrimExpr, start: PrimExpr) -> None:
        self.source = source
        self.extent = extent
        self.start = start


class IterSplit:
    """`mark // lower % extent * scale`."""

    __slots__ = ("mark", "lower", "extent", "scale")

    def __init__(self, mark: IterMark, lower: PrimExpr, extent: PrimExpr, scale: PrimExpr) -> None:
        self.mark = mark
        self.lower = lower
        self.extent = extent
        self.scale = scale

    def scaled(self, scale: PrimExpr) -> IterSplit:
        """The same split with another scale."""
        return IterSplit(self.mark, self.lower, self.extent, scale)


class IterSum:
    """The sum of `args`, plus `base`, which mentions no iterator."""

    __slots__ = ("args", "base")

    def __init__(self, args: Sequence[IterSplit], base: PrimExpr) -> None:
        self.args = tuple(args)
        self.base = base


def split_expr(split: IterSplit, analyzer: Analyzer) -> PrimExpr:
    """A split as an expression, with as few operations as it takes."""
    mark = split.mark
    value = mark.source - mark.start if isinstance(mark.source, Var) else sum_expr(mark.source, analyzer)
    value = cast(value, split.scale.dtype)
    if not analyzer.can_prove_equal(split.lower * split.extent, mark.extent):
        value = value % (split.lower * split.extent)
    return value // split.lower * split.scale


def sum_expr(total: IterSum, analyzer: Analyzer) -> PrimExpr:
    """A sum of splits as an expression."""
    result: PrimExpr | None = None
    for split in total.args:
        term = split_expr(split, analyzer)
        result = term if result is None else result + term
    return total.base if result is None else analyzer.simplify(result + total.base)
