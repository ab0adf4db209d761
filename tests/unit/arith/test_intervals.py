"""Interval sets, regions, and solving for variables, against enumeration."""

from __future__ import annotations

from random import Random

import pytest
from int_evaluate import evaluate, every
from int_random import plain_boolean, plain_integer

from relaxlang.arith import Analyzer
from relaxlang.arith.deduce import (
    deduce_bound,
    detect_clip_bound,
    detect_linear_equation,
    solve_equation,
    solve_linear_inequalities,
)
from relaxlang.arith.intervals import (
    EVERYTHING,
    IntSet,
    estimate_region_lower_bound,
    estimate_region_strict_bound,
    estimate_region_upper_bound,
    int_set,
    intersect,
    union,
)
from relaxlang.ir.prim import EQ, INT32, And, IntImm, PrimExpr, SizeVar, Var, as_prim
from relaxlang.ir.tir import Range

P, Q, R = (Var(name) for name in "ijk")
N, M = SizeVar("n"), SizeVar("m")


def dom(extent: int | PrimExpr, low: int = 0) -> Range:
    return Range(IntImm(INT32, low), as_prim(extent, INT32))


def ends(found: IntSet) -> tuple[PrimExpr | int | None, PrimExpr | int | None]:
    low, high = (end.value if isinstance(end, IntImm) else end for end in found)
    return low, high


def test_int_sets() -> None:
    domain = {P: dom(16), Q: dom(4)}
    assert ends(int_set(P * 4 + Q, domain)) == (0, 63)
    assert ends(int_set(N * 8 + P, domain)) == (N * 8, N * 8 + 15)
    assert ends(int_set(P * -1 + N, domain)) == (N - 15, N)
    assert ends(int_set(P // 4, domain)) == (0, 3)
    assert ends(int_set(P - P, domain)) == (0, 0)
    assert ends(int_set(P % 4, domain)) == (0, 3)
    assert ends(int_set(P * M, {P: dom(N)})) == (0, N * M - M)
    assert int_set(P, {P: IntSet(None, N)}) == IntSet(None, N)


def test_random_int_sets_hold_every_value() -> None:
    for seed in range(150):
        rng = Random(seed)
        variables = [P, Q, R]
        expr = plain_integer(rng, variables, INT32, rng.randint(1, 7))
        domain = {P: dom(rng.randint(1, 9), rng.randint(-5, 5)), Q: dom(rng.randint(1, 9))}
        found = int_set(expr, domain)
        env = every(
            variables, [range(d.min.value, d.min.value + d.extent.value) for d in domain.values()] + [range(-7, 8)]
        )
        values = evaluate(expr, env)
        for end, side in zip(found, (1, -1)):
            if end is not None:
                assert (side * (values.value - evaluate(end, env).value) >= 0).all(), seed


def test_union_and_intersection() -> None:
    a, b = IntSet(as_prim(0), as_prim(7)), IntSet(as_prim(4), as_prim(9))
    assert ends(union([a, b])) == (0, 9)
    assert ends(intersect([a, b])) == (4, 7)
    assert union([a, EVERYTHING]) == EVERYTHING
    assert intersect([a, EVERYTHING]) == a
    assert union([IntSet(N, N), IntSet(N + 2, N + 2)]) == IntSet(N, N + 2)


def test_regions() -> None:
    domain = {P: dom(4), Q: dom(8)}
    region = [Range(P * 8 + Q, as_prim(1)), Range(Q, as_prim(3))]
    assert [ends(d) for d in estimate_region_upper_bound(region, domain)] == [(0, 31), (0, 9)]
    assert estimate_region_strict_bound(region, domain) is None  # the two dimensions move together
    exact = estimate_region_strict_bound([Range(P * 8 + Q, as_prim(1))], domain)
    assert exact is not None and ends(exact[0]) == (0, 31)
    tiles = estimate_region_lower_bound([Range(P * 2, as_prim(2)), Range(Q + 1, as_prim(1))], domain)
    assert tiles is not None and [ends(d) for d in tiles] == [(0, 7), (1, 8)]
    assert estimate_region_strict_bound([Range(P * 2, as_prim(1))], domain) is None  # gaps
    limited = estimate_region_strict_bound([Range(P * 8 + Q, as_prim(1))], domain, predicate=P * 8 + Q < 30)
    assert limited is not None and ends(limited[0]) == (0, 29)


def test_linear_equations() -> None:
    found = detect_linear_equation(P * 4 + Q * N + 7, [P, Q])
    assert found is not None and found[:2] == [as_prim(4), N] and ends(IntSet(found[2], None))[0] == 7
    assert detect_linear_equation(P * Q, [P, Q]) is None
    assert detect_linear_equation(P // 2, [P]) is None
    assert solve_equation(P, P * 4 + 8, N * 4) == N - 2
    assert solve_equation(P, P * 4, N) is None
    assert solve_equation(P, P * P, N) is None


def test_deduced_bounds() -> None:
    assert ends(deduce_bound(P, P * 4 + Q < 32, {Q: dom(4)}, {Q: dom(4)})) == (None, 7)
    assert ends(deduce_bound(P, And(P >= 3, P < N))) == (3, N - 1)
    assert ends(deduce_bound(P, EQ(P * 2, as_prim(10)))) == (5, 5)
    assert deduce_bound(P, Q < 3) == EVERYTHING
    with pytest.raises(ValueError, match="sign"):
        deduce_bound(P, P * Q < 3)


def test_deduced_bounds_are_sufficient() -> None:
    checked = 0
    for seed in range(300):
        rng = Random(seed)
        condition = plain_boolean(rng, [P, Q, R], INT32, rng.randint(1, 5))
        relax = {Q: dom(rng.randint(1, 6), rng.randint(-3, 3))}
        try:
            found = deduce_bound(P, condition, relax=relax)
        except ValueError:
            continue
        if found == EVERYTHING:
            continue
        checked += 1
        low = relax[Q].min.value
        env = every([P, Q, R], [range(-20, 21), range(low, low + relax[Q].extent.value), range(-6, 7)])
        inside = env[P] == env[P]
        for end, side in zip(found, (1, -1)):
            if end is not None:
                inside = inside & (side * (env[P] - evaluate(end, env).value) >= 0)
        assert (evaluate(condition, env).value[inside] == 1).all(), seed
    assert checked > 40


def test_systems_of_inequalities() -> None:
    found = solve_linear_inequalities([P, Q], [P >= 0, P < 8, Q >= P, Q + P < 20])
    assert ends(found[Q]) == (0, 19)
    env = every([P, Q], [range(-30, 30)] * 2)
    solved = (env[P] >= 0) & (env[P] < 8) & (env[Q] >= env[P]) & (env[Q] + env[P] < 20)
    low, high = found[P]
    assert low is not None and high is not None
    assert ((env[P] >= evaluate(low, env).value) & (env[P] <= evaluate(high, env).value))[solved].all()


def test_clip_bounds() -> None:
    found = detect_clip_bound(And(P >= 1, And(P < N - 1, Q * 2 < 9)), [P, Q])
    assert found is not None
    assert ends(found[P]) == (1, N - 2) and ends(found[Q]) == (None, 4)
    assert detect_clip_bound(P + Q < 3, [P, Q]) is None
    assert detect_clip_bound(EQ(P // 2, Q), [P]) is None


def test_ranges_of_sets() -> None:
    whole = IntSet(N, N + 3).to_range(Analyzer())
    assert whole is not None and whole.min == N and ends(IntSet(whole.extent, None))[0] == 4
    assert EVERYTHING.to_range(Analyzer()) is None
