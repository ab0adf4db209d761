"""Executables: bytecode, constants, the function table and the object code of kernels, as plain data.

The machine has four instructions. An argument is a register, an immediate integer, a constant of the pool or a
function of the table. Two registers are special: `VOID` (a result that nobody wants) and `VM` (the machine itself, an
argument of some builtins). Jumps are relative to the instruction that jumps.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np

from relaxlang.base.diagnostics import fail
from relaxlang.base.dtype import DType
from relaxlang.base.record import record
from relaxlang.runtime.kernel_signature import KernelSignature
from relaxlang.runtime.memory import format_bytes
from relaxlang.runtime.ndarray import NDArray, ShapeTuple, dtype_name, shape_text

FORMAT_VERSION = 2
"""1: the first; 2: with declarations of C functions."""
IMMEDIATE_BITS = 56
MAX_CONSTANT_DEPTH = 64
MAX_REGISTERS = 1 << 20


@record
class Register:
    """A register of the current frame; the first ones hold the parameters."""

    index: int


@record
class Immediate:
    """An integer that stands in the instruction, of at most 56 bits."""

    value: int


@record
class Constant:
    """An entry of the constant pool."""

    index: int


@record
class Func:
    """An entry of the function table, as a value."""

    index: int


Arg: TypeAlias = "Register | Immediate | Constant | Func"

VOID = Register(1 << 54)
VM = Register((1 << 54) + 1)


@record
class Call:
    """Call entry `func` of the function table and put the result into `dst`."""

    dst: Register
    func: int
    args: tuple[Arg, ...]


@record
class Ret:
    """Leave the function with the value of a register."""

    value: Register


@record
class If:
    """Go on when `cond` holds a true value, else jump by `false_offset`."""

    cond: Register
    false_offset: int


@record
class Goto:
    """Jump by `offset`."""

    offset: int


Instruction: TypeAlias = "Call | Ret | If | Goto"


@record
class VMFunction:
    """A Relax function: `count` instructions from `start` on, parameter names, and the number of registers it uses."""

    name: str
    start: int
    count: int
    params: tuple[str, ...]
    registers: int


class Declaration(NamedTuple):
    """Where a C function is, and how it is called (`runtime.c_function`)."""

    library: str
    symbol: str
    signature: str


@record
class PackedFunction:
    """A builtin or a packed function, found by name when the program runs; a C function with its declaration."""

    name: str
    declaration: Declaration | None = None


@record
class KernelFunction:
    """A compiled PrimFunc."""

    signature: KernelSignature

    @property
    def name(self) -> str:
        """The name of the PrimFunc."""
        return self.signature.name


Function: TypeAlias = "VMFunction | PackedFunction | KernelFunction"


@record
class ObjectCode:
    """Compiled kernels: an object file's bytes and the machine they are for (LLVM's triple, cpu and features
    strings)."""

    code: bytes
    triple: str
    cpu: str
    features: str

    def __repr__(self) -> str:
        return f"ObjectCode({format_bytes(len(self.code))}, {self.triple!r}, {self.cpu!r})"


class Executable:
    """A program for the virtual machine. Immutable; the constructor checks that every reference is within bounds.

    `functions` is the table that calls index, `instructions` the code of all VM functions one after another,
    `constants` the pool, `objects` the kernels' code (empty when they come from elsewhere). Executables are equal
    when they hold the same program: functions, instructions and constants. Object code does not count, it follows
    from the kernels.
    """

    __slots__ = ("functions", "instructions", "constants", "objects", "_indices")
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        functions: tuple[Function, ...],
        instructions: tuple[Instruction, ...],
        constants: tuple[Any, ...] = (),
        objects: tuple[ObjectCode, ...] = (),
    ) -> None:
        self.functions = tuple(functions)
        self.instructions = tuple(instructions)
        self.constants = tuple(constants)
        self.objects = tuple(objects)
        self._indices = {f.name: i for i, f in enumerate(self.functions)}
        validate(self)

    def function_index(self, name: str) -> int | None:
        """The place of a function in the table, None when it is not there."""
        return self._indices.get(name)

    def vm_functions(self) -> Iterator[VMFunction]:
        """The Relax functions, in the table's order."""
        return (f for f in self.functions if isinstance(f, VMFunction))

    def code_of(self, function: VMFunction) -> tuple[Instruction, ...]:
        """The instructions of a Relax function."""
        return self.instructions[function.start : function.start + function.count]

    def kernel_signatures(self) -> Iterator[KernelSignature]:
        """The signatures of the kernels, in the table's order."""
        return (f.signature for f in self.functions if isinstance(f, KernelFunction))

    def with_objects(self, objects: tuple[ObjectCode, ...]) -> Executable:
        """The same program with other object code."""
        return Executable(self.functions, self.instructions, self.constants, objects)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Executable):
            return NotImplemented
        return (
            self.functions == other.functions
            and self.instructions == other.instructions
            and len(self.constants) == len(other.constants)
            and all(same_constant(a, b) for a, b in zip(self.constants, other.constants, strict=True))
        )

    def __repr__(self) -> str:
        names = ", ".join(f.name for f in self.vm_functions())
        return f"<executable of {names or 'kernels only'}>"

    def stats(self) -> str:
        """A summary for people: the constant pool, the function table, instructions and object code."""
        kinds = {VMFunction: "VM functions", KernelFunction: "kernels", PackedFunction: "packed functions"}
        lines = [
            "Relax VM executable statistics:",
            f"  Constant pool (# {len(self.constants)}): [{', '.join(constant_summary(c) for c in self.constants)}]",
            f"  Globals (#{len(self.functions)}): [{', '.join(f.name for f in self.functions)}]",
        ]
        for kind, label in kinds.items():
            lines.append(f"  {label.capitalize()}: {sum(type(f) is kind for f in self.functions)}")
        for function in self.functions:
            if isinstance(function, PackedFunction) and function.declaration is not None:
                library, symbol, _ = function.declaration
                lines.append(f"  C function {function.name}: `{symbol}` of the library `{library}`")
        lines.append(f"  Instructions: {len(self.instructions)}")
        lines.append(f"  Object code: {format_bytes(sum(len(o.code) for o in self.objects))}")
        return "\n".join(lines)

    def as_text(self, *, objects: bool = False) -> str:
        """The executable as text that `parse_text` reads back; object code only when `objects` asks for it."""
        from relaxlang.runtime.exec_text import print_text

        return print_text(self, objects)

    @staticmethod
    def parse_text(text: str, filename: str = "<string>") -> Executable:
        """The executable that `as_text` printed; RLX6013 with the line for text that is none."""
        from relaxlang.runtime.exec_parse import parse_text

        return parse_text(text, filename)

    def to_bytes(self) -> bytes:
        """The content of an `.rlxe` file."""
        from relaxlang.runtime.exec_file import encode

        return encode(self)

    @staticmethod
    def from_bytes(data: bytes | memoryview, name: str = "<bytes>") -> Executable:
        """The executable in the content of an `.rlxe` file; RLX6011 when it is damaged, RLX6012 when it is too new."""
        from relaxlang.runtime.exec_file import decode

        return decode(data, name)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an `.rlxe` file, wholly or not at all; `RelaxlangError` when that is impossible."""
        from relaxlang.base.files import write_atomically

        write_atomically(path, self.to_bytes())

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Executable:
        """Read an `.rlxe` file. Safe for untrusted files: nothing in it is run. RLX6019 when it cannot be read, RLX6011
        when it is damaged, RLX6012 when a newer relaxlang wrote it."""
        from relaxlang.runtime.exec_file import read_file

        return Executable.from_bytes(read_file(path), os.fspath(path))


def same_constant(a: Any, b: Any) -> bool:
    """Whether two constants are the same value of the same type, bit for bit."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return (a.shape, a.dtype, a.tobytes()) == (b.shape, b.dtype, b.tobytes())
    if isinstance(a, float):
        return np.float64(a).tobytes() == np.float64(b).tobytes()
    if type(a) is tuple:
        return len(a) == len(b) and all(same_constant(x, y) for x, y in zip(a, b, strict=True))
    equal: bool = a == b
    return equal


def constant_summary(value: Any) -> str:
    """A constant in a few words, arrays by dtype and shape."""
    if isinstance(value, np.ndarray):
        return f"{dtype_name(value.dtype)}{shape_text(value.shape)}"
    if isinstance(value, (ShapeTuple, DType)):
        return str(value)
    return repr(value)


def is_constant(value: Any, depth: int = 0) -> bool:
    """Whether a value can stand in the constant pool."""
    if type(value) is tuple:
        return depth < MAX_CONSTANT_DEPTH and all(is_constant(v, depth + 1) for v in value)
    return value is None or isinstance(value, (NDArray, ShapeTuple, DType)) or type(value) in (bool, int, float, str)


def validate(ex: Executable) -> None:
    """Raise RLX6014 unless every register, constant, function and jump of the program exists."""
    if len(ex._indices) != len(ex.functions):
        names = [f.name for f in ex.functions]
        twice = next(n for n in names if names.count(n) > 1)
        _malformed(f"function `{twice}` is defined twice")
    for index, constant in enumerate(ex.constants):
        if not is_constant(constant):
            _malformed(f"constant {index} is of type `{type(constant).__name__}`, which no executable can hold")
    for signature in ex.kernel_signatures():
        signature.check()
    for function in ex.vm_functions():
        _validate_function(ex, function)


def _validate_function(ex: Executable, function: VMFunction) -> None:
    start, count = function.start, function.count
    if not (0 <= start and 0 < count <= len(ex.instructions) - start):
        _malformed(f"the code of `{function.name}` lies outside of the instructions")
    if not len(function.params) <= function.registers <= MAX_REGISTERS:
        _malformed(f"`{function.name}` has {len(function.params)} parameters but {function.registers} registers")
    for at, instruction in enumerate(ex.instructions[start : start + count]):
        fault = _fault(ex, function, at, instruction)
        if fault:
            _malformed(f"instruction {at} of `{function.name}`: {fault}")


def _fault(ex: Executable, function: VMFunction, at: int, instruction: Instruction) -> str:
    """What is wrong with instruction `at` of a function, "" when nothing is."""
    follows = True
    if isinstance(instruction, Call):
        if not 0 <= instruction.func < len(ex.functions):
            return f"there is no function {instruction.func}"
        if instruction.dst != VOID and not 0 <= instruction.dst.index < function.registers:
            return f"there is no register %{instruction.dst.index}"
        callee = ex.functions[instruction.func]
        if isinstance(callee, VMFunction) and len(callee.params) != len(instruction.args):
            return f"`{callee.name}` takes {len(callee.params)} arguments, got {len(instruction.args)}"
        if isinstance(callee, KernelFunction) and len(callee.signature.params) != len(instruction.args):
            return f"kernel `{callee.name}` takes {len(callee.signature.params)} arguments, got {len(instruction.args)}"
        for arg in instruction.args:
            fault = _arg_fault(ex, function, arg)
            if fault:
                return fault
    elif isinstance(instruction, Ret):
        follows = False
        return _arg_fault(ex, function, instruction.value)
    elif isinstance(instruction, If):
        if not 0 <= at + instruction.false_offset < function.count:
            return "the jump leaves the function"
        fault = _arg_fault(ex, function, instruction.cond)
        if fault:
            return fault
    else:
        follows = False
        if not 0 <= at + instruction.offset < function.count:
            return "the jump leaves the function"
    return "the function ends without a return" if follows and at == function.count - 1 else ""


def _arg_fault(ex: Executable, function: VMFunction, arg: Arg) -> str:
    if isinstance(arg, Register):
        if arg != VM and not 0 <= arg.index < function.registers:
            return f"there is no register %{arg.index}"
    elif isinstance(arg, Immediate):
        if not -(1 << IMMEDIATE_BITS - 1) <= arg.value < 1 << IMMEDIATE_BITS - 1:
            return f"immediate {arg.value} has more than {IMMEDIATE_BITS} bits"
    elif isinstance(arg, Constant):
        if not 0 <= arg.index < len(ex.constants):
            return f"there is no constant c[{arg.index}]"
    elif not 0 <= arg.index < len(ex.functions):
        return f"there is no function {arg.index}"
    return ""


def _malformed(why: str) -> NoReturn:
    fail("RLX6014", f"malformed executable: {why}")
