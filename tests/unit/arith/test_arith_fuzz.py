"""Whole simplifications and proofs of random expressions, against evaluation for every value of the variables.

int8 stands for the types of indices and of data: all 256 values of two variables can be tried.
"""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from int_evaluate import Values, evaluate, every
from int_random import boolean, integer

from relaxlang.arith import Analyzer, classify
from relaxlang.base.dtype import dtype
from relaxlang.ir.prim import IntImm, PrimExpr, Var
from relaxlang.ir.tir import Range

INT8, UINT8 = dtype("int8"), dtype("uint8")


def _check(seed: int, index: bool, of: str) -> None:
    rng = Random(seed)
    kind = dtype(of)
    variables = [Var("x", kind), Var("y", kind)]
    analyzer, ranges = Analyzer(), []
    for var in variables:
        low, extent = (0 if rng.random() < 0.5 or of == "uint8" else rng.randint(-20, 10)), rng.randint(1, 40)
        if rng.random() < 0.5:
            low, extent = classify.type_range(kind)[0], 256
        else:
            analyzer.bind(var, Range(IntImm(kind, low), IntImm(kind, extent)))
        ranges.append(range(low, low + extent))
    make = rng.choice((integer, boolean))
    expr: PrimExpr = make(rng, variables, kind, rng.randint(2, 9))
    if of == "uint8":
        return _compare(analyzer, _unsigned(expr), every(variables, ranges), index)
    return _compare(analyzer, expr, every(variables, ranges), index)


def _unsigned(expr: PrimExpr) -> PrimExpr:
    """Constants below 0 become large ones, as the parser would have it."""
    from relaxlang.ir.visit import Rewriter, on

    class Wrap(Rewriter):
        @on(IntImm)
        def imm(self, node: IntImm) -> IntImm:
            return IntImm(node.of, node.value % 256) if node.of is UINT8 else node

    made: PrimExpr = Wrap()(expr)
    return made


def _compare(analyzer: Analyzer, expr: PrimExpr, env: dict[Var, np.ndarray], index: bool) -> None:
    before = evaluate(expr, env)
    matters = before.defined & before.exact if index else before.defined
    simplified = analyzer.simplify(expr)
    after = evaluate(simplified, env)
    assert not (matters & (~after.defined | (before.value != after.value))).any()
    values = before.value[matters]
    if expr.dtype.is_bool:
        assert not analyzer.can_prove(expr) or values.all()
    elif len(values):
        low, high = analyzer.const_int_bound(expr)
        assert low <= values.min() and values.max() <= high
        modulus, remainder = analyzer.modular_set(expr)
        assert not ((values - remainder) % modulus if modulus else values - remainder).any()


@pytest.mark.parametrize("block", range(8))
def test_index_expressions(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classify, "INDEX_BITS", frozenset({1, 8}))
    for seed in range(block * 40, block * 40 + 40):
        _check(seed, True, "int8")


@pytest.mark.parametrize("of", ["int8", "uint8"])
@pytest.mark.parametrize("block", range(4))
def test_data_wraps_around(block: int, of: str) -> None:
    for seed in range(block * 40, block * 40 + 40):
        _check(seed, False, of)


def test_simplifying_again_changes_little() -> None:
    """A simplified expression is a fixed point, but for rare ones that a second look still shortens."""
    changed = 0
    for seed in range(300):
        rng = Random(seed)
        variables = [Var(name) for name in "xyz"]
        analyzer = Analyzer()
        for var in variables:
            analyzer.bind(var, Range(IntImm(var.dtype, 0), IntImm(var.dtype, rng.randint(2, 64))))
        once = analyzer.simplify(boolean(rng, variables, variables[0].dtype, 6))
        fresh = Analyzer()
        for var in variables:
            low, high = analyzer.const_int_bound(var)
            fresh.bind(var, Range(IntImm(var.dtype, int(low)), IntImm(var.dtype, int(high - low) + 1)))
        changed += fresh.simplify(once) != once
    assert changed <= 12


@pytest.mark.parametrize("index", [True, False], ids=["index", "data"])
@pytest.mark.parametrize("block", range(4))
def test_under_assumptions(block: int, index: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is simplified and proved under random assumptions holds wherever these hold."""
    if index:
        monkeypatch.setattr(classify, "INDEX_BITS", frozenset({1, 8}))
    for seed in range(block * 40, block * 40 + 40):
        rng = Random(seed)
        variables = [Var(name, INT8) for name in "xyz"]
        low = rng.choice((0, 0, -6))
        env = every(variables, [range(low, low + 16)] * 3)
        analyzer = Analyzer()
        for var in variables:
            analyzer.bind(var, Range(IntImm(INT8, low), IntImm(INT8, 16)))
        assumed = [boolean(rng, variables, INT8, rng.randint(0, 3), 20) for _ in range(rng.randint(1, 3))]
        holds = np.logical_and.reduce([_true(evaluate(one, env), index) for one in assumed])
        with analyzer.assuming(*assumed):
            for _ in range(4):
                expr = rng.choice((integer, boolean))(rng, variables, INT8, rng.randint(1, 6), 20)
                before = evaluate(expr, env)
                matters = holds & before.defined & (before.exact if index else True)
                after = evaluate(analyzer.simplify(expr), env)
                assert not (matters & (~after.defined | (before.value != after.value))).any(), seed
                if expr.dtype.is_bool and analyzer.can_prove(expr):
                    assert before.value[matters].all(), seed


def _true(values: Values, index: bool) -> np.ndarray:
    return (values.value != 0) & values.defined & (values.exact if index else True)
