"""Timing of a call."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from relaxlang.base.diagnostics import fail
from relaxlang.base.record import record


@record
class BenchmarkResult:
    """Times of one call in seconds: `results` has the mean of each repetition, the rest is over these."""

    results: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean."""
        return float(np.mean(self.results))

    @property
    def median(self) -> float:
        """The median."""
        return float(np.median(self.results))

    @property
    def min(self) -> float:
        """The least."""
        return min(self.results)

    @property
    def max(self) -> float:
        """The greatest."""
        return max(self.results)

    @property
    def std(self) -> float:
        """The standard deviation (of the population)."""
        return float(np.std(self.results))

    def __str__(self) -> str:
        return f"{self.mean * 1e6:.3f} µs per call (median {self.median * 1e6:.3f}, min {self.min * 1e6:.3f})"


def measure(function: Callable[..., Any], args: tuple[Any, ...], number: int = 10, repeat: int = 1) -> BenchmarkResult:
    """Call `function(*args)` once to warm up, then `repeat` times `number` times in a row. RLX6018 when one is below
    1."""
    if number < 1 or repeat < 1:
        fail("RLX6018", f"`number` and `repeat` must be at least 1, got {number} and {repeat}")
    function(*args)
    results = []
    for _ in range(repeat):
        start = time.perf_counter()
        for _ in range(number):
            function(*args)
        results.append((time.perf_counter() - start) / number)
    return BenchmarkResult(tuple(results))
