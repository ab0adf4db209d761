"""Executables as text. `exec_parse` reads it back.

The function table in its order (VM functions with their code), then the constant pool, then object code if wanted:

    @main(x, w) registers 4:
      call  vm.builtin.match_shape in: %0, %2, i2, i1, i0, c[0] dst: %void
      if    %3, 2
      goto  -1
      ret   %3

    @vm.builtin.match_shape packed_func;

    @add kernel(x: float32(n, 4), out y: float32(n, 4), s: float32; n) asserts ["n is even"];

    c[0] = "parameter `x` of `main`: R.Tensor((n, 4), \\"float32\\")"
    c[1] = tensor float32(2, 2) [1.0, 2.0, -0.0, 4.5]
    c[2] = tensor float32(64, 10) base64 "…"

Jump offsets count from the jumping instruction.
"""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import numpy as np

from relaxlang.base.dtype import DType
from relaxlang.runtime.executable import (
    VM,
    VOID,
    Arg,
    Call,
    Constant,
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
)
from relaxlang.runtime.kernel_signature import BufferParam, KernelSignature, ScalarParam, dim_text
from relaxlang.runtime.memory import format_bytes
from relaxlang.runtime.ndarray import ShapeTuple, dtype_name

INLINE_ELEMENTS = 32
PLAIN_DTYPES = {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"}
_PLAIN_NAME = re.compile(r"[A-Za-z_][\w.$]*$")


def print_text(ex: Executable, objects: bool = False) -> str:
    """The text of an executable; object code only with `objects`, else a comment in its place."""
    blocks = [_function(ex, f) for f in ex.functions]
    if ex.constants:
        blocks.append("\n".join(f"c[{i}] = {constant_text(c)}" for i, c in enumerate(ex.constants)))
    for code in ex.objects:
        blocks.append(_object(code) if objects else f"# object code: {format_bytes(len(code.code))}, {code.triple}")
    return "\n\n".join(blocks) + "\n"


def name_text(name: str) -> str:
    """A function's or parameter's name, quoted when it is not made of word characters, dots and dollars."""
    return name if _PLAIN_NAME.match(name) else json.dumps(name)


def _function(ex: Executable, function: Function) -> str:
    name = name_text(function.name)
    if isinstance(function, PackedFunction):
        declared = ", ".join(json.dumps(part) for part in function.declaration or ())
        return f"@{name} packed_func({declared});" if declared else f"@{name} packed_func;"
    if isinstance(function, KernelFunction):
        return f"@{name} {signature_text(function.signature)};"
    code = ex.instructions[function.start : function.start + function.count]
    params = ", ".join(name_text(p) for p in function.params)
    head = f"@{name}({params}) registers {function.registers}:"
    return "\n".join([head, *("  " + instruction_text(ex, i) for i in code)])


def signature_text(signature: KernelSignature) -> str:
    """`kernel(x: float32(n, 4), out y: float32(n,), s: int64; n) asserts [...]`."""
    params = ", ".join(_param(p) for p in signature.params)
    symbols = "; " + ", ".join(name_text(s) for s in signature.symbols) if signature.symbols else ""
    asserts = f" asserts {json.dumps(list(signature.messages))}" if signature.messages else ""
    return f"kernel({params}{symbols}){asserts}"


def _param(param: BufferParam | ScalarParam) -> str:
    name = name_text(param.name)
    if isinstance(param, ScalarParam):
        return f"{name}: {param.dtype}"
    dims = ", ".join(dim_text(d) for d in param.dims)
    return f"{'out ' if param.output else ''}{name}: {param.dtype}({dims})"


def instruction_text(ex: Executable, instruction: Instruction) -> str:
    """One instruction."""
    if isinstance(instruction, Call):
        args = ", ".join(arg_text(ex, a) for a in instruction.args)
        name = name_text(ex.functions[instruction.func].name)
        return f"call  {name:<16} in: {args:<12} dst: {_register(instruction.dst)}"
    if isinstance(instruction, Ret):
        return f"ret   {_register(instruction.value)}"
    if isinstance(instruction, If):
        return f"if    {_register(instruction.cond)}, {instruction.false_offset}"
    assert isinstance(instruction, Goto)
    return f"goto  {instruction.offset}"


def arg_text(ex: Executable, arg: Arg) -> str:
    """One operand: `%3`, `%vm`, `i5`, `c[2]`, `f[main]`."""
    if isinstance(arg, Register):
        return _register(arg)
    if isinstance(arg, Immediate):
        return f"i{arg.value}"
    if isinstance(arg, Constant):
        return f"c[{arg.index}]"
    assert isinstance(arg, Func)
    return f"f[{name_text(ex.functions[arg.index].name)}]"


def _register(register: Register) -> str:
    return "%void" if register == VOID else "%vm" if register == VM else f"%{register.index}"


def constant_text(value: Any) -> str:
    """One constant, exact to the bit."""
    if isinstance(value, np.ndarray):
        return _tensor(value)
    if isinstance(value, ShapeTuple):
        return f"shape({', '.join(map(str, value))})"
    if isinstance(value, DType):
        return f"dtype {value.name}"
    if isinstance(value, tuple):
        return f"({''.join(constant_text(v) + ', ' for v in value).rstrip()})"
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, float):
        return _float(value)
    return {None: "none", True: "true", False: "false"}[value] if not _is_int(value) else str(value)


def _is_int(value: Any) -> bool:
    return type(value) is int


def _float(value: float) -> str:
    if np.isfinite(value):
        return repr(value)
    return f'float "{np.float64(value).tobytes().hex()}"'  # infinities and every NaN by their bits


def _tensor(value: np.ndarray[Any, Any]) -> str:
    name = dtype_name(value.dtype)
    head = f"tensor {name}({', '.join(map(str, value.shape))})"
    plain = name in PLAIN_DTYPES and value.size <= INLINE_ELEMENTS and bool(np.isfinite(value).all())
    if plain:
        # str of a numpy scalar is the shortest decimal that gives the same value in this dtype.
        return f"{head} [{', '.join(str(v).lower() for v in value.reshape(-1))}]"
    data = value.astype(value.dtype.newbyteorder("<"), copy=False).tobytes()
    return f'{head} base64 "{base64.b64encode(data).decode()}"'


def _object(code: ObjectCode) -> str:
    fields = " ".join(json.dumps(s) for s in (code.triple, code.cpu, code.features))
    return f'object {fields} base64 "{base64.b64encode(code.code).decode()}"'
