"""The stages of a convolution by Winograd's algorithm, as statements: see `winograd` for what they are for.

Within a block of rows all buffers have the channels last, in whole vectors: each transform is arithmetic on vectors of
channels, and channels and filters that only fill the last vector are zeros."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from relaxlang.base.dtype import DType, dtype
from relaxlang.base.record import record
from relaxlang.ir import prim
from relaxlang.ir.prim import INT64, Call, FloatImm, IntImm, PrimExpr, Var
from relaxlang.ir.tir import Buffer, BufferRegion, BufferStore, For, ForKind, IfThenElse, LetStmt, Range, Stmt, seq
from relaxlang.schedule.rules import winograd_algebra as algebra
from relaxlang.schedule.rules.convolution import Convolution
from relaxlang.schedule.rules.statements import block, buffer, load, nest, store, turned_copies, zero
from relaxlang.schedule.rules.winograd_algebra import WINDOW

FLOAT64 = dtype("float64")
LARGEST = {32: 3.4028234663852886e38, 64: 1.7976931348623157e308}
"""The largest finite number of so many bits."""


@record
class Plan:
    """How a convolution is computed: tiles of `m` × `m` results, `rows` rows of tiles in a block; `lanes` channels in a
    vector, `width` filters in a panel of the transformed weights; `inside`, whether threads share the work within a
    block of rows (there are too few of these)."""

    conv: Convolution
    m: int
    rows: int
    lanes: int
    width: int
    inside: bool

    @property
    def n(self) -> int:
        """Inputs of a line of a tile."""
        return self.m + WINDOW - 1

    @property
    def of(self) -> DType:
        """The type of the numbers."""
        return self.conv.out.dtype

    @property
    def columns(self) -> PrimExpr:
        """Tiles side by side."""
        return (self.conv.extents[self.conv.spatial[1]] + (self.m - 1)) // self.m

    @property
    def tiles(self) -> PrimExpr:
        """Tiles of a block of rows."""
        return self.columns * self.rows

    @property
    def channels(self) -> int:
        """Input channels, in whole vectors."""
        return -(-_value(self.conv.extents[self.conv.channel]) // self.lanes) * self.lanes

    @property
    def panels(self) -> int:
        """Panels of filters."""
        return -(-_value(self.conv.extents[self.conv.filter]) // self.width)

    @property
    def filters(self) -> int:
        """Output channels, in whole panels."""
        return self.panels * self.width

    @property
    def product(self) -> tuple[PrimExpr, ...]:
        """Extents of the matrix products: places of a tile, panels, tiles, filters of a panel, channels."""
        places, panels, width, channels = (
            IntImm(INT64, x) for x in (self.n * self.n, self.panels, self.width, self.channels)
        )
        return (places, panels, self.tiles, width, channels)

    @property
    def kind(self) -> ForKind:
        """Of the outermost loop of a stage."""
        return "parallel" if self.inside else "serial"


def _value(extent: PrimExpr) -> int:
    assert isinstance(extent, IntImm)
    return extent.value


class Buffers:
    """What is computed with: the data `x` of a block of rows with channels last, the transformed weights `u` and data
    `v`, their products `p`, the results `y` with filters last, and for each tile numbers that are finite when its
    results are."""

    def __init__(self, plan: Plan) -> None:
        m, of = plan.m, plan.of
        wide = plan.columns * m
        self.x = buffer("data_rows", (plan.rows * m + WINDOW - 1, wide + (WINDOW - 1), plan.channels), of)
        self.v, self.u, self.p = product_buffers(plan.product, of)
        self.y = buffer("result_rows", (plan.rows * m, wide, plan.filters), of)
        self.finite = buffer("finite", (plan.tiles, plan.lanes), of)

    def of_rows(self) -> tuple[Buffer, ...]:
        """Those of a block of rows."""
        return (self.x, self.v, self.p, self.y, self.finite)


def product_buffers(extents: Sequence[PrimExpr], of: DType) -> tuple[Buffer, Buffer, Buffer]:
    """The transformed data and weights, and their products, for so many places, panels, tiles, filters of a panel and
    channels."""
    places, panels, tiles, width, channels = extents
    return (
        buffer("data_transform", (places, tiles, channels), of),
        buffer("weight_transform", (places, panels, channels, width), of),
        buffer("product", (places, panels, tiles, width), of),
    )


class _Line:
    """The vector of channels that a stage computes with, and the registers for what a line of a tile uses twice."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.lane = Var("lane", INT64)
        self.kept = buffer("kept", (2 * len(algebra.PAIRS[plan.m]), plan.lanes), plan.of, "local")
        self.used = 0

    def keep(self, value: PrimExpr) -> tuple[Stmt, PrimExpr]:
        """A value that is used several times: the statement that stores it, and what loads it."""
        self.used += 1
        at = (self.used - 1, self.lane)
        return store(self.kept, value, *at), load(self.kept, *at)

    def run(self, stmts: Iterable[Stmt]) -> Stmt:
        """Each of the assignments for all channels of the vector, one after the other."""
        self.used = 0
        return in_lanes(self.lane, self.plan.lanes, stmts)


def in_lanes(lane: Var, lanes: int, stmts: Iterable[Stmt]) -> Stmt:
    """Each of some assignments for all lanes of a vector, one after the other."""
    return seq(*(For(lane, IntImm(INT64, 0), IntImm(INT64, lanes), "vectorized", one) for one in stmts))


# --- weights ----------------------------------------------------------------------------------------------------------
def transform_weights(plan: Plan, b: Buffers, kind: ForKind) -> Stmt:
    """`u = G w Gᵀ` of every filter and channel, computed in double precision for vectors of filters; `kind` is that of
    the loop over the channels."""
    conv, n, g, lanes = plan.conv, plan.n, algebra.weight_matrix(plan.m), plan.lanes
    w = buffer("window", (WINDOW, WINDOW, lanes), FLOAT64, "local")
    half = buffer("half", (n, WINDOW, lanes), FLOAT64, "local")
    lane = Var("lane", INT64)

    def vector(c: Var, p: Var, q: Var) -> Stmt:
        j = q * lanes + lane
        k = p * plan.width + j
        kept = prim.all_of(
            *_within(k, plan.filters, conv.extents[conv.filter]), *_within(c, plan.channels, conv.extents[conv.channel])
        )

        def row(r: Var, s: Var) -> Stmt:
            at = {conv.filter: k, conv.channel: c, conv.window[0]: r, conv.window[1]: s}
            value = _choice(kept, prim.cast(conv.load_weight(at), FLOAT64))
            return in_lanes(lane, lanes, [store(w, value, r, s, lane)])

        def down(s: Var) -> Stmt:
            line = [load(w, r, s, lane) for r in range(WINDOW)]
            made = (store(half, algebra.combined(row, line), i, s, lane) for i, row in enumerate(g))
            return in_lanes(lane, lanes, made)

        def along(i: Var) -> Stmt:
            line = [load(half, i, s, lane) for s in range(WINDOW)]
            values = [prim.cast(algebra.combined(row, line), plan.of) for row in g]
            return in_lanes(lane, lanes, (store(b.u, e, i * n + s, p, c, j) for s, e in enumerate(values)))

        body = seq(
            nest([("r", WINDOW), ("s", WINDOW)], row),
            nest([("s", WINDOW)], down),
            nest([("i", n)], along),
        )
        extents = ((c, plan.channels), (p, plan.panels), (q, plan.width // lanes))
        outer: dict[Var, PrimExpr] = {v: IntImm(INT64, e) for v, e in extents}
        return block("weight_transform", outer, (conv.weight,), (b.u,), body, (w, half))

    return nest([("c", plan.channels, kind), ("p", plan.panels), ("q", plan.width // lanes)], vector)


def _within(index: PrimExpr, padded: int, extent: PrimExpr) -> tuple[PrimExpr, ...]:
    """The condition that an index is not beyond an extent; none when that is the padded one."""
    return () if isinstance(extent, IntImm) and extent.value == padded else (index < extent,)


def _choice(condition: PrimExpr, value: PrimExpr) -> PrimExpr:
    if isinstance(condition, IntImm):
        return value
    return Call(value.dtype, "if_then_else", (condition, value, zero(value.dtype)))


# --- data -------------------------------------------------------------------------------------------------------------
def gather(plan: Plan, b: Buffers, places: Sequence[Var]) -> Stmt:
    """The rows of the data that a block of rows uses, with channels last; zeros beyond the edge."""
    conv, first = plan.conv, _first_row(plan, places)
    high, wide = (conv.data_length(a) for a in conv.spatial)
    count = _value(conv.extents[conv.channel])
    batch = dict(zip(conv.batch, places))

    def copy(r: Var, w: PrimExpr, c: PrimExpr) -> Stmt:
        at = {**batch, conv.channel: c, conv.spatial[0]: first + r, conv.spatial[1]: w}
        return store(b.x, conv.load_data(at), r, w, c)

    def zeros(r: Var, at: PrimExpr, extent: PrimExpr) -> Stmt:
        vectors = plan.channels // plan.lanes
        return nest(
            [("w", extent), ("c", vectors), ("lane", plan.lanes, "vectorized")],
            lambda w, c, lane: store(b.x, zero(plan.of), r, at + w, c * plan.lanes + lane),
        )

    def row(r: Var) -> Stmt:
        moved = turned_copies(wide, count, plan.lanes, lambda w, c: copy(r, w, c), to_lines=False)
        filled = nest(
            [("w", wide), ("c", plan.channels - count)], lambda w, c: store(b.x, zero(plan.of), r, w, c + count)
        )
        inside = IfThenElse(first + r < high, seq(moved, filled), zeros(r, IntImm(INT64, 0), wide))
        return seq(inside, zeros(r, wide, b.x.shape[1] - wide))

    return block("data_rows", {}, (conv.data,), (b.x,), nest([("r", b.x.shape[0], plan.kind)], row))


def transform_data(plan: Plan, b: Buffers, places: Sequence[Var]) -> Stmt:
    """`v = Bᵀ d B` of every tile."""
    m, n, lanes = plan.m, plan.n, plan.lanes
    half = buffer("half", (n, n, lanes), plan.of, "local")
    line = _Line(plan)

    def tile(t: Var, row: Var, column: Var, c: Var) -> Stmt:
        channel = c * lanes + line.lane

        def down(j: Var) -> Stmt:
            values = [load(b.x, row + i, column + j, channel) for i in range(n)]
            return line.run(algebra.input_line(m, values, line.keep, lambda i, e: store(half, e, i, j, line.lane)))

        def along(i: Var) -> Stmt:
            values = [load(half, i, j, line.lane) for j in range(n)]
            return line.run(algebra.input_line(m, values, line.keep, lambda j, e: store(b.v, e, i * n + j, t, channel)))

        return seq(nest([("j", n, "unroll")], down), nest([("i", n, "unroll")], along))

    body = _tiles(plan, lambda t, row, column: nest(
        [("c", plan.channels // lanes)], lambda c: tile(t, row, column, c)))  # fmt: skip
    return block("data_transform", {}, (b.x,), (b.v,), body, (half, line.kept))


def _tiles(plan: Plan, body: Callable[[Var, Var, Var], Stmt]) -> Stmt:
    """A loop over the tiles of a block of rows; `body` is told the tile, its first row and its first column."""
    row, column = Var("row", INT64), Var("column", INT64)

    def tile(t: Var) -> Stmt:
        inner = LetStmt(column, t % plan.columns * plan.m, body(t, row, column))
        return LetStmt(row, t // plan.columns * plan.m, inner)

    return nest([("t", plan.tiles, plan.kind)], tile)


def _first_row(plan: Plan, places: Sequence[Var]) -> PrimExpr:
    """The first row of the result in a block of rows: the last of the places counts these."""
    return places[-1] * (plan.rows * plan.m)


# --- results ----------------------------------------------------------------------------------------------------------
def transform_products(plan: Plan, b: Buffers, places: Sequence[Var]) -> Stmt:
    """`y = Aᵀ p A` of every tile; what its results add up to tells whether they are finite."""
    m, n, lanes = plan.m, plan.n, plan.lanes
    half = buffer("half", (m, n, lanes), plan.of, "local")
    results = buffer("results", (m, lanes), plan.of, "local")
    line = _Line(plan)

    def vector(t: Var, row: Var, column: Var, k: Var, q: Var) -> Stmt:
        filter_ = k * plan.width + q * lanes + line.lane

        def down(j: Var) -> Stmt:
            values = [load(b.p, j + i * n, k, t, q * lanes + line.lane) for i in range(n)]
            return line.run(algebra.output_line(m, values, line.keep, lambda i, e: store(half, e, i, j, line.lane)))

        def along(i: Var) -> Stmt:
            values = [load(half, i, j, line.lane) for j in range(n)]
            made = algebra.output_line(m, values, line.keep, lambda j, e: store(results, e, j, line.lane))
            kept = [load(results, j, line.lane) for j in range(m)]
            made += [store(b.y, value, row + i, column + j, filter_) for j, value in enumerate(kept)]
            total = load(b.finite, t, line.lane) + algebra.sum_of(kept)
            return line.run([*made, store(b.finite, total, t, line.lane)])

        return seq(nest([("j", n)], down), nest([("i", m)], along))

    def tile(t: Var, row: Var, column: Var) -> Stmt:
        start = line.run([store(b.finite, zero(plan.of), t, line.lane)])
        loops = [("k", plan.panels), ("q", plan.width // lanes)]
        return seq(start, nest(loops, lambda k, q: vector(t, row, column, k, q)))

    own = (half, results, line.kept)
    return block("result_transform", {}, (b.p,), (b.y, b.finite), _tiles(plan, tile), own)


def recompute(plan: Plan, b: Buffers, places: Sequence[Var]) -> Stmt:
    """Tiles with results that are not finite, computed as they are defined."""
    conv, m, lanes = plan.conv, plan.m, plan.lanes
    sums = buffer("sums", (m, m, lanes), plan.of, "local")
    weights = buffer("weights", (lanes,), plan.of, "local")
    total = buffer("total", (1,), plan.of, "local")
    line, largest = _Line(plan), LARGEST[plan.of.bits]

    def each(value: Callable[[Var, Var], Stmt]) -> Stmt:
        """A statement for every place in a tile."""
        return nest([("i", m), ("j", m)], lambda i, j: line.run([value(i, j)]))

    def vector(row: Var, column: Var, k: Var) -> Stmt:
        filter_ = k * lanes + line.lane
        kept = prim.all_of(*_within(filter_, plan.filters, conv.extents[conv.filter]))

        def term(c: Var, r: Var, s: Var) -> Stmt:
            at = {conv.filter: filter_, conv.channel: c, conv.window[0]: r, conv.window[1]: s}
            weight = line.run([store(weights, _choice(kept, conv.load_weight(at)), line.lane)])
            return seq(weight, each(lambda i, j: store(
                sums, load(sums, i, j, line.lane) + load(b.x, row + i + r, column + j + s, c)
                * load(weights, line.lane), i, j, line.lane)))  # fmt: skip

        start = each(lambda i, j: store(sums, zero(plan.of), i, j, line.lane))
        run = nest([("c", conv.extents[conv.channel]), ("r", WINDOW), ("s", WINDOW)], term)
        end = each(lambda i, j: store(b.y, load(sums, i, j, line.lane), row + i, column + j, filter_))
        return seq(start, run, end)

    def tile(t: Var, row: Var, column: Var) -> Stmt:
        parts = line.run([store(weights, load(b.finite, t, line.lane), line.lane)])
        add = nest([("l", lanes)], lambda one: store(total, load(total, 0) + load(weights, one), 0))
        fine = prim.And(load(total, 0) >= FloatImm(plan.of, -largest), load(total, 0) <= FloatImm(plan.of, largest))
        again = nest([("k", plan.filters // lanes)], lambda k: vector(row, column, k))
        return seq(store(total, zero(plan.of), 0), parts, add, IfThenElse(prim.Not(fine), again))

    reads = (b.x, b.finite, conv.weight)
    return block("recompute", {}, reads, (b.y,), _tiles(plan, tile), (sums, weights, total))


def scatter(plan: Plan, b: Buffers, places: Sequence[Var]) -> Stmt:
    """The rows of the result in its own order of dimensions."""
    conv, first = plan.conv, _first_row(plan, places)
    high, wide = (conv.extents[a] for a in conv.spatial)
    filters = conv.extents[conv.filter]
    batch = dict(zip(conv.batch, places))
    size = IntImm(INT64, plan.rows * plan.m)
    whole = isinstance(high, IntImm) and high.value % size.value == 0

    def copy(r: Var, w: PrimExpr, k: PrimExpr) -> Stmt:
        at = {**batch, conv.filter: k, conv.spatial[0]: first + r, conv.spatial[1]: w}
        return BufferStore(conv.out, load(b.y, r, w, k), conv.indices_of_result(at))

    to_lines = conv.of_out[-1] is not conv.filter
    body = nest(
        [("r", size if whole else prim.Min(size, high - first), plan.kind)],
        lambda r: turned_copies(wide, _value(filters), plan.lanes, lambda w, k: copy(r, w, k), to_lines=to_lines),
    )
    return block("result", {}, (b.y,), (written_region(plan, places),), body)


def written_region(plan: Plan, places: Iterable[Var]) -> BufferRegion:
    """The part of the result that a block of rows makes."""
    conv, at = plan.conv, list(places)
    made = {axis: Range(var, IntImm(INT64, 1)) for axis, var in zip(conv.batch, at)}
    made[conv.filter] = Range(IntImm(INT64, 0), conv.extents[conv.filter])
    made[conv.spatial[0]] = Range(_first_row(plan, at), IntImm(INT64, plan.rows * plan.m))
    made[conv.spatial[1]] = Range(IntImm(INT64, 0), conv.extents[conv.spatial[1]])
    return BufferRegion(conv.out, tuple(made[a] for a in conv.of_out))


def stages(plan: Plan, b: Buffers, places: Sequence[Var], product: Stmt) -> Sequence[Stmt]:
    """What runs for a block of rows, in order. `places` says which one: in the axes of the batch, and among the blocks
    of rows; `product` makes the products `p` of `v` and `u`."""
    before, after = (gather, transform_data), (transform_products, recompute, scatter)
    return [*(stage(plan, b, places) for stage in before), product, *(stage(plan, b, places) for stage in after)]
