"""Random integer and bool expressions, from a seeded generator."""

from __future__ import annotations

from random import Random

from relaxlang.base.dtype import DType
from relaxlang.ir import prim
from relaxlang.ir.prim import BOOL, Call, IntImm, Not, PrimExpr, Select

_COMPARISONS = (prim.LT, prim.LE, prim.EQ, prim.NE, prim.GT, prim.GE)


def integer(rng: Random, variables: list[prim.Var], dtype: DType, size: int, top: int = 127) -> PrimExpr:
    """An expression of about `size` operations; constants mostly small, some near ±`top`."""
    if size <= 0:
        return rng.choice(variables) if rng.random() < 0.75 else _constant(rng, dtype, top)
    left = rng.randrange(size)
    kind = rng.choices(
        (prim.Add, prim.Sub, prim.Mul, prim.FloorDiv, prim.FloorMod, prim.Min, prim.Max, "const", "other"),
        (5, 4, 2, 2, 2, 2, 2, 8, 1),
    )[0]
    if kind == "other":
        return _other(rng, variables, dtype, size, top)
    if kind == "const":
        kind = rng.choice((prim.Add, prim.Mul, prim.Sub, prim.FloorDiv, prim.FloorMod, prim.FloorDiv, prim.FloorMod))
        value = _constant(rng, dtype, top)
        if kind in (prim.FloorDiv, prim.FloorMod) and (value.value == 0 or rng.random() < 0.8):
            value = IntImm(dtype, rng.choice((1, 2, 2, 3, 4, 4, 5, 6, 8, 8, 12, 16)))
        return kind(integer(rng, variables, dtype, size - 1, top), value)
    a = integer(rng, variables, dtype, left, top)
    return kind(a, integer(rng, variables, dtype, size - 1 - left, top))


def _constant(rng: Random, dtype: DType, top: int) -> IntImm:
    return IntImm(dtype, rng.choice((0, 1, 2, 3, 4, 8, -1, -2, -4, rng.randint(-12, 12), rng.choice((top, -top)))))


def _other(rng: Random, variables: list[prim.Var], dtype: DType, size: int, top: int) -> PrimExpr:
    a = integer(rng, variables, dtype, size // 2, top)
    b = integer(rng, variables, dtype, size // 2, top)
    which = rng.randrange(7)
    if which == 0:
        return Select(boolean(rng, variables, dtype, 1), a, b)
    if which == 1:
        return Call(dtype, "if_then_else", (boolean(rng, variables, dtype, 1), a, b))
    if which == 2:
        return prim.Div(a, b)
    if which == 3:
        return prim.Mod(a, b)
    if which == 4:
        return Call(dtype, rng.choice(("shift_left", "shift_right")), (a, IntImm(dtype, rng.randrange(5))))
    if which == 5:
        return Call(dtype, rng.choice(("bitwise_and", "bitwise_or", "bitwise_xor")), (a, b))
    return Call(dtype, "bitwise_not", (a,))


def boolean(rng: Random, variables: list[prim.Var], dtype: DType, size: int, top: int = 127) -> PrimExpr:
    """A condition of about `size` operations."""
    choice = rng.random()
    if size <= 2 or choice < 0.5:
        left = rng.randrange(size + 1)
        a = integer(rng, variables, dtype, left, top)
        return rng.choice(_COMPARISONS)(a, integer(rng, variables, dtype, size - left, top))
    if choice < 0.65:
        return Not(boolean(rng, variables, dtype, size - 1, top))
    if choice < 0.7:
        return rng.choice((prim.EQ, prim.NE))(
            boolean(rng, variables, dtype, size // 2, top), boolean(rng, variables, dtype, size // 2, top)
        )
    left = rng.randrange(size)
    a = boolean(rng, variables, dtype, left, top)
    return rng.choice((prim.And, prim.Or))(a, boolean(rng, variables, dtype, size - 1 - left, top))


def truth(value: bool) -> IntImm:
    """A bool constant."""
    return IntImm(BOOL, int(value))
