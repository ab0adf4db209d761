"""Direct calls of kernels: checks, copies, scalars, assertions."""

import numpy as np
import programs
import pytest

from relaxlang.base.diagnostics import DiagnosticError, RelaxlangError
from relaxlang.runtime.kernel import BufferParam, Kernel, KernelSignature, ScalarParam
from relaxlang.runtime.kernel_signature import dim_text, evaluate_dim
from relaxlang.runtime.ndarray import as_tensor


@pytest.fixture
def add():
    return programs.kernels()["add"]


def a34(dtype="float32"):
    return np.arange(12, dtype=dtype).reshape(3, 4)


def test_outputs_are_written(add):
    out = np.zeros((3, 4), "float32")
    add(a34(), a34(), out)
    np.testing.assert_array_equal(out, 2 * a34())


def test_other_layouts(add):
    wide, swapped = np.zeros((3, 8), "float32"), np.zeros((3, 4), ">f4")
    add(np.asfortranarray(a34()), a34(">f4"), wide[:, ::2])
    np.testing.assert_array_equal(wide[:, ::2], 2 * a34())
    assert (wide[:, 1::2] == 0).all()
    add(a34(), a34(), swapped)
    np.testing.assert_array_equal(swapped, 2 * a34())


def test_an_output_may_be_an_input(add):
    x = a34()
    add(x, x, x)
    np.testing.assert_array_equal(x, 2 * a34())
    memory = np.arange(16, dtype="float32")
    add(memory[:12].reshape(3, 4), memory[:12].reshape(3, 4), memory[4:].reshape(3, 4))
    np.testing.assert_array_equal(memory, [0, 1, 2, 3, *range(0, 24, 2)])


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        ((a34(), a34()), "RLX6001", ["takes 3 arguments (a, b, c), got 2"]),
        ((a34(), a34("float64"), a34()), "RLX6003", ["`b` of `add`", "expected dtype float32", "float64"]),
        ((a34(), a34()[0], a34()), "RLX6004", ["`b`", "expected 2 dimensions, got 1"]),
        ((a34(), a34()[:2], a34()), "RLX6005", ["`b`", "dimension 0 is 2", "`n` = 3"]),
        ((a34(), a34()[:, :3], a34()), "RLX6005", ["`b`", "dimension 1 is 3, expected 4"]),
        ((a34(), a34(), [1, 2]), "RLX6002", ["`c`", "expected a tensor", "list"]),
        ((a34(), a34(), np.broadcast_to(np.float32(0), (3, 4))), "RLX6015", ["`c`", "read-only"]),
    ],
)
def test_bad_arguments(add, args, code, words):
    with pytest.raises(DiagnosticError) as caught:
        add(*args)
    assert caught.value.diagnostics[0].code == code
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_scalars():
    out = np.zeros((), "float32")
    axpb = programs.kernels()["axpb"]
    axpb(np.float32(3), 2, np.int32(5), True, out)
    assert out == 11
    axpb(np.float32(3), 0.5, np.array(1), np.False_, out)
    assert out == 0
    for args, code in [((1.5, 2.0, True), "RLX6003"), ((1.5, 2, 1), "RLX6003"), (("x", 2, True), "RLX6002"),
                       ((1.0, 1 << 63, True), "RLX6003")]:  # fmt: skip
        with pytest.raises(DiagnosticError) as caught:
            axpb(np.float32(3), *args, out)
        assert caught.value.diagnostics[0].code == code


def test_assertions_and_expressions_of_dimensions():
    half = programs.kernels()["half"]
    half(np.zeros(4, "int8"), np.zeros(2, "int8"))
    with pytest.raises(DiagnosticError, match="assertion failed in `half`: `n` must be even"):
        half(np.zeros(5, "int8"), np.zeros(2, "int8"))
    with pytest.raises(DiagnosticError, match=r"dimension 0 is 3, expected `\(n // 2\)` = 2"):
        half(np.zeros(4, "int8"), np.zeros(3, "int8"))


def test_unchecked_call(add):
    x, out = as_tensor(a34()), as_tensor(np.zeros((3, 4), "float32"))
    add.run(x, x, out)
    np.testing.assert_array_equal(out, 2 * a34())


def test_dimensions():
    dim = ("+", ("*", "n", 2), ("max", "m", 3))
    assert dim_text(dim) == "((n * 2) + (m max 3))"
    assert evaluate_dim(dim, {"n": 5, "m": 1}) == 13
    assert evaluate_dim(("+", "n", None), {"n": 1}) is None


@pytest.mark.parametrize(
    "signature",
    [
        KernelSignature("f", (BufferParam("x", "float32", (("*", "n", 2),)),), ("n",)),
        KernelSignature("f", (BufferParam("x", "float32", ("k",)),)),
        KernelSignature("f", (BufferParam("x", "float32", (("^", 1, 2),)),)),
        KernelSignature("f", (BufferParam("x", "handle", ()),)),
    ],
)
def test_signatures_without_sense(signature):
    with pytest.raises(RelaxlangError):
        signature.check()


def test_scalar_of_a_dtype_without_a_calling_convention():
    with pytest.raises(DiagnosticError, match="a scalar cannot have dtype"):
        Kernel(KernelSignature("f", (ScalarParam("x", "float8_e4m3fn"),)), 0)
