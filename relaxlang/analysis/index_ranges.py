"""Indices that are certainly out of range: whenever the access runs, or at the last step of its loops.

Only what is sure is reported: the access stands under no condition, and its index is a sum of multiples of loop
variables, axes and symbols, whose largest and smallest values the loops attain.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from relaxlang.base.diagnostics import Diagnostic, DiagnosticError
from relaxlang.base.node import Node
from relaxlang.base.recursion import deep_recursion
from relaxlang.base.source import Span
from relaxlang.ir import prim, tir
from relaxlang.ir.visit import LEAVES, Visitor, children, on, walk

_PARTLY = (prim.Select, prim.And, prim.Or, prim.Let, prim.Reduce)
"""Expressions with operands that may not be computed."""
_ENDS = (tir.AssertStmt, tir.Break, tir.Continue, tir.Evaluate)

Sum = dict[prim.Var | None, int]
"""A sum of multiples of variables; that of None is the constant."""


def out_of_range(function: tir.PrimFunc) -> list[Diagnostic]:
    """A warning RLX0313 for each access that is certainly out of range: the program can be read and changed."""
    finder = _Finder(function)
    finder.visit(function.body)
    return finder.found


def require_in_range(functions: Iterable[tir.PrimFunc]) -> None:
    """Raise DiagnosticError with the findings as errors: a program that is built or scheduled must not have any."""
    with deep_recursion():
        found = [d.replace(level="error") for function in functions for d in out_of_range(function)]
    if found:
        raise DiagnosticError(found)


class _Finder(Visitor):
    """`loops` are the loops around, outermost first, with their first and last values, `numbers` those values of the
    loops where both are numbers; `axes` the values of axes."""

    def __init__(self, function: tir.PrimFunc) -> None:
        self.found: list[Diagnostic] = []
        self.own = set(function.buffer_map.values())
        self.loops: list[tuple[prim.Var, Sum, Sum]] = []
        self.numbers: dict[prim.Var, tuple[int, int]] = {}
        self.axes: dict[prim.Var, Sum] = {}
        self.stopped = False

    # --- statements ---------------------------------------------------------------------------------------------------
    @on(tir.For)
    def loop(self, node: tir.For) -> None:
        """A loop whose variable takes every value of its range; what another kind of loop holds is left alone."""
        first, extent, step = linear(node.min, self.axes), linear(node.extent, self.axes), linear(node.step, {})
        if first is None or extent is None or step != {None: 1} or not self._runs(extent):
            self.stopped = self.stopped or any(isinstance(n, _ENDS) for n in walk(node.body))
            return
        last = _plus(_plus(first, extent), {None: -1})
        self.loops.append((node.loop_var, first, last))
        if _is_constant(first) and _is_constant(last):
            self.numbers[node.loop_var] = first.get(None, 0), last.get(None, 0)
        self.visit(node.body)
        self.numbers.pop(node.loop_var, None)
        self.loops.pop()

    def _runs(self, extent: Sum) -> bool:
        """Whether a loop of that extent runs for at least some values of the symbols."""
        symbols = [v for v in extent if v is not None]
        if not symbols:
            return extent.get(None, 0) > 0
        inside = {var for var, _, _ in self.loops}
        return len(symbols) == 1 and extent[symbols[0]] == 1 and symbols[0] not in inside and not extent.get(None)

    @on(tir.BlockRealize)
    def realize(self, node: tir.BlockRealize) -> None:
        """A block without a condition: its axes have their values."""
        if not (isinstance(node.predicate, prim.IntImm) and node.predicate.value):
            return
        values = {axis.var: linear(value, self.axes) for axis, value in zip(node.block.iter_vars, node.iter_values)}
        self.axes.update({var: value for var, value in values.items() if value is not None})
        self.own.update(node.block.alloc_buffers)
        self.visit(node.block.body)

    @on(tir.IfThenElse)
    def conditional(self, node: tir.IfThenElse) -> None:
        """What stands under a condition may not run; the condition itself does."""
        self.values(node.condition)
        self.leave_alone(node)

    @on(tir.While, tir.AttrStmt, tir.LetStmt, tir.DeclBuffer, tir.BufferRealize)
    def leave_alone(self, node: tir.Stmt) -> None:
        """Nothing is sure of what is in these, nor of what follows when they may end a loop or the function."""
        self.stopped = self.stopped or any(isinstance(n, _ENDS) for n in walk(node))

    @on(tir.AssertStmt, tir.Break, tir.Continue, tir.Evaluate)
    def stop(self, node: tir.Stmt) -> None:
        """What follows may not run."""
        self.stopped = True

    @on(tir.BufferStore)
    def store(self, node: tir.BufferStore) -> None:
        """An element is written."""
        if node.predicate is None:
            self.access(node.buffer, node.indices, node.span)
        self.values(*node.indices, node.value)

    # --- expressions --------------------------------------------------------------------------------------------------
    def values(self, *parts: prim.PrimExpr) -> None:
        """What is computed whenever the expressions are; without recursion, since sums may be long."""
        waiting: list[Node] = list(reversed(parts))
        while waiting:
            one = waiting.pop()
            if isinstance(one, prim.BufferLoad) and one.predicate is None:
                self.access(one.buffer, one.indices, one.span)
            branches = isinstance(one, prim.Call) and one.op == "if_then_else"
            if not branches and not isinstance(one, _PARTLY) and one.__class__ not in LEAVES:
                waiting.extend(reversed(list(children(one))))

    # --- accesses -----------------------------------------------------------------------------------------------------
    def access(self, buffer: tir.Buffer, indices: tuple[prim.PrimExpr, ...], span: Span | None) -> None:
        """An access of a buffer that has the shape it says."""
        if self.stopped or buffer not in self.own or buffer.strides or len(indices) != len(buffer.shape):
            return
        for index, dim in zip(indices, buffer.shape):
            at, extent = linear(index, self.axes), linear(dim, {})
            if at is None or extent is None or extent == {} or self._is_within(at, dim):
                continue
            for end in (self._end(at, True), self._end(at, False)):
                beyond = _plus(end, {v: -c for v, c in extent.items()})
                if _is_constant(beyond, least=0) or _is_constant(end, most=-1):
                    self._report(buffer, end, extent, span)
                    return

    def _is_within(self, at: Sum, dim: prim.PrimExpr) -> bool:
        """Whether a sum is one of numbers, and of multiples of loops between numbers, and never out of a dimension."""
        if not isinstance(dim, prim.IntImm):
            return False
        low = high = at.get(None, 0)
        for var, factor in at.items():
            if var is not None:
                if var not in self.numbers:
                    return False
                first, last = self.numbers[var]
                low += min(first * factor, last * factor)
                high += max(first * factor, last * factor)
        return low >= 0 and high < dim.value

    def _end(self, at: Sum, largest: bool) -> Sum:
        """The largest or smallest value of a sum over the loops, innermost first."""
        for var, first, last in reversed(self.loops):
            factor = at.get(var, 0)
            if factor:
                rest = {v: c for v, c in at.items() if v is not var}
                at = _plus(rest, {v: c * factor for v, c in ((last if (factor > 0) == largest else first).items())})
        return at

    def _report(self, buffer: tir.Buffer, end: Sum, extent: Sum, span: Span | None) -> None:
        what = f"index {text(end)} is out of range for `{buffer.name}`, whose dimension here is {text(extent)}"
        label = "reached in the loops around it" if self.loops else ""
        self.found.append(Diagnostic("RLX0313", what, span, level="warning", label=label))


def linear(expr: prim.PrimExpr, known: dict[prim.Var, Sum]) -> Sum | None:
    """An index as a sum of multiples of variables, those of `known` replaced; None when it is none."""
    if isinstance(expr, prim.IntImm):
        return {None: expr.value} if expr.value else {}
    if isinstance(expr, prim.Var):
        return known.get(expr, {expr: 1})
    if isinstance(expr, prim.Cast) and expr.of.kind == "int" and expr.value.dtype.kind == "int":
        return linear(expr.value, known)
    if not isinstance(expr, prim.Add | prim.Sub | prim.Mul):
        return None
    a, b = linear(expr.a, known), linear(expr.b, known)
    if a is None or b is None:
        return None
    if isinstance(expr, prim.Mul):
        if any(v is not None for v in a):
            a, b = b, a
        factor = a.get(None, 0)
        return None if any(v is not None for v in a) else {v: c * factor for v, c in b.items() if factor}
    return _plus(a, b if isinstance(expr, prim.Add) else {v: -c for v, c in b.items()})


def _is_constant(total: Sum, least: float = -inf, most: float = inf) -> bool:
    return total.keys() <= {None} and least <= total.get(None, 0) <= most


def _plus(a: Sum, b: Sum) -> Sum:
    made = dict(a)
    for var, count in b.items():
        made[var] = made.get(var, 0) + count
    return {v: c for v, c in made.items() if c}


def text(total: Sum) -> str:
    """A sum as it is written: `n * 2 - 1`."""
    terms = [(v.name if c in (1, -1) else f"{v.name} * {abs(c)}", c) for v, c in total.items() if v is not None]
    if total.get(None) or not terms:
        terms.append((str(abs(total.get(None, 0))), total.get(None, 0)))
    first, *rest = terms
    return ("-" if first[1] < 0 else "") + first[0] + "".join(f" {'-' if c < 0 else '+'} {t}" for t, c in rest)
