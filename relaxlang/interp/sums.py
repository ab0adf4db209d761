"""Long sums of floats, added up as numpy does: by halves, so that they keep their digits.

The order in which a reduction block adds is not part of its meaning: code generation and schedules are free to choose
one, and the interpreter chooses one that is both exact and fast.
"""

from __future__ import annotations

import math

import numpy as np

from relaxlang.base.record import record
from relaxlang.interp import numeric
from relaxlang.interp.expr import Frame
from relaxlang.interp.memory import Array
from relaxlang.interp.numeric import is_array
from relaxlang.interp.stmt import execute
from relaxlang.ir import prim, tir
from relaxlang.ir.visit import free_vars, walk

FEWEST = 256
"""Terms from which the order matters."""
MOST = 1 << 24


@record
class _Sum:
    """Loops whose variables are reduction axes alone, around a block whose store adds `term` to one element."""

    loops: tuple[tir.For, ...]
    realize: tir.BlockRealize
    store: tir.BufferStore
    term: prim.PrimExpr


def add_up(frame: Frame, loop: tir.For) -> bool:
    """Run loops around a block that adds a term to one element, all terms at once; whether that is what they are."""
    if frame.mask is not None or not frame.host.vectorize:
        return False
    found = _sum(loop)
    if found is None:
        return False
    bounds = [(frame.number(s.min), frame.number(s.extent), frame.number(s.step)) for s in found.loops]
    if any(is_array(n) for bound in bounds for n in bound):
        return False
    counts = [count for _, count, _ in bounds]
    if min(counts) < 1 or not FEWEST <= math.prod(counts) <= MOST // max(1, math.prod(frame.grid)):
        return False
    # The first term runs as it is written, with the block's init and all checks.
    for one, (first, _, _) in zip(found.loops, bounds):
        frame.env[one.loop_var] = numeric.integer(first, one.loop_var.dtype)
    execute(frame, found.realize)
    terms = _terms(frame, found, bounds)
    for one, (first, _, _) in zip(found.loops, bounds):
        frame.env[one.loop_var] = numeric.integer(first, one.loop_var.dtype)
    _bind_axes(frame, found.realize)
    # numpy adds by halves along contiguous memory.
    total = np.add.reduce(np.ascontiguousarray(np.moveaxis(terms[1:], 0, -1)), axis=-1)
    rest = prim.Var("rest", found.term.dtype)
    frame.env[rest] = total if frame.grid else total[()]
    store = found.store
    execute(frame, store.replace(value=prim.Add(prim.BufferLoad(store.buffer, store.indices), rest)))
    return True


def _terms(frame: Frame, found: _Sum, bounds: list[tuple[int, int, int]]) -> Array:
    """All terms, along a new first axis."""
    outer = frame.grid
    try:
        for one, (first, count, step) in zip(found.loops, bounds):
            values = (first + step * np.arange(count)).astype(numeric.numpy_type(one.loop_var.dtype))
            frame.env[one.loop_var] = values.reshape(count, *[1] * len(frame.grid))
            frame.grid = (count, *frame.grid)
        _bind_axes(frame, found.realize)
        terms = np.broadcast_to(np.asarray(frame(found.term)), frame.grid)
    finally:
        frame.grid = outer
    return terms.reshape(-1, *outer)


def _bind_axes(frame: Frame, realize: tir.BlockRealize) -> None:
    for axis, value in zip(realize.block.iter_vars, realize.iter_values):
        frame.env[axis.var] = frame(value)


def _sum(loop: tir.For) -> _Sum | None:
    loops: list[tir.For] = []
    body: tir.Stmt = loop
    while isinstance(body, tir.For):
        loops.append(body)
        body = body.body
    if not isinstance(body, tir.BlockRealize) or not isinstance(body.predicate, prim.IntImm):
        return None
    block, store = body.block, body.block.body
    if block.alloc_buffers or block.match_buffers or not isinstance(store, tir.BufferStore) or store.predicate:
        return None
    variables, moving = {one.loop_var for one in loops}, set()
    for axis, value in zip(block.iter_vars, body.iter_values):
        if not variables.isdisjoint(free_vars(value)):
            if axis.kind != "reduce":
                return None
            moving.add(axis.var)
    term = _term(store)
    bounds = tuple(e for one in loops for e in (one.min, one.extent, one.step))
    if term is None or not (moving | variables).isdisjoint(free_vars(store.indices)):
        return None
    if not variables.isdisjoint(free_vars(bounds)):  # as in a triangle
        return None
    return _Sum(tuple(loops), body, store, term)


def _term(store: tir.BufferStore) -> prim.PrimExpr | None:
    """What a store adds to the float32 or float64 where it stores to."""
    value, of = store.value, store.value.dtype
    if not isinstance(value, prim.Add) or not of.is_float or of.bits < 32 or of.lanes > 1:
        return None
    for old, new in ((value.a, value.b), (value.b, value.a)):
        if isinstance(old, prim.BufferLoad) and old.buffer is store.buffer and old.indices == store.indices:
            loads = [n for n in walk(new) if isinstance(n, prim.BufferLoad)]
            calls = [n for n in walk(new) if isinstance(n, prim.Call) and not isinstance(n.op, str)]
            return None if calls or any(n.buffer.data is store.buffer.data for n in loads) else new
    return None
