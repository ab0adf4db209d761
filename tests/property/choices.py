"""Where random programs get their decisions from: a hypothesis strategy, so that failures shrink, or a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st

_T = TypeVar("_T")
Draw = Callable[[st.SearchStrategy[Any]], Any]


class Choices:
    """Decisions. `fuel` bounds the size of what is made with them: who makes something large asks `spend` first."""

    def __init__(self, number: Callable[[int, int], int], fuel: int) -> None:
        self.number = number
        self.fuel = fuel

    def spend(self, amount: int = 1) -> bool:
        """Whether there is fuel left, and take some."""
        self.fuel -= amount
        return self.fuel >= 0

    def pick(self, options: Sequence[_T]) -> _T:
        """One of some options; the first is the simplest."""
        return options[self.number(0, len(options) - 1)]

    def chance(self, one_in: int = 2) -> bool:
        """True in one of `one_in` cases."""
        return self.number(0, one_in - 1) == one_in - 1

    def some(self, make: Callable[[], _T], low: int, high: int) -> tuple[_T, ...]:
        """From `low` to `high` things, each made by a call."""
        return tuple([make() for _ in range(self.number(low, high))])


def drawn(draw: Draw, fuel: int) -> Choices:
    """Decisions of a hypothesis strategy."""
    return Choices(lambda low, high: int(draw(st.integers(low, high))), fuel)


def seeded(seed: int | str, fuel: int) -> Choices:
    """The decisions that belong to a seed."""
    return Choices(random.Random(seed).randint, fuel)
