"""Convolutions of 3 × 3 windows with stride 1 by Winograd's minimal filtering (Lavin and Gray, "Fast Algorithms for
Convolutional Neural Networks", 2016).

A tile of 4 × 4 results takes 36 products a channel instead of 144 (2 × 2: 16 instead of 36): weights and overlapping
tiles of the data are transformed, multiplied place by place, summed over the channels, which is a matrix product for
each of the places, and transformed back. `winograd_algebra` holds the transforms. Weights that are constant are
transformed while compiling, others in each call. All of it is done for some rows of tiles at a time, so that what the
stages pass on stays in the cache; what follows the convolution element by element runs in the same block of rows.

Results are those of the direct sum up to rounding, with an error of the same order (see `winograd_algebra`), relative
to the largest products in the window of a *tile*, not of a single result: beside a number 10⁸ times as large, results
of a tile may lose all digits. NaN and infinity would spread over a tile, and numbers near the largest overflow early:
so tiles whose results are not all finite are computed again, as the sum is defined.

The rule looks at channels, filters and how many results of the tiles would be unused, and takes the cheapest of
F(4 × 4), F(2 × 2) and the direct sum by an estimate of operations and of memory traffic. Transformed weights take four
times the memory of the weights (F(2 × 2): less than twice), which therefore is limited; the weights themselves are kept
for tiles that are computed again."""

from __future__ import annotations

from functools import lru_cache

from relaxlang.base.dtype import DType
from relaxlang.ir.attrs import Attrs
from relaxlang.ir.fresh import Renew
from relaxlang.ir.prim import HANDLE, INT64, IntImm, PrimExpr, Var
from relaxlang.ir.tir import Block, BlockRealize, Buffer, For, IterVar, PrimFunc, Range, Stmt, seq
from relaxlang.ir.visit import free_vars
from relaxlang.schedule.rules.analysis import LAYOUT_REWRITE, constant, is_plain
from relaxlang.schedule.rules.contraction import schedule_contraction
from relaxlang.schedule.rules.convolution import Convolution, find_convolution
from relaxlang.schedule.rules.processor import Processor
from relaxlang.schedule.rules.row_stages import Serial
from relaxlang.schedule.rules.statements import block, load, store, zero
from relaxlang.schedule.rules.turned import place_after
from relaxlang.schedule.rules.winograd_algebra import PAIRS, WINDOW
from relaxlang.schedule.rules.winograd_stages import (
    Buffers,
    Plan,
    product_buffers,
    stages,
    transform_weights,
    written_region,
)
from relaxlang.schedule.schedule import Schedule
from relaxlang.schedule.state import TRUE

UNKNOWN_LENGTH = 56
"""What a height or width that is not known counts as."""
BYTE = 3.5
"""Operations of a matrix product in the time in which a byte of weights comes from memory."""
MOST_BYTES = 12 << 20
"""Bytes of transformed weights that a last-level cache holds beside other things. More would come from memory in every
call, and take more of it than the speed is worth."""
TRANSFORMED = 14
"""Operations of a matrix product in the time that a transformed number takes, when it is made and when it is used."""
TRANSFORM_OF_WEIGHTS = 600
"""The same for the weights of a filter and a channel, where they are not constant."""
MOVED = 6
"""The same for a number that is brought into another order."""
GAIN = 0.8
"""The part of the time of the direct sum from which on this way is worth its memory."""
BLOCK_BYTES = 3 << 18
"""What the stages of a block of rows may pass on: most of a usual second-level cache."""
FEWEST_TILES = 24
"""Tiles of a block of rows from which on the weights are used often enough."""
FEWEST_BLOCKS = 4
"""With fewer blocks of rows threads had better share the work within each."""


def schedule_winograd(sch: Schedule, name: str, processor: Processor) -> bool:
    """Compute the block by Winograd's algorithm when it is a convolution for which that is faster; whether it was.
    What follows it runs in its blocks of rows where it can."""
    realize = sch.state.blocks[name]
    conv = find_convolution(realize) if is_plain(sch.state, realize) else None
    plan = None if conv is None else plan_of(conv, processor)
    b = None if plan is None else Buffers(plan)
    if conv is None or plan is None or b is None:
        return False
    product = _product(plan, b, processor)
    if product is None:
        return False
    # What follows is placed while the block of rows is still empty: that takes a fraction of the time.
    rows = _with_row_blocks(sch, realize, plan)
    place_after(sch, rows, sch.get_loops(rows)[-1], processor)
    _fill(sch, rows, plan, b, product, known=conv.weight in processor.constants)
    return True


# --- the choice -------------------------------------------------------------------------------------------------------
def plan_of(conv: Convolution, processor: Processor) -> Plan | None:
    """How to compute a convolution; None when the direct sum is better."""
    of = conv.out.dtype
    lanes = processor.lanes(of.itemsize)
    channels, filters = constant(conv.extents[conv.channel]), constant(conv.extents[conv.filter])
    sides = [constant(conv.extents[a]) for a in conv.window]
    if channels is None or filters is None or sides != [WINDOW, WINDOW] or lanes < 4:
        return None
    vectors = min((4, 3, 2, 1), key=lambda v: (-(-filters // (v * lanes)) * v, -v))
    width = vectors * lanes
    c, k = -(-channels // lanes) * lanes, -(-filters // width) * width
    h, w = (constant(conv.extents[a]) for a in conv.spatial)
    if 0 in (channels, filters, h, w):
        return None
    best = GAIN * _direct(conv, channels, filters)
    chosen = None
    for m in sorted(PAIRS, reverse=True):
        cost = _cost(conv, m, c, k)
        if conv.weight not in processor.constants:
            cost += c * k * (TRANSFORM_OF_WEIGHTS + BYTE * (m + WINDOW - 1) ** 2 * of.itemsize)
        if cost < best and (m + WINDOW - 1) ** 2 * c * k * of.itemsize <= MOST_BYTES:
            best, chosen = cost, m
    if chosen is None:
        return None
    return _blocked(conv, chosen, lanes, width, (c, k))


def _count(extent: PrimExpr, unknown: int = UNKNOWN_LENGTH) -> int:
    found = constant(extent)
    return unknown if found is None else found


def _images(conv: Convolution) -> int:
    count = 1
    for axis in conv.batch:
        count *= _count(conv.extents[axis], 1)
    return count


def _direct(conv: Convolution, channels: int, filters: int) -> float:
    """Operations of the sum as it is defined, or the time that its weights take."""
    h, w = (_count(conv.extents[a]) for a in conv.spatial)
    weights = channels * filters * WINDOW * WINDOW
    return max(2.0 * _images(conv) * h * w * weights, BYTE * weights * conv.out.dtype.itemsize)


def _cost(conv: Convolution, m: int, channels: int, filters: int) -> float:
    """Operations of Winograd's algorithm, and what the rest of it takes in operations."""
    h, w = (_count(conv.extents[a]) for a in conv.spatial)
    places, images = (m + WINDOW - 1) ** 2, _images(conv)
    tiles = images * -(-h // m) * -(-w // m)
    weights = places * channels * filters
    product = max(2.0 * tiles * weights, BYTE * weights * conv.out.dtype.itemsize)
    transforms = TRANSFORMED * tiles * places * (channels + filters)
    moves = MOVED * images * h * w * (channels + filters)
    return product + transforms + moves + BYTE / 8 * weights * conv.out.dtype.itemsize


def _blocked(conv: Convolution, m: int, lanes: int, width: int, sizes: tuple[int, int]) -> Plan:
    """The plan with as many rows of tiles in a block as stay in the cache, spread evenly."""
    h, w = (constant(conv.extents[a]) for a in conv.spatial)
    across = -(-(UNKNOWN_LENGTH if w is None else w) // m)
    each = across * (m + WINDOW - 1) ** 2 * sum(sizes) * conv.out.dtype.itemsize
    fewest = -(-FEWEST_TILES // across)
    if h is None:  # the fewer rows in a block, the fewer are unused in the last one
        return Plan(conv, m, fewest, lanes, width, False)
    most = max(BLOCK_BYTES // each, fewest)
    down = -(-h // m)
    blocks = -(-down // most)
    rows = -(-down // blocks)
    return Plan(conv, m, rows, lanes, width, _images(conv) * -(-down // rows) < FEWEST_BLOCKS)


# --- the program ------------------------------------------------------------------------------------------------------
def _with_row_blocks(sch: Schedule, realize: BlockRealize, plan: Plan) -> str:
    """Put loops over blocks of rows in the place of a convolution; the name of the block in them, which says what it
    reads and writes, but does nothing yet."""
    conv, state = plan.conv, sch.state
    loops = [Var(f"b{k}", INT64) for k in range(len(conv.batch))] + [Var("rows", INT64)]
    count = (conv.extents[conv.spatial[0]] + (plan.rows * plan.m - 1)) // (plan.rows * plan.m)
    outer = dict(zip(loops, [*(conv.extents[a] for a in conv.batch), count]))
    name = state.unique("row_block")
    body = block(name, outer, (conv.data, conv.weight), (written_region(plan, outer),), seq())
    for var in reversed(outer):
        body = For(var, IntImm(INT64, 0), outer[var], "serial", body)
    assert isinstance(body, For)
    changed = state.replace({state.loops_around(realize)[0]: body if plan.inside else _shared(body)})
    sch.adopt(Schedule.of_sound(changed.func))
    return name


def _shared(body: For) -> For:
    """Loops in each other, the first of which that has several iterations is shared among threads."""
    count = constant(body.extent)
    if (count is None or count > 1) or not isinstance(body.body, For):
        return body.replace(kind="parallel")
    return body.replace(body=_shared(body.body))


def _fill(
    sch: Schedule, name: str, plan: Plan, b: Buffers, product: tuple[Stmt, tuple[Buffer, ...]], *, known: bool
) -> None:
    """Put the stages into the block of rows, and before all the transform of the weights, which is done beforehand when
    these are constant."""
    state = sch.state
    found = state.blocks[name].block
    stmts, tiles = product
    places = tuple(a.var for a in found.iter_vars)
    body = seq(*stages(plan, b, places, stmts))
    state = state.replace({found: found.replace(body=body, alloc_buffers=(*b.of_rows(), *tiles))})
    root = state.root.block
    weights = transform_weights(plan, b, "serial" if known else "parallel")
    whole = seq(_marked(weights) if known else weights, root.body)
    made = state.root.replace(block=root.replace(body=whole, alloc_buffers=(*root.alloc_buffers, b.u)))
    sch.adopt(Schedule.of_sound(state.func.replace(body=made)))


def _product(plan: Plan, b: Buffers, processor: Processor) -> tuple[Stmt, tuple[Buffer, ...]] | None:
    """The matrix products of a block of rows, scheduled as such, and the buffers of their own."""
    plain = Processor(processor.vector_bytes, processor.registers)
    known = isinstance(plan.tiles, IntImm)
    made = (_known_product if known else _scheduled_product)(plan.product, plan.of, plain)
    if made is None:
        return None
    given, root = made
    kept = {v: v for v in free_vars(plan.tiles)}
    copy: Block = Renew(kept, dict(zip(given, (b.v, b.u, b.p))))(root)
    return (copy.body if plan.inside else Serial()(copy.body)), copy.alloc_buffers


def _scheduled_product(
    extents: tuple[PrimExpr, ...], of: DType, processor: Processor
) -> tuple[tuple[Buffer, ...], Block] | None:
    """The products for places, panels, tiles, filters of a panel and channels: the buffers of both factors and of the
    result, and the root block of the schedule."""
    v_of, u_of, p_of = factors = product_buffers(extents, of)
    e, q, t, j, c = axes = [Var(f"v_{name}", INT64) for name in ("e", "q", "t", "j", "c")]
    at = (e, q, t, j)
    update = store(p_of, load(p_of, *at) + load(v_of, e, t, c) * load(u_of, e, q, c, j), *at)
    start = store(p_of, zero(of), *at)
    iters = tuple(
        IterVar(v, Range(IntImm(INT64, 0), x), "reduce" if v is c else "spatial") for v, x in zip(axes, extents)
    )
    loops = [Var(v.name.removeprefix("v_"), INT64) for v in axes]
    body: Stmt = BlockRealize(tuple(loops), TRUE, Block(iters, None, None, "product", update, start))
    for var, extent in zip(reversed(loops), reversed(extents)):
        body = For(var, IntImm(INT64, 0), extent, "serial", body)
    params = {Var(one.name, HANDLE): one for one in factors}
    root = BlockRealize((), TRUE, Block((), (), (), "root", body))
    sch = Schedule.of_sound(PrimFunc(tuple(params), root, params))
    return (factors, sch.state.root.block) if schedule_contraction(sch, "product", processor, sweeps=False) else None


_known_product = lru_cache(maxsize=16)(_scheduled_product)
"""The same for extents that are all numbers: a model has many convolutions of the same sizes."""


def _marked(weights: Stmt) -> Stmt:
    """The transform of the weights, to be done beforehand."""
    if isinstance(weights, For):
        return weights.replace(body=_marked(weights.body))
    assert isinstance(weights, BlockRealize)
    return weights.replace(block=weights.block.replace(annotations=Attrs({LAYOUT_REWRITE: True})))
