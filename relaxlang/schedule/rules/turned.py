"""Sums of products whose vectors lie across the memory of the result, as those of convolutions along their filters do.

Taken out of registers element by element, the results would cost as much as many products. Instead each row of them is
kept with the vectors along memory, and brought into the order of the result in squares that are transposed in
registers; what follows is computed for the row, along memory too."""

from __future__ import annotations

from relaxlang.arith.index_map import IndexMap
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.ir.prim import INT64, IntImm, PrimExpr, Var, cast
from relaxlang.ir.tir import BlockRealize, Buffer, BufferRegion, BufferStore, For, Range, Stmt
from relaxlang.schedule.access import read_buffers, written_buffers
from relaxlang.schedule.checks import consumers, is_output
from relaxlang.schedule.rules.analysis import constant, is_plain
from relaxlang.schedule.rules.contraction import schedule_contraction
from relaxlang.schedule.rules.factors import Contraction, analyse, tile
from relaxlang.schedule.rules.processor import Processor
from relaxlang.schedule.rules.statements import block, load, turned_copies
from relaxlang.schedule.schedule import Schedule
from relaxlang.schedule.trace import LoopRV

MOST_TERMS = 1024
"""Products of a result from which on it hardly matters how it is stored."""
SHORTEST = 8
"""Results of a row from which on squares pay."""


def schedule_turned(sch: Schedule, name: str, processor: Processor) -> bool:
    """Schedule the block when it is a contraction with vectors across the memory of its result; whether it was."""
    state = sch.state
    realize = state.blocks[name]
    store = realize.block.body
    if not is_plain(state, realize) or not isinstance(store, BufferStore) or realize.block.init is None:
        return False
    of = store.buffer.dtype
    found = analyse(realize, processor.lanes(of.itemsize), processor) if of.is_float and of.bits >= 32 else None
    if found is None or not _is_turned(realize, store, found, processor):
        return False
    turned = _with_rows(sch, name, found, processor)
    if not schedule_contraction(sch, name, processor):
        return False
    tail = sch.get(sch.get_producers(turned)[0]).name_hint
    row = sch.get_loops(tail)[len(found.others)]  # the loop over the only panel, and those over whole rows
    sch.reverse_compute_at(turned, row)
    place_after(sch, turned, row, processor)
    return True


def _is_turned(realize: BlockRealize, store: BufferStore, found: Contraction, processor: Processor) -> bool:
    """Whether memory of the result runs along the rows of the tile, in rows long enough, of few products, which one
    panel of a constant makes."""
    axes = realize.block.iter_vars
    length, count = (constant(axes[k].dom.extent) for k in (found.row, found.vector))
    spatial = {a.var for a in axes if a.kind == "spatial"}
    if not found.lifted or not found.others or length is None or count is None or set(store.indices) != spatial:
        return False
    terms = 1
    for k in found.reduce:
        terms *= constant(axes[k].dom.extent) or MOST_TERMS + 1
    lanes = processor.lanes(store.buffer.dtype.itemsize)
    whole = tile(length, count, lanes, processor)[1] * lanes >= count
    return whole and length >= SHORTEST and terms <= MOST_TERMS and store.indices[-1] is axes[found.row].var


def _with_rows(sch: Schedule, name: str, found: Contraction, processor: Processor) -> str:
    """Have the block write rows with the vectors last, and another bring these into the order of the result; the
    latter's name."""
    block_ = sch.state.blocks[name].block
    axes = [a.var for a in block_.iter_vars]
    store = block_.body
    assert isinstance(store, BufferStore)
    row, vector = axes[found.row], axes[found.vector]
    order = [i for i in store.indices if isinstance(i, Var)]
    copy: str = sch.get(sch.cache_write(name, 0, "global")).name_hint
    names = {v: Var(v.name, INT64) for v in order}
    rest = [v for v in order if v is not vector]
    places = tuple(names[v] for v in (*rest, vector))
    sch.transform_layout(name, ("write", 0), IndexMap(tuple(names[v] for v in order), places))
    state = sch.state
    realize = state.blocks[copy]
    target, rows = written_buffers(realize)[0], read_buffers(realize)[0]
    extents = {a.var: cast(a.dom.extent, INT64) for a in block_.iter_vars}
    outer = [v for v in rest if v is not row]
    turned = _turn(copy, target, rows, [order, rest, outer], (row, vector), extents, processor)
    changed = state.replace({state.loops_around(realize)[0]: turned})
    sch.adopt(Schedule.of_sound(changed.func))
    return copy


def _turn(
    name: str, target: Buffer, rows: Buffer, orders: list[list[Var]], turned: tuple[Var, Var],
    extents: dict[Var, PrimExpr], processor: Processor,
) -> Stmt:  # fmt: skip
    """The loops that bring rows into the order of the result. `orders`: the axes of the result, those of the rows but
    for the vectors, and those that the loops run over; `turned`: the axis of a row and that of the vectors."""
    order, rest, outer = orders
    row, vector = turned
    loops = {v: Var(v.name.removeprefix("v_"), INT64) for v in outer}
    count = constant(extents[vector])
    assert count is not None

    def copy(w: PrimExpr, k: PrimExpr) -> Stmt:
        at: dict[Var, PrimExpr] = {**loops, row: w, vector: k}
        return BufferStore(target, load(rows, *(at[v] for v in rest), k), tuple(at[v] for v in order))

    def region(of: Buffer, axes: list[Var]) -> BufferRegion:
        whole = [Range(loops[v], IntImm(INT64, 1)) if v in loops else Range(IntImm(INT64, 0), extents[v]) for v in axes]
        return BufferRegion(of, tuple(whole))

    lanes = processor.lanes(target.dtype.itemsize)
    body = turned_copies(extents[row], count, lanes, copy, to_lines=True)
    made = block(
        name, {loops[v]: extents[v] for v in outer}, (region(rows, [*rest, vector]),), (region(target, order),), body
    )
    for v in reversed(outer):
        made = For(loops[v], IntImm(INT64, 0), extents[v], "serial", made)
    return made


def place_after(sch: Schedule, name: str, loop: LoopRV, processor: Processor) -> None:
    """Compute the only block that uses what a block makes in a loop around that, along memory, where it can be."""
    state = sch.state
    users = [] if is_output(state, state.blocks[name]) else consumers(state, state.blocks[name])
    if len(users) != 1 or not is_plain(state, users[0]) or not isinstance(users[0].block.body, BufferStore):
        return
    user, of = users[0].block.name_hint, users[0].block.body.buffer.dtype
    trial = sch.copy()
    try:
        trial.reverse_compute_at(user, loop)
    except DiagnosticError:  # its preconditions are the question here
        return
    around, lanes = trial.get_loops(user), processor.lanes(of.itemsize)
    line = around[-1]
    if trial.get(line).loop_var is not trial.get(loop).loop_var:
        extent = constant(trial.get(line).extent)
        if extent is None or extent > lanes:
            line = trial.split(line, [None, lanes])[1]
        trial.vectorize(line)
    sch.adopt(trial)
