"""Numbers, strings and arrays as text come back bit for bit."""

import ast
import struct

import ml_dtypes
import numpy as np
import pytest

from relaxlang.base.dtype import dtype, from_numpy
from relaxlang.syntax import scalars


def float_of_bits(bits):
    return struct.unpack("<d", bits.to_bytes(8, "little"))[0]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"), (-0.0, "-0.0"), (5e-324, "5e-324"), (1e22, "1e+22"), (float("inf"), '"inf"'),
        (float("-inf"), '"-inf"'), (float("nan"), '"nan"'),
        (float_of_bits(0xFFF8000000000123), '"nan:0xfff8000000000123"'),
    ],
)  # fmt: skip
def test_floats(value, text):
    assert scalars.float_text(value) == text
    read = scalars.parse_float(text.strip('"'))
    assert struct.pack("<d", read) == struct.pack("<d", value)


def test_hexadecimal_floats_and_wrong_ones():
    assert scalars.parse_float("0x1.8p3") == 12.0
    for wrong in ("nan:0x0", "much"):
        with pytest.raises(ValueError):
            scalars.parse_float(wrong)


@pytest.mark.parametrize(
    "value", ["", "plain", "a \"b\" 'c' \\ d", "tab\t nl\n cr\r nul\0 bell\a", "é 漢 🎈", "\u200b\u202e\ud800", "{%s}"]
)
def test_strings_are_python_literals(value):
    text = scalars.string_text(value)
    assert ast.literal_eval(text) == value
    assert "\n" not in text and "\0" not in text


ARRAYS = [
    np.array([0.1, 1e-45, 3e38, -0.0, np.inf, -np.inf, 1 / 3], "float32"),
    np.array([0.1, 65504, 6e-8, np.nan], "float16"),
    np.array([0.1, 5e-324, 1e308]),
    np.array([[0.1, 1e30], [np.nan, -np.inf]], ml_dtypes.bfloat16),
    np.array([0.1, 300.0, 2.0**-9], ml_dtypes.float8_e4m3fn),
    np.array([2**64 - 1, 0], "uint64"),
    np.array([-(2**63), 2**63 - 1], "int64"),
    np.array([[True], [False]]),
    np.zeros((0, 3), "int8"),
    np.array(7, "int16"),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype}{a.shape}")
def test_arrays_as_base64_and_by_digest(array):
    of = from_numpy(array.dtype)
    for text in (scalars.array_base64(array), scalars.array_digest(array)):
        back = scalars.array_from_text(text, of, array.shape, {scalars.array_digest(array): array})
        assert back.dtype == array.dtype and back.shape == array.shape and back.tobytes() == array.tobytes()


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype}{a.shape}")
def test_arrays_as_numbers(array):
    texts = scalars.number_texts(array)
    values = [eval(text, {"float": float}) for text in texts]
    back = np.array(values, array.dtype).reshape(array.shape)
    assert back.tobytes() == array.tobytes()


def test_every_bfloat16_and_float16_has_a_text():
    for of in (ml_dtypes.bfloat16, np.float16):
        array = np.arange(1 << 16, dtype="uint16").view(of)
        finite = array[np.isfinite(array.astype("float32"))]
        back = np.array([float(t) for t in scalars.number_texts(finite)]).astype(of)
        assert back.tobytes() == finite.tobytes()


def test_a_nan_with_special_bits_has_no_number():
    assert scalars.number_texts(np.array([0x7FC00001], "uint32").view("float32")) is None


def test_wrong_array_texts():
    f32 = dtype("float32")
    for text, shape in (("AAAA", (1,)), ("####", (1,)), ("sha256:00", (1,)), ("AAAAAA==", (2,))):
        with pytest.raises(ValueError):
            scalars.array_from_text(text, f32, shape)
    digest = scalars.array_digest(np.zeros(1, "float32"))
    with pytest.raises(ValueError, match="another content"):
        scalars.array_from_text(digest, f32, (1,), {digest: np.ones(1, "float32")})
