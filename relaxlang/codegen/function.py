"""From a flat PrimFunc to an LLVM function with the kernel's C signature.

    i32 name(ptr noalias buffer…, i64 symbol…, scalar…)

A value that the function returns goes to memory, at a pointer after those of the buffers: a buffer without dimensions.
A dimension of a parameter that is a variable standing alone, and no parameter itself, is a symbol. Buffers are
contiguous: a stride that is such a variable gets the row-major value, an element offset 0; anything else is asserted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from relaxlang.base.dtype import DType
from relaxlang.base.record import record
from relaxlang.codegen.algebra import Num
from relaxlang.codegen.casts import convert
from relaxlang.codegen.context import KernelContext
from relaxlang.codegen.debug_lines import DebugLines
from relaxlang.codegen.lltypes import is_narrow, memory_type
from relaxlang.codegen.stmt import StmtEmitter
from relaxlang.codegen.target import Target
from relaxlang.codegen.text import symbol
from relaxlang.ir import prim
from relaxlang.ir.prim import INT64, PrimExpr, Var
from relaxlang.ir.tir import Buffer, PrimFunc
from relaxlang.runtime.kernel_signature import SYMBOL_PREFIX

if TYPE_CHECKING:
    from relaxlang.codegen.shared_bodies import SharedBodies

PREFIX = SYMBOL_PREFIX


@record
class KernelText:
    """The LLVM module of one kernel: its text lacks only target lines (`render`)."""

    symbol: str
    context: KernelContext

    def render(self, triple: str, layout: str) -> str:
        """The module for a platform."""
        return self.context.text(triple, layout)


def emit_kernel(
    name: str,
    func: PrimFunc,
    target: Target,
    functions: Mapping[str, PrimFunc],
    debug: DebugLines | None = None,
    shared: SharedBodies | None = None,
) -> KernelText:
    """The LLVM module of a lowered PrimFunc; `functions` are the lowered PrimFuncs that it may call, `debug` knows the
    lines of its statements in a text, `shared` the loops that others of them have too."""
    context = KernelContext(target, functions, debug=debug, shared=shared)
    context.module.fresh(PREFIX + name)
    emit_function(context, func, PREFIX + name, "", entry=True)
    return KernelText(PREFIX + name, context)


def implicit_dims(func: PrimFunc) -> list[Var]:
    """The symbols of a function: variables that stand alone as a dimension of a parameter, in order of occurrence."""
    params, found = set(func.params), dict[Var, None]()
    for param in func.params:
        buffer = func.buffer_map.get(param)
        for dim in buffer.shape if buffer is not None else ():
            if isinstance(dim, Var) and dim not in params:
                found[dim] = None
    return list(found)


def scalar_params(func: PrimFunc) -> list[Var]:
    """The parameters passed by value, in order."""
    return [p for p in func.params if p not in func.buffer_map]


def result_type(func: PrimFunc) -> DType | None:
    """The type of the value that a function returns; None when it returns nothing."""
    return None if func.ret_type is None or func.ret_type.name == "void" else func.ret_type


def contiguous_layout(buffer: Buffer) -> list[tuple[PrimExpr, PrimExpr]]:
    """The strides and the element offset that a buffer states, each with that of a contiguous tensor of its shape."""
    expected: list[PrimExpr] = []
    run: PrimExpr = prim.IntImm(INT64, 1)
    for dim in reversed(buffer.shape):
        expected.insert(0, run)
        run = run * prim.cast(dim, INT64)
    offset = buffer.elem_offset
    return [*zip(buffer.strides, expected), *([(offset, prim.IntImm(INT64, 0))] if offset is not None else [])]


def same_constant(a: PrimExpr, b: PrimExpr) -> bool:
    """Whether two expressions are one constant."""
    return isinstance(a, prim.IntImm) and isinstance(b, prim.IntImm) and a.value == b.value


NOT_CONTIGUOUS = "`{}` has other strides or another offset than a contiguous tensor"


def emit_function(context: KernelContext, func: PrimFunc, name: str, linkage: str, *, entry: bool) -> None:
    """Write one function; `entry` functions are called from outside and check what they assume."""
    at = context.function(name, func)
    em = StmtEmitter(context, at, {})
    em.place = func
    head: list[str] = []
    for param in func.params:
        buffer = func.buffer_map.get(param)
        if buffer is not None:
            ref = f"%p{len(head)}"
            head.append(f"ptr noalias {ref}")
            em.env[buffer.data] = em.env[param] = ref
    outer, context.result = context.result, result_type(func)
    if context.result is not None:
        head.append("ptr noalias %result")
    for var in implicit_dims(func):
        ref = f"%p{len(head)}"
        head.append(f"i64 {ref}")
        narrow = convert(em.value(ref, INT64), INT64, var.dtype)
        em.env[var] = narrow.ref
        if var.dtype.bits < 64 and entry:
            back = convert(narrow, var.dtype, INT64)
            em.require(back.equals(Num(at, ref, "i64")).ref, context.status(f"`{var.name}` does not fit {var.dtype}"))
    for param in scalar_params(func):
        ref = f"%p{len(head)}"
        head.append(f"{memory_type(param.dtype)} {ref}")
        em.env[param] = em.from_memory(ref, param.dtype) if _stored(param) else ref
        if param.dtype.is_handle:
            context.derived.add(param)
    for param in func.params:
        if param in func.buffer_map:
            _bind_layout(em, func.buffer_map[param], check=entry)
    em.stmt(func.body)
    em.leave("0")
    context.result = outer
    attributes = 'nounwind "no-trapping-math"="true"' + context.width_attribute + context.attribute(at)
    context.module.add(at.text(f"define {linkage}i32 {symbol(name)}({', '.join(head)}) {attributes}"))


def _stored(param: Var) -> bool:
    return param.dtype.is_bool or is_narrow(param.dtype) or param.dtype.bits < 8


def _bind_layout(em: StmtEmitter, buffer: Buffer, *, check: bool) -> None:
    """Give stride and offset variables the values of a contiguous buffer, and require other strides to agree."""
    for given, wanted in contiguous_layout(buffer):
        if isinstance(given, Var) and given not in em.env:
            em.env[given] = em.expr(prim.cast(wanted, given.dtype))
        elif check and not same_constant(given, wanted):
            same = em.num(prim.cast(given, INT64)).equals(em.num(wanted))
            em.require(same.ref, em.context.status(NOT_CONTIGUOUS.format(buffer.name)))
