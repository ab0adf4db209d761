"""`--timing`: where the time of a run went, as a tree or as JSON; `--trace`: the same over time, with kernels."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from relaxlang.ir.module import IRModule
from relaxlang.passes.base import Pass, PassInstrument

if TYPE_CHECKING:
    from relaxlang.runtime.observe import KernelRun

Listener = Callable[[list[str]], None]
"""Is told of the names of the phases that are open, outermost first, when one begins or ends."""


class Phase:
    """A stretch of time with a name, from `start` (of `time.perf_counter`) on and `seconds` long, and the phases within
    it. `kind` is `phase` or `pass`."""

    __slots__ = ("name", "kind", "start", "seconds", "children")

    def __init__(self, name: str, kind: str = "phase") -> None:
        self.name = name
        self.kind = kind
        self.start = time.perf_counter()
        self.seconds = 0.0
        self.children: list[Phase] = []

    def as_json(self) -> dict[str, Any]:
        """The phase as plain data."""
        inner = {"phases": [c.as_json() for c in self.children]} if self.children else {}
        return {"name": self.name, "seconds": round(self.seconds, 9), **inner}


class Clock(PassInstrument):
    """Measures phases, and as an instrument every pass. What an exception ends is measured up to there."""

    def __init__(self, listener: Listener | None = None) -> None:
        self.root = Phase("total")
        self.listener = listener
        self._open: list[Phase] = [self.root]
        self._kernels: list[KernelRun] = []

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
        self._begin(step.name, "pass")

    def after(self, mod: IRModule, step: Pass) -> None:
        self._end()

    def add_kernels(self, runs: Iterable[KernelRun]) -> None:
        """Note the kernels that ran, for the trace."""
        self._kernels += runs

    def _begin(self, name: str, kind: str = "phase") -> None:
        phase = Phase(name, kind)
        self._open[-1].children.append(phase)
        self._open.append(phase)
        self._tell()

    def _end(self) -> None:
        phase = self._open.pop()
        phase.seconds = time.perf_counter() - phase.start
        self._tell()

    def _tell(self) -> None:
        if self.listener is not None:
            self.listener([phase.name for phase in self._open[1:]])

    def report(self, style: str) -> str:
        """The tree with milliseconds and shares, or with style `json` one object on one line."""
        self.root.seconds = time.perf_counter() - self.root.start
        if style == "json":
            return json.dumps(self.root.as_json())
        rows = list(_rows(self.root, 0))
        width = max(len(name) for name, _ in rows) + 2
        whole = max(self.root.seconds, 1e-9)
        return "\n".join(f"{name:{width}}{s * 1e3:10.2f} ms {s / whole:7.1%}" for name, s in rows)

    def trace(self) -> str:
        """The trace: JSON in the format of Chrome's trace events, which Perfetto reads. Times are microseconds from the
        start on; track 1 has phases and passes, track 2 kernels with the shapes and bytes of their buffers."""
        self.root.seconds = time.perf_counter() - self.root.start
        origin = self.root.start
        events: list[dict[str, Any]] = [_label("process_name", 1, "relaxc"), _label("thread_name", 1, "compiler")]
        waiting = [self.root]
        while waiting:
            phase = waiting.pop()
            events.append(_event(phase.name, phase.kind, 1, phase.start - origin, phase.seconds))
            waiting += reversed(phase.children)
        if self._kernels:
            events.append(_label("thread_name", 2, "kernels"))
        for run in self._kernels:
            event = _event(run.kernel, "kernel", 2, run.end - run.seconds - origin, run.seconds)
            about = {
                "function": run.function,
                "pc": run.pc,
                "shapes": [list(s) for s in run.shapes],
                "bytes": run.nbytes,
            }
            events.append({**event, "args": about})
        return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"})


def _event(name: str, kind: str, track: int, start: float, seconds: float) -> dict[str, Any]:
    at, length = round(start * 1e6, 3), round(seconds * 1e6, 3)
    return {"name": name, "cat": kind, "ph": "X", "ts": at, "dur": length, "pid": 1, "tid": track}


def _label(what: str, track: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": 1, "tid": track, "args": {"name": name}}


def _rows(phase: Phase, depth: int) -> Iterator[tuple[str, float]]:
    yield "  " * depth + phase.name, phase.seconds
    for child in phase.children:
        yield from _rows(child, depth + 1)
