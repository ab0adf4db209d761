"""Conversions between element types.

Defined for every input. A float that an integer type cannot hold gives what numpy gives on x86: the lowest number of
int32 (for types up to 32 bits) or int64, of which the target keeps the low bits; NaN likewise.
"""

from __future__ import annotations

from relaxlang.base.dtype import DType
from relaxlang.codegen.algebra import Num, inline_call
from relaxlang.codegen.lltypes import is_narrow, value_type
from relaxlang.codegen.narrow import rounded


def convert(value: Num, source: DType, to: DType) -> Num:
    """`value`, of type `source`, as type `to` with the same number of lanes."""
    if source is to:
        return value
    if to.is_bool:
        return value.differs(0)
    if source.is_float and to.is_float:
        return _float_to_float(value, source, to)
    if source.is_float:
        return inline_call(value.at, f"rlx.to.{to.scalar.name}", lambda x: _float_to_int(x, to), value)
    if to.is_float:
        wide = "double" if to.bits == 64 else "float"
        op = "sitofp" if source.is_int else "uitofp"
        return rounded(value.convert(op, wide), to)
    target = value_type(to.scalar)
    if source.is_handle or to.is_handle:
        op = "ptrtoint" if source.is_handle else "inttoptr"
        return value if source.is_handle and to.is_handle else value.convert(op, target)
    bits = 1 if source.is_bool else source.bits
    if bits == to.bits:
        return value
    op = "trunc" if to.bits < bits else "sext" if source.is_int else "zext"
    return value.convert(op, target)


def _float_to_float(value: Num, source: DType, to: DType) -> Num:
    if to.bits == 64:
        return value.convert("fpext", "double")
    if is_narrow(to):
        return rounded(value, to)
    return value.convert("fptrunc", "float") if source.bits == 64 else value


def _float_to_int(value: Num, to: DType) -> Num:
    narrow = to.bits < 32 or (to.bits == 32 and to.is_int)
    target = value_type(to.scalar)
    if narrow:
        made = _indefinite(value, 32)
        return made if to.bits == 32 else made.convert("trunc", target)
    if to.bits == 32:
        return (value >= 2.0**31).where(_indefinite(value, 64).convert("trunc", "i32"), _indefinite(value, 32))
    if to.is_int:
        return _indefinite(value, 64)
    high = 2.0**63
    upper = _indefinite(value - high, 64) ^ -(1 << 63)
    return (value >= high).where(upper, _indefinite(value, 64))


def _indefinite(value: Num, bits: int) -> Num:
    """Truncation to a signed integer; its lowest number for what does not fit and for NaN, as the x86 instruction."""
    limit = 2.0 ** (bits - 1)
    made = value.convert("fptosi", f"i{bits}")
    fits = (value < limit) & (value >= -limit)
    return fits.where(made, -(1 << bits - 1))
