"""The pure intrinsics of TensorIR on numpy values, by name.

Each takes the call's result type and its arguments with their types. Functions that can't be exact are computed in
float64, by numpy where it has them, and rounded once: its float32 ones are up to 3 ulp off. Intrinsics that touch
memory, call functions or choose what is evaluated stand in `interp.expr`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from relaxlang.base.dtype import DType
from relaxlang.interp.numeric import (
    Undefined,
    Value,
    cast,
    integer,
    is_array,
    narrow,
    numpy_type,
    power,
    scalar_type,
)
from relaxlang.ir.prim import INT32, INT64

Intrinsic: TypeAlias = Callable[..., Value]
"""`f(result_type, argument_types, *arguments)`."""

PURE: dict[str, Intrinsic] = {}


def _rule(*names: str) -> Callable[[Intrinsic], Intrinsic]:
    def enter(function: Intrinsic) -> Intrinsic:
        PURE.update(dict.fromkeys(names, function))
        return function

    return enter


def _exact(ufunc: np.ufunc) -> Intrinsic:
    return lambda of, types, *args: ufunc(*args)


def _rounded(ufunc: np.ufunc) -> Intrinsic:
    def apply(of: DType, types: tuple[DType, ...], *args: Value) -> Value:
        # For some functions numpy's loops over strided arrays round differently from those over contiguous ones.
        wide = [np.ascontiguousarray(a, np.float64) if is_array(a) else np.float64(a) for a in args]
        return ufunc(*wide).astype(numpy_type(of))[()]

    return apply


_UFUNCS: dict[str, np.ufunc] = {
    "exp": np.exp, "exp2": np.exp2, "tanh": np.tanh, "log": np.log, "log2": np.log2, "log10": np.log10,
    "log1p": np.log1p, "tan": np.tan, "cos": np.cos, "cosh": np.cosh, "sin": np.sin, "sinh": np.sinh,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "atan2": np.arctan2, "hypot": np.hypot,
}  # fmt: skip
_EXACT: dict[str, np.ufunc] = {
    "sqrt": np.sqrt, "copysign": np.copysign, "nextafter": np.nextafter, "fmod": np.fmod,
}  # fmt: skip
PURE.update({name: _rounded(ufunc) for name, ufunc in _UFUNCS.items()})
PURE.update({name: _exact(ufunc) for name, ufunc in _EXACT.items()})


# --- mathematics that numpy lacks -------------------------------------------------------------------------------------
def _in_float64(function: Callable[[Value], Value]) -> Intrinsic:
    def apply(of: DType, types: tuple[DType, ...], x: Value) -> Value:
        return function(np.asarray(x).astype(np.float64)).astype(numpy_type(of))[()]

    return apply


def _sigmoid(x: Value) -> Value:
    tail = np.exp(-np.abs(x))  # never overflows
    return np.where(x < 0, tail, 1.0) / (1.0 + tail)


_erf = np.frompyfunc(math.erf, 1, 1)
PURE["erf"] = _in_float64(lambda x: np.asarray(_erf(x), np.float64))
_erfc = np.frompyfunc(math.erfc, 1, 1)
PURE["normcdf"] = _in_float64(lambda x: 0.5 * np.asarray(_erfc(x * -math.sqrt(0.5)), np.float64))
PURE["sigmoid"] = _in_float64(_sigmoid)
PURE["rsqrt"] = _in_float64(lambda x: 1.0 / np.sqrt(x))
PURE["exp10"] = _in_float64(lambda x: np.power(10.0, x))


@_rule("pow")
def _pow(of: DType, types: tuple[DType, ...], a: Value, b: Value) -> Value:
    return narrow(power(a, b), of)


@_rule("ldexp")
def _ldexp(of: DType, types: tuple[DType, ...], x: Value, exponent: Value) -> Value:
    # Scaling in float64 is exact, or beyond the range of the narrower type; exponents past int32 change nothing more.
    wide = np.ldexp(np.asarray(x).astype(np.float64), np.clip(exponent, -5000, 5000).astype(np.int32))
    return wide.astype(numpy_type(of))[()]


@_rule("fma")
def _fma(of: DType, types: tuple[DType, ...], a: Value, b: Value, c: Value) -> Value:
    """One rounding: products of up to float32 are exact in float64; their sum with `c` is rounded to odd first, so that
    the second rounding cannot move it. float64 goes by exact fractions."""
    if of.bits == 64:
        return np.asarray(_fma64(a, b, c), np.float64)[()]
    product = np.asarray(a).astype(np.float64) * np.asarray(b).astype(np.float64)
    addend = np.asarray(c).astype(np.float64)
    total = np.asarray(product + addend)
    # Knuth's two-sum: the error of the addition, exactly.
    virtual = total - product
    error = (product - (total - virtual)) + (addend - virtual)
    even = (total.view(np.int64) & 1) == 0
    inexact = np.isfinite(total) & (error != 0) & even
    away = (error > 0) == (total > 0)
    odd = np.where(inexact, total.view(np.int64) + np.where(away, 1, -1), total.view(np.int64))
    return odd.view(np.float64).astype(numpy_type(of))[()]


def _fma_exactly(a: float, b: float, c: float) -> float:
    from fractions import Fraction

    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)) or a == 0 or b == 0:
        return a * b + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c  # keeps the sign that a rounded zero has
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


_fma64 = np.frompyfunc(_fma_exactly, 3, 1)


# --- rounding, sign, classes of numbers -------------------------------------------------------------------------------
def _rounding(ufunc: np.ufunc) -> Intrinsic:
    return lambda of, types, x: ufunc(x) if of.is_float else x


PURE.update(
    floor=_rounding(np.floor),
    ceil=_rounding(np.ceil),
    trunc=_rounding(np.trunc),
    round=_rounding(np.rint),  # half to even, as numpy
    nearbyint=_rounding(np.rint),
    likely=lambda of, types, x: x,
)


@_rule("abs")
def _abs(of: DType, types: tuple[DType, ...], x: Value) -> Value:
    return narrow(np.abs(x), of)


def _float_class(ufunc: np.ufunc, of_integers: bool) -> Intrinsic:
    def apply(of: DType, types: tuple[DType, ...], x: Value) -> Value:
        return ufunc(x) if types[0].is_float else np.full(np.shape(x), of_integers)[()]

    return apply


PURE.update(
    isnan=_float_class(np.isnan, False), isinf=_float_class(np.isinf, False), isfinite=_float_class(np.isfinite, True)
)


# --- bits -------------------------------------------------------------------------------------------------------------
def _bitwise(ufunc: np.ufunc) -> Intrinsic:
    return lambda of, types, *args: narrow(ufunc(*args), of)


PURE.update(
    bitwise_and=_bitwise(np.bitwise_and),
    bitwise_or=_bitwise(np.bitwise_or),
    bitwise_xor=_bitwise(np.bitwise_xor),
    bitwise_not=_bitwise(np.invert),
    shift_left=_bitwise(np.left_shift),
    shift_right=_bitwise(np.right_shift),
)


def _unsigned(x: Value, of: DType) -> Value:
    """The bits of an integer as a number of an unsigned type of the same width."""
    bits = np.asarray(x).view(f"u{np.asarray(x).dtype.itemsize}")
    return bits & bits.dtype.type((1 << of.bits) - 1)


@_rule("popcount")
def _popcount(of: DType, types: tuple[DType, ...], x: Value) -> Value:
    return np.bitwise_count(_unsigned(x, types[0])).astype(numpy_type(of))[()]


_bit_length = np.frompyfunc(lambda bits: int(bits).bit_length(), 1, 1)


@_rule("clz")
def _clz(of: DType, types: tuple[DType, ...], x: Value) -> Value:
    length = np.asarray(_bit_length(_unsigned(x, types[0])), np.int64)
    return (types[0].bits - length).astype(numpy_type(of))[()]


@_rule("reinterpret")
def _reinterpret(of: DType, types: tuple[DType, ...], x: Value) -> Value:
    source, to = np.asarray(x), numpy_type(of)
    if source.dtype.itemsize == to.itemsize:
        return source.view(to)[()]
    if types[0].itemsize != of.itemsize:
        raise Undefined(f"reinterpretation of {types[0]} as {of}, which has another size")
    lanes = np.ascontiguousarray(source).reshape(-1).view(to)
    return lanes if of.lanes > 1 else lanes[0]


# --- constants and fixed point ----------------------------------------------------------------------------------------
@_rule("infinity")
def _infinity(of: DType, types: tuple[DType, ...]) -> Value:
    return scalar_type(of)(math.inf)


def _finite_limits(of: DType) -> Any:
    import ml_dtypes

    limits: Any = ml_dtypes.finfo
    return limits(numpy_type(of))


@_rule("min_value")
def _min_value(of: DType, types: tuple[DType, ...]) -> Value:
    if of.is_float:
        return scalar_type(of)(_finite_limits(of).min)
    return integer(-(1 << (of.bits - 1)) if of.is_int else 0, of)


@_rule("max_value")
def _max_value(of: DType, types: tuple[DType, ...]) -> Value:
    if of.is_float:
        return scalar_type(of)(_finite_limits(of).max)
    return integer((1 << (of.bits - of.is_int)) - 1, of)


@_rule("undef")
def _undef(of: DType, types: tuple[DType, ...]) -> Value:
    return np.zeros(() if of.lanes == 1 else of.lanes, numpy_type(of))[()]


@_rule("q_multiply_shift")
def _q_multiply_shift(of: DType, types: tuple[DType, ...], x: Value, y: Value, q: Value, s: Value) -> Value:
    """`x * y * 2 ** (s - q)`, rounded half up: `x` and `y` are fixed-point numbers with `q` fractional bits."""
    left, right = np.maximum(s, 0).astype(np.int64), np.maximum(-s, 0).astype(np.int64) + q
    product = (np.asarray(x).astype(np.int64) << left) * np.asarray(y).astype(np.int64)
    half = np.where(right > 0, np.int64(1) << np.maximum(right - 1, 0), 0)
    return cast(((product + half) >> right)[()], INT64, INT32)


@_rule("dp4a")
def _dp4a(of: DType, types: tuple[DType, ...], a: Value, b: Value, acc: Value) -> Value:
    """The products of four bytes of `a` and `b` each, added to `acc`. Bytes are signed where the type that they come in
    is: four of one 8-bit type, or those of a 32-bit integer."""
    products = _bytes(a, types[0], of) * _bytes(b, types[1], of)
    return cast((products.sum(axis=-1) + np.asarray(acc).astype(np.int64))[()], INT64, INT32)


def _bytes(x: Value, of: DType, result: DType) -> Any:
    """The bytes of a factor, four along the last axis."""
    if of.bits * of.lanes != 32 * result.lanes or of.bits not in (8, 32):
        raise Undefined(f"the bytes of {of} in `T.dp4a`, which takes four for each {result.scalar}")
    stored = np.asarray(x)
    if of.bits == 32:
        words = np.ascontiguousarray(stored)[..., None].view(np.int8 if of.is_int else np.uint8)
        return words.reshape(*stored.shape, 4).astype(np.int64)
    lanes = stored.reshape(*stored.shape[:-1], result.lanes, 4).astype(np.int64)
    return lanes if result.lanes > 1 else lanes[..., 0, :]
