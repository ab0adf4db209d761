"""Mathematics: within 2 units in the last place of float32 over the whole range, and numpy's special cases."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from compiled import compiled, prim_func

from relaxlang.runtime.kernel import Kernel

RNG = np.random.default_rng(11)
SPECIAL = np.array(
    [0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e-38, 1, -1, 2, -2, 0.5, -0.5, np.pi, 3e-5, 88.7, 89, -103.9,
     -104, 3.4e38, -3.4e38, 4e21, 1e21, 1e10, 16777216], "float32",
)  # fmt: skip
N = 1 << 14


def kernel(name: str, arity: int, of: str = "float32") -> Kernel:
    args = ", ".join(f"A{k}[i]" for k in range(arity))
    params = ", ".join(f'A{k}: T.Buffer((n,), "{of}")' for k in range(arity))
    return compiled(
        prim_func(f'{params}, C: T.Buffer((n,), "{of}")', f"for i in range(n):\n    C[i] = T.{name}({args})")
    )


def anything() -> np.ndarray:
    return RNG.integers(0, 1 << 32, N, dtype=np.uint32).view("float32")


def check(made: np.ndarray, exact: np.ndarray, ulps: float) -> None:
    """Whether float32 results are near exact float64 ones, with zeros, infinities and NaNs where they belong."""
    with np.errstate(all="ignore"):
        wanted = exact.astype("float32")
        finite = np.isfinite(made) & np.isfinite(wanted)
        np.testing.assert_array_equal(made[~finite], wanted[~finite])
        error = np.abs(made[finite].astype("float64") - exact[finite]) / np.spacing(np.abs(wanted[finite]))
        assert error.max() <= ulps
        zero = (made == 0) & (exact == 0)
        np.testing.assert_array_equal(np.signbit(made[zero]), np.signbit(exact[zero]))


def erf(x: np.ndarray) -> np.ndarray:
    return np.vectorize(math.erf, otypes=["float64"])(x)


def sigmoid(x: np.ndarray) -> np.ndarray:
    tail = np.exp(-np.abs(x))
    return np.where(x < 0, tail, 1) / (1 + tail)


def normcdf(x: np.ndarray) -> np.ndarray:
    return np.vectorize(math.erfc, otypes=["float64"])(x * -math.sqrt(0.5)) / 2


UNARY: dict[str, tuple[Callable[[np.ndarray], np.ndarray], float, float]] = {
    "exp": (np.exp, -105, 90), "exp2": (np.exp2, -150, 129), "exp10": (lambda x: np.power(10.0, x), -46, 39),
    "log": (np.log, 0, 10), "log2": (np.log2, 0, 10), "log10": (np.log10, 0, 10), "log1p": (np.log1p, -1, 3),
    "tanh": (np.tanh, -10, 10), "sigmoid": (sigmoid, -105, 20), "erf": (erf, -5, 5), "sin": (np.sin, -10, 10),
    "cos": (np.cos, -10, 10), "tan": (np.tan, -10, 10), "sinh": (np.sinh, -10, 10), "cosh": (np.cosh, -10, 10),
    "asinh": (np.arcsinh, -10, 10), "acosh": (np.arccosh, 1, 10), "atanh": (np.arctanh, -1, 1),
    "asin": (np.arcsin, -1, 1), "acos": (np.arccos, -1, 1), "atan": (np.arctan, -10, 10),
    "normcdf": (normcdf, -14.5, 6), "sqrt": (np.sqrt, 0, 10), "rsqrt": (lambda x: 1 / np.sqrt(x), 0, 10),
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_function_of_one_float32(name: str) -> None:
    exact, low, high = UNARY[name]
    x = np.concatenate([SPECIAL, RNG.uniform(low, high, N).astype("float32"), anything()])
    made = np.zeros_like(x)
    kernel(name, 1)(x, made)
    with np.errstate(all="ignore"):
        check(made, exact(x.astype("float64")), 2.0)


@pytest.mark.parametrize("name", UNARY)
def test_function_of_one_float64(name: str) -> None:
    exact, low, high = UNARY[name]
    x = np.concatenate([SPECIAL.astype("float64"), RNG.uniform(low, high, 1000)])
    made = np.zeros_like(x)
    kernel(name, 1, "float64")(x, made)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(made, exact(x), rtol=1e-14)


@pytest.mark.parametrize("of", ["float16", "bfloat16", "float8_e5m2"])
def test_narrow_floats_are_computed_in_float32_and_rounded(of: str) -> None:
    import ml_dtypes

    x = RNG.uniform(-4, 4, 500).astype(of if of == "float16" else getattr(ml_dtypes, of))
    made = np.zeros_like(x)
    kernel("tanh", 1, of)(x, made)
    np.testing.assert_array_equal(made, np.tanh(x.astype("float64")).astype(x.dtype))


BINARY = {"pow": np.power, "atan2": np.arctan2, "hypot": np.hypot, "copysign": np.copysign, "fmod": np.fmod}


@pytest.mark.parametrize("name", BINARY)
def test_function_of_two_float32(name: str) -> None:
    grid = np.array(np.meshgrid(SPECIAL, SPECIAL)).reshape(2, -1)
    a = np.concatenate([grid[0], RNG.uniform(-5, 5, N).astype("float32"), RNG.uniform(0, 99, N).astype("float32")])
    b = np.concatenate([grid[1], RNG.integers(-9, 9, N).astype("float32"), RNG.uniform(-9, 9, N).astype("float32")])
    made = np.zeros_like(a)
    kernel(name, 2)(a, b, made)
    with np.errstate(all="ignore"):
        check(made, BINARY[name](a.astype("float64"), b.astype("float64")), 0.51)


def test_next_float() -> None:
    a, b = np.array(np.meshgrid(SPECIAL, SPECIAL)).reshape(2, -1)
    made = np.zeros_like(a)
    kernel("nextafter", 2)(a, b, made)
    np.testing.assert_array_equal(made, np.nextafter(a, b))


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_circular_functions_of_huge_arguments(name: str) -> None:
    # Among all float32 numbers, 16367173 * 2**72 is nearest to a multiple of pi / 2.
    hard = [np.float32(16367173.0 * 2**72), np.float32(2.0**120), np.float32(1e22)]
    x = np.concatenate([hard, RNG.uniform(1e5, 3e38, N).astype("float32")]).astype("float32")
    made = np.zeros_like(x)
    kernel(name, 1)(x, made)
    check(made, getattr(np, name)(x.astype("float64")), 1.0)
