"""The same operators where implementations go wrong: large tensors, scalars, nothing, one element, NaN and infinities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.unit.stdlib.table import (
    ANY_UNARY,
    BINARY,
    FLOAT_BINARY,
    FLOAT_UNARY,
    INT_BINARY,
    RNG,
    SPECIAL,
    Array,
    case,
    floats,
    ints,
)

LARGE = (33, 47)
SHAPES: tuple[tuple[int, ...], ...] = ((), (0, 3), (1, 1), LARGE)
PAIRS = tuple(np.ascontiguousarray(a) for a in np.meshgrid(SPECIAL, SPECIAL, indexing="ij"))


def elementwise() -> None:
    for name, ref in {**FLOAT_UNARY, **ANY_UNARY}.items():
        x = floats(*LARGE)
        if name in ("acos", "asin", "atanh"):
            x = (x / 3).astype("float32")
        case(name, np.abs(x) + 1 if name == "acosh" else x, ref=ref)
        if name.startswith("nn."):
            case(name, SPECIAL[SPECIAL != np.float32(3e38)], ref=ref)
    for name, ref in {**BINARY, **FLOAT_BINARY}.items():
        for shape in ((), LARGE):
            a, b = floats(*shape), np.asarray(floats(*shape))
            case(name, np.asarray(np.abs(a)) if name == "power" else np.asarray(a), b, ref=ref)
    for name in ("divide", "atan2", "log_add_exp", "power"):
        case(name, np.abs(floats(0, 3)), floats(1, 3), ref=FLOAT_BINARY[name])
    for name in ("not_equal", "less_equal", "greater", "greater_equal"):
        case(name, *PAIRS, ref=BINARY[name])
    case("log_add_exp", *PAIRS, ref=np.logaddexp)
    shifts: dict[str, Callable[..., Any]] = {"left_shift": np.left_shift, "right_shift": np.right_shift}
    for name, ref in {**INT_BINARY, **shifts}.items():
        for shape in SHAPES:
            case(name, np.asarray(ints(*shape)), np.asarray(ints(*shape, low=0, high=8)), ref=ref)
    for shape in SHAPES:
        case("bitwise_not", np.asarray(ints(*shape)), ref=np.invert)
        case("astype", np.asarray(floats(*shape)), dtype="int32", ref=lambda x, dtype: x.astype(dtype))
        case("wrap_param", np.asarray(ints(*shape)), dtype="float32", ref=lambda x, dtype: x.astype(dtype))
        case("clip", np.asarray(floats(*shape)), -1, 1, ref=lambda x, a, b: np.clip(x, a, b).astype(x.dtype))
        x, y, z = (np.asarray(floats(*shape)) for _ in range(3))
        case("ewise_fma", x, y, z, ref=lambda a, b, c: a * b + c, rtol=1e-5)
        case("where", np.asarray(x > 0), y, z, ref=np.where)
        case("nn.leakyrelu", x, alpha=0.2, ref=lambda x, alpha: np.where(x > 0, x, x * np.float32(alpha)))
        case("nn.dropout", x, ref=lambda x: (x, np.ones_like(x)))
        case("full_like", x, np.array(3, "int32"), ref=lambda x, v: np.full_like(x, v))
        case("size", x, ref=lambda x: np.array(x.size))
    for name in ("grad.no_grad", "grad.start_checkpoint", "grad.end_checkpoint"):
        for shape in SHAPES:
            case(name, np.asarray(floats(*shape)), ref=lambda x: x)
        case(name, SPECIAL, ref=lambda x: x)
    case("where", np.isnan(SPECIAL), SPECIAL, SPECIAL[::-1].copy(), ref=np.where)
    case("nn.leakyrelu", SPECIAL, alpha=0.5, ref=lambda x, alpha: np.where(x > 0, x, x * np.float32(alpha)))
    case("nn.dropout", SPECIAL, ref=lambda x: (x, np.ones_like(x)))


def _as(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, **attrs: np.asarray(function(x, **attrs)).astype(x.dtype)


def reductions() -> None:
    table: dict[str, Callable[..., Any]] = {
        "sum": np.sum, "max": np.max, "min": np.min, "mean": np.mean, "variance": np.var, "std": np.std,
    }  # fmt: skip
    for name, function in table.items():
        case(name, floats(*LARGE), axis=-1, ref=_as(function), rtol=2e-5)
        case(name, floats(2, 2001), axis=1, ref=_as(function), rtol=2e-5)
    case("prod", floats(2, 2000) / 64 + 1, axis=1, ref=lambda x, axis: x.astype("float64").prod(1).astype("float32"),
         rtol=1e-4)  # fmt: skip
    for name, find in (("argmax", np.argmax), ("argmin", np.argmin)):
        for axis in (None, 0, -1):
            case(name, ints(*LARGE), axis=axis, ref=lambda x, axis, f=find: f(x, axis=axis))
        case(name, floats(), ref=lambda x, f=find: np.asarray(f(x)))
        case(name, floats(0, 3), axis=1, ref=lambda x, axis, f=find: f(x, axis=axis))
        case(name, floats(1, 1), axis=1, ref=lambda x, axis, f=find: f(x, axis=axis))
    for name, scan in (("cumsum", np.cumsum), ("cumprod", np.cumprod)):
        near = (floats(3, 500) / 512 + 1).astype("float32")
        case(name, near, axis=-1, ref=lambda x, axis, f=scan: f(x.astype("float64"), axis).astype("float32"), rtol=2e-4)
        case(name, floats(1, 1), axis=1, ref=lambda x, axis, f=scan: f(x, axis=axis))
        case(name, floats(0, 3), axis=1, ref=lambda x, axis, f=scan: f(x, axis=axis))
        case(name, SPECIAL[-3:], axis=0, ref=lambda x, axis, f=scan: f(x, axis=axis))


def order() -> None:
    for x in (ints(3, 400), floats(0, 3), floats(1, 1), np.tile(SPECIAL[:-1], (2, 1))):
        case("sort", x, axis=-1, ref=lambda x, axis: np.sort(x, axis))
        case("argsort", x, ref=lambda x: np.argsort(x, -1, kind="stable").astype("int32"))
        case("unique", x, ref=np.unique)
        case("nonzero", x, ref=lambda x: np.stack(np.nonzero(x)))
    case("unique", ints(7, 3), axis=-1, ref=lambda x, axis: np.unique(x, axis=axis))
    case("unique", np.asarray(ints()), ref=np.unique)
    for x in (ints(60, 17), floats(1, 1)):
        case("topk", x, k=1, axis=-1, ref=lambda x, k, axis: (
            np.max(x, axis, keepdims=True), np.argmax(x, axis, keepdims=True).astype("int32")))  # fmt: skip
        case("median", x, axis=-1, ref=_median)


def _median(x: Array, axis: int) -> tuple[Array, Array]:
    order = np.argsort(x, axis, kind="stable")[:, (x.shape[1] - 1) // 2]
    return np.take_along_axis(x, order[:, None], 1)[:, 0], order


def movement() -> None:
    for shape in SHAPES:
        x = np.asarray(floats(*shape))
        case("reshape", x, (-1,) if x.size else (0,), ref=np.reshape)
        case("expand_dims", x, axis=-1, ref=lambda x, axis: np.expand_dims(x, axis))
        case("broadcast_to", x, (2, *shape), ref=np.broadcast_to)
    for shape in ((0, 3), (1, 1), LARGE):
        x = floats(*shape)
        case("flip", x, axis=-1, ref=np.flip)
        case("tile", x, (2, 1), ref=np.tile)
        case("repeat", x, 2, axis=-1, ref=lambda x, n, axis: np.repeat(x, n, axis))
        case("concat", (x, x), axis=-1, ref=np.concatenate)
        case("stack", (x, x), axis=-1, ref=np.stack)
        case("tril", x, 0, ref=np.tril)
        case("triu", x, 0, ref=np.triu)
        case("eye_like", x, ref=lambda x: np.eye(*x.shape, dtype=x.dtype))
        case("squeeze", x[None], axis=[0], ref=lambda x, axis: np.squeeze(x, tuple(axis)))
    for shape in ((1, 1), LARGE):
        x, to = floats(*shape), RNG.integers(-shape[1], shape[1], shape)
        case("gather_elements", x, to, axis=-1, ref=lambda x, i, axis: np.take_along_axis(x, i % x.shape[1], axis))
        case("take", x, to[0], axis=-1, ref=lambda x, i, axis: np.take(x, i, axis))
        case("matmul", x, np.ascontiguousarray(x.T), ref=np.matmul, rtol=1e-4)
    case("matmul", floats(0, 3), floats(3, 2), ref=np.matmul)
    case("outer", floats(33), floats(47), ref=np.outer)
    for name, join in (("concat", np.concatenate), ("stack", np.stack)):
        case(name, (SPECIAL, SPECIAL), axis=0, ref=join)
    case("nn.prelu", floats(*LARGE), floats(47), axis=-1, ref=lambda x, a, axis: np.where(x > 0, x, x * a))
    case("slice_scatter", floats(4, 6), floats(4, 2), start=1, end=5, step=2, axis=-1, ref=_put_columns)
    case("scatter_elements", floats(4, 6), ints(4, 2, low=-6, high=6), floats(4, 2), axis=-1, ref=_put_along)
    case("split", floats(64, 80), 4, axis=-1, ref=lambda x, n, axis: tuple(np.split(x, n, axis)))


def _put_columns(x: Array, source: Array, start: int, end: int, step: int, axis: int) -> Array:
    out = x.copy()
    out[:, start:end:step] = source
    return out


def _put_along(x: Array, to: Array, source: Array, axis: int) -> Array:
    out = x.copy()
    for i, j in np.ndindex(to.shape):
        out[i, to[i, j]] = source[i, j]
    return out


for _family in (elementwise, reductions, order, movement):
    _family()
