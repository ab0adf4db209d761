"""Scalar arithmetic: every dtype in its own precision, every input with a result."""

import math

import ml_dtypes
import numpy as np
import pytest

from relaxlang.base.dtype import dtype
from relaxlang.interp import numeric
from relaxlang.interp.intrinsics import PURE
from relaxlang.interp.numeric import Undefined
from relaxlang.ir import prim
from relaxlang.ir.intrinsics import INTRINSICS

INT32_MIN = -(1 << 31)


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


def values(of, *numbers):
    return np.array(numbers).astype(dtype(of).numpy)


def apply(kind, of, a, b):
    """The operation on arrays and on each pair of scalars, which must agree."""
    a, b = values(of, *a), values(of, *b)
    operation = numeric.binary(kind, dtype(of))
    together = operation(a, b)
    for x, y, z in zip(a, b, together):
        one = np.asarray(operation(x, y))
        assert one.dtype == together.dtype
        assert one.tobytes() == np.asarray(z).tobytes()
    return together.tolist()


def test_integers_wrap() -> None:
    assert apply(prim.Add, "int8", [100, -128], [100, -1]) == [-56, 127]
    assert apply(prim.Mul, "uint16", [60000], [3]) == [180000 % 65536]
    assert apply(prim.Sub, "uint8", [0], [1]) == [255]


def test_integer_division_floors_or_truncates_and_survives_zero_and_the_least_number() -> None:
    a, b = [7, -7, 7, -7, 5, INT32_MIN, INT32_MIN, 0], [2, 2, -2, -2, 0, -1, 0, 5]
    assert apply(prim.FloorDiv, "int32", a, b) == [3, -4, -4, 3, 0, INT32_MIN, 0, 0]
    assert apply(prim.FloorMod, "int32", a, b) == [1, 1, -1, -1, 0, 0, 0, 0]
    assert apply(prim.Div, "int32", a, b) == [3, -3, -3, 3, 0, INT32_MIN, 0, 0]
    assert apply(prim.Mod, "int32", a, b) == [1, -1, 1, -1, 0, 0, 0, 0]


def test_float_division_has_the_signs_of_numpy() -> None:
    a, b = [-5.5, 5.5, -6.0, 1.0, 1.0], [2.0, -2.0, 3.0, 0.1, 0.0]
    with np.errstate(all="ignore"):
        wide = values("float32", *a), values("float32", *b)
        assert apply(prim.FloorMod, "float32", a, b)[:4] == np.mod(*wide).tolist()[:4]
        assert apply(prim.FloorDiv, "float32", a, b) == np.floor_divide(*wide).tolist()
    assert apply(prim.Mod, "float32", [-5.5, 5.5], [2.0, -2.0]) == [-1.5, 1.5]


@pytest.mark.parametrize("of", ["float16", "bfloat16", "float32", "float64"])
def test_nan_wins_in_minimum_and_maximum(of: str) -> None:
    for kind in (prim.Min, prim.Max):
        assert all(math.isnan(x) for x in apply(kind, of, [math.nan, 1.0, math.nan], [1.0, math.nan, math.nan]))


def test_narrow_floats_round_after_each_operation() -> None:
    # 256 + 1 has no place among the 8 bits of bfloat16's significand: adding one at a time changes nothing.
    total = values("bfloat16", 256)[0]
    for _ in range(10):
        total = numeric.binary(prim.Add, dtype("bfloat16"))(total, values("bfloat16", 1)[0])
    assert float(total) == 256.0
    assert apply(prim.Add, "float16", [2048.0], [1.0]) == [2048.0]


def test_integers_of_less_than_a_byte_wrap_to_their_width() -> None:
    assert apply(prim.Add, "int4", [7, -8], [1, -1]) == [-8, 7]
    assert apply(prim.Mul, "uint2", [3], [3]) == [1]


def test_truth_values_know_no_difference() -> None:
    assert apply(prim.Add, "bool", [True, False], [True, False]) == [True, False]
    with pytest.raises(Undefined):
        numeric.binary(prim.Sub, dtype("bool"))


@pytest.mark.parametrize("to", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"])
def test_casts_from_float_do_not_depend_on_the_place_in_the_array(to: str) -> None:
    odd = [math.nan, math.inf, -math.inf, 1e20, -1e20, 300.7, -1.5, 3e9, -3e9, 5e9]
    array = values("float32", *odd)
    together = numeric.cast(np.tile(array, 7), dtype("float32"), dtype(to)).reshape(7, -1)
    for place, x in enumerate(array):
        assert set(together[:, place].tolist()) == {int(x.astype(dtype(to).numpy))}


def test_casts_round_to_even_and_truncate() -> None:
    assert float(numeric.cast(values("float32", 257.0)[0], dtype("float32"), dtype("bfloat16"))) == 256.0
    assert numeric.cast(values("float32", -1.7, 2.7), dtype("float32"), dtype("int32")).tolist() == [-1, 2]
    assert numeric.cast(values("int32", 3, -1), dtype("int32"), dtype("bool")).tolist() == [True, True]
    assert numeric.cast(values("int32", 9, -9), dtype("int32"), dtype("int4")).tolist() == [-7, 7]


# --- intrinsics -------------------------------------------------------------------------------------------------------
def intrinsic(name, of, *args, result=None):
    types = tuple(dtype(of) for _ in args)
    return PURE[name](dtype(result or of), types, *[values(of, a)[0] for a in args])


@pytest.mark.parametrize("of", ["float16", "bfloat16", "float32", "float64"])
def test_every_float_intrinsic_keeps_the_type(of: str) -> None:
    for name, row in INTRINSICS.items():
        if name in PURE and row.result == "same" and row.accepts in ("float", "number"):
            args = [values(of, 0.5)[0]] * row.arity
            if name == "ldexp":
                args[1] = np.int32(2)
            result = PURE[name](dtype(of), (dtype(of),) * row.arity, *args)
            assert np.asarray(result).dtype == dtype(of).numpy, name


def test_functions_that_numpy_lacks() -> None:
    assert float(intrinsic("erf", "float64", 0.5)) == math.erf(0.5)
    assert float(intrinsic("sigmoid", "float32", -200.0)) == 0.0
    assert float(intrinsic("sigmoid", "float64", -700.0)) == pytest.approx(math.exp(-700), rel=1e-15)
    assert float(intrinsic("rsqrt", "float32", 0.25)) == 2.0
    assert float(intrinsic("ldexp", "float64", 0.75, 3)) == 6.0
    assert intrinsic("round", "float32", 2.5) == 2.0
    assert intrinsic("floor", "int32", 7) == 7


def test_fma_rounds_once() -> None:
    a, b, c = 1 + 2**-12, 1 + 2**-12, -(1 + 2**-11)
    assert float(intrinsic("fma", "float32", a, b, c)) == 2**-24
    assert float(intrinsic("fma", "float64", 1 + 2**-30, 1 - 2**-30, -1.0)) == -(2**-60)
    # The exact sum lies a little below the middle of two floats; in float64 it is the middle, which rounds up to even.
    assert float(intrinsic("fma", "float32", 1 + 2**-23, 1 - 2**-23, 2**24 + 2)) == 2**24 + 2
    assert float(intrinsic("fma", "float32", 1 + 2**-23, 1 + 2**-23, 2**24)) == 2**24 + 2
    assert math.isinf(intrinsic("fma", "float64", 1e300, 1e300, 1.0))


def test_bits() -> None:
    assert intrinsic("clz", "int32", 1, result="int32") == 31
    assert intrinsic("clz", "int8", -1, result="int32") == 0
    assert intrinsic("clz", "uint64", 0, result="int32") == 64
    assert intrinsic("popcount", "int16", -1) == 16
    assert intrinsic("popcount", "int4", -1) == 4
    assert intrinsic("bitwise_not", "uint4", 3) == 12
    assert intrinsic("shift_left", "int32", 1, 33) == 0
    assert intrinsic("shift_right", "int32", -8, 40) == -1
    assert intrinsic("shift_right", "int32", 8, -1) == 0
    assert intrinsic("reinterpret", "float32", 1.0, result="int32") == 0x3F800000


def test_integer_powers() -> None:
    assert intrinsic("pow", "int32", 3, 4) == 81
    assert intrinsic("pow", "int32", 2, 40) == 0
    assert [int(intrinsic("pow", "int32", a, -3)) for a in (2, 1, -1, 0)] == [0, 1, -1, 0]


def test_fixed_point_multiplication_rounds_half_up() -> None:
    x = values("int32", 100, -100, 7, -7, 1 << 30)
    types = (dtype("int32"),) * 4
    multiplier, q = np.int32(1395864320), np.int32(31)
    multiply = PURE["q_multiply_shift"]
    assert multiply(dtype("int32"), types, x, multiplier, q, np.int32(-2)).tolist() == [16, -16, 1, -1, 174483040]
    assert multiply(dtype("int32"), types, x, multiplier, q, np.int32(2)).tolist()[:4] == [260, -260, 18, -18]


def test_limits() -> None:
    def limit(name, of):
        return PURE[name](dtype(of), ())

    assert (limit("min_value", "int8"), limit("max_value", "uint4")) == (-128, 15)
    assert float(limit("max_value", "bfloat16")) == float(ml_dtypes.finfo("bfloat16").max)
    assert limit("infinity", "float16") == np.inf
