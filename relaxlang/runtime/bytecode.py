"""The bytecode machine: an iterative interpreter of executables, for debugging and where there is no native code.

`regs[dst] = function(*get(regs))` is nearly all it does: constants, immediates, function values and the machine
itself lie in the register file behind the function's own registers, so `get` is one `operator.itemgetter` for any mix
of arguments. Calls of VM functions push a frame on a list, so a program's recursion never becomes Python's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from relaxlang.base.diagnostics import RelaxlangError
from relaxlang.runtime.builtins import read_if_cond
from relaxlang.runtime.decode import CALL, CALL_VM, GOTO, IF, INVOKE, Code
from relaxlang.runtime.executable import Executable, Instruction, VMFunction
from relaxlang.runtime.kernel import Kernel
from relaxlang.runtime.kernel_signature import BufferParam
from relaxlang.runtime.linkage import FAULTS, MAX_DEPTH, Linkage, bad_instruction, call_foreign, too_deep
from relaxlang.runtime.observe import Observer, kernel_run
from relaxlang.runtime.outputs import deliver
from relaxlang.runtime.params import bind


class Closure:
    """A Relax function of one machine, with captured values that follow the arguments of every call."""

    __slots__ = ("machine", "code", "captured")

    def __init__(self, machine: Bytecode, code: Code, captured: tuple[Any, ...] = ()) -> None:
        self.machine = machine
        self.code = code
        self.captured = captured

    @property
    def name(self) -> str:
        """The function's name."""
        return self.code.name

    def capture(self, values: tuple[Any, ...]) -> Closure:
        """The closure that passes `values` behind its arguments, before those captured already."""
        return Closure(self.machine, self.code, values + self.captured)

    def __call__(self, *args: Any, out: Any = None) -> Any:
        return self.machine.enter(self.code, args, self.captured, out)

    def __repr__(self) -> str:
        return f"<VM function {self.name}({', '.join(self.code.params)})>"


class Frame:
    """What an `on_instruction` callback sees: the running function, where it is, and its registers (a live list).

    `pc` counts from the function's first instruction; `depth` is 0 for the outermost frame.
    """

    __slots__ = ("function", "pc", "registers", "depth", "instruction")

    def __init__(self, code: Code, pc: int, registers: list[Any], depth: int) -> None:
        self.function = code.name
        self.pc = pc
        self.registers = registers
        self.depth = depth
        self.instruction: Instruction = code.instruction(pc)


class Bytecode:
    """Runs the functions of an executable on its kernels. `machine` is what builtins receive as the machine.

    `on_instruction(frame)`, when set, is called before every instruction; it may inspect and change
    `frame.registers`, and stops the run by raising.
    """

    def __init__(
        self,
        executable: Executable,
        kernels: Mapping[str, Kernel],
        machine: object,
        imports: Mapping[str, Callable[..., Any]] | None = None,
    ) -> None:
        self.on_instruction: Callable[[Frame], Any] | None = None
        linkage = Linkage(executable, kernels, machine, self.function, imports)
        self._codes = {
            index: Code(executable, function, linkage, self._code)
            for index, function in enumerate(executable.functions)
            if isinstance(function, VMFunction)
        }

    def function(self, index: int) -> Closure:
        """A VM function by its place in the function table."""
        return Closure(self, self._codes[index])

    def _code(self, index: int) -> Code:
        return self._codes[index]

    def enter(self, code: Code, args: tuple[Any, ...], captured: tuple[Any, ...], out: Any = None) -> Any:
        """Run a function for a caller outside of the machine."""
        values = bind(code.name, code.params[: len(code.params) - len(captured)], code.expected, args)
        result = self.run(code, [*values, *captured])
        return result if out is None else deliver(code.name, result, out)

    def run(self, code: Code, args: Sequence[Any]) -> Any:
        """Run a function on values in the machine's form."""
        frames: list[tuple[Code, int, list[Any], int]] = []
        regs = code.frame(args)
        steps = code.steps
        pc = 0
        while True:
            if self.on_instruction is not None:
                self.on_instruction(Frame(code, pc, regs, len(frames)))
            op, dst, target, get = steps[pc]
            if op == CALL:
                try:
                    regs[dst] = target(*get(regs))
                except RelaxlangError:
                    raise
                except FAULTS as error:
                    raise bad_instruction(code.executable, code.function, pc, code.instruction(pc), error) from error
                pc += 1
            elif op == IF:
                cond = regs[dst]
                pc = pc + 1 if (cond if type(cond) is bool else read_if_cond(cond)) else target
            elif op == GOTO:
                pc = target
            elif op == CALL_VM or op == INVOKE:
                values = get(regs)
                if op == INVOKE:
                    closure = regs[target]
                    if not isinstance(closure, Closure) or closure.machine is not self:
                        regs[dst] = call_foreign(closure, values)
                        pc += 1
                        continue
                    target, values = closure.code, [*values, *closure.captured]
                if len(frames) >= MAX_DEPTH:
                    raise too_deep(target.name)
                frames.append((code, pc + 1, regs, dst))
                code, pc = target, 0
                regs, steps = code.frame(values), code.steps
            else:
                value = regs[dst]
                if not frames:
                    return value
                code, pc, regs, dst = frames.pop()
                regs[dst], steps = value, code.steps


class _Timed:
    """A kernel whose calls are measured; `place` has the frame that is running."""

    def __init__(self, executable: Executable, kernel: Kernel, place: list[Frame], observer: Observer) -> None:
        self.signature = kernel.signature
        self._executable = executable
        self._kernel = kernel
        self._place = place
        self._observer = observer

    def run(self, *args: Any) -> None:
        """Run the kernel and tell the observer."""
        start = time.perf_counter()
        self._kernel.run(*args)
        seconds = time.perf_counter() - start
        shapes = tuple(tuple(a.shape) for a, p in zip(args, self.signature.params) if isinstance(p, BufferParam))
        frame = self._place[0]
        index = self._executable.function_index(frame.function)
        function = self._executable.functions[index] if index is not None else None
        assert isinstance(function, VMFunction)
        self._observer(kernel_run(self._executable, function, frame.pc, seconds, shapes))


def observed_bytecode(
    executable: Executable,
    kernels: Mapping[str, Kernel],
    machine: object,
    imports: Mapping[str, Callable[..., Any]],
    observer: Observer,
) -> Bytecode:
    """A bytecode machine that tells `observer` of every call of a kernel."""
    place: list[Frame] = []
    timed: dict[str, Any] = {n: _Timed(executable, k, place, observer) for n, k in kernels.items()}
    made = Bytecode(executable, timed, machine, imports)

    def note(frame: Frame) -> None:
        place[:] = [frame]

    made.on_instruction = note
    return made
