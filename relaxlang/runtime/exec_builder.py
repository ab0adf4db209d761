"""`ExecBuilder`: how lowering writes an executable, one instruction after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from relaxlang.base.diagnostics import fail
from relaxlang.base.dtype import DType
from relaxlang.runtime.c_function import CFunction
from relaxlang.runtime.executable import (
    IMMEDIATE_BITS,
    VM,
    VOID,
    Arg,
    Call,
    Constant,
    Declaration,
    Executable,
    Func,
    Function,
    Goto,
    If,
    Immediate,
    Instruction,
    KernelFunction,
    ObjectCode,
    PackedFunction,
    Register,
    Ret,
    VMFunction,
)
from relaxlang.runtime.kernel import KernelSignature
from relaxlang.runtime.ndarray import NDArray, array, as_tensor
from relaxlang.runtime.registry import find_func


class Label:
    """A place in the code that jumps can name before it is known; `ExecBuilder.place` fixes it."""

    __slots__ = ("at",)

    def __init__(self) -> None:
        self.at: int | None = None


class ExecBuilder:
    """Builds an `Executable`.

        b = ExecBuilder()
        b.declare_kernel(signature)
        with b.function("main", ["x", "y"]):
            out = b.emit_call("make_output", [b.param(0), 4])
            b.emit_call("add", [b.param(0), b.param(1), out], dst=VOID)
            b.emit_ret(out)
        ex = b.get()

    A called name is a VM function or kernel if the builder knows one by the end, else a packed function.
    """

    def __init__(self) -> None:
        self._names: dict[str, int] = {}
        self._defined: dict[str, Function] = {}
        self._instructions: list[Instruction] = []
        self._constants: list[Any] = []
        self._constant_index: dict[Any, int] = {}
        self._current: _Body | None = None

    # Functions

    def declare_kernel(self, signature: KernelSignature) -> Func:
        """Enter a compiled PrimFunc into the function table."""
        self._define(KernelFunction(signature))
        return self.func(signature.name)

    @contextmanager
    def function(self, name: str, params: Sequence[str]) -> Iterator[None]:
        """Within it instructions go to a new VM function, whose parameters are registers 0 and up."""
        if self._current is not None:
            fail("RLX6014", f"function `{name}` begins within `{self._current.name}`")
        self.func(name)
        body = self._current = _Body(name, tuple(params))
        try:
            yield
        finally:
            self._current = None
        start = len(self._instructions)
        self._instructions += body.finish()
        self._define(VMFunction(name, start, len(body.code), body.params, body.registers))

    def func(self, name: str) -> Func:
        """The function of that name as an argument; it may be defined later."""
        return Func(self._names.setdefault(name, len(self._names)))

    def _define(self, function: Function) -> None:
        if function.name in self._defined:
            fail("RLX6014", f"function `{function.name}` is defined twice")
        self._names.setdefault(function.name, len(self._names))
        self._defined[function.name] = function

    # Operands

    def param(self, index: int) -> Register:
        """The register of parameter `index`."""
        return Register(index)

    def register(self) -> Register:
        """A fresh register of the current function."""
        body = self._body()
        body.registers += 1
        return Register(body.registers - 1)

    def imm(self, value: int) -> Arg:
        """An integer argument: immediate, or a constant when it has more than 56 bits."""
        if -(1 << IMMEDIATE_BITS - 1) <= value < 1 << IMMEDIATE_BITS - 1:
            return Immediate(value)
        return self.convert_constant(value)

    def convert_constant(self, value: Any) -> Constant:
        """The pool entry for a value: an array or DLPack tensor (kept as a read-only NDArray, shared with the caller
        where it is contiguous), ShapeTuple, DType, str, int, float, bool, None, or a tuple of these."""
        key = _key(value)
        index = self._constant_index.get(key)
        if index is None:
            index = self._constant_index[key] = len(self._constants)
            # The value is kept alive beside its constant, so that no later array can have the same identity.
            self._constants.append((_constant(value), value))
        return Constant(index)

    def arg(self, value: Any) -> Arg:
        """Any value as an argument: operands stay, ints become immediates, all else constants."""
        if isinstance(value, (Register, Immediate, Constant, Func)):
            return value
        return self.imm(value) if type(value) is int else self.convert_constant(value)

    # Instructions

    def emit_call(self, func: str | Func, args: Sequence[Any] = (), dst: Register | None = None) -> Register:
        """Append a call and return the register of its result: `dst`, or a fresh one (`VOID` drops the result)."""
        body = self._body()
        callee = func if isinstance(func, Func) else self.func(func)
        values = tuple(self.arg(a) for a in args)
        target = self.register() if dst is None else dst
        body.code.append(Call(target, callee.index, values))
        return target

    def emit_ret(self, value: Any) -> None:
        """Append a return of a register (other values are put into one first)."""
        if not isinstance(value, Register) or value == VM:
            value = self.emit_call("vm.builtin.copy", [value])
        self._body().code.append(Ret(value))

    def emit_if(self, cond: Register, false: Label) -> None:
        """Append a branch: go on when `cond` is true, else jump to `false`."""
        body = self._body()
        body.jumps.append((len(body.code), false))
        body.code.append(If(cond, 0))

    def emit_goto(self, target: Label) -> None:
        """Append a jump."""
        body = self._body()
        body.jumps.append((len(body.code), target))
        body.code.append(Goto(0))

    @property
    def position(self) -> int:
        """How many instructions the current function has so far."""
        return len(self._body().code)

    def label(self) -> Label:
        """A new label, not yet placed."""
        return Label()

    def place(self, label: Label) -> None:
        """Let `label` mean the next instruction."""
        label.at = len(self._body().code)

    def get(self, objects: tuple[ObjectCode, ...] = ()) -> Executable:
        """The finished executable; RLX6014 when a reference does not fit."""
        functions = tuple(self._defined.get(name) or PackedFunction(name, _declaration(name)) for name in self._names)
        return Executable(functions, tuple(self._instructions), tuple(c for c, _ in self._constants), objects)

    def _body(self) -> _Body:
        if self._current is None:
            fail("RLX6014", "an instruction outside of a function")
        return self._current


class _Body:
    """The function under construction."""

    def __init__(self, name: str, params: tuple[str, ...]) -> None:
        self.name = name
        self.params = params
        self.registers = len(params)
        self.code: list[Instruction] = []
        self.jumps: list[tuple[int, Label]] = []

    def finish(self) -> list[Instruction]:
        """The instructions, with every jump filled in."""
        for at, label in self.jumps:
            if label.at is None:
                fail("RLX6014", f"`{self.name}` jumps to a label that was never placed")
            jump = self.code[at]
            offset = label.at - at
            self.code[at] = If(jump.cond, offset) if isinstance(jump, If) else Goto(offset)
        return self.code


def _declaration(name: str) -> Declaration | None:
    """What the file says of a packed function that is a C function."""
    found = find_func(name)
    return found.declaration if isinstance(found, CFunction) else None


def _constant(value: Any) -> Any:
    if type(value) is tuple:
        return tuple(_constant(v) for v in value)
    if isinstance(value, np.generic):
        value = array(value)
    elif isinstance(value, np.ndarray) or hasattr(value, "__dlpack__"):
        value = as_tensor(value)
    if isinstance(value, NDArray):
        value.flags.writeable = False  # a program may return a constant, and the next call must find it unchanged
    return value


def _key(value: Any) -> Any:
    """A dictionary key that tells apart constants which differ in type, in bits, or (arrays) in identity."""
    if type(value) is tuple:
        return (tuple, *(_key(v) for v in value))
    if isinstance(value, float):
        return (float, value.hex(), np.signbit(value))
    if value is None or isinstance(value, (bool, int, str, DType)):
        return (type(value), value)
    if isinstance(value, tuple):
        return (type(value), tuple(value))
    return (type(value), id(value))


__all__ = ["VM", "VOID", "ExecBuilder", "Label"]  # the special registers are used together with the builder
