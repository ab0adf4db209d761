"""Kernels that are run while compiling."""

import numpy as np
import pytest
from compiled import module

from relaxlang.codegen import evaluation, kernel
from relaxlang.codegen.evaluation import run_compiled
from relaxlang.ir.tir import PrimFunc


@pytest.fixture(autouse=True)
def levels(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How hard LLVM tried each time that a kernel was compiled; none is known before."""
    monkeypatch.setattr(evaluation, "_recent", [])
    made: list[int] = []
    monkeypatch.setattr(
        evaluation,
        "build_kernels",
        lambda funcs, target: (made.append(target.opt_level), kernel.build_kernels(funcs, target))[1],
    )
    return made


def scaled(by: float, shape: str = "(64, 64)") -> PrimFunc:
    (func,) = dict(
        module(
            f"""
            @T.prim_func(private=True)
            def f(A: T.Buffer({shape}, "float32"), B: T.Buffer({shape}, "float32")):
                for i, j in T.grid{shape}:
                    B[i, j] = A[i, j] * T.float32({by})
            """
        ).prim_funcs()
    ).values()
    return func


def run(func: PrimFunc) -> None:
    given = np.random.default_rng(0).random((64, 64), np.float32)
    made = np.zeros_like(given)
    run_compiled(func, [given, made])
    assert (made == given * np.float32(2 if func is not OTHER else 3)).all()


OTHER = scaled(3.0)


def test_one_that_does_the_same_serves_again(levels: list[int]) -> None:
    first, second = scaled(2.0), scaled(2.0)
    for func in (first, first, second, OTHER):
        run(func)
    assert levels == [0, 0]


def test_one_with_much_to_do_is_optimised(levels: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    func = scaled(2.0)
    monkeypatch.setattr(evaluation, "PATIENCE", 3 * (2 * 64 * 64 * 4 + 4 * 64 * 64))
    for _ in range(5):
        run(func)
    assert levels[0] == 0 and len(levels) == 2 and levels[1] > 0


def test_only_the_latest_are_kept(levels: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "RECENT", 1)
    func = scaled(2.0)
    for one in (func, OTHER, func):
        run(one)
    assert levels == [0, 0, 0] and len(evaluation._recent) == 1
