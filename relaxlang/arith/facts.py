"""What an analyzer has been told: definitions, bounds, residues, inequalities and conditions, scope by scope."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import NamedTuple

from relaxlang.arith.linear import Linear
from relaxlang.ir.prim import PrimExpr, SizeVar, Var


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

    __slots__ = ("definitions", "bounds", "residues", "inequalities", "conditions", "nonnegative", "data")

    def __init__(self, nonnegative: Iterable[Var] = ()) -> None:
        self.definitions: dict[Var, PrimExpr] = {}
        self.bounds: dict[PrimExpr, Bound] = {}
        self.residues: dict[PrimExpr, Residue] = {}
        self.inequalities: list[Linear] = []
        self.conditions: dict[PrimExpr, bool] = {}
        self.nonnegative = set(nonnegative)
        self.data: set[Var] = set()

    def copy(self) -> Facts:
        """A scope below this one."""
        made = Facts(self.nonnegative)
        made.definitions = dict(self.definitions)
        made.bounds = dict(self.bounds)
        made.residues = dict(self.residues)
        made.inequalities = list(self.inequalities)
        made.conditions = dict(self.conditions)
        made.data = set(self.data)
        return made

    def bound(self, atom: PrimExpr) -> Bound:
        """What was said about the bounds of an atom."""
        known = self.bounds.get(atom, ANY)
        if atom.__class__ is SizeVar or atom in self.nonnegative:
            return known.meet(NATURAL)
        return known
