"""Converters of operators that read or write at places that tensors name."""

from __future__ import annotations

import numpy as np

from relaxlang.frontend.onnx.graph import Graph, item
from relaxlang.frontend.onnx.node import Node
from relaxlang.frontend.onnx.values import Dim, Known, Result, Value
from relaxlang.ir import prim, relax
from relaxlang.ir.prim import INT64
from relaxlang.ir.struct_info import TupleStructInfo, tensor_info
from relaxlang.ops import python_api as op

_REDUCTIONS = {"none": "update", "add": "add", "mul": "mul", "max": "max", "min": "min"}


def gather(g: Graph, n: Node) -> Value:
    """Gather: slices along an axis."""
    x = g.tensor(n.input(0))
    return op.take(x, g.tensor(n.input(1)), axis=g.axis(n, n.int("axis", 0), g.rank(x)))


def gather_elements(g: Graph, n: Node) -> Value:
    """GatherElements: one element for each index."""
    x = g.tensor(n.input(0))
    return op.gather_elements(x, g.tensor(n.input(1)), axis=g.axis(n, n.int("axis", 0), g.rank(x)))


def gather_nd(g: Graph, n: Node) -> Value:
    """GatherND: slices at the coordinates in the last dimension of the indices."""
    return op.gather_nd(g.tensor(n.input(0)), g.tensor(n.input(1)), batch_dims=n.int("batch_dims", 0))


def _reduction(n: Node) -> str:
    name = n.string("reduction", "none")
    if name not in _REDUCTIONS:
        n.unsupported(f"with the reduction `{name}`")
    return _REDUCTIONS[name]


def scatter_elements(g: Graph, n: Node) -> Value:
    """ScatterElements (Scatter until version 10): one update for each index."""
    x = g.tensor(n.input(0))
    axis = g.axis(n, n.int("axis", 0), g.rank(x))
    return op.scatter_elements(x, g.tensor(n.input(1)), g.tensor(n.input(2)), axis=axis, reduction=_reduction(n))


def scatter_nd(g: Graph, n: Node) -> Value:
    """ScatterND: slices at the coordinates in the last dimension of the indices."""
    x, places, updates = (g.tensor(n.input(k)) for k in range(3))
    return op.scatter_nd(x, places, updates, reduction=_reduction(n))


def tensor_scatter(g: Graph, n: Node) -> Value:
    """TensorScatter: each batch of the update written into its cache from a place of its own on, or round its end."""
    cache, update = g.tensor(n.input(0)), g.tensor(n.input(1))
    dims, new = g.sizes(cache), g.sizes(update)
    axis, mode = g.axis(n, n.int("axis", -2), len(dims)), n.string("mode", "linear")
    if len(new) != len(dims):
        n.unsupported(f"of an update with {len(new)} dimensions in a cache with {len(dims)}")
    if mode not in ("linear", "circular") or axis == 0:
        n.unsupported(f"in the mode `{mode}` along axis {axis}")
    lanes: list[Dim] = [1] * len(dims)
    lanes[axis] = new[axis]
    at: relax.Expr = op.reshape(op.arange(0, new[axis], 1, dtype="int64"), lanes)
    if n.input(2) is not None:
        at = op.add(at, op.reshape(op.astype(g.tensor(n.input(2)), "int64"), (new[0], *([1] * (len(dims) - 1)))))
    if mode == "circular":
        at = op.floor_mod(at, op.reshape(op.shape_to_tensor(relax.ShapeExpr((g.shape(cache)[axis],))), ()))
    return op.scatter_elements(cache, op.broadcast_to(at, new), update, axis=axis)


def one_hot(g: Graph, n: Node) -> Value:
    """OneHot: indices beyond the depth, and below minus the depth, give no hot element."""
    places, values = g.tensor(n.input(0)), g.tensor(n.input(2))
    depth = n.input(1)
    if isinstance(depth, Known) and not depth.is_symbolic:
        count: Dim = int(depth.only)
    else:
        whole_depth = depth if g.dtype(depth).is_integer else op.astype(g.tensor(depth), "int64")
        count = g.scalar(whole_depth, "the depth")
    rank = g.rank(places) + 1
    axis = g.axis(n, n.int("axis", -1), rank)
    whole = op.astype(places, "int64")
    size = _int64(count) if isinstance(count, int) else op.reshape(op.shape_to_tensor(relax.ShapeExpr((count,))), ())
    wrapped = op.where(op.less(whole, _int64(0)), op.add(whole, size), whole)
    shape: list[Dim] = [1] * rank
    lanes = op.arange(0, count, 1, dtype="int64")
    shape[axis] = count
    hit = op.equal(op.expand_dims(wrapped, [axis]), op.reshape(lanes, shape))
    off, on = (op.reshape(op.strided_slice(values, [0], [k], [k + 1]), ()) for k in (0, 1))
    return op.where(hit, on, off)


def _int64(value: int) -> relax.Constant:
    return relax.Constant(np.array(value, dtype=np.int64))


def non_zero(g: Graph, n: Node) -> Value:
    """NonZero: as many columns as there are elements that are not zero, which is known at run time."""
    return columns_of(g, g.tensor(n.input(0)))


def columns_of(g: Graph, x: relax.Expr) -> relax.Var:
    """The places of the elements that are not zero: a row for each dimension, a column for each place."""
    rows, places = prim.const(g.rank(x), INT64), g.new_dim("places")
    return g.bb.match_cast(op.nonzero(x), tensor_info((rows, places), INT64))


def compress(g: Graph, n: Node) -> Value:
    """Compress: the slices where a condition holds."""
    x, condition = g.tensor(n.input(0)), g.tensor(n.input(1))
    axis = None
    if n.has("axis"):
        axis = g.axis(n, n.int("axis"), g.rank(x))
    else:
        x = op.flatten(x)
    size = g.sizes(x)[axis or 0]
    if not g.equal(g.sizes_of_rank(condition, 1)[0], size):  # what is beyond does not count
        condition = g.bb.emit(op.strided_slice(condition, [0], [0], [size]))
    places = op.squeeze(columns_of(g, condition), [0])
    return op.take(x, places, axis=axis or 0)


def unique(g: Graph, n: Node) -> Result:
    """Unique, sorted: the elements, and as asked their first places, the place of each, their counts."""
    if not n.flag("sorted", True):
        n.unsupported("in the order of first occurrence")
    x = g.tensor(n.input(0))
    axis = g.axis(n, n.int("axis"), g.rank(x)) if n.has("axis") else None
    wanted = [n.wants(k) for k in (1, 2, 3)]
    made = g.bb.emit(op.unique(
        x, return_index=wanted[0], return_inverse=wanted[1], return_counts=wanted[2], axis=axis
    ))  # fmt: skip
    if not isinstance(made.struct_info, TupleStructInfo):
        return made
    found: list[Value] = [item(made, 0)]
    at = 1
    for want in wanted:
        found.append(op.astype(item(made, at), "int64") if want else None)
        at += want
    return tuple(found)


def reverse_sequence(g: Graph, n: Node) -> Value:
    """ReverseSequence: the first elements of each row reversed."""
    x, lengths = g.tensor(n.input(0)), g.tensor(n.input(1))
    return op.reverse_sequence(x, lengths, seq_axis=n.int("time_axis", 0), batch_axis=n.int("batch_axis", 1))


def roi_align(g: Graph, n: Node) -> Value:
    """RoiAlign: means (or maxima) of points in regions, one row of the result for each region."""
    x, rois, batch = (g.tensor(n.input(k)) for k in range(3))
    first = op.expand_dims(op.astype(batch, g.dtype(rois)), [1])
    aligned = n.string("coordinate_transformation_mode", "half_pixel" if n.version >= 16 else "output_half_pixel")
    if n.string("mode", "avg") != "avg":
        n.unsupported("with maxima, which mean something else here")
    scale = n.float("spatial_scale", 1.0)
    if aligned == "half_pixel":
        rois = op.subtract(rois, g.like(0.5 / scale, rois))
    return op.vision.roi_align(
        x, op.concat((first, rois), axis=1), (n.int("output_height", 1), n.int("output_width", 1)),
        scale, n.int("sampling_ratio", 0) or -1, aligned == "half_pixel",
    )  # fmt: skip


def non_max_suppression(g: Graph, n: Node) -> Value:
    """NonMaxSuppression: rows (batch, class, box) of the boxes that are kept, as many as is known at run time."""
    boxes, scores = g.tensor(n.input(0)), g.tensor(n.input(1))
    if n.int("center_point_box", 0):
        centre, size = (op.strided_slice(boxes, [2], [k], [k + 2]) for k in (0, 2))
        half = op.multiply(size, g.like(0.5, boxes))
        corners = (op.subtract(centre, half), op.add(centre, half))
        flipped = [op.flip(c, 2) for c in corners]  # x and y become y and x
        boxes = op.concat(tuple(flipped), axis=2)
    most, overlap = (_scalar_or(g, n.input(k), 0, of) for k, of in ((2, "int64"), (3, "float32")))
    least = _scalar_or(g, n.input(4), float("-inf"), "float32")
    both = g.bb.emit(op.vision.all_class_non_max_suppression(boxes, scores, most, overlap, least))
    rows, count = (g.bb.emit(item(both, k)) for k in (0, 1))
    return op.strided_slice(rows, [0], [0], [g.scalar(count, "the number of boxes")], assume_inbound=True)


def _scalar_or(g: Graph, value: Value, default: float, of: str) -> relax.Expr:
    """An optional tensor of one element, without dimensions."""
    if value is None:
        return relax.Constant(np.array(default, dtype=of))
    made: relax.Expr = op.reshape(g.tensor(value), ())
    return made


def array_feature_extractor(g: Graph, n: Node) -> Value:
    """ai.onnx.ml.ArrayFeatureExtractor: columns by number."""
    x = g.tensor(n.input(0))
    return op.take(x, op.flatten(g.tensor(n.input(1))), axis=g.rank(x) - 1)
