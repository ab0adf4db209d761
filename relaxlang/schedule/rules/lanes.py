"""Vectors along memory: elementwise lines, and reductions with a partial result for each lane of several vectors."""

from __future__ import annotations

from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.ir.prim import Var
from relaxlang.ir.tir import BlockRealize, BufferStore
from relaxlang.schedule.rules.analysis import constant, loads_of, loop_of, stride, update_of
from relaxlang.schedule.rules.processor import Processor
from relaxlang.schedule.schedule import Schedule
from relaxlang.schedule.trace import LoopRV

SEVERAL = 4
"""Vectors that are computed at a time: as many as it takes to hide the latency of an addition."""
MOST_LANES = 64
WASTE = 16
"""What part of a line the lanes that its last vectors leave idle may be."""


def width(extent: int | None, lanes: int) -> int:
    """How many elements of a line are computed at a time: several vectors where little is left over, 0 for a line that
    is shorter than a vector."""
    if extent is None:
        return min(lanes * SEVERAL, MOST_LANES)
    for several in (SEVERAL, SEVERAL // 2, 1):
        size = min(lanes * several, MOST_LANES)
        padded = -(-extent // size) * size
        if size <= extent and (several == 1 or (padded - extent) * WASTE <= extent):
            return size
    return 0


def try_in_lanes(sch: Schedule, name: str, processor: Processor) -> None:
    """Put the innermost loop of a block in vector form where that is possible."""
    trial = sch.copy()
    try:
        applied = compute_in_lanes(trial, name, processor)
    except DiagnosticError:  # the preconditions of primitives are the question here
        return
    if applied:
        sch.adopt(trial)


def compute_in_lanes(sch: Schedule, name: str, processor: Processor) -> bool:
    """Put the innermost loop of a block, along which it reads and writes memory, in vector form; whether it did.

    A reduction gets a partial result for each lane, and these are combined in the end.
    """
    realize = sch.state.blocks[name]
    line = sch.get_loops(name)[-1]
    var = _axis(realize, sch.get(line).loop_var)
    if var is None or not _along_memory(realize, var) or loop_of(sch.state, realize, var) is None:
        return False
    store = realize.block.body
    assert isinstance(store, BufferStore)
    lanes = processor.lanes(max(store.buffer.dtype.itemsize, 4))
    size = width(constant(sch.get(line).extent), lanes)
    if size <= 1:
        return False
    if realize.block.init is None:
        _, vector = sch.split(line, [None, size])
        sch.vectorize(vector)
        return True
    _partial_results(sch, name, line, size, store.buffer.ndim)
    return True


def _axis(realize: BlockRealize, loop_var: Var) -> Var | None:
    """The axis that a loop alone drives."""
    return next((a.var for a, v in zip(realize.block.iter_vars, realize.iter_values) if v is loop_var), None)


def _along_memory(realize: BlockRealize, axis: Var) -> bool:
    """Whether a block moves along memory with an axis: in what it stores, or (a reduction) in what it reads."""
    store = realize.block.body
    if not isinstance(store, BufferStore) or store.buffer.dtype.lanes > 1:
        return False
    if realize.block.init is None:
        moves = stride(store.buffer, store.indices, axis) == "unit"
        reads = loads_of(store.value)
    else:
        update = update_of(realize)
        wide = store.buffer.dtype.bits >= 32 and not store.buffer.dtype.is_handle
        if update is None or not wide:
            return False
        reads = loads_of(update.value)
        moves = any(stride(one.buffer, one.indices, axis) == "unit" for one in reads)
    return moves and all(stride(one.buffer, one.indices, axis) != "strided" for one in reads)


def _partial_results(sch: Schedule, name: str, line: LoopRV, size: int, ndim: int) -> None:
    """Partial results of a reduction to `ndim` dimensions whose innermost loop is `line`: they stay in registers."""
    _, lane = sch.split(line, [None, size])
    partial = sch.rfactor(lane, ndim)
    sch.set_scope(partial, 0, "local")
    shared = {sch.get(one).loop_var for one in sch.get_loops(partial)}
    *own, _ = (one for one in sch.get_loops(name) if sch.get(one).loop_var not in shared)
    if own:  # for each result on its own
        sch.compute_at(partial, own[-1])
    realize = sch.state.blocks[sch.get(partial).name_hint]
    loops = {sch.get(one).loop_var: one for one in sch.get_loops(partial)}
    driven = [(axis, loops[v]) for axis, v in zip(realize.block.iter_vars, realize.iter_values) if v in loops]
    lane = driven[0][1]  # the first axis of what `rfactor` makes
    reduce = [loop for axis, loop in driven if axis.kind == "reduce"]
    sch.reorder(*reduce, lane)
    sch.vectorize(lane)
    sch.decompose_reduction(partial, (reduce or [lane])[0])
    sch.decompose_reduction(name, sch.get_loops(name)[-1])
