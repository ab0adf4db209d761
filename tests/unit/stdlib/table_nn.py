"""The tables' second part: products, windows, normalisation, attention, indexing, sorting, quantisation, images."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.unit.stdlib import references as refs
from tests.unit.stdlib.table import RNG, SPECIAL, Array, case, floats, ints


def products() -> None:
    for a, b in (
        ((3, 4), (4, 5)),
        ((4,), (4, 5)),
        ((3, 4), (4,)),
        ((4,), (4,)),
        ((2, 1, 3, 4), (5, 4, 2)),
        ((3, 0), (0, 2)),
        ((1, 1), (1, 1)),
    ):
        case("matmul", floats(*a), floats(*b), ref=np.matmul, rtol=1e-5)
    case(
        "matmul",
        ints(3, 4, dtype="int8"),
        ints(4, 2, dtype="int8"),
        out_dtype="int32",
        ref=lambda a, b, out_dtype: a.astype("int32") @ b.astype("int32"),
    )
    case(
        "matmul",
        floats(3, 64, dtype="float16"),
        floats(64, 2, dtype="float16"),
        rtol=2e-3,
        ref=lambda a, b: (a.astype("float32") @ b).astype("float16"),
    )
    case("outer", floats(3), floats(4), ref=np.outer)
    for text, *shapes in (
        ("ij,jk->ik", (2, 3), (3, 4)),
        ("ij,jk", (2, 3), (3, 4)),
        ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
        ("ii->i", (3, 3)),
        ("ij->", (2, 3)),
        ("i,j,k->ijk", (2,), (3,), (4,)),
        ("...ij,...jk->...ik", (2, 3, 4), (4, 5)),
        ("ij->ji", (2, 3)),
        ("i,i->", (4,), (4,)),
    ):
        case("einsum", tuple(floats(*s) for s in shapes), text, ref=lambda t, s: np.einsum(s, *t), rtol=1e-5)


def convolutions() -> None:
    for attrs in (
        {},
        {"strides": (2, 1)},
        {"padding": (1, 2)},
        {"padding": (1, 0, 2, 1)},
        {"dilation": 2},
        {"strides": 2, "padding": 1, "dilation": (1, 2)},
    ):
        case("nn.conv2d", floats(2, 3, 7, 6), floats(4, 3, 3, 2), **attrs, ref=refs.conv, rtol=1e-4)
    case("nn.conv2d", floats(1, 4, 5, 5), floats(6, 2, 3, 3), groups=2, ref=refs.conv, rtol=1e-4)
    case("nn.conv2d", floats(1, 4, 5, 5), floats(4, 1, 3, 3), groups=4, padding=1, ref=refs.conv, rtol=1e-4)
    case(
        "nn.conv2d",
        floats(1, 5, 6, 3),
        floats(3, 2, 3, 4),
        data_layout="NHWC",
        kernel_layout="HWIO",
        ref=refs.conv,
        rtol=1e-4,
    )
    case("nn.conv2d", floats(1, 3, 5, 6), floats(4, 3, 3, 2), out_layout="NHWC", ref=refs.conv, rtol=1e-4)
    case("nn.conv2d", ints(1, 2, 4, 4, dtype="int8"), ints(3, 2, 2, 2, dtype="int8"), out_dtype="int32", ref=refs.conv)
    for attrs in ({}, {"strides": 2, "padding": (1, 2)}, {"dilation": 2, "groups": 1}):
        case("nn.conv1d", floats(2, 3, 9), floats(4, 3, 3), **attrs, ref=refs.conv, rtol=1e-4)
    case(
        "nn.conv3d",
        floats(1, 2, 4, 5, 4),
        floats(3, 2, 2, 3, 2),
        strides=(1, 2, 1),
        padding=(0, 1, 1),
        ref=refs.conv,
        rtol=1e-4,
    )
    for attrs in (
        {},
        {"strides": 2},
        {"strides": 2, "padding": 1, "output_padding": 1},
        {"dilation": (1, 2)},
        {"padding": (1, 0, 0, 1)},
    ):
        case("nn.conv2d_transpose", floats(2, 3, 4, 3), floats(3, 2, 3, 2), **attrs, ref=refs.conv_transpose, rtol=1e-4)
    case(
        "nn.conv2d_transpose",
        floats(1, 4, 3, 3),
        floats(4, 3, 2, 2),
        groups=2,
        strides=2,
        ref=refs.conv_transpose,
        rtol=1e-4,
    )
    case(
        "nn.conv2d_transpose",
        floats(1, 3, 4, 2),
        floats(2, 3, 3, 2),
        data_layout="NHWC",
        kernel_layout="IOHW",
        ref=refs.conv_transpose,
        rtol=1e-4,
    )
    case(
        "nn.conv1d_transpose",
        floats(2, 3, 5),
        floats(3, 2, 3),
        strides=3,
        output_padding=1,
        ref=refs.conv_transpose,
        rtol=1e-4,
    )
    case(
        "nn.conv3d_transpose",
        floats(1, 2, 2, 3, 2),
        floats(2, 1, 2, 2, 2),
        strides=2,
        ref=refs.conv_transpose,
        rtol=1e-4,
    )


def pools() -> None:
    shapes: dict[int, tuple[int, ...]] = {1: (2, 3, 9), 2: (2, 3, 7, 6), 3: (1, 2, 4, 5, 6)}
    for n, shape in shapes.items():
        for kind in ("max", "avg"):

            def ref(x: Array, kind: str = kind, **attrs: Any) -> Array:
                attrs.setdefault("count_include_pad", kind == "avg" and x.ndim != 4)
                return refs.pool(kind, x, **attrs)

            for attrs in (
                {"pool_size": 2},
                {"pool_size": 3, "strides": 2},
                {"pool_size": 3, "strides": 2, "padding": 1},
                {"pool_size": 2, "strides": 3, "ceil_mode": True},
                {"pool_size": 2, "dilation": 2},
            ):
                case(f"nn.{kind}_pool{n}d", floats(*shape), **attrs, ref=ref, rtol=1e-5)
        for include in (False, True):
            case(
                f"nn.avg_pool{n}d",
                floats(*shape),
                pool_size=3,
                strides=2,
                padding=1,
                ceil_mode=True,
                count_include_pad=include,
                ref=lambda x, **attrs: refs.pool("avg", x, **attrs),
                rtol=1e-5,
            )
        for size in (None, 1, 2, 3):
            case(f"nn.adaptive_avg_pool{n}d", floats(*shape), output_size=size, ref=refs.adaptive, rtol=1e-5)
    case(
        "nn.max_pool2d",
        floats(1, 5, 6, 3),
        pool_size=(2, 3),
        layout="NHWC",
        ref=lambda x, **attrs: refs.pool("max", x, **attrs),
    )
    case(
        "nn.max_pool2d",
        np.arange(25, dtype="float32").reshape(1, 1, 5, 5),
        pool_size=2,
        strides=3,
        padding=1,
        ceil_mode=True,
        ref=lambda x, **attrs: refs.pool("max", x, **attrs),
    )


def norms() -> None:
    for shape, axis in (((3, 4), -1), ((2, 3, 4), 1), ((5,), 0), ((2, 0), 0), ((1, 1), -1)):
        case("nn.softmax", floats(*shape), axis=axis, ref=refs.softmax)
        case(
            "nn.log_softmax",
            floats(*shape),
            axis=axis,
            ref=lambda x, axis: np.log(refs.softmax(x.astype("float64"), axis)).astype("float32"),
        )
    big = np.array([[1e4, 1e4 - 1], [-3e38, 3e38]], "float32")
    case("nn.softmax", big, ref=refs.softmax)
    case("nn.log_softmax", big, ref=lambda x: np.array([[-0.31326169, -1.31326169], [-np.inf, 0]], "float32"))
    for axes in ([-1], [1, 2]):
        shape = tuple(np.array((2, 3, 4))[axes])
        case(
            "nn.layer_norm",
            floats(2, 3, 4),
            floats(*shape),
            floats(*shape),
            axes=axes,
            rtol=1e-4,
            ref=lambda x, g, b, axes: refs.normalized(x, tuple(axes), 1e-5) * g + b,
        )
        case(
            "nn.rms_norm",
            floats(2, 3, 4),
            floats(*shape),
            axes=axes,
            rtol=1e-4,
            ref=lambda x, w, axes: (x / np.sqrt((x**2).mean(tuple(axes), keepdims=True) + 1e-5) * w).astype("float32"),
        )
    case(
        "nn.layer_norm",
        floats(2, 64, dtype="float16"),
        floats(64, dtype="float16"),
        floats(64, dtype="float16"),
        axes=[-1],
        rtol=5e-3,
        ref=lambda x, g, b, axes: (refs.normalized(x.astype("float32"), (-1,), 1e-5) * g + b).astype("float16"),
    )
    case(
        "nn.layer_norm",
        (floats(1, 100) + 100).astype("float32"),
        floats(100),
        floats(100),
        axes=[-1],
        rtol=1e-3,
        ref=lambda x, g, b, axes: (refs.normalized(x.astype("float64"), (-1,), 1e-5) * g + b).astype("float32"),
    )
    x, g, b = floats(2, 4, 3, 2), floats(4), floats(4)

    def channels(v: Array) -> Array:
        return v.reshape(1, -1, 1, 1)

    case(
        "nn.instance_norm",
        x,
        g,
        b,
        channel_axis=1,
        axes=[2, 3],
        rtol=1e-4,
        ref=lambda x, g, b, **a: refs.normalized(x, (2, 3), 1e-5) * channels(g) + channels(b),
    )
    case(
        "nn.group_norm",
        x,
        g,
        b,
        num_groups=2,
        channel_axis=1,
        axes=[2, 3],
        rtol=1e-4,
        ref=lambda x, g, b, **a: (
            refs.normalized(x.reshape(2, 2, 2, 3, 2), (2, 3, 4), 1e-5).reshape(x.shape) * channels(g) + channels(b)
        ),
    )
    mean, var = floats(4), np.abs(floats(4)) + 1

    def batch_norm(x: Array, g: Array, b: Array, m: Array, v: Array, axis: int, training: bool) -> tuple[Array, ...]:
        bm, bv = (x.mean((0, 2, 3)), x.var((0, 2, 3))) if training else (m, v)
        out = (x - channels(bm)) / np.sqrt(channels(bv) + 1e-5) * channels(g) + channels(b)
        moved = (0.9 * m + 0.1 * bm, 0.9 * v + 0.1 * bv) if training else (m, v)
        return out.astype("float32"), moved[0].astype("float32"), moved[1].astype("float32")

    for training in (False, True):
        case("nn.batch_norm", x, g, b, mean, var, axis=1, training=training, ref=batch_norm, rtol=1e-4)


def attention() -> None:
    q, k, v = floats(2, 5, 4, 8), floats(2, 6, 4, 8), floats(2, 6, 4, 3)
    for attrs in (
        {},
        {"scale": 0.3},
        {"causal_mask": "TopLeft"},
        {"causal_mask": "BottomRight"},
        {"causal_mask": "BottomRight", "window_size": 3},
    ):
        case("nn.attention", q, k, v, **attrs, ref=refs.attention, rtol=1e-4)
    case("nn.attention", q, floats(2, 6, 2, 8), floats(2, 6, 2, 3), ref=refs.attention, rtol=1e-4)
    case("nn.attention_bias", q, k, v, floats(2, 1, 5, 6), ref=refs.attention, rtol=1e-4)


def losses_and_pads() -> None:
    case(
        "nn.cross_entropy_with_logits",
        floats(3, 4),
        floats(3, 4),
        ref=lambda p, t: np.float32(-(p * t).sum() / 3),
        rtol=1e-5,
    )
    case("nn.cross_entropy_with_logits", floats(4), floats(4), ref=lambda p, t: np.float32(-(p * t).sum()), rtol=1e-5)
    p, t, w = floats(3, 5, 2), ints(3, 2, low=0, high=5), np.abs(floats(5))
    t[0, 1] = -100

    def nll(p: Array, t: Array, w: Array | None = None, reduction: str = "mean", ignore_index: int = -100) -> Array:
        w = np.ones(p.shape[1], "float32") if w is None else w
        safe = np.where(t == ignore_index, 0, t)
        weight = np.where(t == ignore_index, 0, w[safe])
        loss = -np.take_along_axis(p, safe[:, None], 1)[:, 0] * weight
        return np.asarray(
            loss if reduction == "none" else loss.sum() if reduction == "sum" else loss.sum() / weight.sum(), "float32"
        )

    for reduction in ("none", "sum", "mean"):
        case("nn.nll_loss", p, t, w, reduction=reduction, ref=nll, rtol=1e-5)
    case("nn.nll_loss", p, t, ref=nll, rtol=1e-5)
    x = floats(3, 4)
    for mode, np_mode in (
        ("constant", "constant"),
        ("replicate", "edge"),
        ("reflect", "reflect"),
        ("circular", "wrap"),
    ):
        case(
            "nn.pad",
            x,
            (1, 2, 0, 3),
            pad_mode=mode,
            ref=lambda x, w, pad_mode, m=np_mode: np.pad(x, ((1, 2), (0, 3)), m),
        )
    case(
        "nn.pad",
        x,
        (1, 0, 0, 1),
        pad_value=2.5,
        ref=lambda x, w, pad_value: np.pad(x, ((1, 0), (0, 1)), constant_values=2.5),
    )
    case(
        "nn.pixel_shuffle",
        floats(2, 8, 2, 3),
        2,
        ref=lambda x, r: x.reshape(2, 2, 2, 2, 2, 3).transpose(0, 1, 4, 2, 5, 3).reshape(2, 2, 4, 6),
    )


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


for _family in (
    vision,
    products,
    convolutions,
    pools,
    norms,
    attention,
    losses_and_pads,
    indexing,
    sorting,
    quantisation,
):
    _family()
