"""The intrinsics of TensorIR: what each name of `ir.intrinsics` becomes.

Functions of floats narrower than 32 bits are computed in float32 and rounded; float32 ones by the polynomials of
`math_single` and `math_double`; float64 ones call the C library.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from relaxlang.base.diagnostics import Diagnostic, Diagnostics
from relaxlang.base.dtype import DType, dtype
from relaxlang.codegen import arithmetic, calls, math_double, math_single
from relaxlang.codegen.access import load_or
from relaxlang.codegen.algebra import Function, Num, inline_call
from relaxlang.codegen.casts import convert
from relaxlang.codegen.expr import ExprEmitter
from relaxlang.codegen.lltypes import constant, is_narrow, memory_type, value_type
from relaxlang.codegen.narrow import FORMATS, load_bits, rounded, store_bits
from relaxlang.codegen.text import FunctionText, mangled
from relaxlang.ir import prim
from relaxlang.ir.tir import PrimFunc
from relaxlang.ir.visit import walk

Emit = Callable[[ExprEmitter, prim.Call], str]

_SINGLE: dict[str, Function] = {
    **{name: getattr(math_single, name) for name in ("exp", "log", "tanh", "sigmoid", "erf", "normcdf")},
    **{name: getattr(math_double, name) for name in (
        "exp2", "exp10", "log2", "log10", "log1p", "sinh", "cosh", "asinh", "acosh", "atanh", "asin", "acos", "atan",
        "sin", "cos", "tan", "atan2", "hypot")},
    "pow": math_double.power,
}  # fmt: skip
_ROUNDING = {
    "floor": "llvm.floor",
    "ceil": "llvm.ceil",
    "trunc": "llvm.trunc",
    "round": "llvm.rint",
    "nearbyint": "llvm.rint",
}
_BITWISE = {"bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor"}
NO_CODE = {
    "tvm_thread_allreduce": "reduces over GPU threads", "tvm_storage_sync": "synchronises GPU threads",
    "vscale": "is the length of scalable vectors, which this target lacks",
    "call_packed": "calls a Python function, which compiled kernels cannot; call it from an `R.function`",
    "call_cpacked": "calls a packed function, which compiled kernels cannot; call it from an `R.function`",
}  # fmt: skip


def emit_call(em: ExprEmitter, e: prim.Call) -> str:
    """The operand of a call: an intrinsic or another function of the module."""
    if not isinstance(e.op, str):
        return calls.call_function(em, e, e.op.name)
    emit = _TABLE.get(e.op)
    if emit is None:
        reason = NO_CODE.get(e.op, "has no code")
        em.fail("RLX5013", f"`T.{e.op}` {reason}", e)
    return emit(em, e)


# --- mathematics ------------------------------------------------------------------------------------------------------
def _float_args(em: ExprEmitter, e: prim.Call) -> list[Num]:
    for arg in e.args:
        if not arg.dtype.is_float:
            em.fail(
                "RLX5016", f"`T.{e.op}` needs floating-point operands, not {arg.dtype}", e, help="cast to float32 first"
            )
    return [em.num(a) for a in e.args]


def _math(em: ExprEmitter, e: prim.Call) -> str:
    name = str(e.op)
    if name == "pow" and e.dtype.is_integer:
        return _int_power(em, e)
    args = _float_args(em, e)
    if e.dtype.bits == 64:
        return _double(em, e, name, args).ref
    return rounded(inline_call(em.at, f"rlx.{name}", _SINGLE[name], *args), e.dtype).ref


def _int_power(em: ExprEmitter, e: prim.Call) -> str:
    signed = e.dtype.is_int
    name = "rlx.pow.signed" if signed else "rlx.pow.unsigned"

    def one(at: FunctionText, xs: list[Num]) -> Num:
        return inline_call(at, name, lambda a, b: arithmetic.int_power(a, b, signed), *xs)

    return calls.by_lane(em, e.dtype, [em.num(a) for a in e.args], one).ref


def _double(em: ExprEmitter, e: prim.Call, name: str, args: list[Num]) -> Num:
    if name == "sigmoid":
        tail = _library(em, e, "exp", [-args[0].abs()])
        top = (args[0] < 0.0).where(tail, 1.0)
        return top / (tail + 1.0)
    if name == "normcdf":
        return _library(em, e, "erfc", [args[0] * -math.sqrt(0.5)]) * 0.5
    if name == "exp10":
        return _library(em, e, "pow", [args[0].num(10.0), args[0]])
    return _library(em, e, name, args)


def _library(em: ExprEmitter, e: prim.Call, name: str, args: list[Num]) -> Num:
    """A function of the C library on doubles, by lane."""
    kinds = [a.scalar for a in args]
    function = em.module.external(name, "double", kinds, "nounwind willreturn memory(none)")

    def one(at: FunctionText, xs: list[Num]) -> Num:
        return Num(at, at.call("double", function, *((x.type, x.ref) for x in xs)), "double")

    return calls.by_lane(em, e.dtype, args, one)


def _sqrt(em: ExprEmitter, e: prim.Call) -> str:
    root = _float_args(em, e)[0].call("llvm.sqrt")
    return rounded(1.0 / root if e.op == "rsqrt" else root, e.dtype).ref


def _rounding(em: ExprEmitter, e: prim.Call) -> str:
    x = em.num(e.args[0])
    return x.call(_ROUNDING[str(e.op)]).ref if e.dtype.is_float else x.ref


def _fmod(em: ExprEmitter, e: prim.Call) -> str:
    a, b = _float_args(em, e)
    return rounded(arithmetic.float_mod(a, b), e.dtype).ref


def _copysign(em: ExprEmitter, e: prim.Call) -> str:
    a, b = _float_args(em, e)
    return a.copysign(b).ref


def _fma(em: ExprEmitter, e: prim.Call) -> str:
    a, b, c = _float_args(em, e)
    if is_narrow(e.dtype):  # exact products, and one rounding through a sum rounded to odd
        wide = [x.convert("fpext", "double") for x in (a, b, c)]
        return rounded(wide[0] * wide[1] + wide[2], e.dtype).ref
    return a.call("llvm.fma", b, c).ref


def _ldexp(em: ExprEmitter, e: prim.Call) -> str:
    x, power = em.num(e.args[0]), e.args[1]
    n = Num(em.at, convert(em.num(power), power.dtype, prim.INT32.with_lanes(power.dtype.lanes)).ref, x.like("i32"))
    if e.dtype.bits == 64:
        return _library(em, e, "ldexp", [x, n]).ref
    return rounded(inline_call(em.at, "rlx.ldexp", math_double.ldexp, x, n), e.dtype).ref


def _nextafter(em: ExprEmitter, e: prim.Call) -> str:
    a, b = _float_args(em, e)
    if is_narrow(e.dtype):
        em.fail("RLX5016", f"`T.nextafter` of {e.dtype} is not defined", e)
    return inline_call(em.at, "rlx.nextafter", lambda x, y: _next(x, y), a, b).ref


def _next(x: Num, y: Num) -> Num:
    kind = "i64" if x.scalar == "double" else "i32"
    bits = x.bits(kind)
    outward = (x < y) ^ (bits < 0)
    step = bits + outward.where(bits.num(1), bits.num(-1))
    smallest = bits.num(1).bits(x.scalar).copysign(y)
    moved = x.equals(0.0).where(smallest, step.bits(x.scalar))
    made = x.equals(y).where(y, moved)
    return (x.is_nan() | y.is_nan()).where(x + y, made)


def _abs(em: ExprEmitter, e: prim.Call) -> str:
    x = em.num(e.args[0])
    if e.dtype.is_float:
        return x.abs().ref
    if not e.dtype.is_int:
        return x.ref
    function = em.module.declare(f"llvm.abs.{mangled(x.type)}", x.type, [x.type, "i1"])
    return em.at.call(x.type, function, (x.type, x.ref), ("i1", "false"))


def _class(em: ExprEmitter, e: prim.Call) -> str:
    x, name = em.num(e.args[0]), e.op
    if not e.args[0].dtype.is_float:
        return constant(int(name == "isfinite"), e.dtype)
    if name == "isnan":
        return x.is_nan().ref
    return (x.abs().equals(math.inf) if name == "isinf" else x.abs() < math.inf).ref


# --- bits -------------------------------------------------------------------------------------------------------------
def _bitwise(em: ExprEmitter, e: prim.Call) -> str:
    a, b = em.num(e.args[0]), em.num(e.args[1])
    _integers(em, e)
    return em.at.value(f"{_BITWISE[str(e.op)]} {a.type} {a.ref}, {b.ref}")


def _integers(em: ExprEmitter, e: prim.Call) -> None:
    for arg in e.args:
        if not (arg.dtype.is_integer or arg.dtype.is_bool):
            em.fail("RLX5016", f"`T.{e.op}` needs integers, not {arg.dtype}", e)


def _bitwise_not(em: ExprEmitter, e: prim.Call) -> str:
    _integers(em, e)
    return (em.num(e.args[0]) ^ -1).ref


def _shift(em: ExprEmitter, e: prim.Call) -> str:
    _integers(em, e)
    return arithmetic.shift(em.num(e.args[0]), em.num(e.args[1]), e.dtype, e.op == "shift_left").ref


def check_shifts(func: PrimFunc) -> None:
    """Raise RLX5010 for shifts by constants that are out of range, as the function states them (a constant that
    simplification finds is as well defined as one found at run time)."""
    found = Diagnostics()
    for node in walk(func.body):
        if isinstance(node, prim.Call) and node.op in ("shift_left", "shift_right"):
            amount = node.args[1].value if isinstance(node.args[1], prim.Broadcast) else node.args[1]
            if isinstance(amount, prim.IntImm) and not 0 <= amount.value < node.dtype.bits:
                message = f"shift of {node.dtype} by {amount.value}"
                help = f"the amount must be from 0 to {node.dtype.bits - 1}"
                found.report(Diagnostic("RLX5010", message, node.span, help=help))
    found.check()


def _popcount(em: ExprEmitter, e: prim.Call) -> str:
    source = e.args[0].dtype
    made = em.num(e.args[0]).call("llvm.ctpop")
    return convert(made, _unsigned(source), e.dtype).ref


def _clz(em: ExprEmitter, e: prim.Call) -> str:
    x, source = em.num(e.args[0]), e.args[0].dtype
    function = em.module.declare(f"llvm.ctlz.{mangled(x.type)}", x.type, [x.type, "i1"])
    made = Num(em.at, em.at.call(x.type, function, (x.type, x.ref), ("i1", "false")), x.type)
    return convert(made, _unsigned(source), e.dtype.with_lanes(source.lanes)).ref


def _unsigned(of: DType) -> DType:
    return dtype(f"uint{of.bits}").with_lanes(of.lanes)


def _reinterpret(em: ExprEmitter, e: prim.Call) -> str:
    source, x = e.args[0].dtype, em.num(e.args[0])
    if source.bits * source.lanes != e.dtype.bits * e.dtype.lanes:
        em.fail("RLX5016", f"{source} cannot be reinterpreted as {e.dtype}: the sizes differ", e)
    stored = store_bits(x, source) if is_narrow(source) else x
    target = value_type(e.dtype) if not is_narrow(e.dtype) else memory_type(e.dtype)
    cast = "inttoptr" if target == "ptr" else "ptrtoint" if stored.type == "ptr" else "bitcast"
    made = (
        stored
        if stored.type == target
        else Num(em.at, em.at.value(f"{cast} {stored.type} {stored.ref} to {target}"), target)
    )
    return load_bits(made, e.dtype).ref if is_narrow(e.dtype) else made.ref


# --- constants, choice, the rest --------------------------------------------------------------------------------------
def _limit(em: ExprEmitter, e: prim.Call) -> str:
    of, low = e.dtype.scalar, e.op == "min_value"
    if e.op == "infinity":
        return constant(math.inf, e.dtype)
    if of.is_float:
        largest = largest_number(of)
        return constant(-largest if low else largest, e.dtype)
    if of.is_int:
        return constant(-(1 << of.bits - 1) if low else (1 << of.bits - 1) - 1, e.dtype)
    return constant(0 if low else (1 << of.bits) - 1, e.dtype)


def largest_number(of: DType) -> float:
    """The largest finite number of a floating-point type."""
    if of.bits >= 32:
        return (2.0 - 2.0**-23) * 2.0**127 if of.bits == 32 else (2.0 - 2.0**-52) * 2.0**1023
    form = FORMATS.get(of.name)
    if form is None:  # float8_e8m0fnu
        return 2.0**127
    exponent, mantissa = divmod(form.largest, 1 << form.mantissa)
    return (1 + mantissa / (1 << form.mantissa)) * 2.0 ** (exponent - form.bias)


def _if_then_else(em: ExprEmitter, e: prim.Call) -> str:
    condition, yes, no = e.args
    if condition.dtype.lanes > 1 or (em.speculable(yes) and em.speculable(no)):
        return em.num(condition).where(em.num(yes), em.num(no)).ref
    decided = {"true": yes, "false": no}.get(em.expr(condition))
    if decided is not None:
        return em.expr(decided)
    if isinstance(yes, prim.BufferLoad) and isinstance(no, (prim.FloatImm, prim.IntImm)) and em.settled(condition):
        loaded = load_or(em, em.expr(condition), yes, no)
        if loaded:
            return loaded
    return em.conditional(em.expr(condition), lambda: em.expr(yes), lambda: em.expr(no), value_type(e.dtype))


def _same(em: ExprEmitter, e: prim.Call) -> str:
    return em.expr(e.args[0])


def _undef(em: ExprEmitter, e: prim.Call) -> str:
    return "null" if e.dtype.is_handle else "zeroinitializer" if e.dtype.lanes > 1 else constant(0, e.dtype)


def _assume(em: ExprEmitter, e: prim.Call) -> str:
    function = em.module.declare("llvm.assume", "void", ["i1"])
    em.at.call("void", function, ("i1", em.expr(e.args[0])))
    return "true"


def _q_multiply_shift(em: ExprEmitter, e: prim.Call) -> str:
    return inline_call(em.at, "rlx.q_multiply_shift", _fixed_point, *(em.num(a) for a in e.args)).ref


def _fixed_point(x: Num, y: Num, q: Num, s: Num) -> Num:
    left, right = s.call("llvm.smax", 0), (0 - s).call("llvm.smax", 0) + q
    left, right = left.convert("zext", "i64"), right.convert("zext", "i64")
    product = (x.convert("sext", "i64") << left) * y.convert("sext", "i64")
    half = (right > 0).where(right.num(1) << (right - 1).call("llvm.smax", 0), 0)
    total = product + half
    return total.op(f"ashr {total.type} {total.ref}, {right.ref}").convert("trunc", "i32")


def _dp4a(em: ExprEmitter, e: prim.Call) -> str:
    a, b = (_words(em, e, arg) for arg in e.args[:2])
    total, signed = em.num(e.args[2]), [arg.dtype.is_int for arg in e.args[:2]]
    if em.module.dots and total.type == "<16 x i32>" and signed[0] != signed[1]:
        name, args = "llvm.x86.avx512.vpdpbusd.512", (total, *((b, a) if signed[0] else (a, b)))
        function = em.module.declare(name, total.type, [x.type for x in args])
        return em.at.call(total.type, function, *((x.type, x.ref) for x in args))
    for k in range(4):
        total = total + _byte(a, k, signed[0]) * _byte(b, k, signed[1])
    return total.ref


def _words(em: ExprEmitter, e: prim.Call, arg: prim.PrimExpr) -> Num:
    """The operand of a product of four bytes each, as integers of 32 bits."""
    of, x = arg.dtype, em.num(arg)
    if of.bits * of.lanes != 32 * e.dtype.lanes or of.bits not in (8, 32):
        em.fail("RLX5016", f"`T.dp4a` takes four bytes for each {e.dtype.scalar}, not {of}", e)
    words = value_type(e.dtype)
    return x if x.type == words else Num(em.at, em.at.value(f"bitcast {x.type} {x.ref} to {words}"), words)


def _byte(words: Num, k: int, signed: bool) -> Num:
    """Byte `k` of each word, as a number."""
    if not signed:
        return (words >> 8 * k) & 255
    high = words << 24 - 8 * k
    return high.op(f"ashr {high.type} {high.ref}, {high.num(24).ref}")


_TABLE: dict[str, Emit] = {
    **dict.fromkeys(_SINGLE, _math), **dict.fromkeys(_ROUNDING, _rounding), **dict.fromkeys(_BITWISE, _bitwise),
    "sqrt": _sqrt, "rsqrt": _sqrt, "fmod": _fmod, "copysign": _copysign, "fma": _fma, "ldexp": _ldexp,
    "nextafter": _nextafter, "abs": _abs, "isnan": _class, "isinf": _class, "isfinite": _class,
    "bitwise_not": _bitwise_not, "shift_left": _shift, "shift_right": _shift, "popcount": _popcount, "clz": _clz,
    "reinterpret": _reinterpret, "infinity": _limit, "min_value": _limit, "max_value": _limit,
    "if_then_else": _if_then_else, "likely": _same, "undef": _undef, "assume": _assume,
    "q_multiply_shift": _q_multiply_shift, "dp4a": _dp4a, **calls.TABLE,
}  # fmt: skip
