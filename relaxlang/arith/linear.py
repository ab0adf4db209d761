"""Linear forms: an integer plus a sum of integer multiples of atoms.

An atom is any expression that is no sum, difference or multiple: a variable, a quotient, a minimum, a load, or a
product of such (a monomial). The numbers are mathematical integers, of any size.
"""

from __future__ import annotations

from math import gcd

from relaxlang.ir.prim import PrimExpr


class Linear:
    """`const` + the sum of `terms[atom] * atom`; no coefficient is 0. Treat as immutable."""

    __slots__ = ("terms", "const")

    def __init__(self, terms: dict[PrimExpr, int], const: int = 0) -> None:
        self.terms = terms
        self.const = const

    def plus(self, other: Linear, factor: int = 1) -> Linear:
        """self + other * factor."""
        terms = dict(self.terms)
        for atom, coefficient in other.terms.items():
            total = terms.get(atom, 0) + coefficient * factor
            if total:
                terms[atom] = total
            else:
                del terms[atom]
        return Linear(terms, self.const + other.const * factor)

    def minus(self, other: Linear) -> Linear:
        """self - other."""
        return self.plus(other, -1)

    def times(self, factor: int) -> Linear:
        """self * factor."""
        if factor == 1:
            return self
        if factor == 0:
            return Linear({}, 0)
        return Linear({atom: c * factor for atom, c in self.terms.items()}, self.const * factor)

    def shifted(self, by: int) -> Linear:
        """self + by."""
        return Linear(self.terms, self.const + by) if by else self

    def with_term(self, atom: PrimExpr, coefficient: int) -> Linear:
        """The form in which `atom` has that coefficient (0 removes it)."""
        terms = dict(self.terms)
        terms.pop(atom, None)
        if coefficient:
            terms[atom] = coefficient
        return Linear(terms, self.const)

    def content(self) -> int:
        """The greatest common divisor of the coefficients; 0 for a constant."""
        return gcd(*self.terms.values())

    def key(self) -> tuple[frozenset[tuple[PrimExpr, int]], int]:
        """A hashable value, the same for forms that differ only in the order of their terms."""
        return frozenset(self.terms.items()), self.const

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Linear) and self.const == other.const and self.terms == other.terms

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        parts = [f"{c}*{atom!r}" for atom, c in self.terms.items()]
        return " + ".join([*parts, str(self.const)])
