"""Arithmetic of scalars and arrays of them, in the precision of their own type: numpy's meaning, for every dtype.

A *value* is a numpy scalar or an array; both operands of an operation have the same dtype, and so has its result
(comparisons give bool). Integers wrap; division by zero gives 0; a NaN wins in minimum and maximum. Vector types are
arrays whose last axis holds the lanes. Callers run under `np.errstate(all="ignore")`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, TypeAlias

import numpy as np

from relaxlang.base.diagnostics import RelaxlangError
from relaxlang.base.dtype import DType
from relaxlang.ir import prim

Value: TypeAlias = Any
Operation: TypeAlias = Callable[[Value, Value], Value]


class Undefined(RelaxlangError):
    """An operation that has no result for these operands; whoever knows the place makes a diagnostic of it."""


@cache
def numpy_type(of: DType) -> np.dtype[Any]:
    """The numpy dtype of one lane."""
    return of.scalar.numpy


@cache
def scalar_type(of: DType) -> Callable[[Any], Value]:
    """The constructor of numpy scalars of a type: from a Python number in its range, or a numpy scalar."""
    made: Callable[[Any], Value] = numpy_type(of).type
    return made


def integer(value: int, of: DType) -> Value:
    """A Python int of any size as a scalar of an integer or bool type; it wraps."""
    return scalar_type(of)(prim.wrap(value, of.scalar))


@lru_cache(4096)
def constant(node: prim.IntImm | prim.FloatImm) -> Value:
    """The value of a constant."""
    if isinstance(node, prim.IntImm):
        return integer(node.value, node.of)
    return scalar_type(node.of)(node.value)


def is_array(value: Value) -> bool:
    """Whether a value has an axis: one for each lane or for each instance that is computed at once."""
    return isinstance(value, np.ndarray) and value.ndim > 0


# --- conversion -------------------------------------------------------------------------------------------------------
def cast(value: Value, source: DType, to: DType) -> Value:
    """`value` converted as numpy's `astype` does.

    A float out of range becomes what the processor's conversion gives: the least value for int32 and int64; the low
    bits of the int32 conversion for narrower types, of the int64 one for uint32. (numpy's own uint32 conversion depends
    on an element's position in the array; this is the one it uses for scalars.)
    """
    if source.scalar is to.scalar:
        return value
    if source.is_float and to.is_uint and to.bits == 32:
        value = value.astype(np.int64)
    return narrow(value.astype(numpy_type(to)), to)


def narrow(value: Value, of: DType) -> Value:
    """The integer types of less than a byte are kept in bytes: wrap to their range."""
    if of.bits >= 8 or not of.is_integer:
        return value
    low = value & value.dtype.type((1 << of.bits) - 1)
    if not of.is_int:
        return low
    sign = value.dtype.type(1 << (of.bits - 1))
    return (low ^ sign) - sign


# --- division ---------------------------------------------------------------------------------------------------------
def truncating_divide(a: Value, b: Value) -> Value:
    """Integer division towards zero; 0 when the divisor is 0; the least value divided by -1 is itself."""
    quotient = np.floor_divide(a, b)
    inexact = (quotient * b != a) & (b != 0) & ((a < 0) != (b < 0))
    return quotient + inexact.astype(quotient.dtype)


def power(a: Value, b: Value) -> Value:
    """`a` to the power of `b`. An integer to a negative power is the exact value rounded towards zero; 0 for 0."""
    if np.asarray(b).dtype.kind != "i":
        return np.power(a, b)
    inverse = np.where(np.abs(a) == 1, np.power(a, b & 1), 0).astype(np.asarray(a).dtype)
    return np.where(b < 0, inverse, np.power(a, np.maximum(b, 0)))[()]


# --- tables -----------------------------------------------------------------------------------------------------------
_ANY: dict[type, Operation] = {
    prim.EQ: operator.eq, prim.NE: operator.ne, prim.LT: operator.lt, prim.LE: operator.le, prim.GT: operator.gt,
    prim.GE: operator.ge, prim.Min: np.minimum, prim.Max: np.maximum,
}  # fmt: skip
_NUMBER: dict[type, Operation] = {
    **_ANY, prim.Add: operator.add, prim.Sub: operator.sub, prim.Mul: operator.mul,
    prim.FloorDiv: np.floor_divide, prim.FloorMod: np.remainder,
}  # fmt: skip
_FLOAT: dict[type, Operation] = {**_NUMBER, prim.Div: operator.truediv, prim.Mod: np.fmod}
_INTEGER: dict[type, Operation] = {**_NUMBER, prim.Div: truncating_divide, prim.Mod: np.fmod}
# Truth values are numbers of one bit that add by `or`, as numpy's do; it refuses their difference, and a division by
# `false` gives 0 like any other.
_BOOL: dict[type, Operation] = {
    **_ANY, prim.Add: operator.or_, prim.Mul: operator.and_, prim.Div: operator.and_, prim.FloorDiv: operator.and_,
    prim.Mod: lambda a, b: a & b & False, prim.FloorMod: lambda a, b: a & b & False,
}  # fmt: skip


def binary(kind: type, of: DType) -> Operation:
    """The function of a binary node for operands of type `of`. Raises `Undefined` when there is none (bool - bool)."""
    table = _FLOAT if of.is_float else _BOOL if of.is_bool else _INTEGER
    operation = table.get(kind)
    if operation is None or (of.is_handle and kind not in (prim.EQ, prim.NE)):
        raise Undefined(f"`{kind.__name__}` of two values of type {of}")
    if of.is_integer and of.bits < 8 and issubclass(kind, prim.BinaryOp):
        wide = operation
        return lambda a, b: narrow(wide(a, b), of)
    return operation


def select(condition: Value, true_value: Value, false_value: Value) -> Value:
    """Elementwise choice between two values of one type."""
    if not is_array(condition):
        return true_value if condition else false_value
    return np.where(condition, true_value, false_value)
