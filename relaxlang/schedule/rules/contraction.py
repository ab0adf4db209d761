"""Sums of products (matmul in all layouts, batched or not, and direct convolution): tiles in registers.

One spatial axis is the vector axis: it runs along memory in the result and occurs in one factor only. Another, which
occurs in the other factor only, gives the rows of the tile. A tile of rows × vectors is accumulated in registers
over all reduction axes: each step loads the vectors of one factor once and one scalar a row of the other. When the
first factor is large, or does not lie along memory, a panel of it is copied first, which then comes from the
second-level cache."""

from __future__ import annotations

from relaxlang.arith.index_map import IndexMap
from relaxlang.ir.prim import INT64, BufferLoad, PrimExpr, Var
from relaxlang.ir.tir import BlockRealize, BufferStore
from relaxlang.ir.visit import free_vars
from relaxlang.schedule.access import written_buffers
from relaxlang.schedule.checks import consumers, is_output, producers
from relaxlang.schedule.rules.analysis import LAYOUT_REWRITE, constant, is_costly, is_plain, loads_of, stride
from relaxlang.schedule.rules.factors import Contraction, Sweep, analyse, sweep_of, tile
from relaxlang.schedule.rules.processor import Processor
from relaxlang.schedule.schedule import Schedule
from relaxlang.schedule.state import APART
from relaxlang.schedule.trace import LoopRV

FEW_ROWS = 8
"""Up to so many rows scalar products are better than tiles where the panel would have to be transposed."""
CACHED = 1 << 16
"""Elements of a factor up to which it stays in the second-level cache, whatever else is there."""
PACKED, PACKED_RAGGED = 600 * 600, 400 * 400
"""Elements of a factor from which on panels of it are worth their copies; when its lines are no whole vectors, so that
most loads would touch two lines of the cache."""
SHARES = 8
"""Iterations from which on a loop is worth sharing."""
MOST_WRITTEN_OUT = 96
"""Multiplications up to which a row of a window is written out."""
UNKNOWN_PIECES = 8
"""Tiles of a piece of a line of unknown length, the last of which may be empty for the most part."""
PANEL_ROWS = 32
"""Up to so many rows a panel is not worth its copy."""


def schedule_contraction(
    sch: Schedule, name: str, processor: Processor, *, sweeps: bool = True, few: Var | None = None
) -> bool:
    """Schedule the block when it is a contraction in plain loops; whether it was. Without `sweeps` few rows are tiles
    too, which is faster where both factors are in a cache. An unknown number of rows `few` is at most `PANEL_ROWS`."""
    state = sch.state
    realize = state.blocks[name]
    found = _analysed(realize, processor) if is_plain(state, realize) else None
    if found is None:
        return False
    lanes = _lanes(realize, processor)
    axes = realize.block.iter_vars
    m, n = constant(axes[found.row].dom.extent), constant(axes[found.vector].dom.extent)
    if few is not None and axes[found.row].dom.extent is few:
        m = PANEL_ROWS
    # Panels of a constant are read in one sweep at any rate.
    if sweeps and m is not None and m <= PANEL_ROWS and not found.lifted:
        if m <= FEW_ROWS and not found.along:
            return _dots(sch, name, found)
        narrow = None if n is None else -(-n // lanes)
        if m <= FEW_ROWS and narrow is not None and m * (narrow + 1) <= processor.registers * 3 // 4:
            # The other factor is read once: all sums are in registers.
            _tiles(sch, name, found, m, (m, narrow), processor)
            return True
        depth = constant(axes[found.reduce[0]].dom.extent)
        worth = found.along and (depth is not None or _is_large(found))
        shape = sweep_of(realize, found, m, lanes, processor) if worth else None
        if shape is not None:
            _sweep(sch, name, found, shape, lanes)
            return True
    if m == 1 and not found.lifted:
        return False  # a weighted sum of rows: the rule of reductions sweeps over them
    _tiles(sch, name, found, m, tile(m, n, lanes, processor), processor)
    return True


def rows_of_panels(realize: BlockRealize, processor: Processor) -> tuple[Var, bool] | None:
    """The number of rows of a contraction when it is not known, and panels of the other factor are copied for it, and
    whether few rows do without them; None of others."""
    found = _analysed(realize, processor)
    if found is None or found.lifted or not _is_worth_panels(realize, found, _lanes(realize, processor)):
        return None
    rows = realize.block.iter_vars[found.row].dom.extent
    return (rows, found.along) if isinstance(rows, Var) else None


def _analysed(realize: BlockRealize, processor: Processor) -> Contraction | None:
    """How to compute a block as a contraction; None when it is none, or of a type without multiplications of its
    own."""
    if not realize.block.writes:
        return None
    dtype = realize.block.writes[0].buffer.dtype
    if dtype.bits < 32 or not (dtype.is_float or dtype.is_integer):
        return None
    return analyse(realize, _lanes(realize, processor), processor)


def _lanes(realize: BlockRealize, processor: Processor) -> int:
    """How many results of a block are in a vector."""
    return processor.lanes(written_buffers(realize)[0].dtype.itemsize)


def _tiles(
    sch: Schedule, name: str, found: Contraction, m: int | None, shape: tuple[int, int], processor: Processor
) -> None:
    """Tiles of some rows and vectors, accumulated in registers, of `m` rows."""
    realize = sch.state.blocks[name]
    axes = realize.block.iter_vars
    n = constant(axes[found.vector].dom.extent)
    (rows, vectors), lanes = shape, _lanes(realize, processor)
    width = vectors * lanes
    ragged = n is None or n % width != 0
    packed = found.lifted or _packed(realize, found, m, lanes) or (ragged and not processor.has_masks)
    at = _index_of(realize, axes[found.vector].var)
    copy, tail = _padded(sch, name, found, {found.row: rows, found.vector: width}, packed)
    at = _vector_last(sch, name, at)
    loops = sch.get_loops(name)
    r0, r1 = sch.split(loops[found.row], [None, rows])
    v0, v1, v2 = sch.split(loops[found.vector], [None, vectors, lanes])
    tiles = [v0, r0] if packed or (m is not None and m <= PANEL_ROWS) or _is_large(found) else [r0, v0]
    outer = [loops[k] for k in found.others]
    if found.lifted:  # a panel of the constant factor serves all other rows
        tiles, outer = [*outer, r0], [v0]
    reduce = [loops[k] for k in found.reduce]
    sch.reorder(*outer, *tiles, *reduce, r1, v1, v2)
    last = constant(sch.get(reduce[-1]).extent)
    window = len(reduce) > 1 and last is not None and last * rows * vectors <= MOST_WRITTEN_OUT
    _written_out(sch, [v1, r1, *(reduce[-1:] if window else ())], v2)
    _parallel(sch, [*outer, *tiles])
    if copy is not None and not found.lifted:
        _place_panel(sch, copy, v0, vectors, lanes)
    _place_tail(sch, tail, name, at, tiles[-1], lanes)
    _place_costly(sch, tail, tiles[-1], lanes)
    sch.decompose_reduction(name, reduce[0])
    if processor.has_masks:
        for one in (*outer, *tiles):  # masks are as fast: one tile does for the edges too
            sch.annotate(one, "pragma_loop_partition_hint", 0)


def _index_of(realize: BlockRealize, axis: Var) -> int:
    """Which index of its result an axis of a block is."""
    store = realize.block.body
    assert isinstance(store, BufferStore)
    return next(k for k, index in enumerate(store.indices) if axis in free_vars(index))


def _vector_last(sch: Schedule, name: str, at: int) -> int:
    """Make index `at` of the tile the last one, along which vectors lie; which index it is then."""
    ndim = written_buffers(sch.state.blocks[name])[0].ndim
    if at != ndim - 1:
        names = tuple(Var(f"d{k}", INT64) for k in range(ndim))
        sch.transform_layout(name, ("write", 0), IndexMap(names, (*names[:at], *names[at + 1 :], names[at])))
    return ndim - 1


def _place_tail(sch: Schedule, tail: str, name: str, at: int, loop: LoopRV, lanes: int) -> None:
    """Take a tile out of registers where it is complete: vectors along index `at` of the result, all written out."""
    made = written_buffers(sch.state.blocks[name])[0]
    sch.reverse_compute_at(tail, loop, preserve_unit_loops=True)
    block = sch.state.blocks[tail].block
    load = next(one for one in loads_of(block.body) if one.buffer is made)
    axes = [a.var for a in block.iter_vars]
    loops = sch.get_loops(tail)[-len(axes) :]
    vector = next((k for k, v in enumerate(axes) if v is load.indices[at]), None)
    if vector is None:  # only one of its elements is there
        for one in loops:
            sch.unroll(one)
        return
    rest = [one for k, one in enumerate(loops) if k != vector]
    pieces, lane = sch.split(loops[vector], [None, lanes])
    sch.reorder(*rest, pieces, lane)
    _written_out(sch, [*rest, pieces], lane)


def _padded(
    sch: Schedule, name: str, found: Contraction, factors: dict[int, int], packed: bool
) -> tuple[str | None, str]:
    """Pad the axes of the tile. The block that copies the panel, if there is one, and the block that takes tiles out of
    registers."""
    axes = sch.state.blocks[name].block.iter_vars
    panel = found.panel.buffer
    before = set(sch.state.blocks)
    sch.pad_einsum(name, [factors.get(k, 1) for k in range(len(axes))], repeat=[found.row])
    made = [p for p in producers(sch.state, sch.state.blocks[name]) if p.block.name_hint not in before]
    pads = {p.block.name_hint: loads_of(p.block.body)[0].buffer for p in made}
    copy = next((p for p, source in pads.items() if source is panel), None)
    for one in pads:
        if one != copy or not packed:
            sch.compute_inline(one)
    if not packed:
        return None, _tail(sch, name)
    if copy is None:
        index = [r.buffer for r in sch.state.blocks[name].block.reads or ()].index(panel)
        plain = found.along and not found.lifted
        block = sch.cache_read(name, index, "local", [name]) if plain else sch.reindex(name, ("read", index))
        copy = sch.get(block).name_hint
    if found.lifted:
        _arrange(sch, name, found, copy, factors[found.vector])
        sch.annotate(sch.get_block(copy), LAYOUT_REWRITE, True)
        return copy, _tail(sch, name)
    if not found.along:
        _arrange(sch, name, found, copy)
    sch.set_scope(copy, 0, "local")
    return copy, _tail(sch, name)


def _sweep(sch: Schedule, name: str, found: Contraction, shape: Sweep, lanes: int) -> None:
    """Few rows: the other factor is read once, in sweeps along memory over some of its rows, whose products are added
    to a piece of the result in the nearest caches."""
    axes = sch.state.blocks[name].block.iter_vars
    width = shape.vectors * lanes
    n = constant(axes[found.vector].dom.extent)
    pieces = _pieces(None if n is None else -(-n // width), max(1, shape.piece // width))
    # Whole pieces, so that no condition stands in the sweeps.
    factors = {found.row: shape.rows, found.vector: pieces * width}
    _, tail = _padded(sch, name, found, factors, packed=False)
    steps, _ = sch.split(sch.get_loops(name)[found.reduce[0]], [None, shape.step])
    partial: str = sch.get(sch.rfactor(steps, 0)).name_hint  # what a step adds, in registers
    sch.set_scope(partial, 0, "local")
    loops = sch.get_loops(name)  # the spatial axes in their order, and the steps
    spatial = [k for k, a in enumerate(axes) if a.kind == "spatial"]
    place = {k: loops[i] for i, k in enumerate(spatial)}
    chunk, piece, v1, v2 = sch.split(place[found.vector], [None, pieces, shape.vectors, lanes])
    r0, r1 = sch.split(place[found.row], [None, shape.rows])
    outer = [place[k] for k in found.others]
    sch.reorder(*outer, chunk, loops[-1], piece, r0, r1, v1, v2)
    _written_out(sch, [r1, v1], v2)
    _parallel(sch, [*outer, chunk])
    sch.compute_at(partial, r0, preserve_unit_loops=True)
    inner = sch.get_loops(partial)[-len(axes) - 1 :]  # as the axes: the step, the spatial ones, the row in the step
    u1, u2 = sch.split(inner[1 + spatial.index(found.vector)], [None, lanes])
    row = inner[1 + spatial.index(found.row)]
    sch.reorder(inner[-1], row, u1, u2)
    _written_out(sch, [inner[-1], row, u1] if shape.unrolled else [row, u1], u2)
    sch.reverse_compute_at(tail, chunk)
    _lines(sch, tail, lanes)
    sch.decompose_reduction(partial, inner[-1])
    sch.decompose_reduction(name, loops[-1])
    # The last step of an unknown depth is code of its own, so that no condition stands in the others.
    whole = [] if constant(sch.get(loops[-1]).extent) is None else loops[-1:]
    for one in (*outer, chunk, piece, *whole, r0):
        sch.annotate(one, "pragma_loop_partition_hint", 0)


def _pieces(tiles: int | None, most: int) -> int:
    """How many tiles a piece of a line consists of: many, and such that the last piece is nearly full."""
    if tiles is None:
        return min(most, UNKNOWN_PIECES)
    if tiles <= most:
        return tiles
    return min(range(most, (most + 1) // 2 - 1, -1), key=lambda p: -(-tiles // p) * p)


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


def _packed(realize: BlockRealize, found: Contraction, m: int | None, lanes: int) -> bool:
    if not found.along:
        return True
    return (m is None or m > PANEL_ROWS) and _is_worth_panels(realize, found, lanes)


def _is_worth_panels(realize: BlockRealize, found: Contraction, lanes: int) -> bool:
    """Whether a factor is so large that many rows of the other are worth copies of panels of it."""
    line = constant(found.panel.buffer.shape[-1])
    enough = PACKED if line is not None and line % lanes == 0 else PACKED_RAGGED
    alone = all(constant(realize.block.iter_vars[k].dom.extent) == 1 for k in found.others)
    return _size(found) > enough and len(found.reduce) == 1 and alone


def _size(found: Contraction) -> int:
    """Elements of the panels all together, in a batch of one; an unknown extent counts as 1024."""
    total = 1
    for dim in found.panel.buffer.shape[-2:]:
        total *= constant(dim) or 1024
    return total


def _is_large(found: Contraction) -> bool:
    """Whether all panels together leave the second-level cache to nobody else: one of them at a time stays there."""
    return len(found.reduce) == 1 and _size(found) > CACHED


def _tail(sch: Schedule, name: str) -> str:
    """The block that takes tiles out of registers: the only consumer of the result, or a copy of its own."""
    state = sch.state
    realize = state.blocks[name]
    users = consumers(state, realize)
    if not is_output(state, realize) and len(users) == 1 and isinstance(users[0].block.body, BufferStore):
        cut = users[0]
        after = consumers(state, cut)
        elementwise = len(after) == 1 and isinstance(after[0].block.body, BufferStore)
        if _is_cut(cut) and not is_output(state, cut) and elementwise and not is_costly(_stored(after[0])):
            sch.compute_inline(cut.block.name_hint)
            users = after
        if _is_cut(users[0]) or not is_costly(_stored(users[0])):
            sch.set_scope(name, 0, "local")
            return users[0].block.name_hint
    made: str = sch.get(sch.cache_write(name, 0, "local")).name_hint
    return made


def _stored(realize: BlockRealize) -> BufferStore:
    body = realize.block.body
    assert isinstance(body, BufferStore)
    return body


def _place_costly(sch: Schedule, tail: str, loop: LoopRV, lanes: int) -> None:
    """What follows a tile and calls functions is computed from memory, in a loop: written out it would be long."""
    state = sch.state
    users = consumers(state, state.blocks[tail])
    if len(users) != 1 or is_output(state, state.blocks[tail]) or not isinstance(users[0].block.body, BufferStore):
        return
    if is_costly(users[0].block.body):
        after = users[0].block.name_hint
        sch.reverse_compute_at(after, loop)
        _lines(sch, after, lanes)
        loops = sch.get_loops(after)
        place = next(k for k, one in enumerate(loops) if sch.get(one).loop_var is sch.get(loop).loop_var)
        sch.annotate(loops[place + 1], APART, 1)


def _is_cut(realize: BlockRealize) -> bool:
    """Whether a block only copies elements."""
    body = realize.block.body
    return isinstance(body, BufferStore) and isinstance(body.value, BufferLoad)


def _arrange(sch: Schedule, name: str, found: Contraction, copy: str, width: int = 0) -> None:
    """Bring the copy of a panel into an order of its own: the reduction axes outside, the vector axis along memory;
    with a `width`, panels of so many elements of it one after the other."""
    block = sch.state.blocks[name].block
    target = written_buffers(sch.state.blocks[copy])[0]
    axes = [a.var for a in block.iter_vars]
    load = next(one for one in loads_of(block.body) if one.buffer is target)
    mine = [axes.index(v) for v in load.indices if isinstance(v, Var)]
    order = sorted(mine, key=lambda k: (k == found.vector, k not in found.reduce, k))
    names = tuple(Var(f"d{k}", axes[0].dtype) for k in mine)
    indices: tuple[PrimExpr, ...] = tuple(names[mine.index(k)] for k in order)
    if width:
        last = names[mine.index(found.vector)]
        indices = (last // width, *indices[:-1], last % width)
    sch.transform_layout(copy, ("write", 0), IndexMap(names, indices))
    if width:  # written in the order in which it lies
        loops = dict(zip(mine, sch.get_loops(copy), strict=True))
        panels, inside = sch.split(loops[found.vector], [None, width])
        sch.reorder(panels, *[loops[k] for k in order[:-1]], inside)


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
    source = loads_of(store.value)[0]
    line = next((k for k in order[:-1] if stride(source.buffer, source.indices, axes[k]) == "unit"), None)
    extent = None if line is None else constant(sch.get(loops[line]).extent)
    if line is not None and extent is not None and extent % lanes == 0:  # tiles are transposed in registers
        outer, inner = sch.split(loops[line], [None, lanes])
        vector, lane = sch.split(loops[order[-1]], [None, lanes])
        sch.reorder(outer, vector, inner, lane)
        _written_out(sch, [inner], lane)
        return
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
    """Share the outermost loop that has enough iterations; the longest when none has."""
    extents = [constant(sch.get(one).extent) for one in loops]
    chosen = next((k for k, e in enumerate(extents) if e is None or e >= SHARES), None)
    if chosen is None:
        chosen = max(range(len(loops)), key=lambda k: (extents[k] or 0, -k))
    if (extents[chosen] or SHARES) > 1:
        sch.parallel(loops[chosen])
