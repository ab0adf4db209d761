"""The tables' second part: products, windows, normalisation, attention, losses, padding."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.unit.stdlib import references as refs
from tests.unit.stdlib.table import Array, case, floats, ints


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
        np.full(100, 20, "float32"),
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


def attention_of_several_lengths() -> None:
    q, k, v = floats(1, 7, 2, 4), floats(1, 9, 2, 4), floats(1, 9, 2, 3)
    starts_q, starts_k = np.array([0, 3, 7], "int32"), np.array([0, 5, 9], "int32")
    longest = np.array(5, "int32")

    def separately(
        q: Array, k: Array, v: Array, a: Array, most_q: Array, b: Array, most_k: Array, **attrs: Any
    ) -> Array:
        parts = [
            refs.attention(q[:, a[n] : a[n + 1]], k[:, b[n] : b[n + 1]], v[:, b[n] : b[n + 1]], **attrs)
            for n in range(2)
        ]
        return np.concatenate(parts, axis=1)

    for attrs in ({}, {"causal_mask": "TopLeft"}, {"causal_mask": "BottomRight"}, {"scale": 0.5, "window_size": 2}):
        case("nn.attention_var_len", q, k, v, starts_q, longest, starts_k, longest, **attrs, ref=separately, rtol=1e-4)


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


for _family in (products, convolutions, pools, norms, attention, attention_of_several_lengths, losses_and_pads):
    _family()
