"""Activations keep their digits over the whole range, compiled and interpreted, and agree."""

from __future__ import annotations

from collections.abc import Callable
from math import erf, erfc, sqrt
from typing import Any

import numpy as np
import pytest

from tests.unit.stdlib.harness import run
from tests.unit.stdlib.native import build
from tests.unit.stdlib.table import Array, Case

RNG = np.random.default_rng(5)
SMALLEST = 2.0**-149


def sigmoid(x: Array) -> Array:
    tail = np.exp(-np.abs(x))
    return np.where(x < 0, tail, 1) / (1 + tail)


def by_element(function: Callable[[float], float]) -> Callable[[Array], Array]:
    return np.vectorize(function, otypes=["float64"])


EXACT: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp,
    "tanh": np.tanh,
    "erf": by_element(erf),
    "sigmoid": sigmoid,
    "nn.silu": lambda x: x * sigmoid(x),
    "nn.gelu": by_element(lambda x: 0.5 * x * erfc(-x / sqrt(2))),
}
X = np.concatenate([RNG.uniform(-9, 9, 3000), RNG.uniform(-110, 90, 3000), np.geomspace(1e-44, 1e-3, 500)])
X = np.concatenate([X, -X]).astype("float32")


def ulps(made: Array, exact: Array) -> Array:
    """Errors in units of the last place of float32 (the smallest number, for subnormal results)."""
    spacing = np.maximum(np.spacing(np.abs(exact).astype("float32")).astype("float64"), SMALLEST)
    return np.abs(made.astype("float64") - exact) / spacing


@pytest.mark.parametrize("name", EXACT)
def test_within_two_units_in_the_last_place(name: str) -> None:
    x = X[np.abs(X) < 88]
    exact = EXACT[name](x.astype("float64"))
    # The probability that gelu multiplies with is subnormal there, and the product has its few digits.
    loose = (x < -12.8) if name == "nn.gelu" else np.zeros(x.shape, bool)
    for made in (run(name, x), np.asarray(build([(Case(name, (x,), {}, exact, 0), "static")])["case0"](x))):
        tiny = loose & (np.abs(made - exact) <= 16 * SMALLEST)
        # silu multiplies a sigmoid, itself within two units, and rounds once more.
        assert ulps(made, exact)[~tiny].max() <= (2.5 if name == "nn.silu" else 2)


def test_normal_probability_in_float64_has_its_tail() -> None:
    x = np.linspace(-37, 8, 500)
    case: Any = Case("nn.gelu", (x,), {}, None, 0)
    for made in (run("nn.gelu", x), np.asarray(build([(case, "static")])["case0"](x))):
        np.testing.assert_allclose(made, EXACT["nn.gelu"](x), rtol=1e-12)


@pytest.mark.parametrize("dims", ["static", "symbolic"])
@pytest.mark.parametrize(
    ("name", "shape", "axis"),
    [
        ("sum", (1 << 20,), None),
        ("mean", (3, 1 << 19), 1),
        ("mean", (700, 900), None),
        ("variance", (2, 300_000), 1),
    ],
)
def test_long_sums_keep_their_digits(name: str, shape: tuple[int, ...], axis: int | None, dims: str) -> None:
    x = np.full(shape, 0.1, "float32") + RNG.uniform(0, 1e-3, shape).astype("float32")
    wide = x.astype("float64")
    attrs = {"axis": axis} if axis is not None else {}
    exact = getattr(np, {"variance": "var"}.get(name, name))(wide, axis)
    compiled = build([(Case(name, (x,), attrs, exact, 0), dims)])["case0"]
    for made in (run(name, x, dims=dims, **attrs), np.asarray(compiled(x))):
        np.testing.assert_allclose(made, exact, rtol=1e-6)


def test_long_sums_of_infinities() -> None:
    x = np.full(20_000, 0.1, "float32")
    for extreme in (np.inf, -np.inf, np.nan):
        x[12_345] = extreme
        for made in (run("sum", x), np.asarray(build([(Case("sum", (x,), {}, None, 0), "static")])["case0"](x))):
            np.testing.assert_array_equal(made, np.float32(extreme))
