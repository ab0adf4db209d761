"""The virtual machine: an iterative interpreter of executables.

`regs[dst] = function(*get(regs))` is nearly all it does: constants, immediates, function values and the machine
itself lie in the register file behind the function's own registers, so `get` is one `operator.itemgetter` for any mix
of arguments. Calls of VM functions push a frame on a list, so a program's recursion never becomes Python's.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from relaxlang.base.diagnostics import Diagnostic, DiagnosticError, RelaxlangError, fail
from relaxlang.runtime import checks
from relaxlang.runtime.bench import BenchmarkResult, measure
from relaxlang.runtime.builtins import read_if_cond
from relaxlang.runtime.decode import CALL, CALL_VM, GOTO, IF, INVOKE, Code, Linkage
from relaxlang.runtime.device import Device, as_device
from relaxlang.runtime.errors import unknown_function
from relaxlang.runtime.executable import Executable, Instruction, VMFunction
from relaxlang.runtime.kernel import Kernel
from relaxlang.runtime.module import RuntimeModule, link
from relaxlang.runtime.params import convert

MAX_DEPTH = 10_000  # frames of one run
MAX_NESTING = 60  # runs within runs on one Python thread (a packed function that calls a closure)

_nesting = threading.local()


class Closure:
    """A Relax function of one machine, with captured values that follow the arguments of every call."""

    __slots__ = ("vm", "code", "captured")

    def __init__(self, vm: VirtualMachine, code: Code, captured: tuple[Any, ...] = ()) -> None:
        self.vm = vm
        self.code = code
        self.captured = captured

    @property
    def name(self) -> str:
        """The function's name."""
        return self.code.name

    def capture(self, values: tuple[Any, ...]) -> Closure:
        """The closure that passes `values` behind its arguments, before those captured already."""
        return Closure(self.vm, self.code, values + self.captured)

    def __call__(self, *args: Any) -> Any:
        return self.vm._enter(self.code, args, self.captured)

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


class VirtualMachine:
    """Runs the functions of an executable: `vm["main"](x, w)`.

    `module` is what `relaxlang.build` or `load_module` returns, or a bare `Executable`, whose kernels then come from
    `mod` (a runtime module or a mapping of kernels by name) or are linked from its object code. One machine may be
    used by many threads at once: a call keeps its state in its own frames. Only `set_input`, `invoke_stateful`,
    `save_function` and `on_instruction` belong to the machine.

    Arguments are numpy arrays, anything with DLPack, Python scalars (for R.Prim and 0-d tensors), ShapeTuples or tuples
    of ints (for R.Shape), and tuples or lists of these. Contiguous arrays are taken without a copy; a function that
    returns its argument returns the caller's data.

    `on_instruction(frame)`, when set, is called before every instruction; it may inspect and change
    `frame.registers`, and stops the run by raising.
    """

    def __init__(
        self,
        module: RuntimeModule | Executable,
        device: Device | Sequence[Device] | None = None,
        *,
        mod: RuntimeModule | Mapping[str, Kernel] | None = None,
    ) -> None:
        executable = module.executable if isinstance(module, RuntimeModule) else module
        if not isinstance(executable, Executable):
            fail("RLX6014", f"a virtual machine needs a built module or an executable, not `{type(module).__name__}`")
        kernels = mod.kernels if isinstance(mod, RuntimeModule) else mod
        if kernels is None:
            kernels = module.kernels if isinstance(module, RuntimeModule) else link(executable)
        self.device = as_device(device)
        self.executable = executable
        self.on_instruction: Callable[[Frame], Any] | None = None
        self._kernels = kernels
        self._codes: dict[int, Code] = {}
        self._linkage = Linkage(executable, kernels, self, self._code, lambda code: Closure(self, code))
        self._inputs: dict[str, tuple[Any, ...]] = {}
        self._outputs: dict[str, Any] = {}
        self._saved: dict[str, Callable[[], Any]] = {}
        for index, function in enumerate(executable.functions):
            if isinstance(function, VMFunction):
                self._codes[index] = Code(executable, function, self._linkage)

    # Calling

    def __getitem__(self, name: str) -> Callable[..., Any]:
        """The function of that name: a Relax function, a saved one, or a kernel. RLX6008 when there is none."""
        if name in self._saved:
            return self._saved[name]
        index = self.executable.function_index(name)
        if index in self._codes:
            return Closure(self, self._codes[index])
        if name in self._kernels:
            return self._kernels[name]
        unknown_function(name, "the executable has no function", self.function_names)

    def __contains__(self, name: object) -> bool:
        return name in self.function_names

    @property
    def function_names(self) -> list[str]:
        """What `vm[name]` knows: Relax functions, kernels and saved functions."""
        relax = [f.name for f in self.executable.vm_functions()]
        return list(dict.fromkeys([*relax, *self._kernels, *self._saved]))

    def invoke_closure(self, closure: Callable[..., Any], *args: Any) -> Any:
        """Call a closure that a function has returned."""
        if not callable(closure):
            fail("RLX6018", f"{checks.describe(closure)} is no function")
        return closure(*args)

    def set_input(self, name: str, *args: Any) -> None:
        """Keep the arguments of function `name` for `invoke_stateful`."""
        code = self._named(name)
        if len(args) != len(code.params):
            checks.wrong_count(name, code.params, len(code.params), len(args))
        self._inputs[name] = tuple(convert(a, e) for a, e in zip(args, code.expected, strict=True))

    def invoke_stateful(self, name: str) -> None:
        """Run function `name` on the arguments of `set_input` and keep the result for `get_outputs`."""
        if name not in self._inputs:
            fail("RLX6018", f"`{name}` has no inputs yet", help=f'call `vm.set_input("{name}", …)` first')
        self._outputs[name] = self[name](*self._inputs[name])

    def get_outputs(self, name: str) -> Any:
        """The result of the last `invoke_stateful` of function `name`."""
        if name not in self._outputs:
            fail("RLX6018", f"`{name}` has no outputs yet", help=f'call `vm.invoke_stateful("{name}")` first')
        return self._outputs[name]

    def save_function(self, name: str, saved_name: str, *args: Any, include_return: bool = True) -> None:
        """Make `vm[saved_name]()` call function `name` with these arguments; without `include_return` it gives None."""
        function = self[name]

        def saved() -> Any:
            result = function(*args)
            return result if include_return else None

        self._saved[saved_name] = saved

    def time_evaluator(
        self, name: str, device: Device | None = None, number: int = 10, repeat: int = 1
    ) -> Callable[..., BenchmarkResult]:
        """A function that calls `name` with its arguments `repeat` times `number` times and gives seconds per call."""
        as_device(device)
        function = self[name]
        return lambda *args: measure(function, args, number, repeat)

    # Running

    def _named(self, name: str) -> Code:
        index = self.executable.function_index(name)
        if index not in self._codes:
            unknown_function(name, "the executable has no function", self.function_names)
        return self._codes[index]

    def _code(self, index: int) -> Code:
        return self._codes[index]

    def _enter(self, code: Code, args: tuple[Any, ...], captured: tuple[Any, ...]) -> Any:
        """Run a function for a caller outside of the machine."""
        params = len(code.params) - len(captured)
        if len(args) != params:
            checks.wrong_count(code.name, code.params[:params], params, len(args))
        values = [convert(a, e) for a, e in zip(args, code.expected, strict=False)]
        depth = getattr(_nesting, "depth", 0)
        if depth >= MAX_NESTING:
            fail("RLX6010", f"recursion too deep: `{code.name}` runs within {depth} other runs on this thread")
        _nesting.depth = depth + 1
        try:
            return self._run(code, [*values, *captured])
        finally:
            _nesting.depth = depth

    def _run(self, code: Code, args: Sequence[Any]) -> Any:
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
                except _FAULTS as error:
                    raise _bad_instruction(code, pc, error) from error
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
                    if not isinstance(closure, Closure) or closure.vm is not self:
                        regs[dst] = self._linkage.call_foreign(closure, values)
                        pc += 1
                        continue
                    target, values = closure.code, [*values, *closure.captured]
                if len(frames) >= MAX_DEPTH:
                    fail("RLX6010", f"recursion too deep: `{target.name}` is called within {MAX_DEPTH} other calls")
                frames.append((code, pc + 1, regs, dst))
                code, pc = target, 0
                regs, steps = code.frame(values), code.steps
            else:
                value = regs[dst]
                if not frames:
                    return value
                code, pc, regs, dst = frames.pop()
                regs[dst], steps = value, code.steps


# What a builtin or ctypes raises when hand-written bytecode gives it values that it cannot take.
_FAULTS = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, MemoryError, ctypes.ArgumentError)


def _bad_instruction(code: Code, pc: int, error: Exception) -> DiagnosticError:
    number = "RLX6006" if isinstance(error, MemoryError) else "RLX6014"
    text = code.instruction_text(pc)
    return DiagnosticError([Diagnostic(number, f"instruction {pc} of `{code.name}` (`{text}`) failed: {error}")])
