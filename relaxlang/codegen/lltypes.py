"""How element types look in LLVM: as values in registers, and in memory.

| dtype | register | memory |
|---|---|---|
| bool | i1 | i8 (0 or 1) |
| int, uint of n bits | in | in, at least i8 |
| float32, float64 | float, double | the same |
| float16, bfloat16, float8 and smaller | float, holding a value of the small type | i16 or i8 |
| handle | ptr | ptr |

Vectors are `<n x …>` of these.
"""

from __future__ import annotations

import struct
from functools import lru_cache

import numpy as np

from relaxlang.base.diagnostics import fail
from relaxlang.base.dtype import DType


@lru_cache(maxsize=256)
def value_type(of: DType) -> str:
    """The LLVM type of a value of this dtype in a register."""
    return _laned(_scalar_value(of), of.lanes)


@lru_cache(maxsize=256)
def memory_type(of: DType) -> str:
    """The LLVM type of a value of this dtype in memory."""
    return _laned(_scalar_memory(of), of.lanes)


def _laned(scalar: str, lanes: int) -> str:
    if lanes < 0:
        fail("RLX5013", "scalable vectors have no code for this processor", help="vectors of a fixed length have")
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


def _scalar_value(of: DType) -> str:
    if of.is_bool:
        return "i1"
    if of.is_integer:
        return f"i{of.bits}"
    if of.is_float:
        return "double" if of.bits == 64 else "float"
    return "ptr" if of.is_handle else "void"


def _scalar_memory(of: DType) -> str:
    if of.is_bool or (of.is_integer and of.bits < 8):
        return "i8"
    return f"i{of.itemsize // of.lanes * 8}" if is_narrow(of) else _scalar_value(of)


def is_narrow(of: DType) -> bool:
    """Whether it is a float narrower than 32 bits: computed with in float32 and rounded after every operation."""
    return of.is_float and of.bits < 32


def constant(value: int | float, of: DType) -> str:
    """The LLVM literal of a number, rounded to this dtype; a splat for vectors."""
    if of.is_bool:
        text = "true" if value else "false"
    elif of.is_float:
        text = float_literal(_narrowed(float(value), of), double=of.bits == 64)
    elif of.is_handle:
        return "null" if not value else f"inttoptr (i64 {value} to ptr)"
    else:
        text = str(int(value))
    return text if of.lanes == 1 else f"splat ({_scalar_value(of)} {text})"


def _narrowed(value: float, of: DType) -> float:
    return float(np.float64(value).astype(of.scalar.numpy)) if is_narrow(of) else value


def float_literal(value: float, double: bool = False) -> str:
    """A float or double constant by its bits, as LLVM wants it: the pattern of the double of the same value."""
    if not double:
        value = to_float32(value)
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def to_float32(value: float) -> float:
    """The float32 nearest to `value`, as a Python float; overflow gives infinity."""
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    return rounded
