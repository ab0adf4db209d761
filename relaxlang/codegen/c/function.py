"""From a flat PrimFunc to a C function with the kernel's signature (see `codegen.function`)."""

from __future__ import annotations

from collections.abc import Mapping

from relaxlang.arith.facts import NATURAL
from relaxlang.codegen.c.expr import ExprWriter
from relaxlang.codegen.c.stmt import StmtWriter
from relaxlang.codegen.c.types import declare, identifier, memory_type, value_type
from relaxlang.codegen.c.writer import NOINLINE, PRIMARY, C, FileNeeds, call, cast
from relaxlang.codegen.calls import callee_of
from relaxlang.codegen.function import (
    NOT_CONTIGUOUS,
    contiguous_layout,
    implicit_dims,
    result_type,
    same_constant,
    scalar_params,
)
from relaxlang.codegen.signature import written_memory
from relaxlang.ir import prim
from relaxlang.ir.prim import INT64, PrimExpr, Var
from relaxlang.ir.tir import Buffer, PrimFunc


def prototype(func: PrimFunc, name: str, functions: Mapping[str, PrimFunc], used: dict[Var, str] | None = None) -> str:
    """The head of the function: `int32_t name(const float *restrict A, …)`. `used` receives the parameters' names."""
    names: set[str] = set()
    written, parts = written_memory(func, functions), []

    def one(kind: str, var: Var, hint: str) -> str:
        made = _fresh(identifier(hint), names)
        if used is not None:
            used[var] = made
        return declare(kind, made)

    for param in func.params:
        buffer = func.buffer_map.get(param)
        if buffer is not None:
            const = "" if buffer.data in written else "const "
            parts.append(one(f"{const}{memory_type(buffer.dtype)} *restrict ", buffer.data, buffer.name))
    result = result_type(func)
    if result is not None:
        names.add("result")
        parts.append(f"{memory_type(result)} *restrict result")
    parts += [one("int64_t", var, var.name) for var in implicit_dims(func)]
    for param in scalar_params(func):
        pointer = param.pointer.element if param.pointer is not None else None
        kind = value_type(param.dtype)
        if pointer is not None and pointer.name != "void":
            kind = f"{memory_type(pointer)} *"
        elif param.dtype.is_float and param.dtype.bits < 32:
            kind = memory_type(param.dtype)
        parts.append(one(kind, param, param.name))
    return f"int32_t {name}({', '.join(parts) or 'void'})"


def _fresh(hint: str, names: set[str]) -> str:
    made, n = hint, 0
    while made in names:
        n += 1
        made = f"{hint}_{n}"
    names.add(made)
    return made


def write_function(
    needs: FileNeeds, func: PrimFunc, name: str, functions: dict[str, PrimFunc], names: dict[str, str], *, entry: bool
) -> list[str]:
    """The lines of a function's definition; `entry` functions are called from outside and check what they assume."""
    w = StmtWriter(needs, functions, names)
    w.place = func
    params: dict[Var, str] = {}
    head = prototype(func, name, functions, params)
    w.result = result_type(func)
    w.out.names = {*params.values(), *(["result"] if w.result is not None else [])}
    w.env.update(params)
    for param, buffer in func.buffer_map.items():
        w.env[param] = params[buffer.data]
        w.kinds[param] = w.kinds[buffer.data] = memory_type(buffer.dtype)
    for var in implicit_dims(func):
        w.analyzer.update(var, NATURAL)
        _narrow_dim(w, var, check=entry)
    for param in scalar_params(func):
        if param.pointer is not None:
            w.kinds[param] = memory_type(param.pointer.element)
        if param.dtype.is_float and param.dtype.bits < 32:
            w.env[param] = w.keep(w.from_memory(C(params[param]), param.dtype), param.dtype, param.name).text
    for param in func.params:
        if param in func.buffer_map:
            _bind_layout(w, func.buffer_map[param], check=entry)
    w.stmt(func.body)
    lines = w.out.lines
    if not lines or not lines[-1].startswith("  return "):
        lines.append("  return 0;")
    return [("" if entry else f"static {NOINLINE} ") + head + " {", *lines, "}"]


def _narrow_dim(w: StmtWriter, var: Var, *, check: bool) -> None:
    if var.dtype.bits == 64:
        return
    wide = w.env[var]
    if check:
        w.require(
            f"{wide} == ({value_type(var.dtype)}){wide}", w.needs.status(f"`{var.name}` does not fit {var.dtype}")
        )
    w.env[var] = w.keep(cast(value_type(var.dtype), C(wide)), var.dtype, var.name).text


def _bind_layout(w: StmtWriter, buffer: Buffer, *, check: bool) -> None:
    """Give stride and offset variables the values of a contiguous buffer, and require other strides to agree."""
    for given, wanted in contiguous_layout(buffer):
        if isinstance(given, Var) and given not in w.env:
            w.env[given] = w.keep(w.index(prim.cast(wanted, given.dtype)), given.dtype, given.name).text
        elif check and not same_constant(given, wanted):
            same = f"{w.index(prim.cast(given, INT64)).at(PRIMARY)} == {w.index(wanted).at(PRIMARY)}"
            w.require(same, w.needs.status(NOT_CONTIGUOUS.format(buffer.name)))


def call_function(w: ExprWriter, e: prim.Call, name: str) -> C:
    """A call of another PrimFunc; its status, when not 0, is the caller's failure."""
    assert isinstance(w, StmtWriter)
    func = callee_of(e, name, w.functions, w.fail)
    given = dict(zip(func.params, e.args))
    args = [_buffer_argument(w, func.buffer_map[p], given[p]) for p in func.params if p in func.buffer_map]
    result = result_type(func)
    slot = ""
    if result is not None:
        slot = w.out.name("returned")
        w.out.add(f"{memory_type(result)} {slot} = 0;")
        args.append(C(f"&{slot}"))
    args += [w.to_memory(w.expr(given[p]), p.dtype) for p in scalar_params(func)]
    status = w.out.name("status")
    w.out.add(f"const int32_t {status} = {call(w.names[name], *args).text};")
    w.leave_if(f"{status} != 0", status)
    return C("0") if result is None else w.from_memory(C(slot), result)


def _buffer_argument(w: ExprWriter, buffer: Buffer, value: PrimExpr) -> C:
    made, kind = w.expr(value), memory_type(buffer.dtype)
    return made if isinstance(value, Var) and w.kinds.get(value) == kind else cast(f"{kind} *", made)
