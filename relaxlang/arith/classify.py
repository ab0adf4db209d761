"""Which expressions may wrap around, and which have effects.

An *index* expression is made of int32 and int64 variables and constants; a program whose index arithmetic overflows
is wrong already, so such expressions are taken to have their mathematical value. *Data* comes from memory, from
calls, from unsigned or narrow types; it wraps around as the program says, and a sum of data equals its mathematical
value only where its bounds prove that it fits. What has *effects* is never moved, dropped or doubled.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from relaxlang.base.dtype import DType
from relaxlang.ir import prim
from relaxlang.ir.intrinsics import INTRINSICS
from relaxlang.ir.prim import Add, Call, Cast, Mul, PrimExpr, Sub, Var

INDEX, DATA, EFFECT = 0, 1, 2
INDEX_BITS = frozenset({1, 32, 64})  # widths of the variables that are taken for indices
RING = frozenset({Add, Sub, Mul})
# Intrinsics whose result is as trustworthy as their arguments: they cannot overflow.
_TRANSPARENT = frozenset(
    "if_then_else likely bitwise_and bitwise_or bitwise_xor bitwise_not shift_right clz popcount min_value max_value "
    "vscale".split()
)
_LEAVES = frozenset({Var, prim.SizeVar, prim.IntImm, prim.FloatImm, prim.StringImm})


def is_integer(of: DType) -> bool:
    """Whether values of the type are single integers (bool is not)."""
    return of.lanes == 1 and of.kind in ("int", "uint")


@cache
def type_range(of: DType) -> tuple[int, int]:
    """The smallest and the largest value of an integer type or bool."""
    if of.kind == "int":
        return -(1 << (of.bits - 1)), (1 << (of.bits - 1)) - 1
    return 0, (1 << of.bits) - 1


def operands(expr: PrimExpr) -> Iterator[PrimExpr]:
    """The expressions directly below one, in order."""
    if expr.__class__ in _LEAVES:
        return
    for name in expr.FIELDS:
        value = getattr(expr, name)
        if isinstance(value, PrimExpr):
            yield value
        elif value.__class__ is tuple:
            for item in value:
                if isinstance(item, PrimExpr):
                    yield item


def own_class(expr: PrimExpr) -> int:
    """INDEX, DATA or EFFECT, for a node without its operands."""
    cls = expr.__class__
    if cls in (Var, prim.SizeVar):
        return INDEX if expr.dtype.kind in ("int", "bool") and expr.dtype.bits in INDEX_BITS else DATA
    if isinstance(expr, Call):
        info = INTRINSICS.get(expr.op) if isinstance(expr.op, str) else None
        if info is None or not info.pure:
            return EFFECT
        return INDEX if expr.op in _TRANSPARENT else DATA
    if cls in (prim.BufferLoad, prim.Reduce, prim.Shuffle):
        return DATA
    if isinstance(expr, Cast):
        return INDEX if expr.value.dtype.kind in ("int", "bool") else DATA
    if cls in RING and not (expr.dtype.kind == "int" and expr.dtype.bits in INDEX_BITS):
        return DATA
    return INDEX


def preserves_value(cast: Cast) -> bool:
    """Whether the target type holds every value of the source type (integers)."""
    source, target = cast.value.dtype, cast.of
    if not (is_integer(source) and is_integer(target)):
        return False
    low, high = type_range(source)
    least, most = type_range(target)
    return least <= low and high <= most
