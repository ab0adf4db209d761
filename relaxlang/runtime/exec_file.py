"""The binary form of executables (`.rlxe`).

    magic "\\x89RLXE\\r\\n\\x1a" · uint32 format version · uint32 0 · uint64 payload size · SHA-256 of payload · payload

All numbers are little-endian. The payload is one tagged value (`exec_values`): a tuple of the function table, the
code as a one-dimensional int64 tensor, the constants and the object code. An instruction is its opcode and operands
as 64-bit words (Call: dst, function, count, arguments; Ret: register; If: register, offset; Goto: offset); an
argument has its kind in the highest byte (0 register, 1 immediate, 2 constant, 3 function) and a signed 56-bit value
below. Nothing in a file is executed by reading it.
"""

from __future__ import annotations

import hashlib
import os
import struct
from typing import Any, NoReturn

import numpy as np

from relaxlang.base.diagnostics import DiagnosticError, fail
from relaxlang.runtime.exec_values import ValueReader, encode_value
from relaxlang.runtime.executable import (
    FORMAT_VERSION,
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
from relaxlang.runtime.kernel_signature import BufferParam, KernelSignature, ScalarParam
from relaxlang.runtime.ndarray import wrap

MAGIC = b"\x89RLXE\r\n\x1a"
_HEADER = struct.Struct("<8sIIQ32s")
_ARG_KINDS: tuple[type, ...] = (Register, Immediate, Constant, Func)
_CALL, _RET, _GOTO, _IF = range(4)


def read_file(path: str | os.PathLike[str]) -> bytes:
    """The content of a file; RLX6019 when it cannot be read."""
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        fail("RLX6019", f"cannot read `{os.fspath(path)}`: {reason.lower()}")


def encode(ex: Executable) -> bytes:
    """The content of a file for `ex`."""
    payload = encode_value(as_value(ex))
    return _HEADER.pack(MAGIC, _version(ex), 0, len(payload), hashlib.sha256(payload).digest()) + payload


def as_value(ex: Executable) -> tuple[Any, ...]:
    """An executable as a value that `encode_value` takes."""
    words = wrap(np.array(_code_words(ex.instructions), np.int64))
    functions = tuple(_function_value(f) for f in ex.functions)
    return functions, words, ex.constants, tuple((o.code, o.triple, o.cpu, o.features) for o in ex.objects)


def from_value(value: Any) -> Executable:
    """The executable that a value of `as_value` says. Python's errors for another value, RLX6014 for a program that is
    none."""
    functions, words, constants, objects = value
    table = tuple(_function(f) for f in functions)
    return Executable(table, _instructions(words.tolist()), constants, tuple(ObjectCode(*o) for o in objects))


def _version(ex: Executable) -> int:
    """The first version that can say what an executable holds: what calls no C functions is read by older releases."""
    declared = any(isinstance(f, PackedFunction) and f.declaration is not None for f in ex.functions)
    return FORMAT_VERSION if declared else 1


def decode(data: bytes | memoryview, name: str) -> Executable:
    """The executable in a file's content; RLX6011 when it is damaged, RLX6012 when it is too new."""
    view = memoryview(data)
    if len(view) < _HEADER.size:
        _damaged(name, "it is cut off" if MAGIC.startswith(bytes(view[:8])) and len(view) else "it is no executable")
    magic, version, reserved, size, digest = _HEADER.unpack(view[: _HEADER.size])
    if magic != MAGIC:
        _damaged(name, "it is no executable")
    if version > FORMAT_VERSION:
        fail(
            "RLX6012",
            f"`{name}` has format version {version}, this relaxlang reads up to {FORMAT_VERSION}",
            help="upgrade relaxlang, or build the program again",
        )
    payload = view[_HEADER.size :]
    if version < 1 or reserved:
        _damaged(name, "its header is wrong")
    if len(payload) != size:
        _damaged(name, f"it should hold {size} bytes of payload, but has {len(payload)}")
    if hashlib.sha256(payload).digest() != digest:
        _damaged(name, "its checksum does not fit")
    try:
        return from_value(ValueReader(payload).read_all())
    except DiagnosticError as error:
        _damaged(name, error.diagnostics[0].message)
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        _damaged(name, f"its structure is wrong ({error})")


def _damaged(name: str, why: str) -> NoReturn:
    fail("RLX6011", f"`{name}` is damaged: {why}")


# The function table


def _function_value(function: Function) -> tuple[Any, ...]:
    if isinstance(function, PackedFunction):
        return (0, function.name, *(function.declaration or ()))
    if isinstance(function, VMFunction):
        return (1, function.name, function.start, function.count, function.params, function.registers)
    signature = function.signature
    params = tuple(
        (p.name, p.dtype, p.dims, p.output) if isinstance(p, BufferParam) else (p.name, p.dtype)
        for p in signature.params
    )
    return (2, signature.name, params, signature.symbols, signature.messages)


def _function(value: tuple[Any, ...]) -> Function:
    kind, name, *rest = value
    _strings(name)
    if kind == 0 and not rest:
        return PackedFunction(name)
    if kind == 0:
        _strings(*rest)
        return PackedFunction(name, Declaration(*rest))
    if kind == 1:
        start, count, params, registers = rest
        _strings(*params)
        return VMFunction(name, start + 0, count + 0, params, registers + 0)
    if kind != 2:
        raise ValueError(f"there is no function kind {kind}")
    params, symbols, messages = rest
    _strings(*symbols, *messages)
    return KernelFunction(KernelSignature(name, tuple(_param(p) for p in params), symbols, messages))


def _param(value: tuple[Any, ...]) -> BufferParam | ScalarParam:
    _strings(value[0], value[1])
    if len(value) == 2:
        return ScalarParam(*value)
    return BufferParam(*value)


def _strings(*values: Any) -> None:
    if not all(isinstance(v, str) for v in values):
        raise TypeError("a name is no string")


# Code


def _code_words(instructions: tuple[Instruction, ...]) -> list[int]:
    words: list[int] = []
    for instruction in instructions:
        if isinstance(instruction, Call):
            args = [write_operand(a) for a in instruction.args]
            words += [_CALL, instruction.dst.index, instruction.func, len(args), *args]
        elif isinstance(instruction, Ret):
            words += [_RET, instruction.value.index]
        elif isinstance(instruction, If):
            words += [_IF, instruction.cond.index, instruction.false_offset]
        else:
            words += [_GOTO, instruction.offset]
    return words


def write_operand(arg: Arg) -> int:
    """An operand as a word of 64 bits."""
    value = arg.value if isinstance(arg, Immediate) else arg.index
    return _ARG_KINDS.index(type(arg)) << 56 | value & (1 << 56) - 1


def _instructions(words: list[int]) -> tuple[Instruction, ...]:
    made: list[Instruction] = []
    at = 0
    while at < len(words):
        op = words[at]
        if op == _CALL:
            dst, func, count = words[at + 1 : at + 4]
            args = words[at + 4 : at + 4 + count] if count >= 0 else []
            if len(args) != count:
                raise ValueError("an instruction is cut off")
            made.append(Call(Register(dst), func, tuple(read_operand(w) for w in args)))
            at += 4 + count
        elif op == _RET:
            made.append(Ret(Register(words[at + 1])))
            at += 2
        elif op == _IF:
            made.append(If(Register(words[at + 1]), words[at + 2]))
            at += 3
        elif op == _GOTO:
            made.append(Goto(words[at + 1]))
            at += 2
        else:
            raise ValueError(f"there is no opcode {op}")
    return tuple(made)


def read_operand(word: int) -> Arg:
    """The operand that `write_operand` wrote; ValueError for a word that is none."""
    kind, value = word >> 56, word & (1 << 56) - 1
    if not 0 <= kind < len(_ARG_KINDS):
        raise ValueError(f"there is no operand kind {kind}")
    if value >> 55:
        value -= 1 << 56
    arg: Arg = _ARG_KINDS[kind](value)
    return arg
