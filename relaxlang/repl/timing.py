"""Times: how they are written, and how often a call is repeated to measure it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

BUDGET = 0.5
"""Seconds that a measurement may take."""
REPETITIONS = 20


def duration(seconds: float) -> str:
    """A time for people: `412 ns`, `3.1 µs`, `20 ms`, `1.5 s`."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def measured(function: Callable[[], Any]) -> str:
    """The time of a call with its spread: it runs once to warm up, then as often as half a second allows."""
    function()
    start = time.perf_counter()
    function()
    once = max(time.perf_counter() - start, 1e-7)
    number = max(1, int(BUDGET / REPETITIONS / once))
    repetitions = max(3, min(REPETITIONS, int(BUDGET / (once * number))))
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        for _ in range(number):
            function()
        times.append((time.perf_counter() - start) / number)
    median, spread = statistics.median(times), statistics.pstdev(times)
    return (
        f"{duration(median)} ± {duration(spread)}   "
        f"(min {duration(min(times))}, max {duration(max(times))}; {repetitions} × {number} calls)"
    )
