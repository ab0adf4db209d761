"""How long each kernel of a call takes, in the mode in which the machine runs: the time of the machine code alone.

`VirtualMachine.kernel_profile` makes a `KernelProfile`; `profile` has the whole of a run by bytecode.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from relaxlang.base.dtype import dtype
from relaxlang.base.record import record
from relaxlang.runtime.executable import Call, Executable, KernelFunction, VMFunction
from relaxlang.runtime.kernel_signature import BufferParam, KernelSignature

Shape: TypeAlias = "tuple[int, ...]"


@record
class KernelRun:
    """One call of a kernel: from instruction `pc` of a Relax function, in seconds, on buffers of these shapes. `end` is
    when it was told of, just after its end, by `time.perf_counter`."""

    kernel: str
    function: str
    pc: int
    seconds: float
    shapes: tuple[Shape, ...]
    nbytes: int
    end: float = 0.0


@record
class KernelTime:
    """All calls of a kernel from one place. `share` is the part of all kernels' time; `nbytes` and `flops` (None when
    not known) are those of all calls together. `line` says where in the source the kernel comes from."""

    kernel: str
    function: str
    pc: int
    calls: int
    seconds: float
    share: float
    nbytes: int
    flops: float | None = None
    line: str = ""

    @property
    def gigabytes_per_second(self) -> float:
        """The size of the buffers by the time: what a kernel that touches each byte once moves."""
        return self.nbytes / self.seconds / 1e9 if self.seconds else 0.0

    @property
    def gigaflops(self) -> float | None:
        """Floating-point operations by the time, in 10⁹ per second."""
        return None if self.flops is None else self.flops / self.seconds / 1e9 if self.seconds else 0.0


Observer: TypeAlias = "Callable[[KernelRun], None]"
Flops: TypeAlias = "Callable[[str, Sequence[Shape]], float | None]"
"""The floating-point operations of a kernel on buffers of these shapes."""


@record
class KernelProfile:
    """What the kernels of a call did, in order, and the seconds that the whole call took (observing included)."""

    runs: tuple[KernelRun, ...]
    seconds: float

    @property
    def kernel_seconds(self) -> float:
        """The time of all kernels."""
        return sum(r.seconds for r in self.runs)

    def kernels(
        self, flops: Flops | None = None, lines: Mapping[tuple[str, int], str] | None = None
    ) -> list[KernelTime]:
        """The time by kernel and place, most first. `lines` has the source line of instructions (function, pc)."""
        total = self.kernel_seconds or 1.0
        by_place: dict[tuple[str, str, int], list[KernelRun]] = {}
        for run in self.runs:
            by_place.setdefault((run.kernel, run.function, run.pc), []).append(run)
        found = []
        for (kernel, function, pc), runs in by_place.items():
            seconds = sum(r.seconds for r in runs)
            counts = [flops(kernel, r.shapes) for r in runs] if flops is not None else [None]
            known = [c for c in counts if c is not None]
            work = sum(known) if len(known) == len(counts) else None
            line = (lines or {}).get((function, pc), "")
            nbytes = sum(r.nbytes for r in runs)
            found.append(KernelTime(kernel, function, pc, len(runs), seconds, seconds / total, nbytes, work, line))
        return sorted(found, key=lambda k: -k.seconds)

    def __str__(self) -> str:
        return self.table()

    def table(self, flops: Flops | None = None, lines: Mapping[tuple[str, int], str] | None = None) -> str:
        """The kernels as a table for people."""
        head = ["kernel", "calls", "µs", "share", "GB/s", "GFLOP/s", "place"]
        rows = [head]
        for k in self.kernels(flops, lines):
            rate = "" if k.gigaflops is None else f"{k.gigaflops:.1f}"
            place = k.line or f"{k.function}:{k.pc}"
            rows.append([k.kernel, str(k.calls), f"{k.seconds * 1e6:.1f}", f"{k.share:.1%}",
                         f"{k.gigabytes_per_second:.1f}", rate, place])  # fmt: skip
        widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
        lines_ = []
        for row in rows:
            cells = [c.ljust(w) if i in (0, 6) else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths))]
            lines_.append("  ".join(cells).rstrip())
        whole = f"kernels: {self.kernel_seconds * 1e6:.1f} µs of {self.seconds * 1e6:.1f} µs"
        return "\n".join([*lines_, whole])


def kernel_run(
    executable: Executable, function: VMFunction, pc: int, seconds: float, shapes: tuple[Shape, ...]
) -> KernelRun:
    """The record of the kernel that instruction `pc` of a function calls."""
    signature = called_kernel(executable, function, pc)
    nbytes = 0
    for param, shape in zip((p for p in signature.params if isinstance(p, BufferParam)), shapes):
        size = dtype(param.dtype).itemsize
        for dim in shape:
            size *= dim
        nbytes += size
    return KernelRun(signature.name, function.name, pc, seconds, shapes, nbytes, time.perf_counter())


def called_kernel(executable: Executable, function: VMFunction, pc: int) -> KernelSignature:
    """The kernel that an instruction calls, itself or through `call_tir_dyn`."""
    call = executable.instructions[function.start + pc]
    assert isinstance(call, Call)
    callee = executable.functions[call.func]
    if not isinstance(callee, KernelFunction):
        target: Any = call.args[0]
        callee = executable.functions[target.index]
    assert isinstance(callee, KernelFunction)
    return callee.signature
