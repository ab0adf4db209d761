"""Proofs about random index expressions, by this analyzer and by apache-tvm's; run by hand for a large sample:

    python tests/oracle/arith_compare.py 10000 [SEED]

Every statement is about three int32 variables with small ranges, so that enumeration tells whether it is true. A
proof of a false statement is a contradiction. A third of the statements are comparisons at random, a third say that
an expression stays within a bound at or next to its real extreme values, a third that it equals itself written in
another way.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit" / "arith"))
from int_evaluate import evaluate, every
from int_random import plain_boolean, plain_integer, rewritten

from relaxlang.arith import Analyzer
from relaxlang.ir import prim
from relaxlang.ir.prim import INT32, IntImm, PrimExpr, Var
from relaxlang.ir.tir import Range

Bounds = dict[Var, range]


def statement(rng: Random) -> tuple[PrimExpr, Bounds, np.ndarray]:
    """A condition, the ranges of its variables, and its truth for each combination of their values."""
    variables = [Var(name, INT32) for name in "xyz"]
    bounds = {}
    for var in variables:
        low = rng.choice((0, 0, 0, rng.randint(-8, 4)))
        bounds[var] = range(low, low + rng.randint(1, 16))
    env = every(variables, list(bounds.values()))
    size = rng.randint(2, 8)
    kind = rng.randrange(3)
    if kind == 0:
        condition = plain_boolean(rng, variables, INT32, size)
    else:
        expr = plain_integer(rng, variables, INT32, size)
        value = evaluate(expr, env)
        if kind == 1 and value.defined.any():
            low, high = int(value.value[value.defined].min()), int(value.value[value.defined].max())
            slack = rng.choice((0, 0, 1, -1))
            condition = rng.choice(
                (prim.LE(expr, IntImm(INT32, high + slack)), prim.LT(IntImm(INT32, low - 1 - slack), expr))
            )
        else:
            condition = prim.EQ(expr, rewritten(rng, expr))
    truth = evaluate(condition, env)
    return condition, bounds, (truth.value != 0) | ~truth.defined


def ours(condition: PrimExpr, bounds: Bounds) -> bool:
    """Whether this package's analyzer proves it."""
    analyzer = Analyzer()
    for var, values in bounds.items():
        analyzer.bind(var, Range(IntImm(INT32, values.start), IntImm(INT32, len(values))))
    return analyzer.can_prove(condition)


class Tvm:
    """apache-tvm's analyzer."""

    def __init__(self) -> None:
        import tvm
        from tvm import sym, tirx

        self.ir, self.sym, self.tir = tvm.ir, sym, tirx

    def convert(self, expr: PrimExpr, variables: dict[Var, Any]) -> Any:
        """The expression as one of TVM."""
        if isinstance(expr, Var):
            return variables[expr]
        if isinstance(expr, IntImm):
            return self.tir.const(expr.value, str(expr.dtype))
        operands = [getattr(expr, name) for name in expr.FIELDS]
        kind = getattr(self.tir, type(expr).__name__)
        return kind(*(self.convert(operand, variables) for operand in operands))

    def prepared(self, condition: PrimExpr, bounds: Bounds) -> tuple[Any, Any]:
        """An analyzer that knows the bounds, and the condition."""
        variables = {var: self.tir.Var(var.name, "int32") for var in bounds}
        analyzer = self.sym.Analyzer()
        for var, values in bounds.items():
            analyzer.bind(variables[var], self.ir.Range.from_min_extent(values.start, len(values)))
        return analyzer, self.convert(condition, variables)


def compare(count: int, seed: int) -> tuple[Counter[str], dict[str, float], list[PrimExpr]]:
    """Numbers of true statements and proofs, seconds of each side, and the true statements that only TVM proves."""
    tvm = Tvm()
    found: Counter[str] = Counter()
    seconds = {"ours": 0.0, "tvm": 0.0}
    missed = []
    for k in range(count):
        condition, bounds, truth = statement(Random(seed * 1_000_003 + k))
        start = time.perf_counter()
        we = ours(condition, bounds)
        seconds["ours"] += time.perf_counter() - start
        analyzer, theirs = tvm.prepared(condition, bounds)
        start = time.perf_counter()
        they = bool(analyzer.can_prove(theirs))
        seconds["tvm"] += time.perf_counter() - start
        true = bool(truth.all())
        found.update(
            {"statements": 1, "true": true, "ours": we, "tvm": they, "ours only": we and not they,
             "tvm only": they and not we, "our contradictions": we and not true,
             "tvm contradictions": they and not true}
        )  # fmt: skip
        if they and not we and true:
            missed.append(condition)
    return found, seconds, missed


if __name__ == "__main__":
    numbers, times, _ = compare(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    for name, value in (*numbers.items(), *((f"seconds, {side}", round(t, 2)) for side, t in times.items())):
        print(f"{name:20} {value}")
