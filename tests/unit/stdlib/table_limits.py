"""What the other tables lack: empty and large tensors, NaN, negative axes, of operators whose references fit one shape."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from relaxlang.arith.index_map import IndexMap
from relaxlang.ir import prim
from tests.unit.stdlib import references as refs
from tests.unit.stdlib.calls import boxes, detections
from tests.unit.stdlib.table import RNG, SPECIAL, Array, case, floats, ints


def with_nan(x: Array) -> Array:
    x.flat[x.size // 2] = np.nan
    return x


def indexing() -> None:
    case("gather_elements", floats(0, 3), ints(0, 3, low=0, high=3), axis=1, ref=_along)
    case("gather_elements", SPECIAL, ints(5, low=0, high=9), axis=0, ref=_along)
    case("take", floats(), np.array(-1), ref=np.take)
    case("gather_nd", floats(3, 4, 2), ints(0, 1, low=0, high=3), ref=lambda x, i: x[i[:, 0]])
    case("scatter_nd", floats(4, 3), ints(0, 1, low=0, high=3), floats(0, 3), ref=lambda x, i, u: x)
    case("scatter_nd", floats(400, 3), np.array([[3], [399]]), floats(2, 3), ref=_scattered)
    case("index_put", floats(4, 3), (ints(0, low=0, high=3),), floats(0, 3), ref=lambda x, i, u: x)
    case("index_put", floats(400, 3), (np.array([3, -1]),), floats(2, 3), ref=lambda x, i, u: _scattered(x, i[0], u))
    case("topk", with_nan(floats(3, 5)), k=2, ref=_top)
    case("median", floats(), ref=lambda x: x)
    empty = np.zeros((0, 1), "float32")
    case("multinomial_from_uniform", floats(2, 3), empty, empty.astype("int64"), ref=lambda p, u, i: i)
    prob = np.full((2, 512), 1 / 512, "float32")
    at = np.array([[0.2501], [0.9999]], "float32")
    case("multinomial_from_uniform", prob, at, np.array([[0], [1]]), ref=lambda p, u, i: (u * 512).astype("int64"))
    case("multinomial_from_uniform", with_nan(floats(1, 3)), at[:1], np.array([[0]]), ref=_drawn)


def _along(x: Array, i: Array, axis: int) -> Array:
    return np.take_along_axis(x, i, axis)


def _scattered(x: Array, i: Array, u: Array) -> Array:
    out = x.copy()
    out[i.reshape(-1)] = u
    return out


def _top(x: Array, k: int) -> tuple[Array, Array]:
    """NaN counts as the greatest."""
    order = np.argsort(-np.where(np.isnan(x), np.inf, x), -1, kind="stable")[:, :k].astype("int32")
    return np.take_along_axis(x, order, -1), order


def _drawn(p: Array, u: Array, i: Array) -> Array:
    """The last class where the running sum never exceeds the sample."""
    above = np.cumsum(p.astype("float64"), 1)[i[:, 0]] > u
    return np.where(above.any(1), above.argmax(1), p.shape[1] - 1)[:, None]


def creation() -> None:
    case("full", (3,), np.array(np.nan, "float32"), ref=np.full)
    case("eye_like", with_nan(floats(2, 3)), ref=lambda x: np.eye(2, 3, dtype="float32"))
    case("size", SPECIAL, ref=lambda x: np.array(x.size))
    case("meshgrid", (floats(1000), SPECIAL[:2]), indexing="ij", ref=lambda t, indexing: tuple(np.meshgrid(*t, indexing=indexing)))  # fmt: skip
    case("collapse_sum_like", floats(), floats(), ref=lambda x, t: x)
    case("outer", floats(1000), floats(2), ref=np.outer)
    case("einsum", (with_nan(np.abs(floats(40, 30))), np.abs(floats(30, 2))), "ij,jk->ik", ref=_einsum, rtol=1e-5)


def _einsum(t: tuple[Array, ...], s: str) -> Array:
    return np.einsum(s, *t)


def layers() -> None:
    for shape in ((2, 0, 4), (1, 1), (33, 47)):
        case("nn.batch_flatten", floats(*shape), ref=lambda x: x.reshape(len(x), int(np.prod(x.shape[1:]))))
    for shape in ((0, 4, 2, 3), (1, 4, 1, 1), (2, 8, 8, 9)):
        case("nn.pixel_shuffle", floats(*shape), 2, ref=_shuffled)
        g, b = floats(shape[1]), floats(shape[1])
        attrs: dict[str, Any] = {"num_groups": 2, "channel_axis": 1}
        case("nn.group_norm", floats(*shape), g, b, **attrs, axes=[-2, -1], ref=_group_norm, rtol=1e-4)
    x, g, b = floats(2, 3, 2, 4), floats(4), floats(4)
    attrs = {"channel_axis": -1, "axes": [-3, -2]}
    case("nn.instance_norm", x, g, b, **attrs, ref=lambda x, g, b, **a: refs.normalized(x, (1, 2), 1e-5) * g + b,
         rtol=1e-4)  # fmt: skip
    case("nn.batch_norm", x, g, b, floats(4), np.abs(floats(4)) + 1, axis=-1, training=False, ref=_batch_norm,
         rtol=1e-4)  # fmt: skip
    for shape in ((0, 4), (1, 1), (33, 47)):
        case("nn.cross_entropy_with_logits", floats(*shape), floats(*shape), ref=_cross_entropy, rtol=1e-4)
    case("nn.cross_entropy_with_logits", with_nan(floats(3, 4)), floats(3, 4), ref=_cross_entropy)
    q, starts, longest = floats(1, 32, 4, 8), np.array([0, 12, 32], "int32"), np.array(20, "int32")
    case("nn.attention_var_len", q, q, q, starts, longest, starts, longest, ref=_attention, rtol=1e-4)


def _shuffled(x: Array, r: int) -> Array:
    n, c, h, w = x.shape
    return x.reshape(n, c // r**2, r, r, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(n, c // r**2, h * r, w * r)


def _group_norm(x: Array, g: Array, b: Array, num_groups: int, **attrs: Any) -> Array:
    grouped = x.reshape(x.shape[0], num_groups, x.shape[1] // num_groups, *x.shape[2:])
    out = refs.normalized(grouped, (2, 3, 4), 1e-5).reshape(x.shape)
    return out * g.reshape(-1, 1, 1) + b.reshape(-1, 1, 1)


def _batch_norm(x: Array, g: Array, b: Array, m: Array, v: Array, **attrs: Any) -> tuple[Array, ...]:
    return ((x - m) / np.sqrt(v + 1e-5) * g + b).astype("float32"), m, v


def _cross_entropy(p: Array, t: Array) -> Array:
    return np.divide(-(p * t).sum(), np.float32(len(p)), dtype="float32")


def _attention(q: Array, k: Array, v: Array, starts: Array, *rest: Array) -> Array:
    parts = itertools.pairwise(starts)
    return np.concatenate([refs.attention(q[:, a:b], k[:, a:b], v[:, a:b]) for a, b in parts], axis=1)


def gradients() -> None:
    for shape in ((0, 2, 4, 4), (1, 1, 4, 4), (3, 5, 10, 8)):
        x, g = floats(*shape), floats(*shape[:2], shape[2] // 2, shape[3] // 2)
        for kind in ("max", "avg"):
            case(f"grad.{kind}_pool2d_backward", g, x, pool_size=(2, 2), strides=(2, 2), ref=_pool_gradient(kind))
    g = with_nan(floats(1, 1, 2, 2))
    for kind in ("max", "avg"):
        case(f"grad.{kind}_pool2d_backward", g, floats(1, 1, 4, 4), pool_size=2, strides=2, ref=_pool_gradient(kind))
    for grad, shape in ((floats(0), (0, 4)), (floats(1), (1, 1)), (with_nan(floats(50)), (50, 24))):
        targets = RNG.integers(0, shape[1], shape[0])
        case("grad.nll_loss_backward", grad, floats(*shape), targets, np.abs(floats(shape[1])), reduction="none",
             ref=_nll_gradient)  # fmt: skip
    for count, shape in ((0, (4, 3)), (1, (1, 3)), (7, (400, 3))):
        at = RNG.integers(0, shape[0], count)
        case("grad.take_backward", floats(count, 3), floats(*shape), at, axis=-2, ref=_take_gradient, rtol=1e-5)
    case("grad.take_backward", with_nan(floats(3)), floats(4), np.array([0, 1, 3]), axis=0, ref=_take_gradient)


def _pool_gradient(kind: str) -> Any:
    """Windows that do not overlap."""

    def gradient(g: Array, x: Array, **attrs: Any) -> Array:
        wide = g.repeat(2, 2).repeat(2, 3)
        if kind == "avg":
            return wide / 4
        n, c, h, w = x.shape
        parts = x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, h // 2, w // 2, 4)
        first = np.eye(4, dtype=bool)[parts.argmax(-1)].reshape(n, c, h // 2, w // 2, 2, 2)
        return np.where(first.transpose(0, 1, 2, 4, 3, 5).reshape(x.shape), wide, np.float32(0))

    return gradient


def _nll_gradient(g: Array, p: Array, t: Array, w: Array, reduction: str) -> Array:
    out = np.zeros_like(p)
    out[np.arange(len(t)), t] = -g * w[t]
    return out


def _take_gradient(g: Array, x: Array, i: Array, axis: int) -> Array:
    out = np.zeros_like(x)
    np.add.at(out, i, g)
    return out


def images() -> None:
    for batch in (0, 40):
        moves = np.tile(np.array([[1, 0, 0.25], [0, 1, -0.5]], "float32"), (batch, 1, 1))
        case("image.affine_grid", moves, (3, 5), ref=_moved, rtol=1e-5)
    case("image.affine_grid", np.tile(with_nan(np.eye(2, 3, dtype="float32")), (200, 1, 1)), (2, 2), ref=_moved)
    for shape in ((0, 2, 4, 4), (2, 3, 13, 16)):
        grid = np.stack(np.meshgrid(np.linspace(-1, 1, shape[3]), np.linspace(-1, 1, shape[2])))
        grids = np.tile(grid.astype("float32"), (shape[0], 1, 1, 1))
        image = floats(*shape)
        case("image.grid_sample", with_nan(image) if image.size else image, grids, method="nearest", align_corners=True,
             ref=lambda x, g, **attrs: x)  # fmt: skip
    for shape in ((0, 2, 2, 3, 2), (2, 3, 4, 5, 10)):
        image = floats(*shape)
        size = tuple(2 * n for n in shape[2:])
        case("image.resize3d", with_nan(image) if image.size else image, size, method="nearest_neighbor",
             coordinate_transformation_mode="asymmetric", rounding_method="floor",
             ref=lambda x, size, **attrs: x.repeat(2, 2).repeat(2, 3).repeat(2, 4))  # fmt: skip


def _moved(moves: Array, size: tuple[int, int]) -> Array:
    y, x = np.meshgrid(*(np.linspace(-1, 1, n) for n in size), indexing="ij")
    return np.einsum("nij,jhw->nihw", moves, np.stack([x, y, np.ones_like(x)])).astype("float32")


def regions() -> None:
    data = with_nan(floats(2, 3, 16, 16))
    for rois in (np.zeros((0, 5), "float32"), boxes(3, 12)):
        case("vision.roi_pool", data, rois, (2, 3), 1.0, ref=_roi_pool)
        case("vision.roi_align", data, rois, (2, 2), 1.0, sample_ratio=1, ref=_roi_align, rtol=1e-4)
    one = np.array([[0, 0, 0, 0, 0]], "float32")
    case("vision.roi_pool", floats(1, 1, 1, 1), one, 1, 1.0, ref=lambda x, *a: x)
    case("vision.roi_align", floats(1, 1, 1, 1), one, 1, 1.0, ref=lambda x, *a: x)
    for rows in (detections(0, 4), detections(1, 1), detections(2, 0), detections(2, 90), with_nan(detections(2, 5))):
        case("vision.get_valid_counts", rows, score_threshold=0.3, ref=_valid)
        count = np.full(len(rows), rows.shape[1], "int32")
        names = np.tile(np.arange(rows.shape[1], dtype="int32"), (len(rows), 1))
        case("vision.non_max_suppression", rows, count, names, iou_threshold=0.3, ref=_suppressed)
    for batch, classes, count in ((0, 3, 4), (1, 1, 1), (2, 4, 130)):
        chances, offsets = floats(batch, classes, count), floats(batch, 4 * count) / 8
        anchors = np.tile(np.array([0, 0, 1, 1], "float32"), (1, count, 1))
        chances = with_nan(chances) if batch == 2 else chances
        case("vision.multibox_transform_loc", chances, offsets, anchors, ref=_multibox, rtol=1e-4)


def _roi_pool(x: Array, rois: Array, size: tuple[int, int], scale: float) -> Array:
    out = np.zeros((len(rois), x.shape[1], *size), x.dtype)
    for r, (n, *corners) in enumerate(rois):
        x1, y1, x2, y2 = np.floor(np.array(corners) + 0.5).astype(int)
        h, w = max(y2 - y1 + 1, 1) / size[0], max(x2 - x1 + 1, 1) / size[1]
        for i, j in np.ndindex(*size):
            rows = slice(min(int(i * h) + y1, 16), min(int(np.ceil((i + 1) * h)) + y1, 16))
            columns = slice(min(int(j * w) + x1, 16), min(int(np.ceil((j + 1) * w)) + x1, 16))
            part = x[int(n), :, rows, columns].reshape(x.shape[1], -1)
            out[r, :, i, j] = part.max(-1) if part.size else 0
    return out


def _roi_align(x: Array, rois: Array, size: tuple[int, int], scale: float, sample_ratio: int) -> Array:
    """One point in the middle of each part."""
    out = np.zeros((len(rois), x.shape[1], *size))
    for r, (n, x1, y1, x2, y2) in enumerate(rois):
        h, w = max(y2 - y1, 1) / size[0], max(x2 - x1, 1) / size[1]
        for i, j in np.ndindex(*size):
            y, z = min(y1 + h * (i + 0.5), 15), min(x1 + w * (j + 0.5), 15)
            top, left = int(y), int(z)
            for p, a in ((top, 1 - (y - top)), (min(top + 1, 15), y - top)):
                for q, b in ((left, 1 - (z - left)), (min(left + 1, 15), z - left)):
                    out[r, :, i, j] += x[int(n), :, p, q] * a * b
    return out.astype("float32")


def _valid(rows: Array, score_threshold: float) -> tuple[Array, ...]:
    count, out = np.zeros(len(rows), "int32"), np.full_like(rows, -1)
    places = np.full(rows.shape[:2], -1, "int32")
    for b, batch in enumerate(rows):
        kept = np.flatnonzero((batch[:, 1] > score_threshold) & (batch[:, 0] >= 0))
        count[b] = len(kept)
        out[b, : len(kept)], places[b, : len(kept)] = batch[kept], kept
    return count, out, places


def _suppressed(rows: Array, count: Array, names: Array, iou_threshold: float) -> tuple[Array, Array]:
    """The boxes kept in each batch, best first; those of one class suppress each other."""
    out, total = np.full(names.shape, -1, "int32"), np.zeros((len(rows), 1), "int32")
    for b, batch in enumerate(rows):
        kept: list[int] = []
        for i in np.argsort(np.where(np.isnan(batch[:, 1]), -np.inf, -batch[:, 1]), kind="stable"):
            others = [j for j in kept if batch[j, 0] == batch[i, 0]]
            if batch[i, 1] > 0 and not any(_overlap(batch[i, 2:], batch[j, 2:]) >= iou_threshold for j in others):
                kept.append(int(i))
        out[b, : len(kept)], total[b] = kept, len(kept)
    return out, total


def _overlap(a: Array, b: Array) -> float:
    sides = np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0)
    return float(np.prod(sides) / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - np.prod(sides)))


def _multibox(chances: Array, offsets: Array, anchors: Array) -> tuple[Array, Array]:
    """Of anchors that are all the unit square."""
    x, y, w, h = offsets.reshape(len(offsets), anchors.shape[1], 4).transpose(2, 0, 1)
    x, y, w, h = x + 0.5, y + 0.5, np.exp(w) / 2, np.exp(h) / 2
    scores = refs.softmax(chances, 1)
    return np.stack([y - h, x - w, y + h, x + w], -1), np.where(scores >= 0, scores, np.float32(0))


def inspected() -> None:
    """Scalars, which are Python's numbers."""
    x = floats(2, 3, 4)
    facts: dict[str, Any] = {
        "dtype_code": lambda x: 2, "dtype_bits": lambda x: 32, "dtype_lanes": lambda x: 1, "ndim": np.ndim,
        "byte_offset": lambda x: 0, "elem_offset": lambda x: 0,
    }  # fmt: skip
    for name, fact in facts.items():
        case(f"inspect.tensor_{name}", x, ref=fact)
    for axis in (0, -1):
        case("inspect.tensor_shape_i", x, axis=axis, ref=lambda x, axis: x.shape[axis])
        case("inspect.tensor_stride_i", x, axis=axis, ref=lambda x, axis: int(np.prod(x.shape[axis:][1:])))


def transformed() -> None:
    def transposed(x: Array, index_map: Any) -> Array:
        return x.T

    i, j = prim.Var("i", prim.INT64), prim.Var("j", prim.INT64)
    swap = IndexMap((i, j), (j, i))
    case("layout_transform", floats(3, 4), index_map=swap, ref=transposed)


for _family in (indexing, creation, layers, gradients, images, regions, inspected, transformed):
    _family()
