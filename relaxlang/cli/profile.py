"""`--run --profile`: how long each kernel of a call takes, and how that compares with what the machine can do."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from relaxlang.base.config import config
from relaxlang.base.diagnostics import DiagnosticError, fail
from relaxlang.cli.compilation import Compilation
from relaxlang.cli.run import Call
from relaxlang.runtime.observe import KernelProfile, KernelRun, KernelTime

if TYPE_CHECKING:
    from relaxlang.ir.module import IRModule
    from relaxlang.ir.tir import PrimFunc
    from relaxlang.repl.lines import LineTable
    from relaxlang.runtime.executable import Executable

SECONDS = 0.1
"""How long a call is repeated, so that a chance delay does not count."""
HEAD = ("kernel", "calls", "µs", "share", "GFLOP/s", "GB/s", "% of peak", "source")


class Row(NamedTuple):
    """A kernel with the share of the machine's peak that it reaches: of its arithmetic or its memory, whichever it
    uses more of; None when its work is not known."""

    time: KernelTime
    peak: float | None

    def cells(self) -> tuple[str, ...]:
        """The row as text, in the order of `HEAD`."""
        t = self.time
        rate = "" if t.gigaflops is None else f"{t.gigaflops:.1f}"
        peak = "" if self.peak is None else f"{self.peak * 100:.1f}"
        share, place = f"{t.share:.1%}", t.line or f"{t.function}:{t.pc}"
        micro = f"{t.seconds * 1e6:.2f}"
        return t.kernel, str(t.calls), micro, share, rate, f"{t.gigabytes_per_second:.1f}", peak, place


def observe(call: Call) -> KernelProfile:
    """Run a call and tell how long its kernels took, at best: it is repeated for `SECONDS`, twice at least. RLX7003 for
    a program without bytecode."""
    from relaxlang.runtime.vm import VirtualMachine

    program, name = call.program, call.function
    if any(f.name == name for f in program.executable.vm_functions()):
        return VirtualMachine(program).kernel_profile(name, *call.values, seconds=SECONDS)
    if name not in program.kernels:
        fail("RLX7003", "kernels are watched in programs of the executor `vm`", help="leave `--executor` out")
    function = program[name]
    function(*call.values)
    start, seconds = _best(lambda: function(*call.values))
    arrays = [v for v in call.values if isinstance(v, np.ndarray)]
    shapes, nbytes = tuple(tuple(a.shape) for a in arrays), sum(a.nbytes for a in arrays)
    return KernelProfile((KernelRun(name, name, 0, seconds, shapes, nbytes, start + seconds),), seconds)


def _best(run: Callable[[], object]) -> tuple[float, float]:
    """When the shortest of several runs began, and the seconds that it took."""
    begin = start = time.perf_counter()
    found: list[tuple[float, float]] = []
    while not found or start - begin < SECONDS:
        start = time.perf_counter()
        run()
        found.append((time.perf_counter() - start, start))
    seconds, at = min(found)
    return at, seconds


def rows(c: Compilation, profile: KernelProfile) -> list[Row]:
    """The kernels of a profile, the one that took longest first. A built program has no work and lines to tell of."""
    if c.is_built:
        return [Row(t, None) for t in profile.kernels()]
    return measured(profile, c.parsed, c.lowered, c.executable, c.unscheduled)


def measured(
    profile: KernelProfile, module: IRModule, lowered: IRModule, executable: Executable, unscheduled: IRModule
) -> list[Row]:
    """The kernels of a profile, the one that took longest first, with their work and where they come from: `lowered` is
    what the executable was made of, `unscheduled` that before its loops were scheduled, `module` what was written."""
    from relaxlang.codegen.peak import peak_bandwidth, peak_flops

    work = _Work(lowered, unscheduled)
    lines = _lines(module, lowered, executable, profile)
    made = []
    for t in profile.kernels(work.flops, lines):
        reached = None
        if t.flops is not None and t.seconds > 0:
            processors = config.num_threads if work.parallel(t.kernel) else 1
            arithmetic = t.flops / t.seconds / (peak_flops() * processors)
            reached = max(arithmetic, t.nbytes / t.seconds / peak_bandwidth())
        made.append(Row(t, reached))
    return made


class _Work:
    """The operations of kernels, from their TensorIR: as it was before loops were scheduled where it is the same kernel
    then, since what a schedule computes beyond the end of a dimension is no work that anybody asked for."""

    def __init__(self, lowered: IRModule, unscheduled: IRModule) -> None:
        self.functions: dict[str, PrimFunc] = dict(lowered.prim_funcs())
        self.asked: dict[str, PrimFunc] = dict(unscheduled.prim_funcs())
        self._known: dict[Any, float | None] = {}

    def flops(self, kernel: str, shapes: Sequence[tuple[int, ...]]) -> float | None:
        """The operations of a call; None when its shapes do not tell."""
        from relaxlang.analysis.flops import work_of

        key = (kernel, tuple(shapes))
        if key not in self._known:
            function = self.asked.get(kernel)
            if function is None or not _fits(function, shapes):
                function = self.functions.get(kernel)
            try:
                self._known[key] = None if function is None else work_of(function).at(function, shapes)[0]
            except DiagnosticError:  # a dimension that only a scalar argument tells
                self._known[key] = None
        return self._known[key]

    def parallel(self, kernel: str) -> bool:
        """Whether a kernel has a loop that several processors share."""
        from relaxlang.ir.tir import For
        from relaxlang.ir.visit import walk

        function = self.functions.get(kernel)
        return function is not None and any(isinstance(n, For) and n.kind == "parallel" for n in walk(function.body))


def _fits(function: PrimFunc, shapes: Sequence[tuple[int, ...]]) -> bool:
    """Whether a kernel takes buffers of these ranks."""
    buffers = [function.buffer_map[p] for p in function.params if p in function.buffer_map]
    return [len(b.shape) for b in buffers] == [len(s) for s in shapes]


def _lines(
    module: IRModule, lowered: IRModule, executable: Executable, profile: KernelProfile
) -> dict[tuple[str, int], str]:
    """Where in the source stands what each watched instruction helps to compute."""
    from relaxlang.repl.lines import LineTable

    table = LineTable(module, lowered, executable)
    found = {}
    for run in profile.runs:
        place = _place(table, run)
        if place:
            found[run.function, run.pc] = place
    return found


def _place(table: LineTable, run: KernelRun) -> str:
    line = table.current(run.function, run.pc)
    span = None if line is None else line.binding.span
    return "" if line is None or span is None else f"{span.source.name}:{span.line} ({line.name})"


def table(rows: Sequence[Row], profile: KernelProfile) -> str:
    """The profile as lines of text."""
    cells = [HEAD, *(row.cells() for row in rows)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(HEAD))]
    left = (0, len(HEAD) - 1)
    lines = ["  ".join(c.ljust(w) if k in left else c.rjust(w) for k, (c, w) in enumerate(zip(row, widths))).rstrip()
             for row in cells]  # fmt: skip
    return "\n".join([*lines, summary(rows, profile)]) + "\n"


def as_json(rows: Sequence[Row], profile: KernelProfile) -> str:
    """The profile as one JSON object on one line; times are seconds, rates are per second, `peak` is a share."""
    kernels = [
        {
            "kernel": t.kernel, "function": t.function, "pc": t.pc, "source": t.line, "calls": t.calls,
            "seconds": t.seconds, "share": t.share, "flops": t.flops, "bytes": t.nbytes, "peak": peak,
        }
        for t, peak in rows
    ]  # fmt: skip
    return json.dumps({"seconds": profile.seconds, "kernels": kernels}) + "\n"


def summary(rows: Sequence[Row], profile: KernelProfile) -> str:
    """What the times are part of, and what the rates are measured by."""
    text = f"kernels: {profile.kernel_seconds * 1e6:.1f} µs of {profile.seconds * 1e6:.1f} µs"
    if any(row.peak is not None for row in rows):
        from relaxlang.codegen.peak import peak_bandwidth, peak_flops

        text += f"; peak: {peak_flops() / 1e9:.1f} GFLOP/s of float32 a processor, {peak_bandwidth() / 1e9:.1f} GB/s"
        if any((row.peak or 0) > 1 for row in rows):
            text += "; what comes above 100 % reads from caches"
    return text
