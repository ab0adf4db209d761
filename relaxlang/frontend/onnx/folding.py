"""Computing while importing: what models do to shapes, on numbers and on expressions of symbolic dimensions alike.

A fold takes the graph, the node and its inputs, all of them known; it gives the outputs, or None where the node has to
be computed at run time (elements that would not be whole numbers, a shape that depends on symbolic dimensions).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from relaxlang.base.dtype import DType
from relaxlang.frontend.onnx.node import Node
from relaxlang.frontend.onnx.types import element_type
from relaxlang.frontend.onnx.values import Known, elementwise, objects
from relaxlang.ir import prim
from relaxlang.ir.prim import BOOL, INT64, IntImm, PrimExpr

if TYPE_CHECKING:
    from relaxlang.frontend.onnx.graph import Graph

MAX_FOLDED = 1024
"""Elements of the largest tensor that is computed while importing."""

Folded = Known | tuple[Known, ...] | None
Fold = Callable[..., Folded]


def _expr(value: Any) -> PrimExpr:
    if isinstance(value, PrimExpr):
        return value
    return prim.const(value, BOOL if isinstance(value, bool) else INT64)


def _plain(graph: Graph, made: PrimExpr) -> Any:
    made = graph.analyzer.simplify(made)
    if isinstance(made, IntImm):
        return bool(made.value) if made.dtype.is_bool else made.value
    return made


def _whole(*values: Known) -> bool:
    """Whether arithmetic on expressions gives what the tensors' types give: integers, or floats that are whole."""
    return all(
        v.is_symbolic or not v.dtype.is_float or (v.data.size and bool((v.data == np.trunc(v.data)).all()))
        for v in values
    )


def _broadcast(*values: Known) -> bool:
    """Whether the shapes broadcast to one. What does not is an error that the converter tells of."""
    try:
        np.broadcast_shapes(*(v.data.shape for v in values))
    except ValueError:
        return False
    return True


def _numbers(value: Known) -> list[int] | None:
    """The elements of a list of integers (or one); None for what is none, or not known."""
    if value.is_symbolic or not value.dtype.is_integer or value.data.ndim > 1:
        return None
    return [int(n) for n in value.data.reshape(-1)]


def _integers(value: Known) -> np.ndarray[Any, Any]:
    return value.data if value.is_symbolic or not value.dtype.is_float else value.data.astype(np.int64)


# --- arithmetic -------------------------------------------------------------------------------------------------------
def _arithmetic(kind: type[prim.BinaryOp], plain: Callable[[Any, Any], Any]) -> Fold:
    """A binary operator: by numpy on numbers, `kind` on expressions."""

    def fold(graph: Graph, node: Node, a: Known, b: Known) -> Folded:
        if a.dtype is not b.dtype or a.dtype.is_bool or not _broadcast(a, b):
            return None
        if not (a.is_symbolic or b.is_symbolic):
            with np.errstate(all="ignore"):
                return Known(np.asarray(plain(a.data, b.data)).astype(a.dtype.numpy), a.dtype)
        if not _whole(a, b):
            return None
        made = elementwise(lambda x, y: _plain(graph, prim.fold(kind, *prim.match(_expr(x), _expr(y)))),
                           _integers(a), _integers(b))  # fmt: skip
        return Known.of(made, a.dtype)

    return fold


def _divide(graph: Graph, node: Node, a: Known, b: Known) -> Folded:
    """A quotient; that of integers is rounded towards zero, that of floats must be whole."""
    if a.dtype is not b.dtype or a.dtype.is_bool or not _broadcast(a, b):
        return None
    if not (a.is_symbolic or b.is_symbolic):
        if a.dtype.is_float:
            with np.errstate(all="ignore"):
                return Known((a.data / b.data).astype(a.dtype.numpy), a.dtype)
        if not b.data.all():
            return None
        with np.errstate(all="ignore"):  # the smallest integer by -1 is itself
            down, rest = np.divmod(a.data, b.data)
            up = (rest != 0) & ((a.data < 0) != (b.data < 0))
            return Known((down + up).astype(a.dtype.numpy), a.dtype)
    if not _whole(a, b):
        return None
    out = []
    pairs = np.broadcast(objects(_integers(a)), objects(_integers(b)))
    for x, y in pairs:
        left, right = _expr(x), _expr(y)
        if isinstance(right, IntImm) and right.value == 0:
            return None
        exact = graph.equal(prim.FloorMod(left, right), 0)
        if a.dtype.is_float and not exact:
            return None
        floors = exact or (graph.known_nonnegative(left) and graph.known_nonnegative(right))
        out.append(_plain(graph, prim.fold(prim.FloorDiv if floors else prim.Div, left, right)))
    made = np.empty(len(out), dtype=object)
    made[:] = out
    return Known.of(made.reshape(pairs.shape), a.dtype)


def _modulo(graph: Graph, node: Node, a: Known, b: Known) -> Folded:
    if node.flag("fmod") or not a.dtype.is_integer:
        return None
    return _arithmetic(prim.FloorMod, np.mod)(graph, node, a, b)


def _comparison(kind: type[prim.CmpOp], plain: Callable[[Any, Any], Any]) -> Fold:
    def fold(graph: Graph, node: Node, a: Known, b: Known) -> Folded:
        if a.dtype is not b.dtype or not _broadcast(a, b):
            return None
        if not (a.is_symbolic or b.is_symbolic):
            return Known(np.asarray(plain(a.data, b.data), dtype=bool))
        if not _whole(a, b):
            return None

        def compare(x: Any, y: Any) -> Any:
            made = prim.fold(kind, *prim.match(_expr(x), _expr(y)))
            if isinstance(made, IntImm):
                return bool(made.value)
            if graph.analyzer.can_prove(made):
                return True
            return False if graph.analyzer.can_prove(prim.Not(made)) else made

        return Known.of(elementwise(compare, _integers(a), _integers(b)), BOOL)

    return fold


def _variadic(fold: Fold) -> Fold:
    def all_of(graph: Graph, node: Node, first: Known, *rest: Known) -> Folded:
        made: Folded = first
        for value in rest:
            made = fold(graph, node, made, value) if isinstance(made, Known) else None
        return made

    return all_of


def _where(graph: Graph, node: Node, condition: Known, a: Known, b: Known) -> Folded:
    def choose(c: Any, x: Any, y: Any) -> Any:
        if not isinstance(c, PrimExpr):
            return x if c else y
        return _plain(graph, prim.Select(c, *prim.match(_expr(x), _expr(y))))

    if not condition.dtype.is_bool or a.dtype is not b.dtype or not _broadcast(condition, a, b):
        return None
    if not (condition.is_symbolic or a.is_symbolic or b.is_symbolic):
        return Known(np.where(condition.data, a.data, b.data), a.dtype)
    if not _whole(a, b):
        return None
    return Known.of(elementwise(choose, condition.data, _integers(a), _integers(b)), a.dtype)


def _negate(graph: Graph, node: Node, a: Known) -> Folded:
    if a.dtype.is_bool:
        return None
    if not a.is_symbolic:
        return Known(-a.data, a.dtype)
    return Known.of(elementwise(lambda x: _plain(graph, prim.Sub(_expr(0), _expr(x))), a.data), a.dtype)


def _not(graph: Graph, node: Node, a: Known) -> Folded:
    if not a.dtype.is_bool:
        return None
    if not a.is_symbolic:
        return Known(~a.data, a.dtype)
    return Known.of(elementwise(lambda x: _plain(graph, prim.Not(_expr(x))), a.data), a.dtype)


def _same_when_whole(plain: Callable[[Any], Any]) -> Fold:
    """Rounding: nothing happens to whole numbers."""

    def fold(graph: Graph, node: Node, a: Known) -> Folded:
        return a if a.is_symbolic else Known(plain(a.data).astype(a.dtype.numpy), a.dtype)

    return fold


def cast_known(a: Known, to: DType) -> Known | None:
    """A known tensor as another type; None where that is the run time's business: what may be out of range."""
    if a.is_symbolic:
        return Known(a.data, to) if (to.is_integer or to.is_float) and not a.dtype.is_bool else None
    if to.bits < 16 and not to.is_bool:
        return None
    if a.dtype.is_float and to.is_integer and not (np.abs(a.data) < 1 << 31).all():
        return None
    with np.errstate(all="ignore"):
        return Known(a.data.astype(to.numpy), to)


def _cast(graph: Graph, node: Node, a: Known) -> Folded:
    return cast_known(a, element_type(node.int("to"), "the result of `Cast`"))


# --- places -----------------------------------------------------------------------------------------------------------
def _gather(graph: Graph, node: Node, data: Known, indices: Known) -> Folded:
    if indices.is_symbolic or not data.data.ndim:
        return None
    axis = graph.axis(node, node.int("axis", 0), data.data.ndim)
    size = data.data.shape[axis]
    if not bool(((indices.data >= -size) & (indices.data < size)).all()):
        return None
    found = np.empty((*data.data.shape[:axis], *indices.data.shape, *data.data.shape[axis + 1 :]), data.data.dtype)
    found[...] = np.take(data.data, indices.data, axis=axis)
    return Known.of(found, data.dtype) if data.is_symbolic else Known(found, data.dtype)


def _moved(data: Known, made: np.ndarray[Any, Any]) -> Known:
    """The elements of a tensor in other places."""
    return Known.of(objects(made), data.dtype) if data.is_symbolic else Known(made.copy(), data.dtype)


def _concat(graph: Graph, node: Node, *parts: Known) -> Folded:
    if any(p.data.ndim != parts[0].data.ndim or not p.data.ndim for p in parts):
        return None
    axis = graph.axis(node, node.int("axis"), parts[0].data.ndim)
    other = [tuple(n for k, n in enumerate(p.data.shape) if k != axis) for p in parts]
    if any(o != other[0] for o in other):
        return None
    if not any(p.is_symbolic for p in parts):
        return Known(np.concatenate([p.data for p in parts], axis=axis), parts[0].dtype)
    return Known.of(np.concatenate([objects(p.data) for p in parts], axis=axis), parts[0].dtype)


def _reshape(graph: Graph, node: Node, data: Known, shape: Known) -> Folded:
    wanted = _numbers(shape)
    if wanted is None:
        return None
    for k, n in enumerate(wanted):
        if n == 0 and not node.flag("allowzero") and k < data.data.ndim:
            wanted[k] = data.data.shape[k]
    try:
        return _moved(data, data.data.reshape(wanted))
    except ValueError:
        return None


def _axes_of(node: Node, given: tuple[Known, ...], default: Any) -> Any:
    """The axes of Squeeze, Unsqueeze and reductions: an attribute once, an input since."""
    if given:
        axes = _numbers(given[0])
        return None if axes is None else tuple(axes)
    return node.ints("axes", default) if node.has("axes") or default is not None else ()


def _squeeze(graph: Graph, node: Node, data: Known, *given: Known) -> Folded:
    axes = _axes_of(node, given, ())
    if axes is None:
        return None
    rank = data.data.ndim
    gone = {graph.axis(node, a, rank) for a in axes} or {k for k, n in enumerate(data.data.shape) if n == 1}
    if any(data.data.shape[k] != 1 for k in gone):
        return None
    return _moved(data, data.data.reshape([n for k, n in enumerate(data.data.shape) if k not in gone]))


def _unsqueeze(graph: Graph, node: Node, data: Known, *given: Known) -> Folded:
    axes = _axes_of(node, given, ())
    if not axes:
        return None
    places = graph.axes(node, axes, data.data.ndim + len(axes))
    return _moved(data, np.expand_dims(data.data, places)) if len(set(places)) == len(places) else None


def _slice(graph: Graph, node: Node, data: Known, *given: Known) -> Folded:
    numbers = [_numbers(g) for g in given] or [list(node.ints("starts")), list(node.ints("ends"))]
    if not given and node.has("axes"):
        numbers.append(list(node.ints("axes")))
    found = [n for n in numbers if n is not None]
    if len(found) != len(numbers) or len(found) < 2:
        return None
    starts, ends = found[:2]
    axes = found[2] if len(found) > 2 else list(range(len(starts)))
    steps = found[3] if len(found) > 3 else [1] * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        return None
    at = [slice(None)] * data.data.ndim
    for a, b, e, s in zip(axes, starts, ends, steps):
        axis = graph.axis(node, a, data.data.ndim)
        before = s < 0 and e < -data.data.shape[axis]
        at[axis] = slice(b if s > 0 or b >= -data.data.shape[axis] else 0, None if before else e, s)
    return _moved(data, data.data[tuple(at)])


def _transpose(graph: Graph, node: Node, data: Known) -> Folded:
    order = node.ints("perm", range(data.data.ndim)[::-1])
    if sorted(order) != list(range(data.data.ndim)):
        return None
    return _moved(data, np.transpose(data.data, order))


def _identity(graph: Graph, node: Node, data: Known) -> Folded:
    return data


def _range(graph: Graph, node: Node, start: Known, limit: Known, delta: Known) -> Folded:
    if start.is_symbolic or limit.is_symbolic or delta.is_symbolic or not start.dtype.is_integer:
        return None
    if not start.data.size == limit.data.size == delta.data.size == 1:
        return None
    a, b, c = (int(v.data.reshape(-1)[0]) for v in (start, limit, delta))
    if c == 0 or abs(b - a) // abs(c) > MAX_FOLDED:
        return None
    return Known(np.arange(a, b, c, dtype=start.dtype.numpy), start.dtype)


def _constant_of_shape(graph: Graph, node: Node, shape: Known) -> Folded:
    dims = _numbers(shape)
    if dims is None or math.prod(dims) > MAX_FOLDED or any(d < 0 for d in dims):
        return None
    from relaxlang.frontend.onnx.types import tensor_data

    value = tensor_data(node.tensor("value"), "the value") if node.has("value") else np.zeros(1, dtype=np.float32)
    return Known(np.full(dims, value.reshape(-1)[0], dtype=value.dtype)) if value.size == 1 else None


def _expand(graph: Graph, node: Node, data: Known, shape: Known) -> Folded:
    dims = _numbers(shape)
    if dims is None or any(d < 0 for d in dims):
        return None
    try:
        wanted = np.broadcast_shapes(data.data.shape, tuple(dims))
    except ValueError:
        return None
    if math.prod(wanted) > MAX_FOLDED:
        return None
    return _moved(data, np.broadcast_to(data.data, wanted))


def _reduce(kind: type[prim.BinaryOp], plain: Callable[..., Any]) -> Fold:
    """A reduction of integers."""

    def fold(graph: Graph, node: Node, data: Known, *given: Known) -> Folded:
        axes = _axes_of(node, given, ())
        if axes is None or not data.dtype.is_integer or (not axes and node.flag("noop_with_empty_axes")):
            return None
        over = graph.axes(node, axes, data.data.ndim) or tuple(range(data.data.ndim))
        if len(set(over)) < len(over) or not data.data.size:
            return None
        keep = node.flag("keepdims", True)
        if not data.is_symbolic:
            return Known(np.asarray(plain(data.data, axis=over, keepdims=keep)).astype(data.dtype.numpy), data.dtype)
        if len(over) != data.data.ndim:
            return None
        flat = data.data.reshape(-1).tolist()
        made = flat[0]
        for e in flat[1:]:
            made = _plain(graph, prim.fold(kind, *prim.match(_expr(made), _expr(e))))
        out = np.empty((1,) * data.data.ndim if keep else (), dtype=object)
        out[...] = made
        return Known.of(out, data.dtype)

    return fold


def _split(graph: Graph, node: Node, data: Known, *given: Known) -> Folded:
    stated = _numbers(given[0]) if given else None
    if given and stated is None:
        return None
    axis = graph.axis(node, node.int("axis", 0), data.data.ndim)
    size, count = data.data.shape[axis], len(node.outputs)
    step = -(-size // count)
    equal = [min(step, size - k * step) for k in range(count)]
    sizes = node.ints("split", equal) if stated is None else stated
    if sum(sizes) != size or any(s < 0 for s in sizes) or len(sizes) != count:
        return None
    return tuple(_moved(data, part) for part in np.split(data.data, np.cumsum(sizes)[:-1], axis=axis))


_ADD = _arithmetic(prim.Add, operator.add)
_MIN, _MAX = _variadic(_arithmetic(prim.Min, np.minimum)), _variadic(_arithmetic(prim.Max, np.maximum))

FOLDS: dict[str, Fold] = {
    "Add": _ADD, "Sub": _arithmetic(prim.Sub, operator.sub), "Mul": _arithmetic(prim.Mul, operator.mul),
    "Div": _divide, "Mod": _modulo, "Min": _MIN, "Max": _MAX, "Sum": _variadic(_ADD),
    "Equal": _comparison(prim.EQ, np.equal), "Less": _comparison(prim.LT, np.less),
    "Greater": _comparison(prim.GT, np.greater), "LessOrEqual": _comparison(prim.LE, np.less_equal),
    "GreaterOrEqual": _comparison(prim.GE, np.greater_equal),
    "And": _comparison(prim.And, np.logical_and), "Or": _comparison(prim.Or, np.logical_or), "Not": _not,
    "Where": _where, "Neg": _negate, "Floor": _same_when_whole(np.floor), "Ceil": _same_when_whole(np.ceil),
    "Cast": _cast, "Gather": _gather, "Concat": _concat, "Reshape": _reshape, "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze, "Slice": _slice, "Transpose": _transpose, "Identity": _identity, "Range": _range,
    "ConstantOfShape": _constant_of_shape, "Expand": _expand, "Split": _split,
    "ReduceProd": _reduce(prim.Mul, np.prod), "ReduceSum": _reduce(prim.Add, np.sum),
    "ReduceMax": _reduce(prim.Max, np.max), "ReduceMin": _reduce(prim.Min, np.min),
}  # fmt: skip
