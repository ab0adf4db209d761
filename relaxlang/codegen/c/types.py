"""How element types and numbers look in C.

| dtype | value | memory |
|---|---|---|
| bool | bool | uint8_t |
| int, uint of n bits | intn_t, uintn_t, at least 8 bits | the same |
| float32, float64 | float, double | the same |
| float16, bfloat16, float8 and smaller | float, holding a value of the small type | uint16_t or uint8_t |
| handle | void * | the same |
"""

from __future__ import annotations

import math
import re

import numpy as np

from relaxlang.base.dtype import DType
from relaxlang.codegen.lltypes import is_narrow

KEYWORDS = frozenset(
    "auto break case char const continue default do double else enum extern float for goto if inline int long register "
    "restrict return short signed sizeof static struct switch typedef union unsigned void volatile while bool true "
    "false main NULL INFINITY NAN and or not xor asm typeof errno stdin stdout stderr EOF I complex imaginary".split()
)
_FOREIGN = re.compile(r"[^A-Za-z0-9_]")


def value_type(of: DType) -> str:
    """The C type of one lane of a value."""
    if of.is_bool:
        return "bool"
    if of.is_integer:
        return f"{'u' if of.is_uint else ''}int{max(8, of.bits)}_t"
    if of.is_float:
        return "double" if of.bits == 64 else "float"
    return "void *" if of.is_handle else "void"


def memory_type(of: DType) -> str:
    """The C type of one lane in memory."""
    if of.is_bool:
        return "uint8_t"
    return f"uint{of.scalar.itemsize * 8}_t" if is_narrow(of) else value_type(of)


def declare(of: str, name: str) -> str:
    """A declaration without its semicolon: `float x`, `void *p`."""
    return f"{of}{name}" if of[-1] in "* " else f"{of} {name}"


def integer(value: int, of: DType) -> str:
    """A literal of an integer type; promotion gives small ones the type `int`."""
    if of.bits < 64 or -(1 << 31) < value < 1 << 31:
        if of.is_uint and of.bits >= 32:
            return f"{value}u"
        return "INT32_MIN" if value == -(1 << 31) else str(value)
    if value == -(1 << 63):
        return "INT64_MIN"
    return f"{'U' if of.is_uint else ''}INT64_C({value})"


def floating(value: float, of: DType) -> str:
    """The shortest literal that reads back as the number, rounded to float32 (or kept, for float64)."""
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    if of.bits == 64:
        return repr(float(value))
    single = np.float32(value)
    if np.isinf(single):
        return "INFINITY" if single > 0 else "-INFINITY"
    text = np.format_float_scientific(single, trim="-") if _extreme(single) else str(single)
    return text + ("f" if any(c in text for c in ".e") else ".0f")


def _extreme(value: np.float32) -> bool:
    return value != 0 and not 1e-4 <= abs(value) < 1e7


def identifier(name: str) -> str:
    """A name with what C does not allow replaced."""
    made = prefix(name)
    return f"{made}_" if made in KEYWORDS else made


def prefix(name: str) -> str:
    """The same for the beginning of a longer name, which no keyword clashes with."""
    made = _FOREIGN.sub("_", name) or "_"
    return f"_{made}" if made[0].isdigit() else made
