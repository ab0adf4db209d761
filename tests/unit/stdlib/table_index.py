"""The tables' third part: indexing, sorting, quantisation, images, suppression."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.unit.stdlib import references as refs
from tests.unit.stdlib.table import RNG, SPECIAL, Array, case, floats, ints


def indexing() -> None:
    x = floats(4, 5)
    for axis in (0, 1, -1):
        case("take", x, ints(2, 3, low=0, high=4), axis=axis, ref=lambda x, i, axis: np.take(x, i, axis))
    case("take", floats(5), ints(3, low=-5, high=5), ref=np.take)
    case("take", x, np.array(2), axis=0, ref=lambda x, i, axis: np.take(x, i, axis))
    for mode in ("clip", "wrap"):
        case(
            "take",
            x,
            ints(7, low=-9, high=12),
            axis=1,
            mode=mode,
            ref=lambda x, i, axis, mode: np.take(x, i, axis, mode=mode),
        )
    for axis in (0, 1, -1):
        case(
            "gather_elements",
            x,
            ints(4, 5, low=-4, high=4),
            axis=axis,
            ref=lambda x, i, axis: np.take_along_axis(x, i % x.shape[axis], axis),
        )
    case("gather_nd", floats(3, 4, 2), ints(5, 2, low=0, high=3), ref=lambda x, i: x[i[:, 0], i[:, 1]])
    case(
        "gather_nd",
        floats(3, 4, 2),
        ints(3, 2, 1, low=-2, high=4),
        batch_dims=1,
        ref=lambda x, i, batch_dims: np.stack([x[b][i[b, :, 0]] for b in range(3)]),
    )
    case(
        "index_tensor",
        floats(3, 4, 2),
        (ints(2, 1, low=0, high=3), ints(3, low=-4, high=4)),
        ref=lambda x, t: x[t[0], t[1]],
    )
    lengths = np.array([2, 0, 5, 1], "int32")

    def reverse(x: Array, n: Array, seq_axis: int = 1, batch_axis: int = 0) -> Array:
        out = x.copy()
        for b, length in enumerate(n):
            out[b, :length] = x[b, :length][::-1]
        return out

    case("reverse_sequence", floats(4, 5, 2), lengths, ref=reverse)
    for reduction in ("update", "add", "mul", "max", "min"):
        case(
            "scatter_elements",
            x,
            ints(2, 5, low=-4, high=4),
            floats(2, 5),
            axis=0,
            reduction=reduction,
            ref=_scatter,
            rtol=1e-5,
        )
        case(
            "scatter_nd",
            floats(4, 3),
            ints(5, 1, low=0, high=4),
            floats(5, 3),
            reduction=reduction,
            ref=_scatter_nd,
            rtol=1e-5,
        )
    case("scatter_elements", x, ints(4, 2, low=0, high=5), floats(4, 2), axis=1, ref=_scatter)
    for accumulate in (False, True):
        case(
            "index_put",
            floats(4, 3),
            (ints(5, low=-4, high=4),),
            floats(5, 3),
            accumulate=accumulate,
            ref=_put,
            rtol=1e-5,
        )
        case(
            "index_put",
            floats(4, 3),
            (ints(2, 1, low=0, high=4), ints(3, low=0, high=3)),
            floats(1),
            accumulate=accumulate,
            ref=_put,
            rtol=1e-5,
        )


_COMBINE: dict[str, Any] = {
    "update": lambda a, b: b,
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}


def _unique(x: Array, axis: int | None, **every: bool) -> tuple[Array, ...]:
    values, index, inverse, counts = np.unique(x, True, True, True, axis=axis)
    return values, index, inverse.reshape(-1), counts


def _scatter(x: Array, i: Array, u: Array, axis: int = 0, reduction: str = "update") -> Array:
    out = x.copy()
    for at in np.ndindex(i.shape):
        to = (*at[:axis], i[at], *at[axis + 1 :])
        out[to] = _COMBINE[reduction](out[to], u[at])
    return out


def _scatter_nd(x: Array, i: Array, u: Array, reduction: str) -> Array:
    out = x.copy()
    for at in np.ndindex(i.shape[:-1]):
        out[tuple(i[at])] = _COMBINE[reduction](out[tuple(i[at])], u[at])
    return out


def _put(x: Array, i: tuple[Array, ...], v: Array, accumulate: bool) -> Array:
    out = x.copy()
    if accumulate:
        np.add.at(out, i, v)
    else:
        out[i] = v
    return out


def sorting() -> None:
    ties = ints(3, 17, low=0, high=5)
    nans = floats(2, 9)
    nans[0, 3] = nans[1, 0] = nans[1, 8] = np.nan
    for x in (ties, floats(4, 6), nans, floats(3, 0), floats(1)):
        case("sort", x, ref=lambda x: np.sort(x, -1))
        case("argsort", x, ref=lambda x: np.argsort(x, -1, kind="stable").astype("int32"))
    case("sort", ties, axis=0, ref=lambda x, axis: np.sort(x, axis))
    case("sort", ties, descending=True, ref=lambda x, descending: np.sort(x, -1)[:, ::-1])
    case("sort", nans, descending=True, ref=lambda x, descending: np.sort(x, -1)[:, ::-1])
    case("argsort", ties, axis=0, dtype="int64", ref=lambda x, axis, dtype: np.argsort(x, axis, kind="stable"))
    case("argsort", ties, descending=True, ref=lambda x, descending: np.argsort(-x, -1, kind="stable").astype("int32"))

    def top(x: Array, k: int = 1, axis: int = -1, ret_type: str = "both", largest: bool = True) -> Any:
        order = np.argsort(-x if largest else x, axis, kind="stable")
        order = np.take(order, np.arange(k), axis)
        both = np.take_along_axis(x, order, axis), order.astype("int32")
        return both if ret_type == "both" else both[ret_type == "indices"]

    for attrs in (
        {},
        {"k": 3},
        {"k": 2, "axis": 0},
        {"k": 2, "largest": False},
        {"k": 2, "ret_type": "values"},
        {"k": 2, "ret_type": "indices"},
    ):
        case("topk", ties, **attrs, ref=top)
    case(
        "median", floats(3, 5), axis=1, ref=lambda x, axis: (np.sort(x, 1)[:, 2], np.argsort(x, 1, kind="stable")[:, 2])
    )
    case(
        "median",
        floats(3, 4),
        axis=0,
        keepdims=True,
        ref=lambda x, axis, keepdims: (np.sort(x, 0)[1:2], np.argsort(x, 0, kind="stable")[1:2]),
    )
    case("median", floats(3, 5), ref=lambda x: np.sort(x, None)[7])
    case("median", nans, axis=1, ref=lambda x, axis: (np.array([np.nan, np.nan], "float32"), np.array([3, 0])))
    edges = np.array([-2.0, 0.0, 1.0, 1.0, 3.0], "float32")
    for right in (False, True):
        values = np.concatenate([floats(9), edges])
        case(
            "bucketize",
            values,
            edges,
            right=right,
            ref=lambda x, e, right: np.searchsorted(e, x, "right" if right else "left"),
        )
    case(
        "bucketize",
        ints(4),
        np.array([0, 5], "int32"),
        out_int32=True,
        ref=lambda x, e, out_int32: np.searchsorted(e, x).astype("int32"),
    )
    prob = np.array([[0.2, 0.3, 0.5], [0.9, 0.05, 0.05]], "float32")
    case(
        "multinomial_from_uniform",
        prob,
        np.array([[0.1], [0.6], [0.92], [1.0]], "float32"),
        np.array([[0], [0], [1], [1]]),
        ref=lambda p, u, i: np.array([[0], [2], [1], [2]]),
    )
    case("unique", ties, ref=np.unique)
    case(
        "unique",
        ties,
        return_index=True,
        return_counts=True,
        ref=lambda x, **a: np.unique(x, return_index=True, return_counts=True),
    )
    case("unique", ints(6, 2, low=0, high=2), axis=0, ref=lambda x, axis: np.unique(x, axis=0))
    rows = ints(7, 2, low=0, high=2).astype("float32")
    rows[2, 1] = rows[5, 1] = np.nan
    every = {"return_index": True, "return_inverse": True, "return_counts": True}
    for axis in (None, 0, 1):
        case("unique", rows, **every, axis=axis, ref=_unique)
    case("nonzero", np.float32(3).reshape(()), ref=lambda x: np.array([[0]]))
    case("nonzero", ints(3, 4, low=-1, high=2), ref=lambda x: np.stack(np.nonzero(x)))


def quantisation() -> None:
    x = floats(3, 4)
    scale, zero = np.array([0.1, 0.2, 0.05, 0.5], "float32"), ints(4, dtype="int8")

    def quantized(x: Array, s: Array, z: Array, axis: int = -1, out_dtype: str = "int8") -> Array:
        info = np.iinfo(out_dtype)
        return np.clip(np.round(x / s) + z, info.min, info.max).astype(out_dtype)

    case("quantize", x, scale, zero, ref=quantized)
    case("quantize", x, np.array(0.01, "float32"), np.array(3, "int32"), out_dtype="uint8", ref=quantized)
    case("quantize", SPECIAL[1:], np.array(0.5, "float32"), np.array(0, "int8"), ref=quantized)
    case(
        "dequantize",
        ints(3, 4, low=-128, high=128, dtype="int8"),
        scale,
        zero,
        ref=lambda q, s, z: ((q.astype("int32") - z) * s).astype("float32"),
    )


def vision() -> None:
    centre, size = RNG.uniform(0.2, 0.8, (2, 9, 2)), RNG.uniform(0.1, 0.4, (2, 9, 2))
    boxes = np.concatenate([centre - size, centre + size], -1).astype("float32")
    for most in (0, 2, 9):
        scores = RNG.permutation(54).reshape(2, 3, 9).astype("float32") / 54
        limits = np.array(most, "int64"), np.array(0.4, "float32"), np.array(0.2, "float32")
        case("vision.all_class_non_max_suppression", boxes, scores, *limits, ref=refs.nms)
    image = floats(1, 2, 5, 6)
    case(
        "image.resize2d",
        image,
        (10, 12),
        method="nearest_neighbor",
        coordinate_transformation_mode="asymmetric",
        rounding_method="floor",
        ref=lambda x, size, **attrs: x.repeat(2, 2).repeat(2, 3),
    )
    case("image.resize2d", image, (5, 6), method="linear", ref=lambda x, size, method: x)
    case("image.resize2d", image, (5, 6), method="cubic", ref=lambda x, size, method: x)
    identity = np.array([[[1, 0, 0], [0, 1, 0]]], "float32")
    grid = np.stack(np.meshgrid(np.linspace(-1, 1, 6), np.linspace(-1, 1, 5)))[None].astype("float32")
    case("image.affine_grid", identity, (5, 6), ref=lambda m, size: grid)
    case("image.grid_sample", image, grid, align_corners=True, ref=lambda x, g, align_corners: x, rtol=1e-4)
    case("image.grid_sample", image, grid, align_corners=True, method="nearest", ref=lambda x, g, **attrs: x)


for _family in (indexing, sorting, quantisation, vision):
    _family()
