"""Sums of products (matmul in all layouts, batched or not, and direct convolution): tiles in registers.

One spatial axis is the vector axis: it runs along memory in the result and occurs in one factor only. Another, which
occurs in the other factor only, gives the rows of the tile. A tile of rows × vectors is accumulated in registers
over all reduction axes: each step loads the vectors of one factor once and one scalar a row of the other. When the
first factor is large, or does not lie along memory, a panel of it is copied first, which then comes from the
second-level cache."""

from __future__ import annotations

from dataclasses import dataclass

from relaxlang.arith.index_map import IndexMap
from relaxlang.ir import prim
from relaxlang.ir.prim import BufferLoad, Var
from relaxlang.ir.tir import BlockRealize, BufferStore
from relaxlang.schedule.access import written_buffers
from relaxlang.schedule.checks import consumers, is_output, producers
from relaxlang.schedule.rules.analysis import constant, is_plain, loads_of, stride, update_of
from relaxlang.schedule.rules.processor import Processor
from relaxlang.schedule.schedule import Schedule
from relaxlang.schedule.trace import LoopRV

FEW_ROWS = 8
"""Up to so many rows scalar products are better than tiles where the panel would have to be transposed."""
MASKS = 64
"""Bytes of a vector from which on loads of a part of it are as fast as whole ones."""
PIECE = 4096
"""Elements of a result that stay in the first-level cache."""
SWEEP = 8
"""Rows that a sweep reads at once."""
PANEL_ROWS = 32
"""Up to so many rows a panel is not worth its copy."""


@dataclass(frozen=True)
class Contraction:
    """The axes of a sum of products, by their position in the block: the vector axis, the row axis, the other
    spatial and the reduction axes; which read buffer has the vector axis, and whether it lies along memory there."""

    vector: int
    row: int
    others: tuple[int, ...]
    reduce: tuple[int, ...]
    panel: BufferLoad
    along: bool


def analyse(realize: BlockRealize) -> Contraction | None:
    """How to compute a reduction block as a contraction; None when it is none."""
    update = update_of(realize)
    if update is None or update.kind is not prim.Add or not isinstance(update.value, prim.Mul):
        return None
    factors = [loads_of(update.value.a), loads_of(update.value.b)]
    if any(len(f) != 1 for f in factors):
        return None
    a, b = factors[0][0], factors[1][0]
    axes = realize.block.iter_vars
    spatial = [k for k, x in enumerate(axes) if x.kind == "spatial"]
    store = update.store
    for k in reversed(spatial):
        var = axes[k].var
        uses = [stride(one.buffer, one.indices, var) for one in (a, b)]
        if stride(store.buffer, store.indices, var) != "unit" or uses.count("none") != 1:
            continue
        panel, other = (a, b) if uses[1] == "none" else (b, a)
        rows = [
            r for r in spatial
            if r != k and stride(panel.buffer, panel.indices, axes[r].var) == "none"
            and stride(other.buffer, other.indices, axes[r].var) != "none"
        ]  # fmt: skip
        if not rows:
            continue
        row = max(rows, key=lambda r: constant(axes[r].dom.extent) or 1 << 40)
        others = tuple(s for s in spatial if s not in (k, row))
        reduce = tuple(r for r, x in enumerate(axes) if x.kind == "reduce")
        along = stride(panel.buffer, panel.indices, var) == "unit"
        return Contraction(k, row, others, reduce, panel, along)
    return None


def tile(m: int | None, n: int | None, lanes: int, processor: Processor) -> tuple[int, int]:
    """Rows and vectors of the register tile: as many accumulators as registers allow, and little beyond the edges."""
    best, chosen = 0.0, (1, 1)
    for vectors, quality in _QUALITY:
        most = min(processor.registers * 3 // 4, processor.registers - 1 - vectors) // vectors
        if vectors == 3 and processor.registers > 16:
            most -= 1  # one row more spills
        for rows in range(1, min(most, 8, m or 8) + 1):
            hidden = min(1.0, rows * vectors / 12)  # as many sums as it takes to hide the latency of one
            score = quality * hidden * _used(m, rows) * _used(n, vectors * lanes) * (1 + rows / 200)
            if score > best:
                best, chosen = score, (rows, vectors)
    return chosen


# What a tile of so many vectors reaches, the fewer the more loads there are for each multiplication.
_QUALITY = ((4, 1.0), (3, 0.99), (2, 0.85), (1, 0.75))


def _used(extent: int | None, step: int) -> float:
    return 1.0 if extent is None else extent / (-(-extent // step) * step)


def schedule_contraction(sch: Schedule, name: str, processor: Processor) -> bool:
    """Schedule the block when it is a contraction in plain loops; whether it was."""
    state = sch.state
    realize = state.blocks[name]
    found = analyse(realize) if is_plain(state, realize) else None
    if found is None or not realize.block.writes:
        return False
    axes = realize.block.iter_vars
    m, n = constant(axes[found.row].dom.extent), constant(axes[found.vector].dom.extent)
    dtype = realize.block.writes[0].buffer.dtype
    if not dtype.is_float or dtype.bits < 32:
        return False
    lanes = processor.lanes(dtype.itemsize)
    rows, vectors = tile(m, n, lanes, processor)
    if not found.along and m is not None and m <= FEW_ROWS:
        return _dots(sch, name, found)
    if m is not None and m <= FEW_ROWS and processor.vector_bytes >= MASKS and _is_deep(realize, found):
        return _sweep(sch, name, found, m, lanes)
    if m == 1:
        return False  # a weighted sum of rows: the rule of reductions sweeps over them
    width = vectors * lanes
    ragged = n is None or n % width != 0
    packed = _packed(found, realize, m) or (ragged and processor.vector_bytes < MASKS)
    copy, tail = _padded(sch, name, found, {found.row: rows, found.vector: width}, packed)
    block = sch.get_block(name)
    loops = sch.get_loops(block)
    r0, r1 = sch.split(loops[found.row], [None, rows])
    v0, v1, v2 = sch.split(loops[found.vector], [None, vectors, lanes])
    tiles = [v0, r0] if packed or (m is not None and m <= PANEL_ROWS) else [r0, v0]
    outer = [loops[k] for k in found.others]
    reduce = [loops[k] for k in found.reduce]
    sch.reorder(*outer, *tiles, *reduce, r1, v1, v2)
    sch.vectorize(v2)
    sch.unroll(v1)
    sch.unroll(r1)
    _parallel(sch, [*outer, *tiles])
    if copy is not None:
        _place_panel(sch, copy, v0, vectors, lanes)
    sch.reverse_compute_at(tail, tiles[1])
    _vector_copy(sch, tail, vectors, lanes, unrolled=True)
    sch.decompose_reduction(block, reduce[0])
    if processor.vector_bytes >= MASKS:
        for one in (*outer, *tiles):  # masks are as fast: one tile does for the edges too
            sch.annotate(one, "pragma_loop_partition_hint", 0)
    return True


def _padded(
    sch: Schedule, name: str, found: Contraction, factors: dict[int, int], packed: bool
) -> tuple[str | None, str]:
    """Pad the axes of the tile. The block that copies the panel, if there is one, and the block that takes tiles out of
    registers."""
    axes = sch.state.blocks[name].block.iter_vars
    panel = found.panel.buffer
    sch.pad_einsum(name, [factors.get(k, 1) for k in range(len(axes))])
    pads = {p.block.name_hint: loads_of(p.block.body)[0].buffer for p in producers(sch.state, sch.state.blocks[name])
            if p.block.name_hint.startswith(f"{loads_of(p.block.body)[0].buffer.name}_pad")}  # fmt: skip
    copy = next((p for p, source in pads.items() if source is panel), None)
    for one in pads:
        if one != copy or not packed:
            sch.compute_inline(one)
    if packed and copy is None:
        index = [r.buffer for r in sch.state.blocks[name].block.reads or ()].index(panel)
        made = sch.cache_read(name, index, "local") if found.along else sch.reindex(name, ("read", index))
        copy = sch.get(made).name_hint
    if not packed or copy is None:
        return None, _tail(sch, name)
    if not found.along:
        _arrange(sch, name, found, copy)
    sch.set_scope(copy, 0, "local")
    return copy, _tail(sch, name)


def _is_deep(realize: BlockRealize, found: Contraction) -> bool:
    """Whether a single axis is reduced over, in more than a few steps of a sweep."""
    if len(found.reduce) != 1:
        return False
    extent = constant(realize.block.iter_vars[found.reduce[0]].dom.extent)
    return extent is None or extent >= 4 * SWEEP


def _sweep(sch: Schedule, name: str, found: Contraction, m: int, lanes: int) -> bool:
    """Few rows: the other factor is read once, in sweeps along memory over some of its rows, whose products are added
    to a piece of the result in the first-level cache."""
    vectors = 2 if m <= 4 else 1
    width = vectors * lanes
    axes = sch.state.blocks[name].block.iter_vars
    depth, n = constant(axes[found.reduce[0]].dom.extent), constant(axes[found.vector].dom.extent)
    step = next((d for d in range(SWEEP, SWEEP // 2, -1) if depth is not None and depth % d == 0), SWEEP)
    pieces = max(1, PIECE // (m * width))
    pieces = pieces if n is None else min(pieces, -(-n // width))
    _, tail = _padded(sch, name, found, {found.vector: width, found.reduce[0]: step}, packed=False)
    steps, _ = sch.split(sch.get_loops(name)[found.reduce[0]], [None, step])
    partial: str = sch.get(sch.rfactor(steps, 0)).name_hint  # what a step adds, in registers
    sch.set_scope(partial, 0, "local")
    loops = sch.get_loops(name)  # the spatial axes in their order, and the steps
    spatial = [k for k, a in enumerate(axes) if a.kind == "spatial"]
    place = {k: loops[i] for i, k in enumerate(spatial)}
    chunk, piece, v1, v2 = sch.split(place[found.vector], [None, pieces, vectors, lanes])
    outer = [place[k] for k in found.others]
    sch.reorder(*outer, chunk, loops[-1], piece, place[found.row], v1, v2)
    _written_out(sch, [place[found.row], v1], v2)
    _parallel(sch, [*outer, chunk])
    sch.compute_at(partial, piece, preserve_unit_loops=True)
    inner = sch.get_loops(partial)[-len(axes) - 1 :]  # as the axes: the step, the spatial ones, the row in the step
    u1, u2 = sch.split(inner[1 + spatial.index(found.vector)], [None, lanes])
    sch.reorder(inner[-1], inner[1 + spatial.index(found.row)], u1, u2)
    _written_out(sch, [inner[-1], inner[1 + spatial.index(found.row)], u1], u2)
    sch.reverse_compute_at(tail, chunk)
    _lines(sch, tail, lanes)
    sch.decompose_reduction(partial, inner[-1])
    sch.decompose_reduction(name, loops[-1])
    for one in (*outer, chunk, piece, loops[-1]):
        sch.annotate(one, "pragma_loop_partition_hint", 0)
    return True


def _written_out(sch: Schedule, unrolled: list[LoopRV], vector: LoopRV) -> None:
    """Write loops out around one that becomes a vector."""
    sch.vectorize(vector)
    for one in unrolled:
        sch.unroll(one)


def _lines(sch: Schedule, name: str, lanes: int) -> None:
    """Vectorise the innermost loop of a block."""
    inner = sch.get_loops(name)[-1]
    if (constant(sch.get(inner).extent) or lanes) >= lanes:
        sch.vectorize(sch.split(inner, [None, lanes])[1])


def _dots(sch: Schedule, name: str, found: Contraction) -> bool:
    """Few rows, and the reduction runs along memory in the larger factor: a scalar product for each element."""
    loops = sch.get_loops(name)
    outer = [loops[k] for k in (*found.others, found.vector)]
    sch.reorder(*outer, loops[found.row], *[loops[k] for k in found.reduce])
    _parallel(sch, outer)
    return True


def _packed(found: Contraction, realize: BlockRealize, m: int | None) -> bool:
    if not found.along:
        return True
    if m is not None and m <= PANEL_ROWS:
        return False
    total = 1
    for dim in found.panel.buffer.shape[-2:]:
        total *= constant(dim) or 1024
    return total > 600 * 600 and len(found.reduce) == 1 and not found.others


def _tail(sch: Schedule, name: str) -> str:
    """The block that takes tiles out of registers: the only consumer of the result, or a copy of its own."""
    state = sch.state
    realize = state.blocks[name]
    users = consumers(state, realize)
    if not is_output(state, realize) and len(users) == 1:
        cut = users[0]
        after = consumers(state, cut)
        if _is_cut(cut) and not is_output(state, cut) and len(after) == 1:
            sch.compute_inline(cut.block.name_hint)
            users = after
        sch.set_scope(name, 0, "local")
        return users[0].block.name_hint
    made: str = sch.get(sch.cache_write(name, 0, "local")).name_hint
    return made


def _is_cut(realize: BlockRealize) -> bool:
    """Whether a block only copies elements."""
    body = realize.block.body
    return isinstance(body, BufferStore) and isinstance(body.value, BufferLoad)


def _arrange(sch: Schedule, name: str, found: Contraction, copy: str) -> None:
    """Bring the copy of a panel into an order of its own: the reduction axes outside, the vector axis along memory."""
    block = sch.state.blocks[name].block
    target = written_buffers(sch.state.blocks[copy])[0]
    axes = [a.var for a in block.iter_vars]
    load = next(one for one in loads_of(block.body) if one.buffer is target)
    mine = [axes.index(v) for v in load.indices if isinstance(v, Var)]
    order = sorted(mine, key=lambda k: (k == found.vector, k not in found.reduce, k))
    names = tuple(Var(f"d{k}", axes[0].dtype) for k in mine)
    sch.transform_layout(copy, ("write", 0), IndexMap(names, tuple(names[mine.index(k)] for k in order)))


def _place_panel(sch: Schedule, copy: str, at: LoopRV, vectors: int, lanes: int) -> None:
    """Compute the copy of a panel at a column of tiles, the vector axis innermost."""
    sch.compute_at(copy, at, preserve_unit_loops=True)
    axes = [a.var for a in sch.state.blocks[copy].block.iter_vars]
    loops = sch.get_loops(copy)[-len(axes) :]
    place = {v: k for k, v in enumerate(axes)}
    store = sch.state.blocks[copy].block.body
    assert isinstance(store, BufferStore)
    order = [place[i] for i in store.indices if isinstance(i, Var)]
    sch.reorder(*[loops[k] for k in order])
    _vector_copy(sch, copy, vectors, lanes, unrolled=False)


def _vector_copy(sch: Schedule, name: str, vectors: int, lanes: int, *, unrolled: bool) -> None:
    """Vectorise the innermost loop of a copy when it is no wider than the tile; unroll the one around it."""
    loops = sch.get_loops(name)
    width = constant(sch.get(loops[-1]).extent)
    if width is None or width > vectors * lanes:
        return
    outer, inner = sch.split(loops[-1], [None, lanes])
    sch.vectorize(inner)
    sch.unroll(outer)
    if unrolled and len(loops) > 1 and (constant(sch.get(loops[-2]).extent) or 99) <= 16:
        sch.unroll(loops[-2])


def _parallel(sch: Schedule, loops: list[LoopRV]) -> None:
    """Share the outermost loop that has enough iterations."""
    for one in loops:
        extent = constant(sch.get(one).extent)
        if extent is None or extent > 1:
            sch.parallel(one)
            return
