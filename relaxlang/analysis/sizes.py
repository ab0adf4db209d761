"""How many bytes tensors take, in symbolic dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from relaxlang.arith import Analyzer, Bound
from relaxlang.ir import prim, relax
from relaxlang.ir.prim import INT64, IntImm, PrimExpr
from relaxlang.ir.visit import free_vars

UPPER_BOUND = "tir_var_upper_bound"
"""The attribute of a function that says by name how large its symbolic dimensions are at most."""


class Sizes:
    """The sizes of tensors in one function, whose dimensions are >= 0 and at most what its attributes say."""

    def __init__(self, func: relax.Function) -> None:
        bounds = func.attrs.get(UPPER_BOUND)
        self.bounds: Mapping[str, int] = bounds if isinstance(bounds, Mapping) else {}
        self.analyzer = Analyzer()
        self._known: set[prim.Var] = set()

    def bytes_of(self, dims: tuple[PrimExpr, ...], itemsize: int) -> PrimExpr:
        """The bytes of a tensor, as a simplified int64 expression (of integers that do not overflow)."""
        total: PrimExpr = IntImm(INT64, itemsize)
        for dim in dims:
            total = total * prim.cast(dim, INT64)
        for var in free_vars(total):
            if var not in self._known:
                self._known.add(var)
                most = self.bounds.get(var.name)
                self.analyzer.update(var, Bound(0, inf if most is None else int(most)))
        return self.analyzer.simplify(total)

    def most(self, size: PrimExpr) -> int | None:
        """The largest value of a size, when its dimensions are said to have one; None when it has no bound.

        That an expression has a greatest value by itself, as the length of `x[:1000000000]` has, means nothing: nobody
        wants so much memory.
        """
        if isinstance(size, IntImm):
            return size.value
        if any(self.bounds.get(var.name) is None for var in free_vars(size)):
            return None
        high = self.analyzer.const_int_bound(size).max
        return None if high == inf else int(high)

    def fits(self, size: PrimExpr, room: PrimExpr) -> bool:
        """Whether a size is never larger than another."""
        return size == room or self.analyzer.can_prove(prim.LE(size, room))
