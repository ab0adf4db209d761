"""Reductions: along memory row by row, across memory in sweeps over several rows, to few values in partial results."""

from __future__ import annotations

from relaxlang.schedule.rules.analysis import constant, is_plain, loads_of, stride, update_of
from relaxlang.schedule.rules.lanes import try_in_lanes
from relaxlang.schedule.rules.processor import Processor
from relaxlang.schedule.rules.windows import schedule_windows
from relaxlang.schedule.schedule import Schedule
from relaxlang.schedule.trace import LoopRV

SWEEP = 8
"""Rows that a sweep adds at once."""
VECTORS = 2
"""Vectors of each row that a sweep takes at a time."""
COLUMNS = 4096
"""Columns of a sweep: their sums stay in the first-level cache."""
FEW = 8
"""Up to so many results, threads share the reduction itself."""
MOST_LANES = 64
CHUNK = 1 << 15
"""Elements of a partial result."""


def schedule_reduction(sch: Schedule, name: str, processor: Processor) -> bool:
    """Schedule a block with a reduction in plain loops; whether it did."""
    realize = sch.state.blocks[name]
    update = update_of(realize)
    if update is None or not is_plain(sch.state, realize):
        return False
    axes = realize.block.iter_vars
    spatial = [k for k, a in enumerate(axes) if a.kind == "spatial"]
    reduce = [k for k, a in enumerate(axes) if a.kind == "reduce"]
    if not reduce or spatial + reduce != list(range(len(axes))):
        return False
    loads = loads_of(update.value)
    for k in reversed(spatial):
        var = axes[k].var
        extent = constant(axes[k].dom.extent)
        if extent is not None and extent < 4:
            continue
        if stride(update.store.buffer, update.store.indices, var) != "unit":
            break
        if all(stride(one.buffer, one.indices, var) != "strided" for one in loads):
            lanes = processor.lanes(update.store.buffer.dtype.itemsize)
            _sweep(sch, name, k, [s for s in spatial if s != k], reduce, lanes)
            return True
    windows = sch.copy()
    if schedule_windows(windows, name, processor):
        sch.adopt(windows)
    else:
        _rows(sch, name, len(spatial), processor)
    return True


def _sweep(sch: Schedule, name: str, column: int, others: list[int], reduce: list[int], lanes: int) -> None:
    """Across memory: several rows are added to a piece of the result at a time."""
    loops = sch.get_loops(name)
    extent = constant(sch.get(loops[column]).extent)
    rows = constant(sch.get(loops[reduce[-1]]).extent)
    outer = [loops[k] for k in others]
    inner: list[LoopRV] = [loops[k] for k in reduce]
    if extent is not None and extent <= lanes * 4:
        sch.reorder(*outer, *inner, loops[column])
        sch.decompose_reduction(name, inner[0])
        _share(sch, outer)
        return
    width = min(lanes * VECTORS, MOST_LANES)
    pieces = COLUMNS // width if extent is None else min(COLUMNS // width, -(-extent // width))
    chunk, piece, vector = sch.split(loops[column], [None, pieces, width])
    last: list[LoopRV] = []
    if rows is None or rows >= 2 * SWEEP:
        inner[-1], step = sch.split(inner[-1], [None, SWEEP])
        last = [step]
    sch.reorder(*outer, chunk, *inner, piece, *last, vector)
    sch.vectorize(vector)
    for one in last:
        sch.unroll(one)
    sch.decompose_reduction(name, inner[0])
    _share(sch, [*outer, chunk])


def _rows(sch: Schedule, name: str, spatial: int, processor: Processor) -> None:
    """Along memory: each result in one go; few results in partial results that threads share."""
    loops = sch.get_loops(name)
    extents = [constant(sch.get(s).extent) for s in loops]
    results = 1
    for one in extents[:spatial]:
        results *= one if one is not None else FEW + 1
    length = 1
    for one in extents[spatial:]:
        length *= one if one is not None else CHUNK * 4
    if results <= FEW and length >= CHUNK * 4:
        # Whole lines of the input go to each partial result, where there are enough of them.
        inner = 1
        for one in extents[spatial + 1 :]:
            inner *= one if one is not None else CHUNK
        chunk, _ = sch.split(loops[spatial], [None, max(1, CHUNK // inner)])
        partial = sch.rfactor(chunk, 0)
        found = sch.get_loops(partial)
        at = next(k for k, one in enumerate(found) if sch.get(one).loop_var is sch.get(chunk).loop_var)
        sch.reorder(found[at], *found[:at])
        try_in_lanes(sch, sch.get(partial).name_hint, processor)
        sch.parallel(sch.get_loops(partial)[0])
        return
    block = sch.get_block(name)
    try_in_lanes(sch, name, processor)
    _share(sch, sch.get_loops(block)[:spatial])


def _share(sch: Schedule, loops: list[LoopRV]) -> None:
    """Share the loops that stand directly in each other."""
    for one in loops:
        extent = constant(sch.get(one).extent)
        if extent is None or extent > 1:
            sch.parallel(one)
            return
