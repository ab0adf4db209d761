"""Which loops may compute all their iterations at once.

Those whose iterations do not meet in memory: no element that one iteration stores to is loaded or stored by another.
That is decided by looking: the offsets of all accesses to written memory are computed for every iteration, and
compared. What the comparison covers is more than what would run (conditions are taken to hold, bounds that differ are
taken at their largest), so an answer of yes can be relied on; where offsets depend on written memory, or when there are
too many, the answer is no.

Memory that the body allocates belongs to one iteration and needs no comparison.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.interp import numeric
from relaxlang.interp.expr import Frame
from relaxlang.interp.intrinsics import PURE
from relaxlang.interp.memory import Array, View
from relaxlang.interp.numeric import Value
from relaxlang.ir import prim, tir
from relaxlang.ir.prim import PrimExpr
from relaxlang.ir.visit import free_vars, walk

FEWEST = 4  # iterations; below, numpy costs more than it saves
MOST = 1 << 24  # instances, offsets, or elements of private memory

Places: TypeAlias = "dict[tuple[tir.Buffer, tuple[PrimExpr, ...]], None]"

_IN_ORDER = (tir.While, tir.Break, tir.Continue, tir.MatchBufferRegion, tir.AllocConst, tir.BufferRealize)
_CALLS = frozenset(PURE) | {"if_then_else", "assume"}


class _Unknown(Exception):
    """Iterations cannot be compared: an offset depends on memory that the loop writes, or the body needs an order."""


class _Body:
    """What a loop's body does: its accesses, and how its variables get their values.

    Raises `_Unknown` for a body with statements or calls that need their order.
    """

    def __init__(self, loop: tir.For) -> None:
        self.sources: dict[prim.Var, PrimExpr | tir.For] = {}
        self.stores: Places = {}
        self.loads: Places = {}
        self.private: dict[prim.Var, tuple[PrimExpr, ...]] = {}
        self.declared: set[tir.Buffer] = set()
        for node in walk(loop.body):
            self._note(node)
        self._drop_private()
        if not self._stores_depend_on(loop.loop_var):
            raise _Unknown

    def _note(self, node: Any) -> None:
        if isinstance(node, _IN_ORDER) or (isinstance(node, PrimExpr) and node.dtype.lanes > 1):
            raise _Unknown
        if isinstance(node, prim.Call) and node.op not in _CALLS:
            raise _Unknown
        if isinstance(node, tir.AttrStmt) and node.key == "thread_extent":
            raise _Unknown
        if isinstance(node, tir.For):
            self._source(node.loop_var, node)
        elif isinstance(node, (tir.LetStmt, prim.Let)):
            self._source(node.var, node.value)
        elif isinstance(node, tir.BlockRealize):
            for axis, value in zip(node.block.iter_vars, node.iter_values):
                self._source(axis.var, value)
        elif isinstance(node, tir.Block):
            self.private.update({buffer.data: buffer.shape for buffer in node.alloc_buffers})
        elif isinstance(node, tir.Allocate):
            self.private[node.buffer_var] = node.extents
        elif isinstance(node, tir.DeclBuffer):
            self.declared.add(node.buffer)
        elif isinstance(node, tir.BufferStore):
            self.stores[node.buffer, node.indices] = None
        elif isinstance(node, prim.BufferLoad):
            self.loads[node.buffer, node.indices] = None

    def _source(self, var: prim.Var, source: PrimExpr | tir.For) -> None:
        if var in self.sources:  # two meanings of one variable
            raise _Unknown
        self.sources[var] = source

    def _drop_private(self) -> None:
        self.stores = {key: None for key in self.stores if key[0].data not in self.private}
        # A load of what the same iteration stores to tells nothing new.
        kept = [key for key in self.loads if key[0].data not in self.private and key not in self.stores]
        self.loads = dict.fromkeys(kept)

    def _stores_depend_on(self, var: prim.Var) -> bool:
        """Whether each store's place depends on a variable; what does not is one element for all iterations."""
        moving = {var}
        for bound, source in self.sources.items():
            parts = (source.min, source.extent, source.step) if isinstance(source, tir.For) else (source,)
            if not moving.isdisjoint(free_vars(parts)):
                moving.add(bound)
        for buffer, indices in self.stores:
            offset = () if buffer.elem_offset is None else (buffer.elem_offset,)
            places = (*indices, *buffer.strides, *buffer.shape, *offset)
            if moving.isdisjoint(free_vars(places)):
                return False
        return True


class _Values(dict[prim.Var, Any]):
    """The variables of a body, each computed for all iterations when it is first asked for."""

    def __init__(self, frame: Frame, body: _Body) -> None:
        super().__init__(frame.env)
        for var in (*body.sources, *body.private):
            self.pop(var, None)
        self.frame = frame
        self.sources = body.sources

    def __missing__(self, var: prim.Var) -> Any:
        source = self.sources[var]
        value = self.frame(source) if isinstance(source, PrimExpr) else self._axis(source)
        self[var] = value
        return value

    def _axis(self, loop: tir.For) -> Value:
        """The values of a loop variable, along a new first axis."""
        frame = self.frame
        first, count, step = frame.number(loop.min), frame.number(loop.extent), frame.number(loop.step)
        most = int(np.max(count, initial=0))
        if most > MOST or len(frame.grid) > 30:
            raise _Unknown
        turns = np.arange(most).reshape(most, *[1] * len(frame.grid))
        frame.grid = (most, *frame.grid)
        return np.asarray(first + turns * step).astype(numeric.numpy_type(loop.loop_var.dtype))


class _Survey(Frame):
    """A frame in which offsets are computed for all iterations; nothing is checked, and written memory is unknown."""

    def __init__(self, frame: Frame, body: _Body) -> None:
        super().__init__(frame.host, {}, frame.grid)
        self.env = _Values(frame, body)
        self.env.frame = self
        self.views = {buffer: view for buffer, view in frame.views.items() if buffer not in body.declared}
        self.private = body.private
        self.written = {self.pointer(buffer).memory for buffer, _ in body.stores}

    def load(self, e: prim.BufferLoad) -> Value:
        if e.buffer.data in self.private:
            raise _Unknown
        view = self.view(e.buffer)
        if view.pointer.memory in self.written:
            raise _Unknown
        offset = view.offset([self.number(i) for i in e.indices])
        if not len(view.flat):
            return np.zeros(np.shape(offset), view.flat.dtype)[()]
        return view.flat[np.clip(offset, 0, len(view.flat) - 1)]


def independent(frame: Frame, loop: tir.For, first: int, count: int, step: int) -> bool:
    """Whether the `count` iterations of a loop may be computed at once, beside the instances of the frame's grid."""
    instances = count * math.prod(frame.grid)
    if not frame.host.vectorize or count < FEWEST or instances > MOST or loop in frame.sequential:
        return False
    try:
        body = frame.bodies.get(loop) or frame.bodies.setdefault(loop, _Body(loop))
        survey = _Survey(frame, body)
        values = (first + step * np.arange(count)).astype(numeric.numpy_type(loop.loop_var.dtype))
        survey.env[loop.loop_var] = values.reshape(count, *[1] * len(frame.grid))
        survey.grid = (count, *frame.grid)
        owner = np.arange(instances).reshape(survey.grid)
        if _disjoint(survey, body, owner) and _affordable(survey, body, instances):
            return True
    except (_Unknown, DiagnosticError):  # whatever is wrong is reported when the loop runs, if it comes to that
        pass
    frame.sequential.add(loop)
    return False


def _affordable(survey: _Survey, body: _Body, instances: int) -> bool:
    """Whether the private memory of all iterations is of a reasonable size."""
    return all(
        math.prod([int(np.max(survey.number(n), initial=0)) for n in shape]) * instances <= MOST
        for shape in body.private.values()
    )


def _disjoint(survey: _Survey, body: _Body, owner: Array) -> bool:
    """Whether no iteration touches an element that another one stores to."""
    views: dict[tir.Buffer, View] = {buffer: survey.view(buffer) for buffer, _ in (*body.stores, *body.loads)}
    for memory in survey.written:
        stores = [key for key in body.stores if views[key[0]].pointer.memory is memory]
        loads = [key for key in body.loads if views[key[0]].pointer.memory is memory]
        flat = views[stores[0][0]].flat
        if any(views[buffer].flat is not flat for buffer, _ in (*stores, *loads)):
            return False  # one memory seen as two types
        stored = [_touched(survey, views[buffer], indices, owner) for buffer, indices in stores]
        offsets = np.concatenate([at for at, _ in stored])
        owners = np.concatenate([who for _, who in stored])
        order = np.argsort(offsets, kind="stable")
        offsets, owners = offsets[order], owners[order]
        if np.any((offsets[1:] == offsets[:-1]) & (owners[1:] != owners[:-1])):
            return False
        for buffer, indices in loads:
            at, who = _touched(survey, views[buffer], indices, owner)
            place = np.minimum(np.searchsorted(offsets, at), max(len(offsets) - 1, 0))
            if len(offsets) and np.any((offsets[place] == at) & (owners[place] != who)):
                return False
    return True


def _touched(survey: _Survey, view: View, indices: Sequence[PrimExpr], owner: Array) -> tuple[Array, Array]:
    """The offsets of an access that lie within its buffer, in the order of the loops, and whose each is."""
    at = [np.asarray(survey.number(i)) for i in indices]
    offset = np.asarray(view.offset(at), np.int64)
    inside = (offset >= 0) & (offset < view.count)
    for index, extent in zip(at, view.shape):
        inside = inside & (index >= 0) & (index < extent)
    if math.prod(np.broadcast_shapes(offset.shape, inside.shape, owner.shape)) > MOST:
        raise _Unknown
    offset, inside, owner = np.broadcast_arrays(offset, inside, owner)
    return offset.T[inside.T], owner.T[inside.T]
