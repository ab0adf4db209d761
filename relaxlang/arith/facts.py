"""What an analyzer has been told: definitions, bounds, residues, inequalities and conditions, scope by scope."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import NamedTuple

from relaxlang.arith.linear import Linear
from relaxlang.ir.prim import PrimExpr, SizeVar, Var
from relaxlang.ir.visit import free_vars


class Bound(NamedTuple):
    """The values from `min` to `max`, both included; an end that is not known is ±math.inf, every other is an int."""

    min: float
    max: float

    def meet(self, other: Bound) -> Bound:
        """The values in both; when there are none, `self` (what was told contradicts itself, and anything is right)."""
        low, high = max(self.min, other.min), min(self.max, other.max)
        return Bound(low, high) if low <= high else self

    def join(self, other: Bound) -> Bound:
        """The smallest bound that holds both."""
        return Bound(min(self.min, other.min), max(self.max, other.max))

    @property
    def is_point(self) -> bool:
        """Whether there is exactly one value."""
        return self.min == self.max


ANY, NATURAL, TRUTH = Bound(-inf, inf), Bound(0, inf), Bound(0, 1)


class Residue(NamedTuple):
    """The integers that leave `remainder` when divided by `modulus`; modulus 0: the one number `remainder`."""

    modulus: int
    remainder: int


class Facts:
    """Everything that holds in the current scope. Inequalities are linear forms that are >= 0."""

    __slots__ = ("definitions", "bounds", "residues", "inequalities", "conditions", "nonnegative", "data", "ranges")

    def __init__(self, nonnegative: Iterable[Var] = ()) -> None:
        self.definitions: dict[Var, PrimExpr] = {}
        self.bounds: dict[PrimExpr, Bound] = {}
        self.residues: dict[PrimExpr, Residue] = {}
        self.inequalities: list[Linear] = []
        self.conditions: dict[PrimExpr, bool] = {}
        self.nonnegative = set(nonnegative)
        self.data: set[Var] = set()
        self.ranges: dict[Var, tuple[PrimExpr, PrimExpr]] = {}

    def copy(self) -> Facts:
        """A scope below this one."""
        made = Facts(self.nonnegative)
        made.definitions = dict(self.definitions)
        made.bounds = dict(self.bounds)
        made.residues = dict(self.residues)
        made.inequalities = list(self.inequalities)
        made.conditions = dict(self.conditions)
        made.data = set(self.data)
        made.ranges = dict(self.ranges)
        return made

    def forget(self, var: Var) -> None:
        """Drop everything that was said about a variable, alone or with others."""
        self.definitions.pop(var, None)
        self.inequalities = [form for form in self.inequalities if not _mentions(form.terms, var)]
        for table in (self.bounds, self.residues, self.conditions):
            for known in [expr for expr in table if _mentions((expr,), var)]:
                del table[known]

    def bound(self, atom: PrimExpr) -> Bound:
        """What was said about the bounds of an atom."""
        known = self.bounds.get(atom, ANY)
        if atom.__class__ is SizeVar or atom in self.nonnegative:
            return known.meet(NATURAL)
        return known


def _mentions(exprs: Iterable[PrimExpr], var: Var) -> bool:
    return any(var in free_vars(expr) for expr in exprs)
