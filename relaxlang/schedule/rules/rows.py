"""Softmax, normalisations and their like: stages over the same rows, run row by row so that a row stays in the
cache."""

from __future__ import annotations

from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.ir.prim import BufferLoad, Var
from relaxlang.ir.tir import BlockRealize, IterKind
from relaxlang.ir.visit import free_vars
from relaxlang.schedule.checks import consumers, is_output
from relaxlang.schedule.rules.analysis import constant, is_plain, loads_of, stride, update_of
from relaxlang.schedule.rules.lanes import try_in_lanes
from relaxlang.schedule.rules.processor import Processor
from relaxlang.schedule.schedule import Schedule


def schedule_rows(sch: Schedule, scope: str, processor: Processor) -> bool:
    """Compute all blocks in the outer loops of the last one, as many of them as work; whether that was possible."""
    return schedule_row_stages(sch, [n for n in sch.state.blocks if n != scope], processor)


def schedule_row_stages(sch: Schedule, names: list[str], processor: Processor) -> bool:
    """The same for some blocks that follow each other, of which others use the last one's result alone."""
    state = sch.state
    if len(names) < 2 or not any(state.blocks[n].block.init is not None for n in names):
        return False
    if any(not is_plain(state, state.blocks[n]) for n in names):
        return False
    last = names[-1]
    if not all(_along(state.blocks[n]) for n in names):
        return False
    for name in names[:-1]:
        users = {one.block.name_hint for one in consumers(state, state.blocks[name])}
        if is_output(state, state.blocks[name]) or not users <= set(names):
            return False
    depth = sum(a.kind == "spatial" for a in state.blocks[last].block.iter_vars)
    for rows in range(depth, 0, -1):
        trial = sch.copy()
        if _at(trial, names, last, rows):
            for name in names:
                try_in_lanes(trial, name, processor)
            sch.adopt(trial)
            return True
    return False


def _along(realize: BlockRealize) -> bool:
    """Whether a reduction (if it is one) runs along memory in what it reads."""
    update = update_of(realize)
    if update is None:
        return realize.block.init is None
    axes = [a.var for a in realize.block.iter_vars if a.kind == "reduce"]
    loads = loads_of(update.value)
    return all(any(stride(one.buffer, one.indices, v) == "unit" for v in axes) for one in loads if _uses(one, axes))


def _uses(load: BufferLoad, axes: list[Var]) -> bool:
    return bool(set(axes) & set(free_vars(load.indices)))


def _at(sch: Schedule, names: list[str], last: str, rows: int) -> bool:
    """Move all blocks into the first `rows` loops of the last one, unless that repeats work."""
    loops = sch.get_loops(last)[:rows]
    used = sum((constant(sch.get(s).extent) or 2) > 1 for s in loops)
    whole = {n: _long_axes(sch, n, "spatial") for n in names[:-1]}
    if any(count < used for count in whole.values()):
        return False
    before = {n: _long_axes(sch, n, "reduce") for n in names}
    try:
        for name in reversed(names[:-1]):
            sch.compute_at(name, loops[-1])
    except DiagnosticError:  # its preconditions are the question here
        return False
    for name in names[:-1]:
        inner = sch.get_loops(name)[rows:]
        kept = sum((constant(sch.get(s).extent) or 2) > 1 for s in inner) - before[name]
        if whole[name] - max(kept, 0) < used:  # a row loop that is not one of the block's: it would repeat its work
            return False
    line = sch.fuse(*loops) if len(loops) > 1 else loops[0]
    if (constant(sch.get(line).extent) or 2) > 1:
        sch.parallel(line)
    return True


def _long_axes(sch: Schedule, name: str, kind: IterKind) -> int:
    """How many axes of a kind have more than one value."""
    axes = sch.state.blocks[name].block.iter_vars
    return sum(a.kind == kind and (constant(a.dom.extent) or 2) > 1 for a in axes)
