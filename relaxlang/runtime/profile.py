"""The profile of one run: how often each kernel and builtin was called, on what shapes, and how long it took."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from relaxlang.base.record import record
from relaxlang.runtime.executable import Call, KernelFunction, Register, VMFunction
from relaxlang.runtime.ndarray import dtype_name, shape_text

if TYPE_CHECKING:
    from relaxlang.runtime.bytecode import Bytecode, Frame
    from relaxlang.runtime.executable import Executable


@record
class ProfileRow:
    """Calls of one callee on arguments of one kind: `shapes` are the tensors among them as text, `seconds` all calls
    together. `kind` is `kernel`, `packed` or `builtin`."""

    name: str
    kind: str
    shapes: tuple[str, ...]
    count: int
    seconds: float


@record
class ProfileReport:
    """The profile of a run: rows, those that took longest first, the `seconds` of the whole run (the watching
    included), and what the function gave. `str()` is a table."""

    rows: tuple[ProfileRow, ...]
    seconds: float
    result: Any

    def __str__(self) -> str:
        whole = sum(row.seconds for row in self.rows) or 1.0
        table = [("name", "kind", "calls", "µs", "share", "arguments")]
        for row in self.rows:
            numbers = (str(row.count), f"{row.seconds * 1e6:.3f}", f"{row.seconds / whole:.1%}")
            table.append((row.name, row.kind, *numbers, ", ".join(row.shapes)))
        width = [max(len(line[column]) for line in table) for column in range(5)]
        return "\n".join(
            f"{a:{width[0]}}  {b:{width[1]}}  {c:>{width[2]}}  {d:>{width[3]}}  {e:>{width[4]}}  {f}".rstrip()
            for a, b, c, d, e, f in table
        )

    def to_json(self) -> str:
        """The rows as JSON."""
        rows = [
            {"name": r.name, "kind": r.kind, "shapes": r.shapes, "count": r.count, "seconds": r.seconds}
            for r in self.rows
        ]
        return json.dumps({"seconds": self.seconds, "rows": rows})


class Watch:
    """An `on_instruction` callback that measures: an instruction ends where the next one begins."""

    def __init__(self, executable: Executable) -> None:
        self.executable = executable
        self.found: dict[tuple[str, str, tuple[str, ...]], tuple[int, int]] = {}
        self._key: tuple[str, str, tuple[str, ...]] | None = None
        self._start = 0

    def __call__(self, frame: Frame) -> None:
        self.finish()
        self._key = self._described(frame)
        self._start = time.perf_counter_ns()

    def finish(self) -> None:
        """Note the instruction that has just ended."""
        if self._key is not None:
            took = time.perf_counter_ns() - self._start
            count, total = self.found.get(self._key, (0, 0))
            self.found[self._key] = count + 1, total + took
            self._key = None

    def _described(self, frame: Frame) -> tuple[str, str, tuple[str, ...]] | None:
        """What an instruction calls, and on what; None for one that calls nothing or a function of bytecode, whose own
        instructions count."""
        step = frame.instruction
        if not isinstance(step, Call):
            return None
        function = self.executable.functions[step.func]
        if isinstance(function, VMFunction):
            return None
        if function.name.startswith("vm.builtin."):
            return function.name, "builtin", ()
        kind = "kernel" if isinstance(function, KernelFunction) else "packed"
        held = (frame.registers[a.index] for a in step.args if isinstance(a, Register))
        return function.name, kind, tuple(_shapes(held))

    def rows(self) -> tuple[ProfileRow, ...]:
        """What was measured."""
        made = [ProfileRow(*key, count, total / 1e9) for key, (count, total) in self.found.items()]
        return tuple(sorted(made, key=lambda row: -row.seconds))


def _shapes(values: Iterable[Any]) -> list[str]:
    return [f"{dtype_name(v.dtype)}{shape_text(v.shape)}" for v in values if isinstance(v, np.ndarray)]


def profile(
    machine: Bytecode, executable: Executable, function: Callable[..., Any], args: tuple[Any, ...]
) -> ProfileReport:
    """The profile of one call of a function of a bytecode machine, after a call that warms it up."""
    function(*args)
    watch = Watch(executable)
    machine.on_instruction = watch
    start = time.perf_counter()
    result = function(*args)
    seconds = time.perf_counter() - start
    watch.finish()
    return ProfileReport(watch.rows(), seconds, result)
