"""Evaluation of TensorIR's expressions.

`Frame` is the state of one call of a PrimFunc: the values of its variables and the views of its buffers. One frame
computes one instance of a statement at a time, or many at once: then `grid` holds the extents of the axes over which
the instances are spread, outermost loop last, and a value is an array that broadcasts over them (numpy aligns the last
axes, so a value that was computed before an axis was added broadcasts over it as it is). `mask` tells which instances
take part; the others' values are never looked at, and what they load is not checked.

`And`, `Or` and `if_then_else` evaluate what the outcome needs and no more; `Select` evaluates both values.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from typing import Any, NoReturn, Protocol, TypeAlias

import numpy as np

from relaxlang.base.diagnostics import fail
from relaxlang.base.source import Span
from relaxlang.interp import numeric
from relaxlang.interp.intrinsics import PURE
from relaxlang.interp.memory import Array, Pointer, View, row_major
from relaxlang.interp.numeric import Undefined, Value, is_array
from relaxlang.ir import prim, tir
from relaxlang.ir.intrinsics import INTRINSICS
from relaxlang.ir.prim import PrimExpr
from relaxlang.ir.relax import GlobalVar

Access: TypeAlias = "prim.BufferLoad | tir.BufferStore"


class Host(Protocol):
    """What a frame needs of the interpreter it runs in."""

    vectorize: bool

    def call_prim_func(self, callee: GlobalVar, args: Sequence[Any], span: Span | None) -> Any:
        """Run a PrimFunc of the module; its result, None when it has none."""

    def packed_func(self, name: str, span: Span | None) -> Callable[..., Any]:
        """The packed function of that name. Raises RLX6008."""


class Frame:
    """The state of one call (see the module's text)."""

    def __init__(self, host: Host, env: MutableMapping[prim.Var, Any], grid: tuple[int, ...] = ()) -> None:
        self.host = host
        self.env = env
        self.views: dict[tir.Buffer, View] = {}
        self.grid = grid
        self.mask: Array | None = None
        self.owned: set[tir.Buffer] = set()  # buffers whose declaration allocates
        self.matched: set[prim.Var] = set()  # variables that buffers of regions define, anew each time
        self.sequential: set[tir.For] = set()  # loops that were found to need their order
        self.bodies: dict[tir.For, Any] = {}  # what `interp.parallel` has found out about loops

    def __call__(self, e: PrimExpr) -> Value:
        """The value of an expression."""
        return EVAL[e.__class__](self, e)

    def number(self, e: PrimExpr) -> Any:
        """The value of an integer expression as a Python int, or as an int64 array of one for each instance."""
        value = EVAL[e.__class__](self, e)
        return value.astype(np.int64) if is_array(value) else int(value)

    def view(self, buffer: tir.Buffer) -> View:
        """How the elements of a buffer are reached."""
        found = self.views.get(buffer)
        if found is not None and found.pointer is self.env.get(buffer.data):
            return found
        made = self.declared(buffer)
        if all(isinstance(n, prim.IntImm) for n in (*buffer.shape, *buffer.strides)) and buffer.elem_offset is None:
            self.views[buffer] = made
        return made

    def declared(self, buffer: tir.Buffer) -> View:
        """The view that a buffer's own fields describe, from its data pointer on."""
        pointer = self.pointer(buffer)
        shape = [self.number(n) for n in buffer.shape]
        strides = [self.number(n) for n in buffer.strides] or row_major(shape)
        first = 0 if buffer.elem_offset is None else self.number(buffer.elem_offset)
        return View(buffer, pointer, shape, strides, first)

    def pointer(self, buffer: tir.Buffer) -> Pointer:
        """The data pointer of a buffer."""
        found = self.env.get(buffer.data)
        if not isinstance(found, Pointer):
            fail("RLX6032", f"buffer `{buffer.name}` has no memory", buffer.span)
        return found

    def load(self, e: prim.BufferLoad) -> Value:
        """The elements that a load names."""
        view = self.view(e.buffer)
        mask: Value = self.mask
        predicate: Value = None
        if e.predicate is not None:
            predicate = self(e.predicate)
            mask = self.active(predicate)
        offset = checked(self, view, e, mask)
        if view.buffer.dtype.lanes > 1:
            offset = lanes_at(offset, view.buffer.dtype.lanes)
        if not len(view.flat):  # nothing may be loaded, so nothing that takes part is
            return np.zeros(np.shape(offset), view.flat.dtype)[()]
        loaded = view.flat[offset]
        return loaded if predicate is None else np.where(predicate, loaded, np.zeros((), view.flat.dtype))

    def active(self, condition: Value) -> Value:
        """The instances that take part and for which `condition` holds."""
        return condition if self.mask is None else self.mask & condition


Evaluator: TypeAlias = Callable[[Frame, Any], Value]
EVAL: dict[type, Evaluator] = {}


def evaluates(*classes: type) -> Callable[[Evaluator], Evaluator]:
    """Enter the evaluator of these classes."""

    def enter(function: Evaluator) -> Evaluator:
        EVAL.update(dict.fromkeys(classes, function))
        return function

    return enter


def undefined(error: Undefined, e: PrimExpr) -> NoReturn:
    """Report an operation without a result at its place."""
    fail("RLX6033", f"{error} has no value", e.span)


# --- leaves and arithmetic --------------------------------------------------------------------------------------------
@evaluates(prim.Var, prim.SizeVar)
def _var(frame: Frame, e: prim.Var) -> Value:
    try:
        return frame.env[e]
    except KeyError:
        fail("RLX6032", f"the variable `{e.name}` has no value here", e.span)


@evaluates(prim.IntImm, prim.FloatImm)
def _constant(frame: Frame, e: prim.IntImm | prim.FloatImm) -> Value:
    return numeric.constant(e)


@evaluates(prim.StringImm)
def _string(frame: Frame, e: prim.StringImm) -> Value:
    return e.value


@evaluates(prim.Cast)
def _cast(frame: Frame, e: prim.Cast) -> Value:
    value = EVAL[e.value.__class__](frame, e.value)
    if e.of.is_handle:
        return value
    return numeric.cast(value, e.value.dtype, e.of)


@evaluates(
    prim.Add, prim.Sub, prim.Mul, prim.Div, prim.Mod, prim.FloorDiv, prim.FloorMod, prim.Min, prim.Max,
    prim.EQ, prim.NE, prim.LT, prim.LE, prim.GT, prim.GE,
)  # fmt: skip
def _binary(frame: Frame, e: prim.BinaryOp | prim.CmpOp) -> Value:
    a, b = e.a, e.b
    try:
        operation = numeric.binary(e.__class__, a.dtype.scalar)
    except Undefined as error:
        undefined(error, e)
    return operation(EVAL[a.__class__](frame, a), EVAL[b.__class__](frame, b))


@evaluates(prim.Not)
def _not(frame: Frame, e: prim.Not) -> Value:
    return np.logical_not(frame(e.a))


@evaluates(prim.And)
def _and(frame: Frame, e: prim.And) -> Value:
    a = frame(e.a)
    return _choose(frame, a, lambda: frame(e.b), lambda: np.False_)


@evaluates(prim.Or)
def _or(frame: Frame, e: prim.Or) -> Value:
    a = frame(e.a)
    return _choose(frame, a, lambda: np.True_, lambda: frame(e.b))


@evaluates(prim.Select)
def _select(frame: Frame, e: prim.Select) -> Value:
    condition, true_value, false_value = frame(e.condition), frame(e.true_value), frame(e.false_value)
    return numeric.select(condition, true_value, false_value)


def _choose(frame: Frame, condition: Value, then: Callable[[], Value], otherwise: Callable[[], Value]) -> Value:
    """One of two values, each computed for the instances that need it."""
    if not is_array(condition):
        return then() if condition else otherwise()
    outer = frame.mask
    taken, left = frame.active(condition), frame.active(~condition)
    try:
        if not np.any(left):
            frame.mask = taken
            return then()
        if not np.any(taken):
            frame.mask = left
            return otherwise()
        frame.mask = taken
        true_value = then()
        frame.mask = left
        return np.where(condition, true_value, otherwise())
    finally:
        frame.mask = outer


# --- vectors, let -----------------------------------------------------------------------------------------------------
@evaluates(prim.Ramp)
def _ramp(frame: Frame, e: prim.Ramp) -> Value:
    base, stride = frame(e.base), frame(e.stride)
    _known(e)
    steps = np.arange(e.lanes).astype(numeric.numpy_type(e.dtype))
    return np.ravel(base + np.multiply.outer(steps, stride)) if is_array(base) else base + steps * stride


@evaluates(prim.Broadcast)
def _broadcast(frame: Frame, e: prim.Broadcast) -> Value:
    _known(e)
    return np.tile(frame(e.value), e.lanes)


def _known(e: prim.Ramp | prim.Broadcast) -> None:
    if e.lanes < 0:
        fail("RLX6034", "the length of a scalable vector is that of a processor, which the interpreter is not", e.span)


@evaluates(prim.Shuffle)
def _shuffle(frame: Frame, e: prim.Shuffle) -> Value:
    lanes = np.concatenate([np.atleast_1d(frame(v)) for v in e.vectors])
    at = [frame.number(i) for i in e.indices]
    for index in at:
        if not 0 <= index < len(lanes):
            fail("RLX6030", f"lane {index} of a shuffle is out of range: the vectors have {len(lanes)} lanes", e.span)
    return lanes[at] if len(at) > 1 else lanes[at[0]]


@evaluates(prim.Let)
def _let(frame: Frame, e: prim.Let) -> Value:
    frame.env[e.var] = frame(e.value)
    return frame(e.body)


@evaluates(prim.Reduce)
def _reduce(frame: Frame, e: prim.Reduce) -> Value:
    fail("RLX6034", "a reduction expression has a meaning only inside a tensor computation, not when it runs", e.span)


# --- memory -----------------------------------------------------------------------------------------------------------
def checked(frame: Frame, view: View, e: Access, mask: Value) -> Any:
    """The offset in `view.flat` of the element that `e` names: an int, or an array for lanes or instances.

    Each index must lie in its dimension for all that `mask` (None: all) marks; the others get an offset in the memory.
    Raises RLX6030, which names the buffer, the index and the extent.
    """
    indices = [EVAL[i.__class__](frame, i) for i in e.indices]
    if len(indices) != len(view.shape):
        count = f"{len(view.shape)} dimensions, but is used with {len(indices)} indices"
        fail("RLX0301", f"`{view.buffer.name}` has {count}", e.span)
    if view.uniform and not any(is_array(i) for i in indices):
        return _checked_one(view, e, [int(i) for i in indices], mask)
    return _checked_many(view, e, [np.asarray(i, np.int64) for i in indices], mask)


def _checked_one(view: View, e: Access, at: list[int], mask: Value) -> int:
    for axis, (index, extent) in enumerate(zip(at, view.shape)):
        if not 0 <= index < extent:
            if mask is None or np.any(mask):
                _out_of_bounds(view, e, at, axis, True)
            return 0
    offset: int = view.offset(at)
    if not 0 <= offset < view.count:
        if mask is None or np.any(mask):
            _beyond(view, e)
        return 0
    return offset


def _checked_many(view: View, e: Access, at: list[Array], mask: Value) -> Array:
    taken: Any = True if mask is None else mask
    for axis, (index, extent) in enumerate(zip(at, view.shape)):
        bad = _both((index < 0) | (index >= extent), taken)
        if np.any(bad):
            _out_of_bounds(view, e, at, axis, bad)
    offset = np.asarray(view.offset(at))
    strayed = (offset < 0) | (offset >= view.count)
    if np.any(strayed):
        if np.any(_both(strayed, taken)):
            _beyond(view, e)
        offset = np.where(strayed, 0, offset)
    return offset


def _beyond(view: View, e: Access) -> NoReturn:
    fail("RLX6030", f"`{view.buffer.name}` reaches beyond its memory of {view.count} elements", e.span)


def _both(bad: Any, mask: Any) -> Any:
    """`bad` where `mask` holds. (A mask over lanes does not fit an index without lanes: then any lane counts.)"""
    if np.ndim(mask) > np.ndim(bad) and np.ndim(bad) == 0:
        return bad and bool(np.any(mask))
    return np.logical_and(bad, mask)


def _out_of_bounds(view: View, e: Access, at: Sequence[Any], axis: int, bad: Any) -> NoReturn:
    """Report the first index, in the order of the loops, that is out of range."""
    shape = np.broadcast_shapes(np.shape(bad), *[np.shape(i) for i in at])
    # The outermost loop is the last axis.
    first = tuple(np.argwhere(np.broadcast_to(bad, shape).T)[0][::-1])
    numbers = [int(np.broadcast_to(i, shape)[first]) for i in at]
    extent = int(np.broadcast_to(view.shape[axis], shape)[first])
    element = f"`{view.buffer.name}[{', '.join(map(str, numbers))}]`"
    where = f"index {numbers[axis]} in dimension {axis}, whose extent is {extent}"
    fail("RLX6030", f"{element} is out of bounds: {where}", e.span or view.buffer.span, label="out of bounds here")


def lanes_at(offset: Any, lanes: int) -> Any:
    """The offsets of all lanes of the vectors at `offset`."""
    return (np.asarray(offset)[..., None] * lanes + np.arange(lanes)).reshape(-1)


@evaluates(prim.BufferLoad)
def _load(frame: Frame, e: prim.BufferLoad) -> Value:
    return frame.load(e)


# --- calls ------------------------------------------------------------------------------------------------------------
SPECIAL: dict[str, Callable[[Frame, prim.Call], Value]] = {}


def special(*names: str) -> Callable[[Callable[[Frame, prim.Call], Value]], Callable[[Frame, prim.Call], Value]]:
    """Enter the evaluator of intrinsics that need the frame."""

    def enter(function: Callable[[Frame, prim.Call], Value]) -> Callable[[Frame, prim.Call], Value]:
        SPECIAL.update(dict.fromkeys(names, function))
        return function

    return enter


@evaluates(prim.Call)
def _call(frame: Frame, e: prim.Call) -> Value:
    if isinstance(e.op, GlobalVar):
        result = frame.host.call_prim_func(e.op, [frame(a) for a in e.args], e.span)
        return numeric.integer(0, prim.INT32) if result is None else result
    pure = PURE.get(e.op)
    if pure is not None:
        args = [frame(a) for a in e.args]
        try:
            return pure(e.of, tuple([a.dtype for a in e.args]), *args)
        except Undefined as error:
            undefined(error, e)
    handler = SPECIAL.get(e.op)
    if handler is None:
        what = "cannot be interpreted" if e.op in INTRINSICS else "is no intrinsic"
        fail("RLX6034", f"`T.{e.op}` {what}", e.span)
    return handler(frame, e)


@special("if_then_else")
def _if_then_else(frame: Frame, e: prim.Call) -> Value:
    return _choose(frame, frame(e.args[0]), lambda: frame(e.args[1]), lambda: frame(e.args[2]))
