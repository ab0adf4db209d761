"""The analyzer: what the rest of the compiler asks about integer expressions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from relaxlang.arith import prove
from relaxlang.arith.facts import ANY, Bound, Facts, Residue
from relaxlang.arith.linear import Linear
from relaxlang.arith.simplify import HasEffects, Simplifier
from relaxlang.base.dtype import DType
from relaxlang.base.recursion import deep_recursion
from relaxlang.ir import prim
from relaxlang.ir.prim import IntImm, PrimExpr, PrimLike, Var, as_prim, match
from relaxlang.ir.tir import Range
from relaxlang.ir.visit import free_vars

_T = TypeVar("_T")


class Analyzer:
    """Simplifies and proves, under what it has been told.

    `nonnegative`: variables taken to be >= 0 (a `SizeVar` is by itself). What is bound or assumed holds until the
    enclosing `assuming` ends. `stats` counts steps: "steps" (expressions visited), "rewrites" (rules that fired),
    "proofs".
    """

    def __init__(self, nonnegative: Iterable[Var] = ()) -> None:
        self.stats: Counter[str] = Counter()
        self._facts = Facts(nonnegative)
        self._strict = Simplifier(self._facts, True, self.stats)
        self._exact = Simplifier(self._facts, False, self.stats)

    # --- asking -------------------------------------------------------------------------------------------------------
    def simplify(self, expr: PrimExpr) -> PrimExpr:
        """An equal expression, no more expensive, and the same for many ways of writing it.

        Where no part of `expr` overflows, no part of the result does. What has effects, and what fails (a division by
        zero), stays.
        """
        if expr.__class__ is IntImm:
            return expr
        found = self._strict.simplify.table.get(expr)
        if found is not None:
            return found
        return self._guarded(self._strict, lambda s: s.simplify(expr))

    def can_prove(self, condition: PrimExpr) -> bool:
        """Whether `condition` holds for all values of its variables; False when that is not found."""
        self.stats["proofs"] += 1
        return self._with(lambda s: prove.proves(s, condition))

    def can_prove_equal(self, a: PrimLike, b: PrimLike) -> bool:
        """Whether two integers are equal for all values of their variables."""
        left, right = match(a, b)
        return left is right or self.can_prove(prim.EQ(left, right))

    def const_int_bound(self, expr: PrimExpr) -> Bound:
        """(min, max) of an integer expression, each a number that it cannot pass, or ±math.inf."""
        return self._with(lambda s: s.bound(s.simplify(expr)))

    def modular_set(self, expr: PrimExpr) -> Residue:
        """(modulus, remainder): the integer is `remainder` modulo `modulus`; modulus 0 means that it is `remainder`."""
        return self._with(lambda s: s.residue(s.simplify(expr)))

    # --- linear forms -------------------------------------------------------------------------------------------------
    def linear(self, expr: PrimExpr) -> Linear:
        """An integer expression as a sum of multiples of atoms."""
        return self._with(lambda s: s.linear(s.simplify(expr)))

    def inequalities(self, condition: PrimExpr) -> list[Linear]:
        """Linear forms that are >= 0 where `condition` holds (all of it, for a conjunction of <, <=, ==)."""
        return self._with(lambda s: prove.rows_of(s, s.simplify(condition)))

    def expression(self, form: Linear, dtype: DType) -> PrimExpr | None:
        """A linear form as an expression of an integer type; None when a number in it does not fit the type."""
        return self._strict.try_expr(form, dtype)

    # --- telling ------------------------------------------------------------------------------------------------------
    def bind(self, var: Var, value: PrimLike | Range) -> None:
        """From now on `var` is `value`, or one of the values of a `Range` (so that range is not empty from now on).

        What an earlier `bind` of the variable said is forgotten.
        """
        if not isinstance(value, Range):
            made = self.simplify(as_prim(value, var.dtype))
            self._facts.forget(var)
            self._facts.definitions[var] = made
            self._changed(var)
            return
        before = self._facts.ranges.get(var)
        low, high = self.simplify(value.min), self.simplify(value.min + value.extent)
        if before is not None:
            if before == (low, high):
                return
            self._facts.forget(var)
            self._changed(var)
        self._facts.ranges[var] = low, high
        if isinstance(low, IntImm) and isinstance(high, IntImm):
            self.update(var, Bound(low.value, high.value - 1))
        else:
            self._assume(prim.LT(*match(low, high)))
            self._assume(prim.And(prim.LE(*match(low, var)), prim.LT(*match(var, high))), var)

    def update(self, expr: PrimExpr, bound: Bound) -> None:
        """From now on `expr` lies within `bound` (given as (min, max), ±math.inf for an end that is not known)."""
        atom = expr if isinstance(expr, Var) else self.simplify(expr)
        self._facts.bounds[atom] = self._facts.bounds.get(atom, ANY).meet(Bound(*bound))
        self._changed(*((atom,) if isinstance(atom, Var) else free_vars(atom)))

    def assume(self, condition: PrimExpr) -> None:
        """From now on `condition` holds, until the enclosing `assuming` ends."""
        self._assume(condition)

    @contextmanager
    def assuming(self, *conditions: PrimExpr) -> Iterator[None]:
        """Within it the conditions hold; at its end everything told since its beginning is forgotten."""
        before = self._facts, self._strict, self._exact
        self._facts = self._facts.copy()
        self._strict = Simplifier(self._facts, True, self.stats)
        self._exact = Simplifier(self._facts, False, self.stats)
        try:
            for condition in conditions:
                self._assume(condition)
            yield
        finally:
            self._facts, self._strict, self._exact = before

    constraint = assuming

    @contextmanager
    def within(self, var: Var, values: Range) -> Iterator[None]:
        """Within it `var` is one of the values of a range, as in the body of a loop.

        That the range is not empty holds there only: after `for i in range(n)`, n may still be 0.
        """
        if isinstance(values.extent, IntImm) and values.extent.value > 0:
            self.bind(var, values)
            yield
            return
        with self.assuming():
            self.bind(var, values)
            yield

    # --- inside -------------------------------------------------------------------------------------------------------
    def _assume(self, condition: PrimExpr, *about: Var) -> None:
        seen = self._seen(*(about or free_vars(condition)))
        self._with(lambda s: prove.assume(s, condition))
        self._exact.forget()
        if seen:
            self._strict.forget()

    def _changed(self, *variables: Var) -> None:
        """Drop what was memoised when it may mention one of the variables."""
        if self._seen(*variables):
            self._strict.forget()
            self._exact.forget()

    def _seen(self, *variables: Var) -> bool:
        strict, exact = self._strict.simplify.table, self._exact.simplify.table
        return any(v in strict or v in exact for v in variables)

    def _with(self, run: Callable[[Simplifier], _T]) -> _T:
        """`run` on the simplifier of proofs, told of effects when it meets some."""
        return self._guarded(self._exact, run)

    def _guarded(self, s: Simplifier, run: Callable[[Simplifier], _T]) -> _T:
        with deep_recursion():
            try:
                return run(s)
            except HasEffects:
                s.effects = True
                return run(s)
