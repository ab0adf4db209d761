"""Converters of operators that move elements or make tensors of shapes."""

from __future__ import annotations

import math

import numpy as np

from relaxlang.base.diagnostics import fail
from relaxlang.frontend.onnx.graph import Graph, item
from relaxlang.frontend.onnx.node import Node
from relaxlang.frontend.onnx.types import element_type, tensor_data
from relaxlang.frontend.onnx.values import Dim, Known, Result, Value
from relaxlang.ir import prim, relax
from relaxlang.ir.prim import INT64, PrimExpr
from relaxlang.ir.struct_info import tensor_info
from relaxlang.ops import python_api as op

_FAR = 1_000_000_000
"""Places in a slice from here on mean the end: exporters write such numbers, and no dimension is so long."""


def shape(g: Graph, n: Node) -> Value:
    """Shape: known while importing, as expressions of the symbolic dimensions."""
    dims = g.sizes(n.input(0))
    start, end = n.int("start", 0), n.int("end", len(dims))
    part = np.empty(len(dims), dtype=object)
    part[:] = dims
    return Known.of(part[slice(start, end)], INT64)


def size(g: Graph, n: Node) -> Value:
    """Size: the number of elements."""
    made = np.empty((), dtype=object)
    made[()] = g.product(g.sizes(n.input(0)))
    return Known.of(made, INT64)


def constant(g: Graph, n: Node) -> Value:
    """Constant: the tensor is one of several attributes."""
    if n.has("value"):
        return Known(tensor_data(n.tensor("value"), "the value of the constant"))
    if n.has("value_float"):
        return Known(np.array(n.float("value_float"), dtype=np.float32))
    if n.has("value_floats"):
        return Known(np.array(n.floats("value_floats"), dtype=np.float32))
    if n.has("value_int"):
        return Known(np.array(n.int("value_int"), dtype=np.int64))
    if n.has("value_ints"):
        return Known(np.array(n.ints("value_ints"), dtype=np.int64))
    n.unsupported("of strings or sparse tensors")


def reshape(g: Graph, n: Node) -> Value:
    """Reshape: -1 stands for what is left over, 0 (unless `allowzero`) for the dimension at its place."""
    x = g.tensor(n.input(0))
    old = g.sizes(x)
    wanted = list(n.ints("shape") if n.version < 5 else g.dims(n.input(1), "the shape"))
    literal = n.flag("allowzero")
    at_run_time = not isinstance(n.input(1), Known)
    for k, d in enumerate(wanted):
        if isinstance(d, int) and d == 0 and not literal and k < len(old):
            wanted[k] = old[k]
        elif not isinstance(d, int) and at_run_time and not literal and k < len(old):
            wanted[k] = prim.Select(prim.EQ(*prim.match(d, 0)), *prim.match(old[k], d))
    total = g.product(old)
    holes = [k for k, d in enumerate(wanted) if isinstance(d, int) and d == -1]
    if at_run_time and not holes:
        wanted = _filled(g, wanted, total)
    elif len(holes) == 1:
        rest = g.product([d for k, d in enumerate(wanted) if k != holes[0]])
        if not (isinstance(rest, int) and rest == 0):
            wanted[holes[0]] = _quotient(g, total, rest)
    return op.reshape(x, tuple(wanted))


def _quotient(g: Graph, total: Dim, rest: Dim) -> Dim:
    if isinstance(total, int) and isinstance(rest, int):
        return -1 if total % rest else total // rest
    return g.simplify(prim.FloorDiv(*prim.match(total, rest)))


def _filled(g: Graph, wanted: list[Dim], total: Dim) -> list[Dim]:
    """Dimensions that are known at run time only, with what is left over in the place of a -1 among them."""
    unknown = [k for k, d in enumerate(wanted) if not isinstance(d, int)]
    rest = g.product(
        [prim.Select(prim.EQ(*prim.match(d, -1)), *prim.match(prim.const(1, INT64), d)) if k in unknown else d
         for k, d in enumerate(wanted)]
    )  # fmt: skip
    left = prim.FloorDiv(*prim.match(prim.as_prim(total, INT64), prim.Max(*prim.match(rest, 1))))
    return [
        prim.Select(prim.EQ(*prim.match(d, -1)), *prim.match(left, d)) if k in unknown else d
        for k, d in enumerate(wanted)
    ]


def flatten(g: Graph, n: Node) -> Value:
    """Flatten: the axes before one are made one dimension, those from it on another."""
    x = g.tensor(n.input(0))
    dims, axis = g.sizes(x), n.int("axis", 1)
    axis = axis + len(dims) if axis < 0 else axis
    return op.reshape(x, (g.product(dims[:axis]), g.product(dims[axis:])))


def transpose(g: Graph, n: Node) -> Value:
    """Transpose: reversed unless `perm` says otherwise."""
    x = g.tensor(n.input(0))
    return op.permute_dims(x, list(n.ints("perm")) if n.has("perm") else None)


def squeeze(g: Graph, n: Node) -> Value:
    """Squeeze: the axes were an attribute until version 12."""
    x = g.tensor(n.input(0))
    given = n.ints("axes", ()) if n.version < 13 else () if n.input(1) is None else g.ints(n.input(1), "the axes")
    dims = g.sizes(x)
    gone = g.axes(n, given, len(dims)) or tuple(k for k, d in enumerate(dims) if g.equal(d, 1))
    return op.squeeze(x, list(gone)) if gone else x


def unsqueeze(g: Graph, n: Node) -> Value:
    """Unsqueeze: the axes were an attribute until version 12."""
    x = g.tensor(n.input(0))
    given = n.ints("axes") if n.version < 13 else g.ints(n.input(1), "the axes")
    return op.expand_dims(x, list(g.axes(n, given, g.rank(x) + len(given))))


def expand(g: Graph, n: Node) -> Value:
    """Expand: x and the shape broadcast together."""
    x = g.tensor(n.input(0))
    wanted = g.broadcast(g.sizes(x), g.dims(n.input(1), "the shape"))
    return op.broadcast_to(x, wanted)


def tile(g: Graph, n: Node) -> Value:
    """Tile: so many times along each axis."""
    return op.tile(g.tensor(n.input(0)), list(g.dims(n.input(1), "the repeats")))


def concat(g: Graph, n: Node) -> Value:
    """Concat along an axis."""
    parts = [g.tensor(v) for v in n.inputs]
    axis = g.axis(n, n.int("axis"), g.rank(parts[0]))
    return parts[0] if len(parts) == 1 else op.concat(tuple(parts), axis=axis)


def split(g: Graph, n: Node) -> Result:
    """Split: in parts of given sizes, or in as many equal ones as there are outputs (the last may be smaller)."""
    x = g.tensor(n.input(0))
    dims = g.sizes(x)
    axis, count = g.axis(n, n.int("axis", 0), len(dims)), len(n.outputs)
    sizes = n.ints("split", ()) if n.version < 13 else () if n.input(1) is None else g.dims(n.input(1), "the sizes")
    if count == 1 and not sizes:
        return x
    if sizes and len(sizes) != count:
        n.unsupported(f"in {len(sizes)} parts, of which {count} are used")
    if any(isinstance(s, int) and s < 0 for s in sizes):
        fail("RLX8003", f"there are no parts of {', '.join(map(str, sizes))}")
    if sizes and all(isinstance(s, int) for s in sizes):
        x = g.of_length(x, axis, g.simplify(sum(sizes)))
    if not sizes:
        whole = dims[axis]
        part = g.simplify(
            -(-whole // count)
            if isinstance(whole, int)
            else prim.FloorDiv(whole + (count - 1), prim.const(count, INT64))
        )
        ends: list[Dim] = [g.simplify(part * k) for k in range(1, count)]
    else:
        ends = []
        at: Dim = 0
        for s in sizes[:-1]:
            at = g.simplify(at + s)
            ends.append(at)
    begins: list[Dim] = [0, *ends]
    stops: list[Dim] = [*ends, dims[axis]]
    if all(isinstance(e, int) for e in ends):
        made = g.bb.emit(op.split(x, list(ends), axis=axis))
        return tuple(item(made, k) if n.wants(k) else None for k in range(count))
    parts = enumerate(zip(begins, stops, sizes or [None] * count))
    return tuple(_part(g, x, axis, b, e, s) if n.wants(k) else None for k, (b, e, s) in parts)


def _part(g: Graph, x: relax.Expr, axis: int, begin: Dim, end: Dim, size: Dim | None) -> relax.Expr:
    """A slice, which must be of a size when there is one. Where the places are known at run time only, they may be
    anything: the slice is limited to what there is, and too short then."""
    whole = g.sizes(x)[axis]
    inside = all(g.known_nonnegative(prim.as_prim(d, INT64)) for d in (begin, end - begin, whole - end))
    part: relax.Expr = op.strided_slice(x, [axis], [begin], [end], assume_inbound=inside)
    return part if inside or size is None else g.of_length(g.bb.emit(part), axis, size)


def slice_(g: Graph, n: Node) -> Value:
    """Slice, as Python slices; everything was an attribute until version 9."""
    x = g.tensor(n.input(0))
    dims = g.sizes(x)
    if n.version < 10:
        starts, ends = n.ints("starts"), n.ints("ends")
        axes: tuple[int, ...] = n.ints("axes", range(len(starts)))
        steps: tuple[Dim, ...] = (1,) * len(starts)
    else:
        starts, ends = g.dims(n.input(1), "the starts"), g.dims(n.input(2), "the ends")
        axes = g.ints(n.input(3), "the axes") if n.input(3) is not None else tuple(range(len(starts)))
        steps = (1,) * len(starts) if n.input(4) is None else g.dims(n.input(4), "the steps")
    if not len(starts) == len(ends) == len(axes) == len(steps):
        n.unsupported("with starts, ends, axes and steps of different lengths")
    found = g.axes(n, axes, len(dims))
    if not all(isinstance(s, int) for s in steps):
        n.unsupported("with steps that are not constants")
    begin, end, stride = [], [], []
    for a, b, e, s in zip(found, starts, ends, steps):
        if isinstance(b, int) and isinstance(e, int) and s == 1 and b == 0 and (e >= _FAR or g.equal(e, dims[a])):
            continue
        begin.append((a, _place(g, b, dims[a])))
        end.append(
            dims[a] if isinstance(e, int) and e >= _FAR and isinstance(s, int) and s > 0 else _place(g, e, dims[a])
        )
        stride.append(s)
    if not begin:
        return x
    return op.strided_slice(x, [a for a, _ in begin], [b for _, b in begin], end, stride)


def _place(g: Graph, at: Dim, size: Dim) -> Dim:
    """A place in a dimension; one far beyond is brought near, so that nothing overflows."""
    return max(min(at, _FAR), -_FAR) if isinstance(at, int) else at


def constant_of_shape(g: Graph, n: Node) -> Value:
    """ConstantOfShape: float32 zeros unless `value` says otherwise."""
    value = tensor_data(n.tensor("value"), "the value") if n.has("value") else np.zeros(1, dtype=np.float32)
    if value.size != 1:
        fail("RLX8003", f"the value is no single element, but a tensor of shape {value.shape}")
    dims = g.dims(n.input(0), "the shape")
    return op.full(dims, relax.Constant(value.reshape(-1)[0].reshape(())))


def range_(g: Graph, n: Node) -> Value:
    """Range: from start below limit in steps."""
    values = n.inputs[:3]
    of = g.dtype(values[0])
    whole = [_whole(v) for v in values]
    if of.is_integer or (all(v is not None for v in whole) and not all(isinstance(v, int) for v in whole)):
        start, limit, delta = (g.scalar(v, "a bound of the range") if w is None else w for v, w in zip(values, whole))
        if isinstance(delta, int) and delta == 1 and not isinstance(length := g.simplify(limit - start), int):
            made = g.bb.emit(op.arange(start, limit, 1, dtype=of))
            # The operator does not know that the dimension of another tensor is not negative.
            return g.bb.match_cast(made, tensor_info((length,), of)) if g.known_nonnegative(length) else made
        return op.arange(start, limit, delta, dtype=of)
    if all(isinstance(v, Known) and not v.is_symbolic for v in values):
        bounds = [g.constant(v, "a bound of the range").reshape(-1).astype(np.float64).tolist() for v in values]
        low, high, by = (bound[0] if len(bound) == 1 else math.nan for bound in bounds)
        if not math.isfinite((high - low) / by if by else math.nan):
            fail("RLX8003", f"there is no range of {', '.join(map(str, bounds))}")
        return Known((low + np.arange(max(int(np.ceil((high - low) / by)), 0)) * by).astype(of.numpy))
    first, last, step = (op.reshape(g.tensor(v), ()) for v in values)
    wide = op.ceil(op.divide(op.astype(op.subtract(last, first), "float64"), op.astype(step, "float64")))
    count = g.bb.emit(op.maximum(op.astype(wide, "int64"), relax.Constant(np.array(0, dtype=np.int64))))
    places = op.arange(0, g.scalar(count, "the length of the range"), 1, dtype="int64")
    return op.add(op.multiply(op.astype(places, of), step), first)


def _whole(value: Value) -> Dim | None:
    """The only element of a known tensor, when it is a whole number; floats that depend on dimensions are."""
    if not isinstance(value, Known) or value.data.size != 1:
        return None
    element = value.data.reshape(-1)[0]
    if isinstance(element, PrimExpr):
        return element
    return int(element) if float(element).is_integer() else None


def eye_like(g: Graph, n: Node) -> Value:
    """EyeLike: ones on a diagonal."""
    x = g.tensor(n.input(0))
    of = element_type(n.int("dtype"), "the result") if n.has("dtype") else g.dtype(x)
    return op.eye_like(x, n.int("k", 0), dtype=of)


def trilu(g: Graph, n: Node) -> Value:
    """Trilu: the part above, or below, a diagonal."""
    x = g.tensor(n.input(0))
    k = 0 if n.input(1) is None else g.scalar(n.input(1), "k")
    return op.triu(x, k) if n.flag("upper", True) else op.tril(x, k)


def depth_to_space(g: Graph, n: Node) -> Value:
    """DepthToSpace: channels become squares of pixels."""
    x, b = g.tensor(n.input(0)), n.int("blocksize")
    batch, c, h, w = _four(g, n, x)
    if b < 1 or not (isinstance(c, int) and c % (b * b) == 0):
        n.unsupported(f"with {c} channels and a block size of {b}")
    depth = c // (b * b)
    if n.string("mode", "DCR") == "DCR":
        parts, order = (batch, b, b, depth, h, w), (0, 3, 4, 1, 5, 2)
    else:
        parts, order = (batch, depth, b, b, h, w), (0, 1, 4, 2, 5, 3)
    moved = op.permute_dims(op.reshape(x, parts), list(order))
    return op.reshape(moved, (batch, depth, g.simplify(h * b), g.simplify(w * b)))


def space_to_depth(g: Graph, n: Node) -> Value:
    """SpaceToDepth: squares of pixels become channels."""
    x, b = g.tensor(n.input(0)), n.int("blocksize")
    batch, c, h, w = _four(g, n, x)
    if b < 1:
        n.unsupported(f"with a block size of {b}")
    rows, columns = (g.simplify(d // b if isinstance(d, int) else prim.FloorDiv(*prim.match(d, b))) for d in (h, w))
    parts = op.reshape(x, (batch, c, rows, b, columns, b))
    order = [0, 3, 5, 1, 2, 4] if n.string("mode", "DCR") == "DCR" else [0, 1, 3, 5, 2, 4]
    return op.reshape(op.permute_dims(parts, order), (batch, g.simplify(c * b * b), rows, columns))


def _four(g: Graph, n: Node, x: relax.Expr) -> tuple[Dim, ...]:
    dims = g.sizes(x)
    if len(dims) != 4:
        n.unsupported(f"of a tensor with {len(dims)} dimensions")
    return dims


def center_crop(g: Graph, n: Node) -> Value:
    """CenterCropPad: each axis cropped or padded with zeros to a length, evenly on both sides."""
    x = g.tensor(n.input(0))
    dims, wanted = g.sizes(x), g.ints(n.input(1), "the shape")
    axes = g.axes(n, n.ints("axes", range(len(dims))), len(dims))
    widths: list[int] = [0] * (2 * len(dims))
    for a, want in zip(axes, wanted):
        have = dims[a]
        if not isinstance(have, int):
            n.unsupported("of a dimension that is not known")
        if have > want:
            x = op.strided_slice(x, [a], [(have - want) // 2], [(have - want) // 2 + want])
        widths[2 * a] = max(want - have, 0) // 2
        widths[2 * a + 1] = max(want - have, 0) - widths[2 * a]
    return op.nn.pad(x, widths, "constant", 0) if any(widths) else x
