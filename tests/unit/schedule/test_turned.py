"""Convolutions whose vectors run along the filters: rows are brought into the order of the result in squares."""

from __future__ import annotations

import numpy as np
import pytest

import relaxlang
from relaxlang.interp import Interpreter
from relaxlang.schedule.rules import Processor
from tests.unit.schedule.test_winograd import module, run, scheduled


def arguments(sizes: tuple[int, ...], window: int, stride: int, of: str = "float32") -> list[np.ndarray]:
    n, c, k, h, w = sizes
    random = np.random.default_rng(0)
    shapes = [(n, c, (h - 1) * stride + window, w + window - 1), (k, c, window, window), (n, k, h, w)]
    return [*(random.standard_normal(shape).astype(of) for shape in shapes), np.empty((n, k, h, w), of)]


def expected(args: list[np.ndarray], window: int, stride: int) -> np.ndarray:
    x, w, a = (one.astype("float64") for one in args[:3])
    windows = np.lib.stride_tricks.sliding_window_view(x, (window, window), axis=(2, 3))[:, :, ::stride]
    return np.maximum(np.einsum("nchwrs,kcrs->nkhw", windows, w) + a, 0)


@pytest.mark.parametrize("of", ["float32", "float64"])
@pytest.mark.parametrize(
    "sizes, window, stride",
    [((1, 3, 64, 9, 112), 7, 2), ((2, 5, 17, 4, 31), 5, 1), ((1, 9, 31, 3, 15), 3, 2), ((3, 65, 16, 2, 8), 1, 1)],
)
def test_values(sizes: tuple[int, ...], window: int, stride: int, of: str) -> None:
    mod = scheduled(module(sizes, of, window, stride), Processor(), winograd=False)
    args = arguments(sizes, window, stride, of)
    np.testing.assert_allclose(run(mod, args), expected(args, window, stride), rtol=1e-4, atol=1e-4)


def test_rows_are_turned_in_squares_and_what_follows_is_computed_for_each() -> None:
    wide = tuple(f"T.int64({size})" for size in (1, 3, 64, 9, 112))
    mod = scheduled(module(wide, "float32", 7, 2), Processor())
    text = mod.script()
    relaxlang.assert_structural_equal(relaxlang.parse(text), mod)
    assert "for i in T.unroll(T.int64(16)):" in text or "for i in T.unroll(16):" in text
    lines = [line for line in text.splitlines() if line]
    parallel = next(k for k, line in enumerate(lines) if "T.parallel(9" in line.replace("T.int64(", ""))
    depth = len(lines[parallel]) - len(lines[parallel].lstrip())
    after = next(k for k, line in enumerate(lines) if 'T.block("add")' in line)
    assert all(len(line) - len(line.lstrip()) > depth for line in lines[parallel + 1 : after + 1])


def test_the_interpreter_agrees() -> None:
    sizes = (1, 3, 5, 2, 9)
    mod = scheduled(module(sizes, "float32", 5, 1), Processor(16, 16))
    args = arguments(sizes, 5, 1)
    Interpreter(mod).run("main", *args)
    np.testing.assert_allclose(args[-1], expected(args, 5, 1), rtol=1e-4, atol=1e-4)
