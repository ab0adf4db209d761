"""Bytecode made ready to run: operands become places in the register file, functions become Python callables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any

from relaxlang.runtime import checks
from relaxlang.runtime.executable import (
    VM,
    VOID,
    Arg,
    Call,
    Executable,
    If,
    Instruction,
    Register,
    Ret,
    VMFunction,
)
from relaxlang.runtime.linkage import Linkage
from relaxlang.runtime.params import Expected, expectations

CALL, IF, GOTO, CALL_VM, INVOKE, RET = range(6)

Step = tuple[int, int, Any, Any]
"""(op, dst, target, get): CALL and CALL_VM put `target(*get(regs))` into dst; INVOKE calls the closure in register
`target`; IF tests register dst and jumps to step `target` when false; GOTO jumps to `target`; RET gives register
dst."""


class Code:
    """A VM function ready to run on one machine; decoded when it is first needed. `code` gives the `Code` of another
    entry of the function table."""

    def __init__(
        self, executable: Executable, function: VMFunction, linkage: Linkage, code: Callable[[int], Code]
    ) -> None:
        self.name = function.name
        self.params = function.params
        self.executable = executable
        self.function = function
        self._linkage = linkage
        self._code = code

    @cached_property
    def expected(self) -> list[Expected]:
        """What the function expects of its arguments."""
        return expectations(self.executable, self.function)

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
        decoder = _Decoder(self.function, self._linkage, self._code)
        code = self.executable.code_of(self.function)
        steps = [decoder.step(at, instruction) for at, instruction in enumerate(code)]
        return steps, decoder.registers[len(self.params) :]

    def instruction(self, pc: int) -> Instruction:
        """The instruction at `pc`, as it stands in the executable."""
        return self.executable.instructions[self.function.start + pc]


class _Decoder:
    """Lays out the register file of one function: registers, a place for dropped results, then all other operands."""

    def __init__(self, function: VMFunction, linkage: Linkage, code: Callable[[int], Code]) -> None:
        self.void = function.registers
        self.registers: list[Any] = [None] * (function.registers + 1)
        self.linkage = linkage
        self.code = code
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
            return CALL_VM, dst, self.code(call.func), _getter(places)
        if function.name == "vm.builtin.invoke_closure" and len(places) >= 2:
            return INVOKE, dst, places[1], _getter(places[2:])
        return CALL, dst, self.linkage.callee(call.func), _getter(places)

    def _place(self, arg: Arg) -> int:
        if isinstance(arg, Register) and arg != VM:
            return arg.index
        place = self._places.get(arg)
        if place is None:
            place = self._places[arg] = len(self.registers)
            self.registers.append(self.linkage.machine if arg == VM else self.linkage.value(arg))
        return place


def _getter(places: list[int]) -> Callable[[list[Any]], Sequence[Any]]:
    """A function that takes the values at these places out of a register file, as a sequence."""
    if len(places) > 1:
        return itemgetter(*places)
    return itemgetter(slice(places[0], places[0] + 1) if places else slice(0, 0))
