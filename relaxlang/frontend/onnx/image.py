"""Converters of operators on images: resizing and sampling."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from relaxlang.base.diagnostics import fail
from relaxlang.frontend.onnx.graph import Graph
from relaxlang.frontend.onnx.node import Node
from relaxlang.frontend.onnx.resampling import Sampling
from relaxlang.frontend.onnx.values import Dim, Value
from relaxlang.ir import prim, relax
from relaxlang.ops import python_api as op

_METHODS = {"nearest": "nearest_neighbor", "linear": "linear", "cubic": "cubic"}
_MODES = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel")


def resize(g: Graph, n: Node) -> Value:
    """Resize (Upsample until version 9): to sizes, or by scales.

    Where all sizes are known each axis is resampled by itself with the places and weights of ONNX's definition.
    Symbolic sizes go to `image.resize2d` and `image.resize3d`, which take places from the sizes alone: whole scales
    only.
    """
    x = g.tensor(n.input(0))
    dims = g.sizes(x)
    sampling = Sampling(n)
    axes = g.axes(n, n.ints("axes", range(len(dims))), len(dims))
    scales, sizes = _wanted(g, n, dims, axes)
    changed = [a for a in range(len(dims)) if scales[a] != 1.0 or not g.equal(sizes[a], dims[a])]
    if not changed:
        return x
    if _plain(g, sampling, dims, sizes, scales, changed):
        return _by_operator(g, n, sampling, x, dims, sizes)
    region = _region(g, n, axes, len(dims))
    for a in changed:
        old, new = dims[a], sizes[a]
        if not (isinstance(old, int) and isinstance(new, int)):
            n.unsupported(f"in the mode `{sampling.mode}`, `{sampling.place}` of sizes that are known only at run time")
        x = _along(g, sampling, x, a, new, sampling.taps(old, new, scales[a], region[a]))
    return x


def _wanted(g: Graph, n: Node, dims: tuple[Dim, ...], axes: tuple[int, ...]) -> tuple[list[float | None], list[Dim]]:
    """The scale of each axis (None: what the sizes give) and its new size."""
    scales: list[float | None] = [1.0] * len(dims)
    sizes: list[Dim] = list(dims)
    if n.op == "Upsample":
        given = n.floats("scales") if n.version < 9 else g.constant(n.input(1), "the scales").reshape(-1).tolist()
    elif n.version < 11:
        given = g.constant(n.input(1), "the scales").reshape(-1).tolist()
    else:
        wanted = n.input(3)
        given = [] if n.input(2) is None else g.constant(n.input(2), "the scales").reshape(-1).tolist()
        if not given:
            if wanted is None:
                n.unsupported("without sizes and scales")
            return _by_sizes(g, n, dims, axes, g.dims(wanted, "the sizes"))
    if len(given) != len(axes):
        n.unsupported(f"with {len(given)} scales for {len(axes)} axes")
    if not all(math.isfinite(scale) and scale > 0 for scale in given):
        fail("RLX8003", f"the scales are no positive numbers: {given}")
    for a, scale in zip(axes, given):
        scales[a], sizes[a] = scale, _scaled(g, n, dims[a], scale)
    return scales, sizes


def _by_sizes(
    g: Graph, n: Node, dims: tuple[Dim, ...], axes: tuple[int, ...], wanted: tuple[Dim, ...]
) -> tuple[list[float | None], list[Dim]]:
    scales: list[float | None] = [1.0] * len(dims)
    sizes: list[Dim] = list(dims)
    if len(wanted) != len(axes):
        n.unsupported(f"with {len(wanted)} sizes for {len(axes)} axes")
    policy = n.string("keep_aspect_ratio_policy", "stretch")
    for a, size in zip(axes, wanted):
        sizes[a], scales[a] = size, None
        if g.equal(size, dims[a]):
            scales[a] = 1.0
    if policy != "stretch":
        pairs = [
            (a, d, s) for a, d, s in ((a, dims[a], sizes[a]) for a in axes) if isinstance(d, int) and isinstance(s, int)
        ]
        if len(pairs) < len(axes):
            n.unsupported("with a fixed aspect ratio and symbolic sizes")
        if not all(old for _, old, _ in pairs):
            n.unsupported("with a fixed aspect ratio of an image without pixels")
        ratios = [new / old for _, old, new in pairs]
        scale = min(ratios) if policy == "not_larger" else max(ratios)
        for a, old, _ in pairs:
            scales[a], sizes[a] = scale, int(np.floor(scale * old + 0.5))
    return scales, sizes


def _scaled(g: Graph, n: Node, size: Dim, scale: float) -> Dim:
    """floor(size * scale)."""
    if isinstance(size, int):
        return int(np.floor(np.float32(scale) * size))
    if scale == int(scale):
        return g.simplify(size * int(scale))
    if 1 / scale == int(1 / scale):
        return g.simplify(prim.FloorDiv(*prim.match(size, int(1 / scale))))
    n.unsupported(f"of a symbolic size by {scale}")


def _plain(g: Graph, s: Sampling, dims: tuple[Dim, ...], sizes: list[Dim], scales: list[float | None],
           changed: list[int]) -> bool:  # fmt: skip
    """Whether the stdlib's operator means the same: images, whose scale is what the sizes say."""
    if len(dims) not in (4, 5) or any(a < 2 for a in changed) or s.antialias or s.place not in _MODES:
        return False
    if s.method == "cubic" and len(dims) == 5:
        return False
    for a in changed:
        scale, old, new = scales[a], dims[a], sizes[a]
        if (
            scale is not None
            and not g.equal(new, old * int(scale) if scale == int(scale) else -1)
            and not (isinstance(old, int) and isinstance(new, int) and old * scale == new)
        ):
            return False
    return True


def _by_operator(g: Graph, n: Node, s: Sampling, x: relax.Expr, dims: tuple[Dim, ...], sizes: list[Dim]) -> relax.Expr:
    call: Any = op.image.resize2d if len(dims) == 4 else op.image.resize3d
    made: relax.Expr = call(
        x, tuple(sizes[2:]), layout="NCHW" if len(dims) == 4 else "NCDHW", method=_METHODS[s.method],
        coordinate_transformation_mode=s.place, rounding_method=s.rounding if s.method == "nearest" else "",
        cubic_alpha=s.cubic, cubic_exclude=int(s.exclude_outside),
    )  # fmt: skip
    return made


def _region(g: Graph, n: Node, axes: tuple[int, ...], rank: int) -> list[tuple[float, float]]:
    """The part of each axis that `tf_crop_and_resize` takes, as fractions."""
    found = [(0.0, 1.0)] * rank
    if n.string("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize":
        given = g.constant(n.input(1), "the region").reshape(-1).tolist()
        for k, a in enumerate(axes):
            found[a] = given[k], given[len(axes) + k]
    return found


def _along(g: Graph, s: Sampling, x: relax.Expr, axis: int, size: int, taps: tuple[Any, Any, Any]) -> relax.Expr:
    """One axis resampled: `places` and `weights` are (size, taps); `outside` marks places that take a fixed value."""
    places, weights, outside = taps
    of = g.dtype(x)
    if s.method == "nearest" and outside is None:
        made: relax.Expr = g.bb.emit(op.take(x, relax.Constant(places[:, 0].copy()), axis=axis))
        return made
    shape = [1] * g.rank(x)
    shape[axis] = size
    total: Any = None
    for k in range(places.shape[1]):
        weight = weights[:, k]
        if not weight.any():
            continue
        part = op.take(x, relax.Constant(places[:, k].copy()), axis=axis)
        part = op.multiply(op.astype(part, "float32"), relax.Constant(weight.reshape(shape).astype(np.float32)))
        total = part if total is None else op.add(total, part)
    if outside is not None and outside.any():
        fixed = relax.Constant(np.array(s.outside, dtype=np.float32))
        total = op.where(relax.Constant(outside.reshape(shape)), fixed, total)
    return g.bb.emit(op.astype(total, of))


_SAMPLES = {"linear": "bilinear", "bilinear": "bilinear", "nearest": "nearest", "cubic": "bicubic",
            "bicubic": "bicubic"}  # fmt: skip


def grid_sample(g: Graph, n: Node) -> Value:
    """GridSample of images; the grid has x and y last."""
    x, grid = g.tensor(n.input(0)), g.tensor(n.input(1))
    if g.rank(x) != 4:
        n.unsupported("of volumes")
    mode = n.string("mode", "linear" if n.version >= 20 else "bilinear")
    if mode not in _SAMPLES:
        n.unsupported(f"in the mode `{mode}`")
    return op.image.grid_sample(
        x, op.permute_dims(grid, [0, 3, 1, 2]), method=_SAMPLES[mode], padding_mode=n.string("padding_mode", "zeros"),
        align_corners=n.flag("align_corners"),
    )  # fmt: skip
