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


def plain_integer(rng: Random, variables: list[prim.Var], dtype: DType, size: int) -> PrimExpr:
    """An index expression as programs have them: + - *, // and % by positive constants, min, max."""
    if size <= 0:
        return rng.choice(variables) if rng.random() < 0.85 else IntImm(dtype, rng.randint(-4, 16))
    left = rng.randrange(size)
    kind = rng.choice(
        (prim.Add, prim.Add, prim.Sub, prim.Min, prim.Max, "scale", "scale", "divide", "divide", prim.Mul)
    )
    if kind == "scale":
        return prim.Mul(plain_integer(rng, variables, dtype, size - 1), IntImm(dtype, rng.choice((2, 3, 4, 8, -1))))
    if kind == "divide":
        by = IntImm(dtype, rng.choice((2, 3, 4, 4, 8, 16)))
        return rng.choice((prim.FloorDiv, prim.FloorMod))(plain_integer(rng, variables, dtype, size - 1), by)
    a = plain_integer(rng, variables, dtype, left)
    return kind(a, plain_integer(rng, variables, dtype, size - 1 - left))


def plain_boolean(rng: Random, variables: list[prim.Var], dtype: DType, size: int) -> PrimExpr:
    """A comparison of two such expressions."""
    left = rng.randrange(size)
    a, b = plain_integer(rng, variables, dtype, left), plain_integer(rng, variables, dtype, size - 1 - left)
    return rng.choice(_COMPARISONS)(a, b)


def rewritten(rng: Random, expr: PrimExpr) -> PrimExpr:
    """An equal expression, written differently."""
    if isinstance(expr, prim.Var | IntImm):
        if rng.random() < 0.3:
            k = IntImm(expr.dtype, rng.choice((2, 4, 8)))
            return prim.Add(prim.Mul(prim.FloorDiv(expr, k), k), prim.FloorMod(expr, k))
        return expr
    assert isinstance(expr, prim.BinaryOp)
    a, b = rewritten(rng, expr.a), rewritten(rng, expr.b) if not isinstance(expr.b, IntImm) else expr.b
    if (
        isinstance(expr, prim.Mul)
        and isinstance(b, IntImm)
        and isinstance(a, prim.Add | prim.Sub)
        and rng.random() < 0.7
    ):
        return type(a)(prim.Mul(a.a, b), prim.Mul(a.b, b))
    if isinstance(expr, prim.Add | prim.Min | prim.Max | prim.Mul) and rng.random() < 0.5:
        return type(expr)(b, a)
    return type(expr)(a, b)
