"""A debugger over the virtual machine: the program runs in a thread of its own and waits at every stop.

It stops before a binding of a function that the user wrote; instructions and bindings that lowering made are passed
over. `Debugger` knows no commands: it says where the program is (`Stop`) and goes on as it is told.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Literal, NamedTuple

from relaxlang.base.diagnostics import RelaxlangError
from relaxlang.repl.lines import Line, LineTable
from relaxlang.runtime.bytecode import Bytecode, Frame
from relaxlang.runtime.executable import Executable
from relaxlang.runtime.module import RuntimeModule
from relaxlang.runtime.vm import VirtualMachine

Order = Literal["step", "next", "finish", "continue"]


class Breakpoint(NamedTuple):
    """Where to stop: in a function, before the binding of `variable` or at source line `line` (else at its first
    binding), when `condition` (an expression's text, "" for always) holds."""

    function: str
    variable: str = ""
    line: int = 0
    condition: str = ""

    def __str__(self) -> str:
        place = f":{self.variable}" if self.variable else f":{self.line}" if self.line else ""
        return f"{self.function}{place}" + (f" if {self.condition}" if self.condition else "")


class Place(NamedTuple):
    """A function that runs: the binding that is computed next (None: it is about to return), the variables so far."""

    function: str
    line: Line | None
    values: dict[str, Any]


class Stop(NamedTuple):
    """Why the program stands still: `break`, `step`, `done` (with the result) or `failed` (with the error), and its
    frames, outermost first; none when it is done."""

    reason: Literal["break", "step", "done", "failed"]
    frames: tuple[Place, ...]
    value: Any = None
    error: RelaxlangError | None = None


class _Abandoned(BaseException):
    """Ends a program that nobody waits for any more."""


class _Crashed(NamedTuple):
    """What the program raised that is no error of its own."""

    error: BaseException


class _Carrier:
    """Hands what ends a thread unforeseen to the thread that waits for it, to be raised there."""

    def __init__(self, stops: queue.SimpleQueue[Stop | _Crashed]) -> None:
        self.stops = stops

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is not None and not isinstance(error, _Abandoned):
            self.stops.put(_Crashed(error))
        return True


class Debugger:
    """One run of `function(*args)` under control; `holds(condition, values)` evaluates a breakpoint's condition."""

    def __init__(
        self,
        program: RuntimeModule,
        table: LineTable,
        function: str,
        args: Sequence[Any],
        breakpoints: Sequence[Breakpoint],
        holds: Callable[[str, dict[str, Any]], bool],
    ) -> None:
        self.table = table
        self.breakpoints = tuple(breakpoints)
        self.holds = holds
        self.stop: Stop | None = None
        self._machine = VirtualMachine(program)
        self._params = {f.name: f.params for f in program.executable.vm_functions()}
        self._order: Order = "continue"
        self._depth = 0
        self._frames: list[Frame] = []
        self._last: tuple[int, Line | None] | None = None
        self._orders: queue.SimpleQueue[Order | None] = queue.SimpleQueue()
        self._stops: queue.SimpleQueue[Stop | _Crashed] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._main, args=(function, tuple(args)), daemon=True)

    def start(self, order: Order) -> Stop:
        """Run until the first stop: `step` stops at the first binding, `continue` at a breakpoint."""
        self._machine.on_instruction = self._watch
        self._order = order
        self._thread.start()
        return self._wait()

    def resume(self, order: Order) -> Stop:
        """Go on: `step` into calls, `next` over them, `finish` the function, `continue` to the next breakpoint."""
        self._order = order
        self._depth = len(self._frames)
        self._orders.put(order)
        return self._wait()

    def abandon(self) -> None:
        """End the program; it stops at its next instruction."""
        self._orders.put(None)

    @property
    def over(self) -> bool:
        """Whether there is nothing left to run."""
        return self.stop is not None and self.stop.reason in ("done", "failed")

    def _wait(self) -> Stop:
        try:
            stop = self._stops.get()
        except KeyboardInterrupt:
            self.abandon()
            self.stop = Stop("done", ())
            raise
        if isinstance(stop, _Crashed):
            raise stop.error
        self.stop = stop
        return stop

    # --- in the program's thread --------------------------------------------------------------------------------------
    def _main(self, function: str, args: tuple[Any, ...]) -> None:
        with _Carrier(self._stops):
            try:
                self._stops.put(Stop("done", (), self._machine[function](*args)))
            except RelaxlangError as error:
                self._stops.put(Stop("failed", self._places(), error=error))

    def _watch(self, frame: Frame) -> None:
        if not self._orders.empty() and self._orders.get() is None:
            raise _Abandoned
        del self._frames[frame.depth :]
        self._frames.append(frame)
        line = self.table.current(frame.function, frame.pc)
        here = (frame.depth, line)
        if line is None or here == self._last:
            return
        self._last = here
        hit = self._hit(frame, line)
        if hit or self._order == "step" or self._reached(len(self._frames)):
            self._stops.put(Stop("break" if hit else "step", self._places()))
            if self._orders.get() is None:
                raise _Abandoned

    def _reached(self, depth: int) -> bool:
        return depth <= self._depth if self._order == "next" else self._order == "finish" and depth < self._depth

    def _hit(self, frame: Frame, line: Line) -> bool:
        first = self.table.lines[frame.function][0] is line
        for point in self.breakpoints:
            if point.function != frame.function:
                continue
            span = line.binding.span
            there = point.variable == line.name if point.variable else first
            if point.line:
                there = span is not None and span.line == point.line
            if there and (not point.condition or self.holds(point.condition, self._values(frame))):
                return True
        return False

    def _values(self, frame: Frame) -> dict[str, Any]:
        return self.table.values(frame.function, frame.pc, self._params[frame.function], frame.registers)

    def _places(self) -> tuple[Place, ...]:
        return tuple(Place(f.function, self.table.current(f.function, f.pc), self._values(f)) for f in self._frames)


def post_mortem(error: RelaxlangError, table: LineTable, executable: Executable) -> tuple[Place, ...]:
    """Where a program was when it raised `error`, outermost frame first: the machine's loop is found in the traceback,
    so that a run costs nothing extra until it fails."""
    params = {f.name: f.params for f in executable.vm_functions()}
    run = Bytecode.run.__code__
    trace: TracebackType | None = error.__traceback__
    frames: list[tuple[Any, int, list[Any]]] = []
    while trace is not None:
        if trace.tb_frame.f_code is run:
            names = trace.tb_frame.f_locals
            # A caller's frame keeps the instruction that it goes on with, the one behind its call.
            frames += [(code, pc - 1, registers) for code, pc, registers, _ in names["frames"]]
            frames.append((names["code"], names["pc"], names["regs"]))
        trace = trace.tb_next
    if frames and not table.begun(frames[-1][0].name, frames[-1][1]):
        frames.pop()  # the arguments were refused: the caller's binding is to blame
    return tuple(
        Place(code.name, table.current(code.name, pc), table.values(code.name, pc, params[code.name], registers))
        for code, pc, registers in frames
    )
