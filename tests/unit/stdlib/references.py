"""Plain numpy references of operators that numpy lacks, in float64, one element at a time."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def _many(value: Any, count: int) -> tuple[int, ...]:
    return (value,) * count if isinstance(value, int) else tuple(value) * (count if len(value) == 1 else 1)


def _pads(padding: Any, count: int) -> list[tuple[int, int]]:
    given = _many(padding, count)
    return list(zip(given, given)) if len(given) == count else list(zip(given[:count], given[count:]))


def _to(x: Array, layout: str, order: str) -> Array:
    return np.transpose(x, [layout.index(c) for c in order])


def conv(
    data: Array,
    weight: Array,
    strides: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    data_layout: str = "",
    kernel_layout: str = "",
    out_layout: str | None = None,
    out_dtype: str | None = None,
) -> Array:
    """A convolution over all dimensions after the first two, in any layout."""
    axes = "DHW"[-(data.ndim - 2) :]
    n = len(axes)
    data_layout = data_layout or "NC" + axes
    x = _to(data, data_layout, "NC" + axes).astype("float64")
    w = _to(weight, kernel_layout or "OI" + axes, "OI" + axes).astype("float64")
    x = np.pad(x, [(0, 0), (0, 0), *_pads(padding, n)])
    stride, dilate = _many(strides, n), _many(dilation, n)
    sizes = [(x.shape[2 + k] - dilate[k] * (w.shape[2 + k] - 1) - 1) // stride[k] + 1 for k in range(n)]
    out = np.zeros((x.shape[0], w.shape[0], *sizes))
    per, channels = w.shape[0] // groups, w.shape[1]
    for o, *at in itertools.product(range(w.shape[0]), *map(range, sizes)):
        window = tuple(
            slice(at[k] * stride[k], at[k] * stride[k] + dilate[k] * (w.shape[2 + k] - 1) + 1, dilate[k])
            for k in range(n)
        )
        first = o // per * channels
        part = x[(slice(None), slice(first, first + channels), *window)]
        out[(slice(None), o, *at)] = (part * w[o]).sum(axis=tuple(range(1, n + 2)))
    return _to(out, "NC" + axes, out_layout or data_layout).astype(out_dtype or data.dtype)


def conv_transpose(
    data: Array,
    weight: Array,
    strides: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    data_layout: str = "",
    kernel_layout: str = "",
) -> Array:
    """Every input spreads over a window of the output."""
    axes = "DHW"[-(data.ndim - 2) :]
    n = len(axes)
    data_layout = data_layout or "NC" + axes
    x = _to(data, data_layout, "NC" + axes).astype("float64")
    w = _to(weight, kernel_layout or "IO" + axes, "IO" + axes).astype("float64")
    stride, dilate, extra, pads = _many(strides, n), _many(dilation, n), _many(output_padding, n), _pads(padding, n)
    full = [(x.shape[2 + k] - 1) * stride[k] + dilate[k] * (w.shape[2 + k] - 1) + 1 + extra[k] for k in range(n)]
    out = np.zeros((x.shape[0], w.shape[1] * groups, *full))
    per = x.shape[1] // groups
    for c, *at in itertools.product(range(x.shape[1]), *map(range, x.shape[2:])):
        window = tuple(
            slice(at[k] * stride[k], at[k] * stride[k] + dilate[k] * (w.shape[2 + k] - 1) + 1, dilate[k])
            for k in range(n)
        )
        first = c // per * w.shape[1]
        here = (slice(None), slice(first, first + w.shape[1]), *window)
        out[here] += x[(slice(None), c, *at)].reshape(-1, 1, *(1,) * n) * w[c]
    crop = tuple(slice(p, out.shape[2 + k] - q) for k, (p, q) in enumerate(pads))
    return _to(out[(slice(None), slice(None), *crop)], "NC" + axes, data_layout).astype(data.dtype)


def pool(
    kind: str,
    data: Array,
    pool_size: Any = 1,
    strides: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    count_include_pad: bool = False,
    layout: str = "",
    out_layout: str | None = None,
) -> Array:
    """Maximum or mean of windows."""
    axes = "DHW"[-(data.ndim - 2) :]
    n = len(axes)
    layout = layout or "NC" + axes
    x = _to(data, layout, "NC" + axes)
    size, stride, dilate, pads = _many(pool_size, n), _many(strides, n), _many(dilation, n), _pads(padding, n)
    sizes = []
    for k in range(n):
        room = x.shape[2 + k] + sum(pads[k]) - dilate[k] * (size[k] - 1) - 1
        count = (-(-room // stride[k]) if ceil_mode else room // stride[k]) + 1
        if ceil_mode and (count - 1) * stride[k] >= x.shape[2 + k] + pads[k][0]:
            count -= 1
        sizes.append(count)
    out = np.zeros((*x.shape[:2], *sizes))
    for at in itertools.product(*map(range, sizes)):
        places = [[at[k] * stride[k] - pads[k][0] + j * dilate[k] for j in range(size[k])] for k in range(n)]
        inside = [[p for p in ps if 0 <= p < x.shape[2 + k]] for k, ps in enumerate(places)]
        counted = (
            [[p for p in ps if p < x.shape[2 + k] + pads[k][1]] for k, ps in enumerate(places)]
            if count_include_pad
            else inside
        )
        values = x[np.ix_(range(x.shape[0]), range(x.shape[1]), *inside)].astype("float64")
        values = values.reshape(*x.shape[:2], math.prod(values.shape[2:]))
        here = (slice(None), slice(None), *at)
        out[here] = values.max(-1) if kind == "max" else values.sum(-1) / np.prod([len(c) for c in counted])
    return _to(out, "NC" + axes, out_layout or layout).astype(data.dtype)


def adaptive(data: Array, output_size: Any = None, layout: str = "") -> Array:
    """Means of parts as equal as they can be."""
    axes = "DHW"[-(data.ndim - 2) :]
    n = len(axes)
    x = _to(data, layout or "NC" + axes, "NC" + axes).astype("float64")
    sizes = x.shape[2:] if output_size is None else _many(output_size, n)
    out = np.zeros((*x.shape[:2], *sizes))
    for at in itertools.product(*map(range, sizes)):
        part = tuple(
            slice(at[k] * x.shape[2 + k] // sizes[k], -(-(at[k] + 1) * x.shape[2 + k] // sizes[k])) for k in range(n)
        )
        out[(slice(None), slice(None), *at)] = x[(slice(None), slice(None), *part)].mean(axis=tuple(range(2, n + 2)))
    return _to(out, "NC" + axes, layout or "NC" + axes).astype(data.dtype)


def softmax(x: Array, axis: int = -1) -> Array:
    """In float64."""
    wide = x.astype("float64")
    powers = np.exp(wide - wide.max(axis, keepdims=True))
    return (powers / powers.sum(axis, keepdims=True)).astype(x.dtype)


def normalized(x: Array, axes: tuple[int, ...], epsilon: float) -> Array:
    """Mean 0 and variance 1 over `axes`."""
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


def attention(
    query: Array,
    key: Array,
    value: Array,
    bias: Array | None = None,
    scale: float | None = None,
    causal_mask: str | None = None,
    window_size: int | None = None,
) -> Array:
    """Scores, masks, softmax, mean of the values."""
    q, k, v = (np.moveaxis(t.astype("float64"), 2, 1) for t in (query, key, value))
    k, v = (np.repeat(t, q.shape[1] // t.shape[1], axis=1) for t in (k, v))
    scores = q @ np.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    scores = scores if bias is None else scores + bias
    i, j = np.arange(q.shape[2])[:, None], np.arange(k.shape[2])[None, :]
    at = i + (k.shape[2] - q.shape[2]) if causal_mask == "BottomRight" else i
    seen = np.ones((q.shape[2], k.shape[2]), bool) if causal_mask is None else j <= at
    seen = seen if window_size is None else seen & (j > at - window_size)
    return np.moveaxis(softmax(np.where(seen, scores, -np.inf)) @ v, 1, 2).astype(query.dtype)


def nms(boxes: Array, scores: Array, most: Array, limit: Array, least: Array) -> tuple[Array, Array]:
    """Rows (batch, class, box) of the boxes kept in each class, filled up with -1, and their number."""

    def overlap(a: Array, b: Array) -> float:
        sides = np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0)
        common = sides[0] * sides[1]
        return float(common / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - common))

    found = []
    for b, c in np.ndindex(scores.shape[:2]):
        kept: list[int] = []
        for i in np.argsort(-scores[b, c], kind="stable"):
            apart = all(overlap(boxes[b, i], boxes[b, j]) <= limit for j in kept)
            if scores[b, c, i] > least and len(kept) < most and apart:
                kept.append(int(i))
        found += [(b, c, i) for i in kept]
    out = np.full((scores.size, 3), -1, "int64")
    out[: len(found)] = np.array(found, "int64").reshape(-1, 3)
    return out, np.array([len(found)])
