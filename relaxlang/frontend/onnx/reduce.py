"""Converters of reductions, and of what looks along an axis: sums, extremes, running sums, the k largest, softmax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relaxlang.base.dtype import DType
from relaxlang.frontend.onnx.graph import Graph, item
from relaxlang.frontend.onnx.node import Node
from relaxlang.frontend.onnx.values import Dim, Result, Value
from relaxlang.ir import relax
from relaxlang.ops import python_api as op


def reduction_axes(g: Graph, n: Node) -> tuple[int, ...] | None:
    """The axes that a reduction is over: an attribute once, an input since version 13 or 18. None: it does nothing."""
    rank = g.rank(n.input(0))
    given = g.ints(n.input(1), "the axes") if n.input(1) is not None else n.ints("axes", ())
    if not given:
        return None if n.flag("noop_with_empty_axes") else tuple(range(rank))
    return g.axes(n, given, rank)


Step = Callable[[Graph, relax.Expr], relax.Expr]


def _reduction(call: Any, before: Step | None = None, after: Step | None = None) -> Callable[[Graph, Node], Value]:
    """The converter of a reduction, of `before(x)`, whose results go through `after`."""

    def convert(g: Graph, n: Node) -> Value:
        x = g.tensor(n.input(0))
        axes = reduction_axes(g, n)
        x = x if before is None else before(g, x)
        if axes is not None:
            x = call(x, axis=list(axes), keepdims=n.flag("keepdims", True)) if axes else x
        return x if after is None else after(g, x)

    return convert


def _square(g: Graph, x: relax.Expr) -> relax.Expr:
    made: relax.Expr = op.multiply(x, x)
    return made


def _call(call: Any) -> Step:
    def step(g: Graph, x: relax.Expr) -> relax.Expr:
        made: relax.Expr = call(x)
        return made

    return step


reduce_sum, reduce_mean, reduce_prod = _reduction(op.sum), _reduction(op.mean), _reduction(op.prod)
reduce_l1 = _reduction(op.sum, _call(op.abs))
reduce_l2 = _reduction(op.sum, _square, _call(op.sqrt))
reduce_sum_square = _reduction(op.sum, _square)
reduce_log_sum = _reduction(op.sum, None, _call(op.log))


def _of_nothing(g: Graph, n: Node) -> tuple[int, ...]:
    """The axes of a reduction, if one of them is known to be empty."""
    dims, axes = g.sizes(n.input(0)), reduction_axes(g, n) or ()
    return axes if any(dims[a] == 0 for a in axes if isinstance(dims[a], int)) else ()


def _extreme(call: Any, is_least: bool) -> Callable[[Graph, Node], Value]:
    """The converter to the least or the greatest element; of nothing, that is the greatest or the least of the type."""
    plain = _reduction(call)
    of_bools = _reduction(call, lambda g, x: op.astype(x, "uint8"), lambda g, x: op.astype(x, "bool"))

    def convert(g: Graph, n: Node) -> Value:
        of, gone = g.dtype(n.input(0)), _of_nothing(g, n)
        if gone:
            keep = n.flag("keepdims", True)
            dims = [1 if k in gone else d for k, d in enumerate(g.sizes(n.input(0))) if keep or k not in gone]
            return op.full(tuple(dims), relax.Constant(_limit(of, is_least)))
        return of_bools(g, n) if of.is_bool else plain(g, n)

    return convert


def _limit(of: DType, is_greatest: bool) -> np.ndarray[Any, Any]:
    """The greatest or the least number of a type."""
    if of.is_float:
        return np.array(np.inf if is_greatest else -np.inf, of.numpy)
    if of.is_bool:
        return np.array(is_greatest)
    limits = np.iinfo(of.numpy)
    return np.array(limits.max if is_greatest else limits.min, of.numpy)


reduce_max, reduce_min = _extreme(op.max, is_least=False), _extreme(op.min, is_least=True)


def reduce_log_sum_exp(g: Graph, n: Node) -> Value:
    """ReduceLogSumExp: log(sum(exp(x))), without overflow."""
    x = g.tensor(n.input(0))
    axes = reduction_axes(g, n)
    if not axes:
        return x
    if _of_nothing(g, n):
        return op.log(op.sum(op.exp(x), axis=list(axes), keepdims=n.flag("keepdims", True)))
    top = op.max(x, axis=list(axes), keepdims=True)
    top = op.where(op.isfinite(top), top, g.like(0, x))
    total = op.add(op.log(op.sum(op.exp(op.subtract(x, top)), axis=list(axes), keepdims=True)), top)
    return total if n.flag("keepdims", True) else op.squeeze(total, list(axes))


def _arg(call: Any) -> Callable[[Graph, Node], Value]:
    def convert(g: Graph, n: Node) -> Value:
        x = g.tensor(n.input(0))
        axis, keep = g.axis(n, n.int("axis", 0), g.rank(x)), n.flag("keepdims", True)
        if not n.flag("select_last_index"):
            return op.astype(call(x, axis=axis, keepdims=keep), "int64")
        found = op.astype(call(op.flip(x, axis), axis=axis, keepdims=keep), "int64")
        last = relax.Constant(_int64(-1))
        size = op.take(op.shape_to_tensor(relax.ShapeExpr(g.shape(x))), relax.Constant(_int64(axis)), axis=0)
        return op.subtract(op.add(size, last), found)

    return convert


def _int64(value: int) -> np.ndarray[Any, Any]:
    return np.array(value, dtype=np.int64)


arg_max, arg_min = _arg(op.argmax), _arg(op.argmin)


def _running(call: Any) -> Callable[[Graph, Node], Value]:
    """The converter of a running sum or product: exclusive, or from the end."""

    def convert(g: Graph, n: Node) -> Value:
        x = g.tensor(n.input(0))
        axis = g.axis(n, g.ints(n.input(1), "the axis")[0], g.rank(x))
        x = op.flip(x, axis) if n.flag("reverse") else x
        made = op.astype(call(x, axis=axis, exclusive=n.flag("exclusive")), g.dtype(x))
        return op.flip(made, axis) if n.flag("reverse") else made

    return convert


cum_sum, cum_prod = _running(op.cumsum), _running(op.cumprod)


def top_k(g: Graph, n: Node) -> Result:
    """TopK: the values and their indices."""
    x = g.tensor(n.input(0))
    k = n.int("k") if n.version < 10 else g.scalar(n.input(1), "k")
    axis = g.axis(n, n.int("axis", -1), g.rank(x))
    if not isinstance(k, int):
        order = g.bb.emit(op.argsort(x, axis=axis, descending=n.flag("largest", True), dtype="int64"))
        found = g.of_length(g.bb.emit(op.strided_slice(order, [axis], [0], [k])), axis, k)
        return op.gather_elements(x, found, axis=axis), found
    both = g.bb.emit(op.topk(x, k, axis=axis, ret_type="both", largest=n.flag("largest", True), dtype="int64"))
    return item(both, 0), item(both, 1)


def _along(call: Any) -> Callable[[Graph, Node], Value]:
    """The converter of a softmax; until version 12 it was over all axes from one on."""

    def convert(g: Graph, n: Node) -> Value:
        x = g.tensor(n.input(0))
        rank = g.rank(x)
        axis = g.axis(n, n.int("axis", 1 if n.version < 13 else -1), rank)
        if n.version >= 13 or axis == rank - 1:
            made: Value = call(x, axis=axis)
            return made
        dims = g.sizes(x)
        flat = op.reshape(x, (g.product(dims[:axis]), g.product(dims[axis:])))
        return op.reshape(call(flat, axis=1), dims)

    return convert


softmax, log_softmax = _along(op.nn.softmax), _along(op.nn.log_softmax)


def hardmax(g: Graph, n: Node) -> Value:
    """Hardmax: 1 at the first greatest element along an axis, else 0; until version 12 over all axes from one on."""
    x = g.tensor(n.input(0))
    dims, rank = g.sizes(x), g.rank(x)
    axis = g.axis(n, n.int("axis", 1 if n.version < 13 else -1), rank)
    if n.version < 13:
        x = op.reshape(x, (g.product(dims[:axis]), g.product(dims[axis:])))
        axis = 1
    first = op.argmax(x, axis=axis, keepdims=True)
    size = g.sizes(x)[axis]
    places = op.arange(0, size, 1, dtype="int64")
    shape: list[Dim] = [1] * g.rank(x)
    shape[axis] = size
    hit = op.equal(op.astype(first, "int64"), op.reshape(places, shape))
    made = op.astype(hit, g.dtype(x))
    return op.reshape(made, dims) if n.version < 13 else made


def lp_normalization(g: Graph, n: Node) -> Value:
    """LpNormalization: x divided by its norm along an axis; 0 where that is 0."""
    x, p = g.tensor(n.input(0)), n.int("p", 2)
    axis = g.axis(n, n.int("axis", -1), g.rank(x))
    if p not in (1, 2):
        n.unsupported(f"with a norm of order {p}")
    size = op.sum(op.abs(x) if p == 1 else op.multiply(x, x), axis=axis, keepdims=True)
    size = size if p == 1 else op.sqrt(size)
    zero = g.like(0, x)
    return op.where(op.equal(size, zero), zero, op.divide(x, size))
