"""Bytecode made ready to run: operands become places in the register file, functions become Python callables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any

import numpy as np

from relaxlang.base.diagnostics import fail
from relaxlang.runtime import checks
from relaxlang.runtime.builtins import BUILTINS
from relaxlang.runtime.dlpack import to_numpy
from relaxlang.runtime.errors import blame, unknown_function
from relaxlang.runtime.executable import (
    VM,
    VOID,
    Arg,
    Call,
    Constant,
    Executable,
    Func,
    If,
    Immediate,
    Instruction,
    KernelFunction,
    Register,
    Ret,
    VMFunction,
)
from relaxlang.runtime.kernel import Kernel
from relaxlang.runtime.ndarray import NDArray, ShapeTuple, as_tensor
from relaxlang.runtime.params import Expected, expectations
from relaxlang.runtime.registry import find_func, list_global_func_names

CALL, IF, GOTO, CALL_VM, INVOKE, RET = range(6)

Step = tuple[int, int, Any, Any]
"""(op, dst, target, get): CALL and CALL_VM put `target(*get(regs))` into dst; INVOKE calls the closure in register
`target`; IF tests register dst and jumps to step `target` when false; GOTO jumps to `target`; RET gives register
dst."""


class Linkage:
    """How one machine turns entries of the function table into callables and values."""

    def __init__(
        self,
        executable: Executable,
        kernels: Mapping[str, Kernel],
        vm: object,
        code: Callable[[int], Code],
        closure: Callable[[Code], Any],
    ) -> None:
        self.executable = executable
        self.kernels = kernels
        self.vm = vm
        self.code = code
        self.closure = closure

    def kernel(self, name: str) -> Kernel:
        """A kernel by name; RLX6008 when nobody linked it."""
        found = self.kernels.get(name)
        if found is None:
            unknown_function(name, "the executable's kernels lack", self.kernels)
        return found

    def callee(self, index: int) -> Callable[..., Any]:
        """The callable of a kernel, builtin or packed function, called from bytecode."""
        function = self.executable.functions[index]
        if isinstance(function, KernelFunction):
            return self.kernel(function.name).run
        return BUILTINS.get(function.name) or packed(function.name)

    def value(self, arg: Arg) -> Any:
        """What an operand other than a register stands for."""
        if isinstance(arg, Immediate):
            return arg.value
        if isinstance(arg, Constant):
            return self.executable.constants[arg.index]
        assert isinstance(arg, Func)
        function = self.executable.functions[arg.index]
        if isinstance(function, VMFunction):
            return self.closure(self.code(arg.index))
        return self.kernel(function.name) if isinstance(function, KernelFunction) else self.callee(arg.index)

    def call_foreign(self, closure: Any, values: Sequence[Any]) -> Any:
        """Call a closure that is not one of this machine's: a kernel, a packed function, another machine's closure."""
        if not callable(closure):
            fail("RLX6018", f"{checks.describe(closure)} is no function")
        with blame(str(getattr(closure, "name", None) or getattr(closure, "__name__", closure))):
            return normalize(closure(*values))


class Code:
    """A VM function ready to run on one machine; decoded when it is first needed."""

    def __init__(self, executable: Executable, function: VMFunction, linkage: Linkage) -> None:
        self.name = function.name
        self.params = function.params
        self._executable = executable
        self._function = function
        self._linkage = linkage

    @cached_property
    def expected(self) -> list[Expected]:
        """What the function expects of its arguments."""
        return expectations(self._executable, self._function)

    @cached_property
    def steps(self) -> list[Step]:
        """The instructions, decoded."""
        return self._decoded[0]

    def frame(self, args: Sequence[Any]) -> list[Any]:
        """A fresh register file with the arguments in place."""
        if len(args) != len(self.params):
            checks.wrong_count(self.name, self.params, len(self.params), len(args))
        return [*args, *self._rest]

    @cached_property
    def _rest(self) -> list[Any]:
        """The initial values of all registers behind the parameters."""
        return self._decoded[1]

    @cached_property
    def _decoded(self) -> tuple[list[Step], list[Any]]:
        decoder = _Decoder(self._function, self._linkage)
        start = self._function.start
        code = self._executable.instructions[start : start + self._function.count]
        steps = [decoder.step(at, instruction) for at, instruction in enumerate(code)]
        return steps, decoder.registers[len(self.params) :]

    def instruction(self, pc: int) -> Instruction:
        """The instruction at `pc`, as it stands in the executable."""
        return self._executable.instructions[self._function.start + pc]

    def instruction_text(self, pc: int) -> str:
        """The instruction at `pc` as text."""
        from relaxlang.runtime.exec_text import instruction_text

        return instruction_text(self._executable, self.instruction(pc))


class _Decoder:
    """Lays out the register file of one function: registers, a place for dropped results, then all other operands."""

    def __init__(self, function: VMFunction, linkage: Linkage) -> None:
        self.void = function.registers
        self.registers: list[Any] = [None] * (function.registers + 1)
        self.linkage = linkage
        self._places: dict[Arg, int] = {}

    def step(self, at: int, instruction: Instruction) -> Step:
        if isinstance(instruction, Call):
            return self._call(instruction)
        if isinstance(instruction, Ret):
            return RET, self._place(instruction.value), None, None
        if isinstance(instruction, If):
            return IF, self._place(instruction.cond), at + instruction.false_offset, None
        return GOTO, 0, at + instruction.offset, None

    def _call(self, call: Call) -> Step:
        dst = self.void if call.dst == VOID else call.dst.index
        places = [self._place(a) for a in call.args]
        function = self.linkage.executable.functions[call.func]
        if isinstance(function, VMFunction):
            return CALL_VM, dst, self.linkage.code(call.func), _getter(places)
        if function.name == "vm.builtin.invoke_closure" and len(places) >= 2:
            return INVOKE, dst, places[1], _getter(places[2:])
        return CALL, dst, self.linkage.callee(call.func), _getter(places)

    def _place(self, arg: Arg) -> int:
        if isinstance(arg, Register) and arg != VM:
            return arg.index
        place = self._places.get(arg)
        if place is None:
            place = self._places[arg] = len(self.registers)
            self.registers.append(self.linkage.vm if arg == VM else self.linkage.value(arg))
        return place


def _getter(places: list[int]) -> Callable[[list[Any]], Sequence[Any]]:
    """A function that takes the values at these places out of a register file, as a sequence."""
    if len(places) > 1:
        return itemgetter(*places)
    return itemgetter(slice(places[0], places[0] + 1) if places else slice(0, 0))


def packed(name: str) -> Callable[..., Any]:
    """The packed function of that name as bytecode calls it: found now if it exists, else at its first call (RLX6008 if
    there is none then either); what it raises becomes a `PackedFunctionError`, what it returns the machine's form."""
    function = find_func(name)

    def call(*args: Any) -> Any:
        chosen = function or find_func(name)
        if chosen is None:
            unknown_function(name, "there is no packed function", list_global_func_names())
        with blame(name):
            return normalize(chosen(*args))

    return call


def normalize(value: Any) -> Any:
    """A packed function's result in the machine's form: tensors contiguous, numpy scalars as Python's, lists as
    tuples."""
    if value is None or isinstance(value, (bool, int, float, str, ShapeTuple)):
        return value.item() if isinstance(value, np.generic) else value
    if isinstance(value, NDArray) and value.flags.c_contiguous and hasattr(value, "_address"):
        return value
    if isinstance(value, np.ndarray):
        return as_tensor(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (tuple, list)):
        return tuple(normalize(v) for v in value)
    return as_tensor(to_numpy(value)) if hasattr(value, "__dlpack__") else value
