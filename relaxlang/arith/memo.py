"""Memoised functions over expressions that recurse while it is cheap and keep an explicit stack where it is deep."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from relaxlang.ir.prim import PrimExpr

_T = TypeVar("_T")
_DEEP = 40  # levels of plain recursion; below that, operands are finished first, from an explicit stack


class Memo(Generic[_T]):
    """`memo(expr)` is `compute(expr)`, once per structurally different expression.

    `compute` may call the memo on parts of its argument. `operands` lists the parts it is going to ask for, so that a
    deep expression needs no deep Python stack; listing too few or too many costs time, not correctness.
    """

    __slots__ = ("table", "_compute", "_operands", "_depth")

    def __init__(self, compute: Callable[[PrimExpr], _T], operands: Callable[[PrimExpr], Iterable[PrimExpr]]) -> None:
        self.table: dict[PrimExpr, _T] = {}
        self._compute = compute
        self._operands = operands
        self._depth = 0

    def __call__(self, expr: PrimExpr) -> _T:
        found = self.table.get(expr)
        if found is not None:
            return found
        if self._depth >= _DEEP:
            self._operands_first(expr)
        self._depth += 1
        try:
            made = self._compute(expr)
        finally:
            self._depth -= 1
        self.table[expr] = made
        return made

    def _operands_first(self, root: PrimExpr) -> None:
        """Fill the table with everything below `root`, operands before their users."""
        table, depth = self.table, self._depth
        self._depth = 0
        work = [(root, False)]
        try:
            while work:
                expr, ready = work.pop()
                if expr in table:
                    continue
                if not ready:
                    work.append((expr, True))
                    work.extend((operand, False) for operand in self._operands(expr) if operand not in table)
                elif expr is not root:
                    table[expr] = self._compute(expr)
        finally:
            self._depth = depth
