"""Calls of kernels by address: int32 f(buffer pointers, int64 symbols, scalars)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from relaxlang.base.dtype import dtype
from relaxlang.base.record import record
from relaxlang.codegen.lltypes import float_literal, memory_type
from relaxlang.codegen.native import table
from relaxlang.codegen.native.checks import DONE, is_float, read_array
from relaxlang.codegen.native.emitter import Emitter
from relaxlang.codegen.native.frame import LIKELY
from relaxlang.codegen.native.kinds import OBJECT, Bool, Heap, Int, Kind, Object, Tensor, Value
from relaxlang.runtime.executable import Arg, Call
from relaxlang.runtime.kernel_signature import BufferParam, KernelSignature, ScalarParam

LOCKED = 32 << 10
"""Bytes of tensors up to which a kernel keeps the interpreter's lock: giving it up and taking it back costs as much as
a kernel on a few KiB."""


@record(frozen=False)
class _Argument:
    """An argument as the kernel takes it: LLVM type and operand; a buffer has dimensions."""

    type: str
    operand: str
    dims: tuple[str, ...] = ()


def call_kernel(
    em: Emitter, call: Call, signature: KernelSignature, given: Sequence[Arg], scalars: tuple[str, ...] = ()
) -> Value | None:
    """A call of a kernel on `given`; `scalars` are operands for the scalar parameters behind them. None when an
    argument needs a conversion: then Python does it."""
    params = signature.params
    if len(given) + len(scalars) != len(params):
        return None
    values = [em.operand(a) for a in given]
    values += [Value(Int(), (s,)) for s in scalars]
    literals = [em.literal(a) for a in given] + [None] * len(scalars)
    if not all(_fits(p, v.kind, c) for p, v, c in zip(params, values, literals, strict=True)):
        return None
    slow = _check_objects(em, params, values, literals)
    arguments = [_argument(em, p, v, c) for p, v, c in zip(params, values, literals, strict=True)]
    _run(em, signature, arguments, values)
    if slow is not None:
        done = em.at.label("called")
        em.at.branch(done)
        em.at.start(slow)
        em.drop_result(em.step(call))
        em.at.start(done)
    return DONE


def _fits(param: BufferParam | ScalarParam, kind: Kind, literal: Any) -> bool:
    """Whether a value of a kind can be an argument, an object perhaps only after a look at it."""
    if isinstance(param, BufferParam):
        if isinstance(kind, Heap):
            return param.dtype == "int64" and len(param.dims) == 1
        if isinstance(kind, Tensor):
            return kind.ndim == len(param.dims) and kind.dtype == param.dtype
        return isinstance(kind, Object)
    of = dtype(param.dtype)
    if of.is_float:
        return of.bits in (32, 64) and isinstance(kind, (Int, Object))
    return isinstance(kind, (Int, Bool)) and (of.is_integer or of.is_bool) and of.bits <= 64


def _check_objects(
    em: Emitter, params: Sequence[BufferParam | ScalarParam], values: list[Value], literals: list[Any]
) -> str | None:
    """See to it that objects are arrays or floats that the kernel can take, and read them; returns the label to go to
    when they are not, None when there are no objects."""
    slow = None
    for index, (param, value) in enumerate(zip(params, values, strict=True)):
        if not isinstance(value.kind, Object) or isinstance(literals[index], float):
            continue
        slow, go = slow or em.at.label("python"), em.at.label("right")
        if isinstance(param, ScalarParam):
            em.at.branch_if(is_float(em, value.parts[0]), go, slow, LIKELY)
            em.at.start(go)
            continue
        good = em.at.call(
            "i1",
            em.program.is_array(),
            ("ptr", value.parts[0]),
            ("ptr", em.object(table.element_type(param.dtype))),
            ("i32", str(len(param.dims))),
        )
        em.at.branch_if(good, go, slow, LIKELY)
        em.at.start(go)
        values[index] = read_array(em, value.parts[0], Tensor(param.dtype, len(param.dims), False, borrowed=True))
    return slow


def _argument(em: Emitter, param: BufferParam | ScalarParam, value: Value, literal: Any) -> _Argument:
    kind = value.kind
    if isinstance(param, BufferParam):
        if isinstance(kind, Heap):
            return _Argument("ptr", value.parts[0], (str(kind.size),))
        return _Argument("ptr", value.parts[0], value.dims)
    of = dtype(param.dtype)
    memory = memory_type(of)
    if of.is_float:
        if isinstance(literal, float):
            return _Argument(memory, float_literal(literal, double=memory == "double"))
        if isinstance(kind, Object):
            read = em.at.call("double", em.program.function("PyFloat_AsDouble"), ("ptr", value.parts[0]))
            return _Argument(memory, read if memory == "double" else em.at.value(f"fptrunc double {read} to float"))
        return _Argument(memory, em.at.value(f"sitofp i64 {value.parts[0]} to {memory}"))
    operand = value.parts[0]
    if isinstance(kind, Bool):
        operand = em.at.value(f"zext i1 {operand} to i64")
    if memory != "i64":
        operand = em.at.value(f"trunc i64 {operand} to {memory}")
    return _Argument(memory, operand)


def _run(em: Emitter, signature: KernelSignature, arguments: list[_Argument], values: list[Value]) -> None:
    """The call itself, with the interpreter's lock given up where that pays, and the look at its status."""
    buffers = [a for a, p in zip(arguments, signature.params) if isinstance(p, BufferParam)]
    scalars = [a for a, p in zip(arguments, signature.params) if isinstance(p, ScalarParam)]
    symbols = [("i64", arguments[index].dims[axis]) for index, axis in signature.sources()]
    address = em.at.value(em.program.load(table.kernel_address(signature.name)))
    passed = [("ptr", b.operand) for b in buffers] + symbols + [(s.type, s.operand) for s in scalars]
    nbytes = _bytes(em, signature, arguments)
    saved = "null"
    if not nbytes.isdigit() or int(nbytes) > LOCKED:
        saved = em.at.call("ptr", em.program.unlock(LOCKED), ("i64", nbytes))
    start = em.at.call("i64", em.program.clock()) if em.program.observed else ""
    status = em.at.call("i32", address, *passed)
    end = em.at.call("i64", em.program.clock()) if em.program.observed else ""
    signals = "0"
    if saved != "null":
        signals = em.at.call("i32", em.program.lock(), ("ptr", saved))
    failed, go = em.at.label("failed"), em.at.label("ran")
    either = status if signals == "0" else em.at.value(f"or i32 {status}, {signals}")
    em.at.branch_if(em.at.value(f"icmp eq i32 {either}, 0"), go, failed, LIKELY)
    em.at.start(failed)
    if signals != "0":
        interrupted, mine = em.at.value(f"icmp ne i32 {signals}, 0"), em.at.label("assertion")
        em.at.branch_if(interrupted, "fail", mine)
        em.at.start(mine)
    shown = [_shown(em, v) for v, p in zip(values, signature.params) if isinstance(p, ScalarParam)]
    number = ("i64", em.at.value(f"sext i32 {status} to i64"))
    em.refuse(table.kernel_failed(signature.name), [number, *symbols, *shown])
    em.at.start(go)
    if any(isinstance(v.kind, Heap) for v in values):
        em.heap_changed()
    if em.program.observed:
        numbers = [em.at.value(f"sub i64 {end}, {start}"), *(d for b in buffers for d in b.dims)]
        told = em.call_python(table.observe(em.index, em.pc), [Value(Int(), (n,)) for n in numbers])
        em.drop_result(Value(OBJECT, (em.checked(told),)))


def _shown(em: Emitter, value: Value) -> tuple[str, str]:
    """A scalar as it is handed to whoever raises the error: an integer or an object."""
    if isinstance(value.kind, Bool):
        return "i64", em.at.value(f"zext i1 {value.parts[0]} to i64")
    return "i64" if isinstance(value.kind, Int) else "ptr", value.parts[0]


def _bytes(em: Emitter, signature: KernelSignature, arguments: list[_Argument]) -> str:
    """How much memory a kernel touches, which tells how long it runs; a literal where that is known."""
    fixed, moving = 0, []
    for argument, param in zip(arguments, signature.params):
        if not isinstance(param, BufferParam):
            continue
        size, open_dims = dtype(param.dtype).itemsize, []
        for dim in argument.dims:
            if dim.isdigit():
                size *= int(dim)
            else:
                open_dims.append(dim)
        if not open_dims:
            fixed += size
        elif size:
            total = str(size)
            for dim in open_dims:
                total = em.at.value(f"mul i64 {total}, {dim}")
            moving.append(total)
    if fixed > LOCKED:
        return str(fixed)
    total = str(fixed)
    for more in moving:
        total = em.at.value(f"add i64 {total}, {more}")
    return total
