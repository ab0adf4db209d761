"""Calls of operators that numpy has no equal of (images, regions, suppression, gradients), without expected values:
compiled code is compared with the interpreter, and the interpreter with apache-tvm (`tests/oracle`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

RNG = np.random.default_rng(3)
Array = np.ndarray[Any, Any]


def floats(*shape: int) -> Array:
    return RNG.uniform(-2, 2, shape).astype("float32")


def boxes(count: int, size: float) -> Array:
    """Regions (batch, x1, y1, x2, y2) with corners in order."""
    a, b = RNG.uniform(0, size, (2, count, 2))
    low, high = np.minimum(a, b), np.maximum(a, b)
    return np.concatenate([RNG.integers(0, 2, (count, 1)), low, high], 1).astype("float32")


Call = tuple[str, tuple[Any, ...], dict[str, Any]]
CALLS: list[Call] = []


def call(name: str, *args: Any, **attrs: Any) -> None:
    CALLS.append((name, args, attrs))


MODES = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel")
for size in ((3, 5), (9, 12)):
    for mode in (*MODES, "tf_half_pixel_for_nn"):
        for rounding in ("round", "floor", "ceil", "round_prefer_floor", "round_prefer_ceil", ""):
            call(
                "image.resize2d",
                floats(1, 2, 6, 7),
                size,
                method="nearest_neighbor",
                coordinate_transformation_mode=mode,
                rounding_method=rounding,
            )
    for mode in MODES:
        call("image.resize2d", floats(1, 2, 6, 7), size, method="linear", coordinate_transformation_mode=mode)
        for exclude in (0, 1):
            call(
                "image.resize2d",
                floats(1, 2, 6, 7),
                size,
                method="cubic",
                coordinate_transformation_mode=mode,
                cubic_exclude=exclude,
            )
    call("image.resize2d", floats(1, 6, 7, 2), size, method="linear", layout="NHWC")
    call(
        "image.resize2d",
        floats(1, 2, 6, 7),
        size,
        method="linear",
        coordinate_transformation_mode="tf_crop_and_resize",
        roi=(0.1, 0.2, 0.9, 1.1),
        extrapolation_value=7.0,
    )
for mode in MODES[:3]:
    for method in ("nearest_neighbor", "linear", "cubic"):
        call("image.resize3d", floats(1, 2, 3, 4, 5), (4, 3, 7), method=method, coordinate_transformation_mode=mode)
for method in ("bilinear", "nearest", "bicubic"):
    for padding in ("zeros", "border", "reflection"):
        for corners in (False, True):
            call(
                "image.grid_sample",
                floats(2, 3, 5, 6),
                floats(2, 2, 4, 3),
                method=method,
                padding_mode=padding,
                align_corners=corners,
            )
call("image.affine_grid", floats(2, 2, 3), (4, 5))
call("image.affine_grid", floats(2, 2, 3), (4, 5), align_corners=False)
for aligned in (False, True):
    for mode in ("avg", "max"):
        for ratio in (-1, 2):
            call(
                "vision.roi_align",
                floats(2, 3, 8, 9),
                boxes(5, 12),
                (2, 3),
                0.6,
                sample_ratio=ratio,
                aligned=aligned,
                mode=mode,
            )
call("vision.roi_pool", floats(2, 3, 8, 9), boxes(5, 12), (2, 3), 0.6)
for reduction in ("none", "sum", "mean"):
    grad = floats(3, 2) if reduction == "none" else floats()
    targets = np.array([[0, -100], [2, 1], [1, 1]], "int64")
    call("grad.nll_loss_backward", grad, floats(3, 4, 2), targets, np.abs(floats(4)), reduction=reduction)
call("grad.take_backward", floats(3, 2, 4), floats(3, 5, 4), np.array([1, 1]), axis=1)
for include in (False, True):
    for pad in ((0, 0, 0, 0), (1, 1, 1, 1)):
        size = 3 if pad[0] else 2
        x = floats(1, 2, 6, 6)
        g = floats(1, 2, *[(6 + 2 * pad[0] - size) // 2 + 1] * 2)
        call(
            "grad.avg_pool2d_backward",
            g,
            x,
            pool_size=(size, size),
            strides=(2, 2),
            padding=pad,
            count_include_pad=include,
        )
        call("grad.max_pool2d_backward", g, x, pool_size=(size, size), strides=(2, 2), padding=pad)
call("hamming_window", 6, True, 0.54, 0.46, dtype="float32")
call("hamming_window", 6, False, 0.54, 0.46, dtype="float32")
call("nn.prelu", floats(2, 3, 4), floats(3), axis=1)
call(
    "quantize",
    floats(3, 4),
    np.array([0.1, 0.2, 0.05, 0.5], "float32"),
    np.array([1, -3, 0, 2], "int8"),
    axis=-1,
    out_dtype="int8",
)


def scene(batch: int, count: int) -> Array:
    """Boxes (x1, y1, x2, y2) that overlap a lot."""
    centre, size = RNG.uniform(0.2, 0.8, (batch, count, 2)), RNG.uniform(0.1, 0.4, (batch, count, 2))
    return np.concatenate([centre - size, centre + size], -1).astype("float32")


def detections(batch: int, count: int) -> Array:
    """Rows (class, score, box)."""
    kinds = RNG.integers(-1, 3, (batch, count, 1))
    return np.concatenate(
        [kinds, RNG.permutation(batch * count).reshape(batch, count, 1) / (batch * count), scene(batch, count)], -1
    ).astype("float32")


def scalar(value: float, of: str = "float32") -> Array:
    return np.array(value, of)


scores = RNG.permutation(2 * 3 * 9).reshape(2, 3, 9).astype("float32") / 54
for output in ("onnx", "tensorflow"):
    # A limit that is no constant is no limit in TVM.
    args = scene(2, 9), scores, scalar(9, "int64"), scalar(0.4), scalar(0.2)
    call("vision.all_class_non_max_suppression", *args, output_format=output)
rows = detections(2, 9)
for index in (0, -1):
    call("vision.get_valid_counts", rows, score_threshold=0.3, id_index=index)
valid, top = np.array([9, 5], "int32"), np.arange(18, dtype="int32").reshape(2, 9)
for attrs in (
    {},
    {"force_suppress": True},
    {"top_k": 5},
    {"max_output_size": 2},
    {"return_indices": False},
    {"id_index": -1},
    {"return_indices": False, "invalid_to_bottom": True},
    {"iou_threshold": 0.2},
):
    call("vision.non_max_suppression", rows, valid, top, **attrs)
for attrs in (
    {},
    {"clip": True},
    {"threshold": 0.3},
    {"keep_background": False},
    {"apply_softmax": False},
    {"variances": (0.1, 0.1, 0.2, 0.2)},
):
    call("vision.multibox_transform_loc", floats(2, 3, 5), floats(2, 20), scene(1, 5), **attrs)
