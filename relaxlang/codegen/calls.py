"""Calls: other functions of the module, C functions, LLVM intrinsics; pointers for them; printing."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NoReturn

from relaxlang.base.dtype import DType
from relaxlang.base.suggest import did_you_mean
from relaxlang.codegen.algebra import Num
from relaxlang.codegen.expr import ExprEmitter
from relaxlang.codegen.lltypes import memory_type, value_type
from relaxlang.codegen.text import FunctionText, symbol
from relaxlang.ir import prim
from relaxlang.ir.tir import PrimFunc

# LLVM intrinsics that may be called by name: number of operands. All are overloaded by the type of the first.
_LLVM = {
    "fabs": 1, "sqrt": 1, "floor": 1, "ceil": 1, "trunc": 1, "rint": 1, "nearbyint": 1, "round": 1, "roundeven": 1,
    "fma": 3, "fmuladd": 3, "minnum": 2, "maxnum": 2, "minimum": 2, "maximum": 2, "copysign": 2, "ctpop": 1,
    "bswap": 1, "bitreverse": 1, "smax": 2, "smin": 2, "umax": 2, "umin": 2, "sadd.sat": 2, "uadd.sat": 2,
    "ssub.sat": 2, "usub.sat": 2, "fshl": 3, "fshr": 3,
}  # fmt: skip


C_NAME = re.compile(r"[A-Za-z_$.][\w$.]*\Z", re.ASCII)
# Functions with variable arguments are called in a way of their own: number of arguments before these.
_VARIADIC = {"printf": 1, "fprintf": 2, "sprintf": 2, "snprintf": 3}


def by_lane(em: ExprEmitter, of: DType, args: list[Num], one: Callable[[FunctionText, list[Num]], Num]) -> Num:
    """`one` applied to each lane of vectors, or once to scalars."""
    if of.lanes == 1:
        return one(em.at, args)
    made, kind = "poison", value_type(of)
    for lane in range(of.lanes):
        parts = [Num(em.at, em.at.value(f"extractelement {a.type} {a.ref}, i64 {lane}"), a.scalar) for a in args]
        value = one(em.at, parts)
        made = em.at.value(f"insertelement {kind} {made}, {value.type} {value.ref}, i64 {lane}")
    return Num(em.at, made, kind)


def callee_of(e: prim.Call, name: str, functions: Mapping[str, PrimFunc], fail: Callable[..., NoReturn]) -> PrimFunc:
    """The PrimFunc that a call names. RLX5019 when it does not exist, or cannot be called with these arguments."""
    from relaxlang.codegen.function import implicit_dims

    func = functions.get(name)
    if func is None:
        near = did_you_mean(name, functions)
        fail("RLX5019", f"there is no PrimFunc `{name}` to call", e, help=f"did you mean `{near}`?" if near else "")
    if len(e.args) != len(func.params):
        fail("RLX5019", f"`{name}` has {len(func.params)} parameters and is called with {len(e.args)} arguments", e)
    dims = implicit_dims(func)
    if dims:
        help = f"make `{dims[0].name}` a parameter of `{name}`"
        fail("RLX5019", f"`{name}` has the symbolic dimension `{dims[0].name}`, which a call cannot give", e, help=help)
    for param, arg in zip(func.params, e.args):
        if arg.dtype is not param.dtype:
            fail("RLX5019", f"parameter `{param.name}` of `{name}` is a {param.dtype}, not a {arg.dtype}", e)
    return func


def call_function(em: ExprEmitter, e: prim.Call, name: str) -> str:
    """A call of another PrimFunc of the module; its status, when not 0, is the caller's failure."""
    from relaxlang.codegen.function import emit_function, result_type, scalar_params

    context = em.context
    func = callee_of(e, name, context.functions, em.fail)
    if name not in context.callees:
        context.callees[name] = context.module.fresh(f"rlx.callee.{name}")
        emit_function(context, func, context.callees[name], "internal ", entry=False)
    given = dict(zip(func.params, e.args))
    order = [p for p in func.params if p in func.buffer_map] + scalar_params(func)
    args: list[tuple[str, str]] = []
    result, slot = result_type(func), ""
    for param in order:
        args.append((memory_type(param.dtype), em.to_memory(em.expr(given[param]), param.dtype)))
    if result is not None:
        slot = em.at.alloca(f"alloca {memory_type(result)}")
        args.insert(len(func.buffer_map), ("ptr", slot))
    em.assume_zero(em.at.call("i32", symbol(context.callees[name]), *args))
    if result is None:
        return "0"
    return em.from_memory(em.at.value(f"load {memory_type(result)}, ptr {slot}"), result)


def _extern(em: ExprEmitter, e: prim.Call) -> str:
    name = e.args[0] if e.args else None
    if not isinstance(name, prim.StringImm):
        em.fail("RLX5013", f"`T.{e.op}` needs the function's name as first argument", e)
    if not C_NAME.match(name.value) or name.value.startswith("llvm."):
        em.fail("RLX5013", f"`{name.value}` is not the name of a C function", e)
    args = [(value_type(a.dtype), em.expr(a)) for a in e.args[1:]]
    for (kind, _), arg in zip(args, e.args[1:]):
        if arg.dtype.lanes > 1 or (arg.dtype.is_float and arg.dtype.bits < 32) or kind == "void":
            em.fail("RLX5016", f"a {arg.dtype} cannot be passed to the C function `{name.value}`", e)
    result, kinds = value_type(e.dtype), [kind for kind, _ in args]
    fixed = _VARIADIC.get(name.value)
    if fixed is None:
        return em.at.call(result, em.module.external(name.value, result, kinds), *args) or "0"
    function = em.module.external(name.value, result, [*kinds[:fixed], "..."])
    return em.at.call(f"{result} ({', '.join([*kinds[:fixed], '...'])})", function, *args) or "0"


def _llvm_intrinsic(em: ExprEmitter, e: prim.Call) -> str:
    name = e.args[0] if e.args else None
    if not isinstance(name, prim.StringImm):
        em.fail("RLX5013", f"`T.{e.op}` needs the intrinsic's name, such as `llvm.fma`, as first argument", e)
    # Older programs state the number of operands that determine the overload after the name.
    args = [a for i, a in enumerate(e.args[1:]) if not (i == 0 and a.dtype.name == "uint32" and len(e.args) > 2)]
    base = name.value.removeprefix("llvm.")
    base = base if base in _LLVM else base.rpartition(".")[0]
    if base not in _LLVM:
        near = did_you_mean(name.value, [f"llvm.{n}" for n in _LLVM])
        em.fail(
            "RLX5013",
            f"the LLVM intrinsic `{name.value}` is not available",
            e,
            help=f"did you mean `{near}`?" if near else "",
        )
    if len(args) != _LLVM[base] or any(a.dtype is not e.dtype for a in args):
        em.fail("RLX5013", f"`llvm.{base}` takes {_LLVM[base]} operands of its result's type {e.dtype}", e)
    values = [em.num(a) for a in args]
    return values[0].call(f"llvm.{base}", *values[1:]).ref


# --- pointers ---------------------------------------------------------------------------------------------------------
def _address_of(em: ExprEmitter, e: prim.Call) -> str:
    target = e.args[0]
    if not isinstance(target, prim.BufferLoad):
        em.fail("RLX5013", "`T.address_of` needs an element of a buffer", e)
    return em.address(target.buffer, target.indices)


def _access_ptr(em: ExprEmitter, e: prim.Call) -> str:
    model, data, offset = e.args[:3]
    if not isinstance(data, prim.Var):
        em.fail("RLX5013", "`T.tvm_access_ptr` needs a buffer's data as second argument", e)
    index = em.num(prim.cast(offset, prim.INT64))
    return em.at.value(f"getelementptr inbounds {memory_type(model.dtype)}, ptr {em.pointer(data)}, i64 {index.ref}")


def _is_null(em: ExprEmitter, e: prim.Call) -> str:
    return em.at.value(f"icmp eq ptr {em.expr(e.args[0])}, null")


# --- printing ---------------------------------------------------------------------------------------------------------
def _print(em: ExprEmitter, e: prim.Call) -> str:
    parts, args = [], []
    for arg in e.args:
        of = arg.dtype
        if isinstance(arg, prim.StringImm):
            parts.append(arg.value.replace("%", "%%"))
        elif of.lanes > 1:
            em.fail("RLX5016", "`T.print` shows scalars, not vectors", e)
        elif of.is_float:
            value = em.num(arg)
            wide = value if value.type == "double" else value.convert("fpext", "double")
            parts.append("%.17g" if of.bits == 64 else "%.9g")
            args.append((wide.type, wide.ref))
        elif of.is_handle:
            parts.append("%p")
            args.append(("ptr", em.expr(arg)))
        else:
            parts.append("%lld" if not of.is_uint else "%llu")
            wide = em.value(em.expr(arg), of)
            args.append(("i64", wide.convert("sext" if of.is_int else "zext", "i64").ref if of.bits < 64 else wide.ref))
    text = em.module.data((" ".join(parts) + "\n").encode() + b"\0", align=1)
    em.module.external("printf", "i32", ["ptr", "..."])
    em.at.call("i32 (ptr, ...)", "@printf", ("ptr", text), *args)
    em.at.call("i32", em.module.external("fflush", "i32", ["ptr"]), ("ptr", "null"))
    return "0"


TABLE: dict[str, Callable[[ExprEmitter, prim.Call], str]] = {
    "call_extern": _extern, "call_pure_extern": _extern, "call_llvm_intrin": _llvm_intrinsic,
    "call_llvm_pure_intrin": _llvm_intrinsic, "address_of": _address_of, "tvm_access_ptr": _access_ptr,
    "isnullptr": _is_null, "print": _print,
}  # fmt: skip
