"""sample_perfect_tile, sample_categorical: numbers drawn at random, or given as decisions of an earlier draw."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from random import Random

from relaxlang.base.diagnostics import fail
from relaxlang.ir.prim import IntImm, Var
from relaxlang.schedule.state import State


class Samples:
    """A source of random numbers, made when the first one is drawn: it takes a while, and most schedules draw none."""

    __slots__ = ("_seed", "_source")

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._source: Random | None = None

    @property
    def source(self) -> Random:
        """The generator."""
        if self._source is None:
            self._source = Random(self._seed)
        return self._source

    def copy(self) -> Samples:
        """One that gives the same numbers from now on."""
        made = Samples(self._seed)
        if self._source is not None:
            made.source.setstate(self._source.getstate())
        return made


def categorical(candidates: Sequence[int], probs: Sequence[float], decision: int | None, random: Random) -> int:
    """The index of a candidate. RLX1013 when numbers and probabilities do not match."""
    if len(candidates) != len(probs) or not candidates or min(probs) < 0 or sum(probs) <= 0:
        fail("RLX1013", f"{len(candidates)} candidates with the probabilities {list(probs)} cannot be sampled")
    if decision is None:
        return random.choices(range(len(candidates)), probs)[0]
    if not 0 <= decision < len(candidates):
        fail("RLX1013", f"the decision {decision} is no index of {len(candidates)} candidates")
    return decision


def perfect_tile(
    state: State, var: Var, n: int, most: int, decision: Sequence[int] | None, random: Random
) -> list[int]:
    """`n` factors of the loop's extent, the last at most `most`. RLX1013: the extent is not constant, or the decision
    does not fit it."""
    loop = state.loops[var]
    if not isinstance(loop.extent, IntImm) or n < 1:
        state.fail("RLX1013", f"`{var.name}` has no constant extent that {n} factors could make up", loop)
    extent = loop.extent.value
    if decision is not None:
        if len(decision) != n or prod(decision) != extent:
            state.fail("RLX1013", f"the decision {list(decision)} does not make up the extent {extent}", loop)
        return list(decision)
    factors = [1] * n
    inner = [d for d in _divisors(extent) if d <= most]
    factors[-1] = random.choice(inner) if n > 1 else extent
    left = extent // factors[-1]
    for k in range(n - 2, 0, -1):
        factors[k] = random.choice(_divisors(left))
        left //= factors[k]
    if n > 1:
        factors[0] = left
    return factors


def _divisors(number: int) -> list[int]:
    small = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
    return sorted({*small, *(number // d for d in small)})
