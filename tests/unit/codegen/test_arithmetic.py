"""Integers, casts and narrow floats: exactly what numpy and ml_dtypes compute."""

import ml_dtypes
import numpy as np
import pytest
from compiled import compiled, prim_func

from relaxlang.runtime.kernel import Kernel

RNG = np.random.default_rng(3)
INTEGERS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
NARROW = (
    "float16 bfloat16 float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 "
    "float8_e5m2fnuz float8_e8m0fnu float6_e2m3fn float6_e3m2fn float4_e2m1fn"
).split()
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def numpy_of(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, name))


def binary(expression: str, of: str, result: str | None = None) -> Kernel:
    params = f'A: T.Buffer((n,), "{of}"), B: T.Buffer((n,), "{of}"), C: T.Buffer((n,), "{result or of}")'
    return compiled(prim_func(params, f"for i in range(n):\n    C[i] = {expression}"))


def unary(expression: str, of: str, result: str) -> Kernel:
    params = f'A: T.Buffer((n,), "{of}"), C: T.Buffer((n,), "{result}")'
    return compiled(prim_func(params, f"for i in range(n):\n    C[i] = {expression}"))


def pairs(of: str) -> np.ndarray:
    limits = np.iinfo(of)
    signed = [-1, -2, -3, -7] if limits.min else []
    some = np.array([0, 1, 2, 3, 5, 7, limits.max, limits.min, limits.max - 1, *signed], of)
    grid = np.array(np.meshgrid(some, some)).reshape(2, -1)
    return np.concatenate([grid, RNG.integers(limits.min, limits.max, (2, 200), dtype=of)], 1)


@pytest.mark.parametrize("of", INTEGERS)
@pytest.mark.parametrize(
    "expression, meaning",
    [
        ("A[i] // B[i]", np.floor_divide), ("A[i] % B[i]", np.remainder), ("T.truncmod(A[i], B[i])", np.fmod),
        ("A[i] * B[i] - A[i]", lambda a, b: a * b - a), ("T.max(A[i], B[i])", np.maximum),
        ("T.shift_left(A[i], B[i])", np.left_shift), ("T.shift_right(A[i], B[i])", np.right_shift),
        ("A[i] & B[i] | ~A[i] ^ B[i]", lambda a, b: a & b | ~a ^ b), ("A[i] // 7", lambda a, b: a // 7),
        ("A[i] % 16", lambda a, b: a % 16), ("T.abs(A[i])", lambda a, b: np.abs(a)),
    ],
)  # fmt: skip
def test_integers(of: str, expression: str, meaning: object) -> None:
    a, b = pairs(of)
    made = np.zeros_like(a)
    binary(expression, of)(a, b, made)
    np.testing.assert_array_equal(made, meaning(a, b))  # type: ignore[operator]


@pytest.mark.parametrize("of", ["int32", "uint8", "int64"])
def test_integer_powers_wrap(of: str) -> None:
    a, b = pairs(of)
    b = np.where(b < 0, 0, b).astype(of)
    made = np.zeros_like(a)
    binary("T.pow(A[i], B[i])", of)(a, b, made)
    np.testing.assert_array_equal(made, np.power(a, b))


FLOATS = np.array([0, -0.0, 1, -1, 2, 0.1, -3, 7.5, np.inf, -np.inf, np.nan, 1e30, 1e-40, 5.5, -5.5])


@pytest.mark.parametrize("of", ["float32", "float64"])
@pytest.mark.parametrize(
    "expression, meaning",
    [("A[i] // B[i]", np.floor_divide), ("A[i] % B[i]", np.mod), ("T.max(A[i], B[i])", np.maximum),
     ("T.min(A[i], B[i])", np.minimum), ("A[i] / B[i]", np.divide)],
)  # fmt: skip
def test_floats(of: str, expression: str, meaning: np.ufunc) -> None:
    a, b = np.array(np.meshgrid(FLOATS, FLOATS)).reshape(2, -1).astype(of)
    made = np.zeros_like(a)
    binary(expression, of)(a, b, made)
    np.testing.assert_array_equal(made, meaning(a, b))


@pytest.mark.parametrize("expression, meaning", [("A[i] < B[i]", np.less), ("A[i] != B[i]", np.not_equal)])
def test_comparisons_with_nan(expression: str, meaning: np.ufunc) -> None:
    a, b = np.array(np.meshgrid(FLOATS, FLOATS)).reshape(2, -1).astype("float32")
    made = np.zeros(len(a), bool)
    binary(expression, "float32", "bool")(a, b, made)
    np.testing.assert_array_equal(made, meaning(a, b))


def bits_of(values: np.ndarray) -> np.ndarray:
    """The values with one NaN."""
    wide = values.astype("float64")
    return np.where(np.isnan(wide), 0, wide)


@pytest.mark.parametrize("of", NARROW)
def test_narrow_floats_to_and_from_float32(of: str) -> None:
    kind = numpy_of(of)
    codes = np.arange(1 << min(8 * kind.itemsize, int(of.split("_")[0].lstrip("bfloat") or 8)))
    values = codes.astype(f"uint{8 * kind.itemsize}").view(kind)
    wide = np.zeros(len(values), "float32")
    unary('T.Cast("float32", A[i])', of, "float32")(values, wide)
    np.testing.assert_array_equal(wide, values.astype("float32"))
    x = np.concatenate(
        [FLOATS, RNG.integers(0, 1 << 32, 20000, dtype=np.uint32).view("float32"), RNG.standard_normal(20000) * 20]
    ).astype("float32")
    made = np.zeros(len(x), kind)
    unary(f'T.Cast("{of}", A[i])', "float32", of)(x, made)
    np.testing.assert_array_equal(bits_of(made), bits_of(x.astype(kind)))
    np.testing.assert_array_equal(np.isnan(made.astype("float32")), np.isnan(x.astype(kind).astype("float32")))


@pytest.mark.parametrize("of", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("expression, meaning", [("A[i] + B[i]", np.add), ("A[i] * B[i]", np.multiply)])
def test_narrow_floats_round_after_every_operation(of: str, expression: str, meaning: np.ufunc) -> None:
    kind = numpy_of(of)
    a, b = (RNG.integers(0, 256**kind.itemsize, 2000).astype(f"uint{8 * kind.itemsize}").view(kind) for _ in "ab")
    made = np.zeros(2000, kind)
    binary(expression, of)(a, b, made)
    np.testing.assert_array_equal(made.astype("float32"), meaning(a, b).astype("float32"))


@pytest.mark.parametrize("source", ["float32", "float64"])
@pytest.mark.parametrize("to", [*INTEGERS, "bool"])
def test_floats_to_integers(source: str, to: str) -> None:
    x = np.array([np.nan, 0, -0.0, 127, 128, -128, -129, 255, 256, 61.9, -61.9, 1000, *RNG.uniform(-300, 300, 100)])
    limits = np.array([np.inf, -np.inf, 2.0**31, -(2.0**31), 2.0**63, -(2.0**63), 1e20, -1e20, -3e9, 3e9])
    x = np.concatenate([x, limits]).astype(source)
    made = np.zeros(len(x), to)
    unary(f'T.Cast("{to}", A[i])', source, to)(x, made)
    within = np.isfinite(x) & (np.abs(x) < 2.0**62) if to == "bool" else _fits(x, to)
    np.testing.assert_array_equal(made[within], x.astype(to)[within])


def _fits(x: np.ndarray, to: str) -> np.ndarray:
    """What C defines; beyond that numpy's results depend on the machine."""
    limits = np.iinfo(to)
    return np.isfinite(x) & (np.trunc(x) >= limits.min) & (np.trunc(x.astype("float64")) < float(limits.max))


def test_floats_that_do_not_fit_become_the_lowest_integer() -> None:
    x = np.array([np.nan, np.inf, -3e9, 1e20], "float32")
    made = np.zeros(4, "int32")
    unary('T.Cast("int32", A[i])', "float32", "int32")(x, made)
    assert (made == -(1 << 31)).all()


@pytest.mark.parametrize("source", ["int8", "uint8", "int32", "uint32", "int64", "uint64", "bool"])
@pytest.mark.parametrize("to", ["int8", "uint16", "int64", "float32", "float64", "float16", "bfloat16", "bool"])
def test_integers_to_anything(source: str, to: str) -> None:
    x = RNG.integers(0, 2, 50).astype(bool) if source == "bool" else pairs(source)[0]
    made = np.zeros(len(x), numpy_of(to))
    unary(f'T.Cast("{to}", A[i])', source, to)(x, made)
    np.testing.assert_array_equal(made, x.astype(numpy_of(to)))


def test_bits() -> None:
    a, b = pairs("int32")
    made = np.zeros_like(a)
    binary("T.popcount(A[i]) + T.clz(B[i]) * 100", "int32")(a, b, made)
    wanted = np.bitwise_count(a.view("uint32")) + 100 * np.array([32 - int(v).bit_length() for v in b.view("uint32")])
    np.testing.assert_array_equal(made, wanted)


@pytest.mark.parametrize("of", ["float16", "bfloat16", "float8_e4m3fn", "float32"])
def test_constants_are_rounded_to_their_type(of: str) -> None:
    x, made = np.ones(1, numpy_of(of)), np.zeros(1, "float64")
    unary(f'T.Cast("float64", A[i] * T.{of}(0.1))', of, "float64")(x, made)
    assert made[0] == float(np.float64(0.1).astype(numpy_of(of)))
