"""`--timing`: where the time of a run went, as a tree or as JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from relaxlang.ir.module import IRModule
from relaxlang.passes.base import Pass, PassInstrument


class Phase:
    """A stretch of time with a name, `seconds` long, and the phases within it."""

    __slots__ = ("name", "seconds", "children")

    def __init__(self, name: str) -> None:
        self.name = name
        self.seconds = 0.0
        self.children: list[Phase] = []

    def as_json(self) -> dict[str, Any]:
        """The phase as plain data."""
        inner = {"phases": [c.as_json() for c in self.children]} if self.children else {}
        return {"name": self.name, "seconds": round(self.seconds, 9), **inner}


class Clock(PassInstrument):
    """Measures phases, and as an instrument every pass. What an exception ends is measured up to there."""

    def __init__(self) -> None:
        self.root = Phase("total")
        self._start = time.perf_counter()
        self._open: list[tuple[Phase, float]] = [(self.root, self._start)]

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measure what happens inside."""
        depth = len(self._open)
        self._begin(name)
        try:
            yield
        finally:
            while len(self._open) > depth:
                self._end()

    def before(self, mod: IRModule, step: Pass) -> None:
        self._begin(step.name)

    def after(self, mod: IRModule, step: Pass) -> None:
        self._end()

    def _begin(self, name: str) -> None:
        phase = Phase(name)
        self._open[-1][0].children.append(phase)
        self._open.append((phase, time.perf_counter()))

    def _end(self) -> None:
        phase, start = self._open.pop()
        phase.seconds = time.perf_counter() - start

    def report(self, style: str) -> str:
        """The tree with milliseconds and shares, or with style `json` one object on one line."""
        self.root.seconds = time.perf_counter() - self._start
        if style == "json":
            return json.dumps(self.root.as_json())
        rows = list(_rows(self.root, 0))
        width = max(len(name) for name, _ in rows) + 2
        whole = max(self.root.seconds, 1e-9)
        return "\n".join(f"{name:{width}}{s * 1e3:10.2f} ms {s / whole:7.1%}" for name, s in rows)


def _rows(phase: Phase, depth: int) -> Iterator[tuple[str, float]]:
    yield "  " * depth + phase.name, phase.seconds
    for child in phase.children:
        yield from _rows(child, depth + 1)
