"""Deep and wide expressions: no recursion error, and steps in proportion to the size."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from relaxlang.arith import Analyzer
from relaxlang.ir.prim import INT32, LT, Add, And, IntImm, Min, Mul, PrimExpr, Var, as_prim

VARIABLES = [Var(f"v{k}") for k in range(10_000)]


def _sum(n: int) -> PrimExpr:
    expr: PrimExpr = VARIABLES[0]
    for var in VARIABLES[1:n]:
        expr = expr + var
    return expr


def _minimum(n: int) -> PrimExpr:
    expr: PrimExpr = VARIABLES[0]
    for var in VARIABLES[1:n]:
        expr = Min(expr, var)
    return expr


def _nested(n: int) -> PrimExpr:
    expr: PrimExpr = VARIABLES[0]
    for k in range(n // 4):
        expr = Min((expr + k) // 2, VARIABLES[k])
    return expr


def _product(n: int) -> PrimExpr:
    expr: PrimExpr = VARIABLES[0]
    for var in VARIABLES[1:n]:
        expr = Mul(expr, var)
    return expr


def _splits(n: int) -> PrimExpr:
    expr: PrimExpr = as_prim(0)
    for var in VARIABLES[: n // 4]:
        expr = expr + var % 8 + var // 8 * 8
    return expr


def _conjunction(n: int) -> PrimExpr:
    expr: PrimExpr = LT(VARIABLES[1], VARIABLES[0])
    for var in VARIABLES[2 : n // 2]:
        expr = And(expr, LT(var, VARIABLES[0]))
    return expr


SHAPES: list[Callable[[int], PrimExpr]] = [_sum, _minimum, _nested, _product, _splits, _conjunction]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda f: f.__name__[1:])
def test_steps_are_linear(shape: Callable[[int], PrimExpr]) -> None:
    steps = {}
    for size in (250, 1_000, 4_000):
        analyzer = Analyzer()
        analyzer.simplify(shape(size))
        steps[size] = analyzer.stats["steps"]
    assert steps[1_000] <= 5 * steps[250] and steps[4_000] <= 5 * steps[1_000], steps


@pytest.mark.parametrize("shape", SHAPES, ids=lambda f: f.__name__[1:])
def test_ten_thousand_terms(shape: Callable[[int], PrimExpr]) -> None:
    analyzer = Analyzer()
    expr = shape(10_000)
    simplified = analyzer.simplify(expr)
    assert simplified.dtype is expr.dtype
    assert analyzer.const_int_bound(expr) is not None


def test_shared_operands_are_read_once() -> None:
    expr: PrimExpr = VARIABLES[0]
    for _ in range(28):
        expr = Add(expr, expr)
    assert Analyzer().simplify(expr) == VARIABLES[0] * IntImm(INT32, 1 << 28)
