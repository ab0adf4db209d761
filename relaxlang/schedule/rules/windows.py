"""Reductions over small windows that move along memory by more than an element: pooling with a stride."""

from __future__ import annotations

from relaxlang.ir.prim import BufferLoad, Var
from relaxlang.ir.tir import BlockRealize
from relaxlang.ir.visit import free_vars
from relaxlang.schedule.rules.analysis import constant, loads_of, step, stride, update_of
from relaxlang.schedule.rules.processor import Processor
from relaxlang.schedule.schedule import Schedule

MOST = 32
"""The most elements of a window that are written out."""


def schedule_windows(sch: Schedule, name: str, processor: Processor) -> bool:
    """Compute a vector of neighbouring results at a time, with the window written out; whether the block is such a
    reduction in plain loops, spatial ones first."""
    realize = sch.state.blocks[name]
    axes = realize.block.iter_vars
    columns = [k for k, a in enumerate(axes) if a.kind == "spatial"]
    size = 1
    for axis in axes[len(columns) :]:
        size *= constant(axis.dom.extent) or MOST + 1
    if not columns or size > MOST or not _moves_by_two(realize, axes[columns[-1]].var):
        return False
    update = update_of(realize)
    assert update is not None
    lanes = processor.lanes(max(update.store.buffer.dtype.itemsize, 4))
    extent = constant(axes[columns[-1]].dom.extent)
    if extent is not None and extent < lanes // 2:
        return False
    idle = lanes if extent is None else -extent % lanes
    width = max(lanes // 2, 4) if idle >= lanes // 2 else lanes
    copy = sch.cache_write(name, 0, "local")
    loops = sch.get_loops(name)
    piece, vector = sch.split(loops[columns[-1]], [None, width])
    window = loops[len(columns) :]
    sch.reorder(piece, *window, vector)
    sch.reverse_compute_at(copy, piece)
    sch.vectorize(sch.get_loops(copy)[-1])
    sch.vectorize(vector)
    for one in window:
        sch.unroll(one)
    sch.decompose_reduction(name, window[0])
    for one in [*loops[: len(columns) - 1], piece]:
        if (constant(sch.get(one).extent) or 2) > 1:
            sch.parallel(one)
            break
    return True


def _moves_by_two(realize: BlockRealize, column: Var) -> bool:
    """Whether results lie along memory with an axis, and what they are made of two elements apart."""
    update = update_of(realize)
    if update is None or stride(update.store.buffer, update.store.indices, column) != "unit":
        return False
    loads = [one for one in loads_of(update.value) if column in free_vars(one.indices)]
    return bool(loads) and all(_step(one, column) == 2 for one in loads)


def _step(load: BufferLoad, column: Var) -> int:
    """How many elements apart an access to a row-major buffer is when `column` goes up by one; 0 when it varies."""
    *outer, last = load.indices
    if column in free_vars(tuple(outer)) or load.buffer.strides:
        return 0
    return step(last, column) or 0
