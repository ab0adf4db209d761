"""A kernel that is scheduled by hand: the schedules so far, and how fast each of them is."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from relaxlang.analysis.flops import work_of
from relaxlang.base.diagnostics import DiagnosticError, fail
from relaxlang.base.record import record, replace
from relaxlang.base.source import Span
from relaxlang.ir.module import IRModule
from relaxlang.ir.tir import PrimFunc
from relaxlang.repl.comparison import differences
from relaxlang.repl.difference import diff_text
from relaxlang.repl.invocation import Invocation, sized_invocation
from relaxlang.repl.primitives import run_primitive
from relaxlang.repl.timing import duration
from relaxlang.schedule import Schedule
from relaxlang.schedule.state import normalized

if TYPE_CHECKING:
    from relaxlang.repl.session import Session

BUDGET = 0.2
"""Seconds for which a kernel is called to measure it, after a first call."""


class Version(NamedTuple):
    """A schedule, which is not changed any more, and the fewest seconds that its kernel took."""

    schedule: Schedule
    seconds: float


@record
class Scheduling:
    """What the prompt `schedule> ` works on: `original` is the function as it stands in the module, `versions` what
    each line made of it, the first one unchanged."""

    function: str
    original: PrimFunc
    call: Invocation
    expected: Any
    versions: tuple[Version, ...] = ()

    @property
    def schedule(self) -> Schedule:
        """The schedule as it stands."""
        return self.versions[-1].schedule

    @property
    def text(self) -> str:
        """The scheduled function."""
        return self.schedule.mod.script().rstrip("\n")

    @property
    def lines(self) -> tuple[str, ...]:
        """The trace without look-ups that nobody uses."""
        return self.schedule.trace.simplified().lines()

    def undone(self, count: int) -> Scheduling:
        """The state some lines earlier. RLX7103 when there were fewer."""
        if count >= len(self.versions):
            fail("RLX7103", "there is nothing to undo in this schedule", help="`:abandon` leaves it")
        return replace(self, versions=self.versions[:-count])

    def speed(self, version: Version) -> str:
        """The time of a version; and the operations per second, where they are known."""
        text = duration(version.seconds)
        flops = _flops(self.original, self.call)
        if flops:
            text += f", {flops / version.seconds / 1e9:.3g} GFLOP/s"
        return text


def begin(session: Session, function: str, func: PrimFunc, dims: dict[str, tuple[int, Span]]) -> Scheduling:
    """Start to schedule a function of the module, on random data; `dims` gives symbolic dimensions sizes."""
    module = session.module.with_functions({function: normalized(func)})
    call = sized_invocation(session, function, dims)
    expected = call.compiled(session.stages(function, session.module, "minimum"))
    made = Scheduling(function, func, call, expected)
    return replace(made, versions=(Version(Schedule(module), _seconds(session, made, module)),))


def resized(session: Session, now: Scheduling, dims: dict[str, tuple[int, Span]]) -> Scheduling:
    """The same schedule, measured with other sizes."""
    call = sized_invocation(session, now.function, dims)
    expected = call.compiled(session.stages(now.function, session.module, "minimum"))
    made = replace(now, call=call, expected=expected)
    versions = [Version(v.schedule, _seconds(session, made, v.schedule.mod)) for v in now.versions]
    return replace(made, versions=tuple(versions))


def advanced(session: Session, now: Scheduling, line: Span) -> tuple[Scheduling, str]:
    """The state after a line, and what to say: how the program changed and what that does to its time."""
    sch = now.schedule.copy()
    run_primitive(sch, line)
    version = Version(sch, _seconds(session, now, sch.mod))
    made = replace(now, versions=(*now.versions, version))
    diff = diff_text(now.schedule.mod, sch.mod, True) or "no difference"
    before = f"before {duration(now.versions[-1].seconds)}"
    if len(now.versions) > 1:
        before += f", at first {duration(now.versions[0].seconds)}"
    return made, f"{diff}\ntime: {made.speed(version)} ({before})"


def _seconds(session: Session, now: Scheduling, module: IRModule) -> float:
    """The fewest seconds that the kernel of a module takes. RLX7106 when it computes something else."""
    stages = session.stages(now.function, module, "minimum")
    function = stages.machine[now.function]
    wrong = differences(now.expected, now.call.compiled(stages))
    if wrong:
        fail("RLX7106", f"the scheduled `{now.function}` computes something else: {wrong[0]}", notes=now.call.notes)
    return fewest_seconds(function, now.call.fresh())


def fewest_seconds(function: Any, args: Sequence[Any]) -> float:
    """The fewest seconds of a call, of as many as there is time for."""
    best, end = float("inf"), time.perf_counter() + BUDGET
    while True:
        start = time.perf_counter()
        function(*args)
        stop = time.perf_counter()
        best = min(best, stop - start)
        if stop > end:
            return best


def _flops(func: PrimFunc, call: Invocation) -> int:
    """The floating-point operations of a call; 0 where they cannot be counted, or are on integers."""
    if not any(b.dtype.is_float for b in func.buffer_map.values()):
        return 0
    shapes = [arg.shape for param, arg in zip(func.params, call.args) if param in func.buffer_map]
    try:
        return work_of(func).at(func, shapes)[0]
    except DiagnosticError:
        return 0  # a dimension is no parameter's own
