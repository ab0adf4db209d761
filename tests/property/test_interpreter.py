"""Random kernels mean the same however the interpreter runs them, and after each step of lowering."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_tir import KINDS, arguments, kernels

from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.interp import Interpreter
from relaxlang.ir.module import IRModule
from relaxlang.passes.base import PassContext
from relaxlang.passes.tir.lowering import LOWERING

RANDOM = settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))


def outcome(mod: IRModule, seed: int, vectorize: bool = True) -> list[Any]:
    """The arrays after a run, or the code of the error that ended it."""
    args = arguments(mod, seed)
    try:
        Interpreter(mod, vectorize=vectorize).run("f", *args)
    except DiagnosticError as error:
        return [error.diagnostics[0].code]
    return args


def assert_same(left: list[Any], right: list[Any]) -> None:
    """Two outcomes agree; any NaN is as good as another, and so is any zero."""
    assert len(left) == len(right), (left[0], right[0])
    for a, b in zip(left, right):
        np.testing.assert_array_equal(a, b, strict=not isinstance(a, str))


@RANDOM
@given(kernels(in_bounds=False, exact=False, kinds=KINDS), st.integers(0, 9))
def test_computing_instances_at_once_changes_nothing(mod: IRModule, seed: int) -> None:
    assert_same(outcome(mod, seed), outcome(mod, seed, vectorize=False))


@RANDOM
@given(kernels(), st.integers(0, 9))
def test_lowering_changes_nothing(mod: IRModule, seed: int) -> None:
    wanted = outcome(mod, seed)
    for step in LOWERING:
        mod = step.run(mod, PassContext.current())
        assert_same(outcome(mod, seed), wanted)
