"""Random plain data: names, element types, numbers, strings, arrays, attributes. Edge cases are as likely as others."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np

from relaxlang.base.dtype import DType, dtype
from relaxlang.ir import prim
from relaxlang.ir import struct_info as si
from relaxlang.ir.attrs import Attrs
from tests.property.choices import Choices

INTS = [dtype(f"{kind}{bits}") for bits in (32, 64, 8, 16) for kind in ("int", "uint")]
FLOATS = [dtype(name) for name in ("float32", "float16", "float64", "bfloat16")]
SMALL_FLOATS = [dtype(name) for name in (
    "float8_e4m3fn", "float8_e5m2", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fnuz",
    "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn",
)]  # fmt: skip
NARROW = [dtype(name) for name in ("int4", "uint4", "int1", "uint1", "int2", "uint2")]
SCALARS = [*FLOATS, *INTS, dtype("bool"), *SMALL_FLOATS, *NARROW]
VECTORS = [dtype(name) for name in ("float32x4", "int32x4", "int8x16", "boolx4", "float16x2", "int64x8", "bfloat16x2")]

HINTS = (
    "x", "y", "A", "B", "n", "i", "j", "v", "lv", "gv", "T", "R", "I", "cls", "lambda", "for", "None", "range", "max",
    "float", "len", "Module", "self", "_", "__", "x_1", "x_2", "i0", "é", "λ", "x y", "a.b", "1st", "", "print",
    "int64", "A.data", "result", "f", "main", "true_branch", "where", "var", "inner", "value", "data", "dtype", "tir",
    "relax",
)  # fmt: skip

TEXTS = (
    "", "x", "global", "two words", 'quo"te', "apo'strophe", "back\\slash", "line\nbreak", "\r\n\t", "nul\0nul",
    "é λ ∀ 😀", "\u2028\u2029\x85", "\x1b[31m", "{x}", "%s", "#", '"""', "\\", "\\x00", "a" * 130, "n * 2",
    "\ufeff", "\x7f",
)  # fmt: skip


def name(c: Choices) -> str:
    """A name, also such as no text can hold."""
    return c.pick(HINTS)


def integer(c: Choices, of: DType) -> int:
    """A value of an integer or bool type; small and extreme ones."""
    if of.is_bool:
        return c.number(0, 1)
    low, high = (-(1 << (of.bits - 1)), (1 << (of.bits - 1)) - 1) if of.is_int else (0, (1 << of.bits) - 1)
    value = c.pick((0, 1, 2, 3, 7, 128, low, high, low + 1, high // 2, -1))
    return min(max(value, low), high)


def real(c: Choices) -> float:
    """A double: ordinary, extreme, not a number, either zero, subnormal, random bits."""
    kind = c.number(0, 12)
    known = (0.0, 1.0, -1.0, 0.1, -0.0, math.inf, -math.inf, math.nan, 5e-324, 1.7976931348623157e308, 1e-7, 1e16)
    if kind < len(known):
        return known[kind]
    bits = c.number(0, (1 << 64) - 1)
    value: float = struct.unpack("<d", bits.to_bytes(8, "little"))[0]
    return value


def constant(c: Choices, of: DType) -> prim.PrimExpr:
    """A constant of a type; a vector is a broadcast."""
    if of.lanes > 1:
        return prim.Broadcast(constant(c, of.scalar), of.lanes)
    return prim.FloatImm(of, real(c)) if of.is_float else prim.IntImm(of, integer(c, of))


def array(c: Choices) -> np.ndarray[Any, Any]:
    """An array of any type that numpy has: scalars, empty ones, small ones, some that are too long for a list."""
    of = c.pick([t for t in SCALARS if t not in NARROW])
    shape = c.pick(((), (2,), (2, 3), (0,), (3, 0), (1,), (1, 1, 2), (65,), (5, 14)))
    count = math.prod(shape)
    if count > 64 or c.chance(4):
        data = np.arange(count * of.numpy.itemsize, dtype=np.uint8) * 37 + c.number(0, 255)
        raw = data.astype(np.uint8)
        if of.is_bool:
            raw &= 1
        elif of.bits < 8:
            raw &= (1 << of.bits) - 1
        return raw.view(of.numpy).reshape(shape)
    if of.is_float:
        with np.errstate(all="ignore"):
            return np.array([real(c) for _ in range(count)], dtype=np.float64).astype(of.numpy).reshape(shape)
    return np.array([integer(c, of) for _ in range(count)], dtype=of.numpy).reshape(shape)


def plain(c: Choices, depth: int = 2) -> Any:
    """A value that an attribute may have."""
    kind = c.number(0, 13 if depth else 9)
    if kind == 0:
        return c.pick((0, 1, -1, 7, 1 << 31, -(1 << 31), (1 << 63) - 1, -(1 << 63), 1 << 63, 1 << 64))
    if kind == 1:
        return c.pick(TEXTS)
    if kind == 2:
        return c.chance()
    if kind == 3:
        return real(c)
    if kind == 4:
        return None
    if kind == 5:
        return c.pick([*SCALARS, *VECTORS, dtype("handle"), dtype("void")])
    if kind in (6, 7):
        return constant(c, c.pick(SCALARS))
    if kind == 8:
        return array(c)
    if kind == 9:
        return c.pick((si.OBJECT, si.TensorStructInfo(None, dtype("int8"), 2), si.ShapeStructInfo(None, 3)))
    if kind == 10:
        return Attrs(attributes(c, depth - 1))
    return c.some(lambda: plain(c, depth - 1), 0, 3)


KEYS = (
    "num_input", "relax.force_pure", "Primitive", "tir.noalias", "op_pattern", "a.b c", "", 'q"', "é", "global symbol",
    "Codegen", "lambda", "nul\0", "target",
)  # fmt: skip


def attributes(c: Choices, depth: int = 2) -> dict[str, Any]:
    """Some attributes."""
    count = c.pick((0, 0, 1, 2, 4))
    return {c.pick(KEYS): plain(c, depth) for _ in range(count)}
