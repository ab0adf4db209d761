"""Operators on tensors that are kept in blocks give what they give on plain ones, in blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import run
from layouts import pack, unpack

import relaxlang
from relaxlang.base.diagnostics import DiagnosticError

Case = tuple[str, tuple[Any, ...], dict[str, Any]]
RNG = np.random.default_rng(5)


def floats(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.integers(-8, 9, shape).astype("float32")


CONVOLUTIONS = [
    ("nn.conv2d", (2, 8, 6, 5), (12, 8, 3, 3), ("NCHW4c", "OIHW", None), {}),
    ("nn.conv2d", (2, 8, 6, 5), (12, 8, 3, 3), ("NCHW4c", "OIHW4i2o", "NHWC4c"), {"padding": 1}),
    ("nn.conv2d", (1, 8, 6, 5), (10, 8, 3, 3), ("NCHW4c", "OIHW", None), {"padding": 1, "strides": 2}),
    ("nn.conv2d", (1, 8, 6, 5), (10, 4, 3, 3), ("NHCW8c", "OHWI4i", None), {"groups": 2}),
    ("nn.conv2d", (1, 4, 6, 4), (6, 4, 3, 3), ("NCHW2h", "OIHW3o", "NC4cHW"), {"padding": 1}),
    ("nn.conv2d", (2, 8, 4, 4), (12, 8, 3, 3), ("NCHW", "OIHW4o", "NCHW2n4c"), {}),
    ("nn.conv1d", (2, 8, 6), (12, 8, 3), ("NCW4c", "OIW", None), {"dilation": 2}),
    ("nn.conv3d", (1, 4, 6, 3, 4), (8, 4, 3, 2, 1), ("NCDHW4c", "OIDHW4i16o", "NCDHW4c"), {}),
    ("nn.conv2d_transpose", (1, 8, 4, 3), (8, 6, 3, 2), ("NCHW4c", "IOHW4i2o", None), {"strides": 2}),
    ("nn.conv1d_transpose", (1, 8, 4), (8, 3, 3), ("NCW8c", "IOW", "NWC2c"), {"groups": 2, "strides": 2}),
]
OTHERS = [
    ("nn.max_pool2d", (1, 8, 6, 5), "NCHW4c", "NHWC", {"pool_size": (2, 2), "padding": 1}),
    ("nn.max_pool2d", (1, 6, 6, 5), "NCHW", "NCHW4c", {"pool_size": (2, 2)}),
    ("nn.max_pool1d", (1, 8, 6), "NCW4c", None, {"pool_size": 2}),
    ("nn.avg_pool2d", (1, 8, 7, 5), "NCHW4c", None, {"pool_size": (3, 2), "strides": 2, "ceil_mode": True}),
    ("nn.avg_pool3d", (1, 6, 4, 4, 3), "NCDHW", "NCDHW4c", {"pool_size": 2, "padding": 1}),
    ("nn.adaptive_avg_pool2d", (1, 8, 6, 5), "NCHW4c", None, {"output_size": (2, 2)}),
    ("nn.adaptive_avg_pool2d", (1, 6, 6, 5), "NCHW", "NCHW4c", {"output_size": 3}),
    ("image.resize2d", (1, 8, 4, 5), "NCHW4c", None, {"size": (8, 6)}),
    ("image.resize2d", (1, 3, 4, 4), "NCHW2h", None, {"size": (6, 6)}),
    ("image.resize3d", (1, 4, 2, 3, 2), "NCDHW4c", None, {"size": (4, 3, 2), "method": "nearest_neighbor"}),
]


def letters_of(rank: int, first: str = "NC") -> str:
    return first + "DHW"[5 - rank :]


@pytest.mark.parametrize("dims", ["static", "symbolic"])
@pytest.mark.parametrize(("name", "x", "w", "layouts", "attrs"), CONVOLUTIONS)
def test_convolutions(
    name: str, x: tuple[int, ...], w: tuple[int, ...], layouts: tuple[str, str, str | None], attrs: Any, dims: str
) -> None:
    data_layout, kernel_layout, out_layout = layouts
    kernel = letters_of(len(w), "IO" if "transpose" in name else "OI")
    data, weight = pack(floats(*x), letters_of(len(x)), data_layout), pack(floats(*w), kernel, kernel_layout)
    plain = run(
        name, unpack(data, data_layout, letters_of(len(x))), unpack(weight, kernel_layout, kernel), dims=dims, **attrs
    )
    got = run(
        name, data, weight, data_layout=data_layout, kernel_layout=kernel_layout, out_layout=out_layout, dims=dims,
        **attrs,
    )  # fmt: skip
    np.testing.assert_array_equal(got, pack(plain, letters_of(len(x)), out_layout or data_layout))


@pytest.mark.parametrize("dims", ["static", "symbolic"])
@pytest.mark.parametrize(("name", "x", "layout", "out_layout", "attrs"), OTHERS)
def test_windows_and_resizing(
    name: str, x: tuple[int, ...], layout: str, out_layout: str | None, attrs: dict[str, Any], dims: str
) -> None:
    data, letters = floats(*x), letters_of(len(x))
    kept = {} if out_layout is None else {"out_layout": out_layout}
    got = run(name, pack(data, letters, layout), layout=layout, dims=dims, **kept, **attrs)
    want = pack(run(name, data, dims=dims, **attrs), letters, out_layout or layout)
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_sampling_a_grid() -> None:
    data, grid = floats(1, 8, 4, 5), RNG.uniform(-1.2, 1.2, (1, 2, 3, 3)).astype("float32")
    got = run("image.grid_sample", pack(data, "NCHW", "NCHW4c"), grid, layout="NCHW4c")
    np.testing.assert_array_equal(got, pack(run("image.grid_sample", data, grid), "NCHW", "NCHW4c"))


@pytest.mark.parametrize("kind", ["max", "avg"])
def test_gradients_of_pooling(kind: str) -> None:
    data, grad = floats(1, 8, 4, 4), floats(1, 8, 2, 2)
    attrs: dict[str, Any] = {"pool_size": (2, 2), "strides": 2}
    got = run(
        f"grad.{kind}_pool2d_backward", *(pack(x, "NCHW", "NCHW4c") for x in (grad, data)), layout="NCHW4c", **attrs
    )
    want = run(f"grad.{kind}_pool2d_backward", grad, data, **attrs)
    np.testing.assert_array_equal(got, pack(want, "NCHW", "NCHW4c"))


TEXT = """
@R.function
def main(x: R.Tensor((1, 2, 6, 6, 4), "float32"), w: R.Tensor((2, 8, 3, 3, 4), "float32")):
    return R.nn.relu(R.nn.conv2d(x, w, padding=1, data_layout="NCHW4c", kernel_layout="OIHW4o"))
"""


def test_compiled() -> None:
    mod = relaxlang.parse(TEXT)
    x, w = floats(1, 2, 6, 6, 4), floats(2, 8, 3, 3, 4)
    got = relaxlang.VirtualMachine(relaxlang.build(mod), relaxlang.cpu())["main"](x, w)
    np.testing.assert_array_equal(got, relaxlang.interpret(mod, "main", x, w))


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        ("NCHW", "`data` must have 4 dimensions, not 5"),
        ("NCHW8c", "dimension 4 of `data` must be 8"),
        ("NCHWc", "a number and a small letter"),
        ("NCHW4c2c", "a number and a small letter, once"),
        ("NHW4c", 'each letter of "NCHW" once'),
        ("NCHW4", 'each letter of "NCHW" once'),
        ("NCHW4x", "a number and a small letter"),
        ("", 'each letter of "NCHW" once'),
    ],
)
def test_what_is_no_layout_of_the_data(layout: str, words: str) -> None:
    with pytest.raises(DiagnosticError, match=words):
        run("nn.conv2d", floats(1, 2, 6, 6, 4), floats(8, 8, 3, 3), data_layout=layout)
