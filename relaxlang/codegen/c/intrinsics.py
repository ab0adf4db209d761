"""The intrinsics of TensorIR in C: what each name of `ir.intrinsics` becomes.

Functions of floats narrower than 32 bits are computed in float32 and rounded; the others call `math.h`.
"""

from __future__ import annotations

from collections.abc import Callable

from relaxlang.base.dtype import dtype
from relaxlang.codegen.c.expr import ExprWriter, string_literal
from relaxlang.codegen.c.types import floating, integer, memory_type, value_type
from relaxlang.codegen.c.writer import EQUAL, ORDER, PRIMARY, PRODUCT, SUM, UNARY, C, call, cast, infix
from relaxlang.codegen.calls import C_NAME
from relaxlang.codegen.intrinsics import NO_CODE, largest_number
from relaxlang.codegen.lltypes import is_narrow
from relaxlang.ir import prim

FLOAT64 = dtype("float64")
Write = Callable[[ExprWriter, prim.Call], C]

_MATH = (
    "exp exp2 log log2 log10 log1p sinh cosh tanh asinh acosh atanh asin acos atan sin cos tan atan2 hypot erf sqrt "
    "floor ceil trunc fmod copysign"
).split()
_RINT = ("round", "nearbyint")
_BITWISE = {"bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^"}


def write_call(w: ExprWriter, e: prim.Call) -> C:
    """The C of a call: an intrinsic or another function of the module."""
    if not isinstance(e.op, str):
        from relaxlang.codegen.c.function import call_function

        return call_function(w, e, e.op.name)
    write = _TABLE.get(e.op)
    if write is None:
        w.fail("RLX5013", f"`T.{e.op}` {NO_CODE.get(e.op, 'has no code in C')}", e)
    return write(w, e)


# --- mathematics ------------------------------------------------------------------------------------------------------
def _floats(w: ExprWriter, e: prim.Call) -> list[C]:
    for arg in e.args:
        if not arg.dtype.is_float:
            w.fail(
                "RLX5016", f"`T.{e.op}` needs floating-point operands, not {arg.dtype}", e, help="cast to float32 first"
            )
    return [w.expr(a) for a in e.args]


def _function(w: ExprWriter, e: prim.Call, name: str, args: list[C]) -> C:
    return w.rounded(call(name if e.dtype.bits == 64 else name + "f", *args), e.dtype.scalar)


def _math(w: ExprWriter, e: prim.Call) -> C:
    return _function(w, e, str(e.op), _floats(w, e))


def _rounding(w: ExprWriter, e: prim.Call) -> C:
    if not e.dtype.is_float:
        return w.expr(e.args[0])
    return _function(w, e, "rint" if e.op in _RINT else str(e.op), _floats(w, e))


def _power(w: ExprWriter, e: prim.Call) -> C:
    if e.dtype.is_integer:
        return call(w.needs.helper("pow", e.dtype), *(w.expr(a) for a in e.args))
    return _function(w, e, "pow", _floats(w, e))


def _exp10(w: ExprWriter, e: prim.Call) -> C:
    return _function(w, e, "pow", [C(floating(10.0, e.dtype)), *_floats(w, e)])


def _normcdf(w: ExprWriter, e: prim.Call) -> C:
    (x,) = _floats(w, e)
    tail = call("erfc", infix(x, "*", C(floating(-0.7071067811865476, FLOAT64)), PRODUCT))
    made = infix(C(floating(0.5, FLOAT64)), "*", tail, PRODUCT)
    return w.rounded(made if e.dtype.bits == 64 else cast("float", made), e.dtype.scalar)


def _rsqrt(w: ExprWriter, e: prim.Call) -> C:
    of = e.dtype.scalar
    root = call("sqrt" if of.bits == 64 else "sqrtf", *_floats(w, e))
    return w.rounded(infix(C(floating(1.0, of)), "/", root, PRODUCT), of)


def _sigmoid(w: ExprWriter, e: prim.Call) -> C:
    of = e.dtype.scalar
    return w.rounded(call(w.needs.helper("sigmoid", prim.FLOAT32 if is_narrow(of) else of), *_floats(w, e)), of)


def _fma(w: ExprWriter, e: prim.Call) -> C:
    args, of = _floats(w, e), e.dtype.scalar
    if not is_narrow(of):
        return _function(w, e, "fma", args)
    # Exact products, and one rounding through a sum rounded to odd.
    a, b, c = (cast("double", x) for x in args)
    return w.rounded(call(w.needs.helper("to_odd", of), infix(infix(a, "*", b, PRODUCT), "+", c, SUM)), of)


def _ldexp(w: ExprWriter, e: prim.Call) -> C:
    power = e.args[1]
    return _function(w, e, "ldexp", [w.expr(e.args[0]), w.convert(w.expr(power), power.dtype, prim.INT32, power)])


def _nextafter(w: ExprWriter, e: prim.Call) -> C:
    if is_narrow(e.dtype):
        w.fail("RLX5016", f"`T.nextafter` of {e.dtype} is not defined", e)
    return _function(w, e, "nextafter", _floats(w, e))


def _abs(w: ExprWriter, e: prim.Call) -> C:
    x, of = w.expr(e.args[0]), e.dtype.scalar
    if of.is_float:
        return call("fabs" if of.bits == 64 else "fabsf", x)
    if not of.is_int:
        return x
    x = x if x.level == PRIMARY else w.keep(x, of)
    zero = C(integer(0, of))
    minus = call(w.needs.helper("sub", of), zero, x) if of.bits >= 32 else w.wrapped(C(f"-{x.text}", UNARY), of)
    return w.choose(infix(x, "<", zero, ORDER), lambda: minus, lambda: x, of)


def _class(w: ExprWriter, e: prim.Call) -> C:
    x, of = w.expr(e.args[0]), e.args[0].dtype
    if not of.is_float:
        return C("true" if e.op == "isfinite" else "false")
    return C(f"{call(str(e.op), x).text} != 0", EQUAL)


# --- bits -------------------------------------------------------------------------------------------------------------
def _integers(w: ExprWriter, e: prim.Call) -> None:
    for arg in e.args:
        if not (arg.dtype.is_integer or arg.dtype.is_bool):
            w.fail("RLX5016", f"`T.{e.op}` needs integers, not {arg.dtype}", e)


def _bitwise(w: ExprWriter, e: prim.Call) -> C:
    _integers(w, e)
    # In parentheses: the C levels of these operators surprise.
    made = C(f"({w.expr(e.args[0]).at(UNARY)} {_BITWISE[str(e.op)]} {w.expr(e.args[1]).at(UNARY)})")
    return w.wrapped(made, e.dtype.scalar)


def _bitwise_not(w: ExprWriter, e: prim.Call) -> C:
    _integers(w, e)
    x = w.expr(e.args[0])
    return C(f"!{x.at(UNARY)}", UNARY) if e.dtype.is_bool else w.wrapped(C(f"~{x.at(UNARY)}", UNARY), e.dtype.scalar)


def _shift(w: ExprWriter, e: prim.Call) -> C:
    _integers(w, e)
    made = call(w.needs.helper(str(e.op), e.dtype), *(w.expr(a) for a in e.args))
    return w.wrapped(made, e.dtype.scalar)


def _count(w: ExprWriter, e: prim.Call) -> C:
    source = e.args[0].dtype
    unsigned = f"uint{max(source.bits, 8)}_t"
    x = cast(unsigned, w.expr(e.args[0]))
    if source.bits < 8:
        x = C(f"({x.text} & {(1 << source.bits) - 1})")
    return w.convert(call(w.needs.helper(str(e.op), source), x), prim.INT32, e.dtype.scalar, e)


def _reinterpret(w: ExprWriter, e: prim.Call) -> C:
    source, to = e.args[0].dtype, e.dtype
    if source.bits != to.bits or source.lanes != to.lanes:
        w.fail("RLX5016", f"{source} cannot be reinterpreted as {to} in C: the sizes or lanes differ", e)
    source, to, x = source.scalar, to.scalar, w.expr(e.args[0])
    if source.is_handle or to.is_handle:
        return w.convert(x, source, to, e)
    if source.is_float:
        x = w.to_memory(x, source) if is_narrow(source) else call(w.needs.helper("bits", source), x)
    if to.is_float:
        unsigned = cast(f"uint{max(to.bits, 8)}_t", x)
        return w.from_memory(unsigned, to) if is_narrow(to) else call(w.needs.helper("from_bits", to), unsigned)
    return cast(value_type(to), x)


def _fixed_point(w: ExprWriter, e: prim.Call) -> C:
    return call(w.needs.helper("q_multiply_shift", prim.INT32), *(w.expr(a) for a in e.args))


def _dp4a(w: ExprWriter, e: prim.Call) -> C:
    for arg in e.args[:2]:
        if arg.dtype.scalar.bits != 32:
            help = "reinterpret four of them as one 32-bit integer"
            w.fail("RLX5016", f"`T.dp4a` in C takes the bytes of 32-bit integers, not {arg.dtype}", e, help=help)
    kind = "dp4a_" + "".join("s" if arg.dtype.is_int else "u" for arg in e.args[:2])
    return call(w.needs.helper(kind, prim.INT32), *(w.expr(a) for a in e.args))


# --- constants, choice, the rest --------------------------------------------------------------------------------------
def _limit(w: ExprWriter, e: prim.Call) -> C:
    of, low = e.dtype.scalar, e.op == "min_value"
    if e.op == "infinity":
        return C("INFINITY")
    if of.is_float:
        most = largest_number(of)
        return C(floating(-most if low else most, of), UNARY if low else PRIMARY)
    bits = of.bits - 1 if of.is_int else of.bits
    return C(integer((-(1 << bits) if of.is_int else 0) if low else (1 << bits) - 1, of), UNARY if low else PRIMARY)


def _if_then_else(w: ExprWriter, e: prim.Call) -> C:
    condition, yes, no = e.args
    return w.choose(w.expr(condition), lambda: w.expr(yes), lambda: w.expr(no), e.dtype)


def _same(w: ExprWriter, e: prim.Call) -> C:
    return w.expr(e.args[0])


def _undef(w: ExprWriter, e: prim.Call) -> C:
    return C("NULL" if e.dtype.is_handle else "0")


def _assume(w: ExprWriter, e: prim.Call) -> C:
    return C("true")


# --- pointers and calls -----------------------------------------------------------------------------------------------
def _address_of(w: ExprWriter, e: prim.Call) -> C:
    target = e.args[0]
    if not isinstance(target, prim.BufferLoad):
        w.fail("RLX5013", "`T.address_of` needs an element of a buffer", e)
    return C(f"&{w.element(target.buffer, target.indices).text}", UNARY)


def _access_ptr(w: ExprWriter, e: prim.Call) -> C:
    model, data, offset = e.args[:3]
    if not isinstance(data, prim.Var):
        w.fail("RLX5013", "`T.tvm_access_ptr` needs a buffer's data as second argument", e)
    base = cast(f"{memory_type(model.dtype)} *", C(w.pointer(data)))
    return infix(base, "+", w.index(offset), SUM)


def _is_null(w: ExprWriter, e: prim.Call) -> C:
    return C(f"{w.expr(e.args[0]).at(EQUAL)} == NULL", EQUAL)


def _extern(w: ExprWriter, e: prim.Call) -> C:
    name = e.args[0] if e.args else None
    if not isinstance(name, prim.StringImm) or not C_NAME.match(name.value) or "." in name.value or "$" in name.value:
        w.fail("RLX5013", f"`T.{e.op}` needs the name of a C function as first argument", e)
    for arg in e.args[1:]:
        if arg.dtype.lanes > 1 or (arg.dtype.is_float and arg.dtype.bits < 32):
            w.fail("RLX5016", f"a {arg.dtype} cannot be passed to the C function `{name.value}`", e)
    kinds = ["const char *" if isinstance(a, prim.StringImm) else value_type(a.dtype) for a in e.args[1:]]
    w.needs.declare(name.value, value_type(e.dtype), kinds)
    return call(name.value, *(w.expr(a) for a in e.args[1:]))


_LLVM = ("fabs", "sqrt", "floor", "ceil", "trunc", "rint", "nearbyint", "round", "fma", "copysign")


def _llvm_intrinsic(w: ExprWriter, e: prim.Call) -> C:
    """An LLVM intrinsic that is a function of `math.h` too."""
    name = e.args[0].value if e.args and isinstance(e.args[0], prim.StringImm) else ""
    base = name.removeprefix("llvm.").partition(".")[0].replace("fmuladd", "fma")
    # Older programs state the number of operands that determine the overload after the name.
    args = [a for i, a in enumerate(e.args[1:]) if not (i == 0 and a.dtype.name == "uint32" and len(e.args) > 2)]
    if base not in _LLVM or not e.dtype.is_float or is_narrow(e.dtype) or any(a.dtype is not e.dtype for a in args):
        w.fail("RLX5013", f"the LLVM intrinsic `{name}` has no C", e)
    return _function(w, e, base, [w.expr(a) for a in args])


def _print(w: ExprWriter, e: prim.Call) -> C:
    parts, args = [], []
    for arg in e.args:
        of = arg.dtype
        if isinstance(arg, prim.StringImm):
            parts.append(arg.value.replace("%", "%%"))
            continue
        if of.lanes > 1:
            w.fail("RLX5016", "`T.print` shows scalars, not vectors", e)
        value = w.expr(arg)
        if of.is_float:
            parts.append("%.17g" if of.bits == 64 else "%.9g")
            args.append(value if of.bits == 64 else cast("double", value))
        elif of.is_handle:
            parts.append("%p")
            args.append(value)
        else:
            parts.append("%llu" if of.is_uint else "%lld")
            args.append(cast("unsigned long long" if of.is_uint else "long long", value))
    w.needs.uses_print = True
    return call("printf", C(string_literal(" ".join(parts) + "\n")), *args)


_TABLE: dict[str, Write] = {
    **dict.fromkeys(_MATH, _math), **dict.fromkeys(("floor", "ceil", "trunc", *_RINT), _rounding),
    **dict.fromkeys(_BITWISE, _bitwise), "pow": _power, "exp10": _exp10, "rsqrt": _rsqrt, "sigmoid": _sigmoid,
    "normcdf": _normcdf,
    "fma": _fma, "ldexp": _ldexp, "nextafter": _nextafter, "abs": _abs, "isnan": _class, "isinf": _class,
    "isfinite": _class, "bitwise_not": _bitwise_not, "shift_left": _shift, "shift_right": _shift, "popcount": _count,
    "clz": _count, "reinterpret": _reinterpret, "infinity": _limit, "min_value": _limit, "max_value": _limit,
    "if_then_else": _if_then_else, "likely": _same, "undef": _undef, "assume": _assume,
    "q_multiply_shift": _fixed_point, "dp4a": _dp4a, "address_of": _address_of, "tvm_access_ptr": _access_ptr,
    "isnullptr": _is_null, "call_llvm_intrin": _llvm_intrinsic,
    "call_llvm_pure_intrin": _llvm_intrinsic, "call_extern": _extern, "call_pure_extern": _extern, "print": _print,
}  # fmt: skip
