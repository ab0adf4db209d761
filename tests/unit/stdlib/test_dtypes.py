"""Every dtype that an operator takes, as compiled code: floats against float64 rounded once, integers exactly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.unit.stdlib.native import check_compiled
from tests.unit.stdlib.table import ANY_UNARY, BINARY, FLOAT_BINARY, FLOAT_UNARY, INT_BINARY, INT_IDENTITY, Array, Case

FLOATS = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-6, "float64": 1e-12}
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
REDUCTIONS: dict[str, Any] = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}
ARGS: dict[str, Any] = {"argmax": np.argmax, "argmin": np.argmin}


class Cases:
    """Cases whose references run in a wider type."""

    def __init__(self, of: np.dtype[Any], wide: str, rtol: float) -> None:
        self.of, self.wide, self.rtol = of, wide, rtol
        self.cases: list[tuple[Case, str]] = []

    def add(self, name: str, *args: Array, ref: Callable[..., Any], loose: float = 1, **attrs: Any) -> None:
        """A case; the reference gets the arguments in the wide type, and its result is rounded to the dtype."""
        with np.errstate(all="ignore"):
            wide = ref(*(a if a.dtype == bool else a.astype(self.wide) for a in args), **attrs)
        exact = wide.dtype == bool or name in ARGS
        expected = wide if exact else np.asarray(wide).astype(self.of)
        self.cases.append((Case(name, args, attrs, expected, self.rtol * loose), "static"))


def _any_float(x: Array) -> dict[str, Array]:
    """Inputs inside the domains of functions that are not defined everywhere."""
    inside = (x / 4).astype(x.dtype)
    positive = (np.abs(x) + np.asarray(0.5, x.dtype)).astype(x.dtype)
    return {
        **dict.fromkeys(("acos", "asin", "atanh"), inside),
        **dict.fromkeys(("log", "sqrt", "rsqrt"), positive),
        "acosh": (np.abs(x) + 1).astype(x.dtype),
    }


@pytest.mark.parametrize("name", FLOATS)
def test_floats(name: str) -> None:
    of = np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
    rng, cases = np.random.default_rng(1), Cases(of, "float64", FLOATS[name])
    x, y = rng.uniform(-3, 3, (5, 7)).astype(of), rng.uniform(0.5, 3, (5, 7)).astype(of)
    special = _any_float(x)
    for op, ref in {**FLOAT_UNARY, **ANY_UNARY}.items():
        cases.add(op, special.get(op, x), ref=ref)
    for op, ref in {**BINARY, **FLOAT_BINARY}.items():
        cases.add(op, np.abs(x) if op == "power" else x, y, ref=ref)
    for op, ref in {**REDUCTIONS, "mean": np.mean, "variance": np.var, "std": np.std}.items():
        cases.add(op, y, axis=1, ref=ref, loose=4)
    for op, ref in ARGS.items():
        cases.add(op, x, axis=1, ref=ref)
    cases.add("nn.softmax", x, ref=lambda v: np.exp(v) / np.exp(v).sum(-1, keepdims=True), loose=2)
    cases.add("matmul", x, np.ascontiguousarray(y.T), ref=np.matmul, loose=30)
    cases.add("cumsum", y, axis=1, ref=np.cumsum, loose=4)
    cases.add("sort", x, ref=lambda v: np.sort(v, -1))
    check_compiled(cases.cases)


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name: str) -> None:
    of = np.dtype(name)
    rng, cases = np.random.default_rng(2), Cases(of, name, 0)
    x, y = rng.integers(0 if name[0] == "u" else -9, 10, (5, 7)).astype(of), rng.integers(1, 6, (5, 7)).astype(of)
    for op, ref in ANY_UNARY.items():
        cases.add(op, x, ref=(lambda v: v) if op in INT_IDENTITY else ref)
    for op, ref in {**BINARY, **INT_BINARY, "left_shift": np.left_shift, "right_shift": np.right_shift}.items():
        cases.add(op, x, y, ref=ref)
    cases.add("divide", x, y, ref=lambda a, b: np.trunc(a.astype("float64") / b).astype(of))
    cases.add("power", x, np.minimum(y, 2).astype(of), ref=np.power)
    cases.add("bitwise_not", x, ref=np.invert)
    for op, ref in {**REDUCTIONS, **ARGS}.items():
        cases.add(op, np.ascontiguousarray(x[:, :3]), axis=1, ref=ref)
    cases.add("sort", x, ref=lambda v: np.sort(v, -1))
    check_compiled(cases.cases)


def test_bools() -> None:
    rng, cases = np.random.default_rng(3), Cases(np.dtype(bool), "bool", 0)
    a, b = rng.random((2, 4, 5)) < 0.5
    for op, ref in INT_BINARY.items():
        cases.add(op, a, b, ref=ref)
    for op in ("equal", "not_equal", "less", "greater_equal", "maximum", "minimum"):
        cases.add(op, a, b, ref=BINARY[op])
    for op, ref in {"max": np.any, "min": np.all, "prod": np.all, "sum": np.any, **ARGS}.items():
        cases.add(op, a, axis=1, ref=ref)
    cases.add("sort", a, ref=lambda v: np.sort(v, -1))
    cases.add("where", a, a, b, ref=np.where)
    cases.add("bitwise_not", a, ref=np.invert)
    check_compiled(cases.cases)


@pytest.mark.parametrize("source", [*FLOATS, *INTEGERS])
def test_conversions(source: str) -> None:
    of = np.dtype(ml_dtypes.bfloat16 if source == "bfloat16" else source)
    x = np.random.default_rng(4).uniform(0, 100, 40).astype(of)
    targets = ("float16", "float32", "float64", "bool", *INTEGERS)
    check_compiled([(Case("astype", (x,), {"dtype": to}, x.astype(to), 0), "static") for to in targets])
