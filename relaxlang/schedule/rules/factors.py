"""How a sum of products is computed: which axis becomes vectors, which gives the rows of a tile, how large that is."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from relaxlang.base.record import record
from relaxlang.ir import prim
from relaxlang.ir.prim import BufferLoad, IntImm
from relaxlang.ir.tir import BlockRealize
from relaxlang.schedule.rules.analysis import constant, loads_of, stride, update_of
from relaxlang.schedule.rules.processor import Processor

SHORT = 64
"""Terms from which on a constant factor may give the vectors, though the result lies along another axis."""


@record
class Contraction:
    """The axes of a sum of products, by their position in the block: the vector axis, the row axis, the other
    spatial and the reduction axes; which read buffer has the vector axis, whether it lies along memory there, and
    whether it is constant, so that it can be brought into any order beforehand (`lifted`)."""

    vector: int
    row: int
    others: tuple[int, ...]
    reduce: tuple[int, ...]
    panel: BufferLoad
    along: bool
    lifted: bool


def analyse(realize: BlockRealize, lanes: int, processor: Processor) -> Contraction | None:
    """How to compute a reduction block as a contraction, the best way of several; None when it is none."""
    axes = realize.block.iter_vars
    best, chosen = 0.0, None
    for one in _candidates(realize, processor):
        m, n = constant(axes[one.row].dom.extent), constant(axes[one.vector].dom.extent)
        quality = tile_quality(m, n, lanes, processor.registers)[0] * (1.0 if one.lifted or one.along else 0.9)
        if quality > best:
            best, chosen = quality, one
    return chosen


def _candidates(realize: BlockRealize, processor: Processor) -> Iterator[Contraction]:
    update = update_of(realize)
    pair = None if update is None or update.kind is not prim.Add else _pair(update.value)
    if update is None or pair is None:
        return
    factors = [loads_of(one) for one in pair]
    if any(len(f) != 1 for f in factors):
        return
    a, b = factors[0][0], factors[1][0]
    axes = realize.block.iter_vars
    spatial = [k for k, x in enumerate(axes) if x.kind == "spatial"]
    reduce = tuple(r for r, x in enumerate(axes) if x.kind == "reduce")
    terms = 1
    for r in reduce:
        terms *= constant(axes[r].dom.extent) or SHORT
    for k in reversed(spatial):
        var = axes[k].var
        uses = [stride(one.buffer, one.indices, var) for one in (a, b)]
        if uses.count("none") != 1:
            continue
        panel, other = (a, b) if uses[1] == "none" else (b, a)
        lifted = panel.buffer in processor.constants and all(isinstance(d, IntImm) for d in panel.buffer.shape)
        unit = stride(update.store.buffer, update.store.indices, var) == "unit"
        if not unit and not (lifted and terms >= SHORT and var in update.store.indices):
            continue
        rows = [
            r for r in spatial
            if r != k and stride(panel.buffer, panel.indices, axes[r].var) == "none"
            and stride(other.buffer, other.indices, axes[r].var) != "none"
        ]  # fmt: skip
        if not rows:
            continue
        row = max(rows, key=lambda r: (constant(axes[r].dom.extent) or 1 << 40, r))
        others = tuple(s for s in spatial if s not in (k, row))
        along = stride(panel.buffer, panel.indices, var) == "unit"
        yield Contraction(k, row, others, reduce, panel, along, lifted)


def _pair(value: prim.PrimExpr) -> tuple[prim.PrimExpr, prim.PrimExpr] | None:
    """The factors of a product, or of the products of the bytes of words."""
    if isinstance(value, prim.Mul):
        return value.a, value.b
    return (value.args[0], value.args[1]) if isinstance(value, prim.Call) and value.op == "dp4a" else None


def tile(m: int | None, n: int | None, lanes: int, processor: Processor) -> tuple[int, int]:
    """Rows and vectors of the register tile: as many accumulators as registers allow, and little beyond the edges."""
    _, rows, vectors = tile_quality(m, n, lanes, processor.registers)
    return rows, vectors


@lru_cache(maxsize=256)
def tile_quality(m: int | None, n: int | None, lanes: int, registers: int) -> tuple[float, int, int]:
    """What part of the peak the best register tile may reach, and its rows and vectors."""
    best = (0.0, 1, 1)
    for vectors, quality in (*_LONG, *_QUALITY) if m is not None and m <= 2 else _QUALITY:
        if n is None and vectors > 2:
            continue  # all but one of them may be beyond the end
        most = min(registers * 3 // 4, registers - 1 - vectors) // vectors
        for rows in range(1, min(most, 8, m or 8) + 1):
            hidden = min(1.0, rows * vectors / 14)  # as many sums as it takes to hide the latency of one
            once = 0.95 if m is not None and rows < m <= 8 else 1.0  # few rows had better read the other factor once
            used = _used(m, rows, _ROWS) * _used(n, vectors * lanes, _COLUMNS)
            score = quality * hidden * once * used * (1 + min(rows, 6) / 160)
            best = max(best, (score, rows, vectors), key=lambda b: b[0])
    return best


# What a tile of so many vectors reaches, the fewer the more loads there are for each multiplication.
_QUALITY = ((4, 1.0), (3, 0.975), (2, 0.965), (1, 0.75))
_LONG = ((12, 1.0), (8, 1.0), (6, 1.0))

_ROWS, _COLUMNS = (8, 33, 65, 129, 300), (128, 257, 384, 777)
"""What extents that are not known may be: tiles that waste little on them waste little on most. There are few rows more
often than few columns."""


def _used(extent: int | None, step: int, typical: tuple[int, ...]) -> float:
    """What part of the tiles is wanted."""
    extents = typical if extent is None else (extent,)
    return sum(e / (-(-e // step) * step) if e else 1.0 for e in extents) / len(extents)


LONG_PIECE, PIECE = 1024, 192
"""Columns of a piece of one or two rows of the result, and of more, that sweeps add to: it stays in the nearest caches,
and threads share the pieces."""
WRITTEN_OUT = range(8, 4, -1)
"""How many rows of the other factor a sweep may read at once, written out, for one or two rows of the result."""
IN_A_LOOP = (*range(16, 65), *range(15, 7, -1))
"""The same in a loop, for more rows of the result."""


@record
class Sweep:
    """How few rows are computed: `step` rows of the other factor at a time (`unrolled`: written out), for tiles of
    `rows` times `vectors` and pieces of so many columns."""

    rows: int
    vectors: int
    step: int
    unrolled: bool
    piece: int


def sweep_of(realize: BlockRealize, found: Contraction, m: int, lanes: int, processor: Processor) -> Sweep | None:
    """Sweeps that suit a contraction with `m` rows; None when there are no good ones: several reduction axes, few terms
    or a known number of them that whole sweeps do not divide (with conditions in it a sweep is slower than any other
    way), or a single row or lines that whole tiles do not divide, on a processor without masks."""
    axes = realize.block.iter_vars
    depth, n = constant(axes[found.reduce[0]].dom.extent), constant(axes[found.vector].dom.extent)
    if len(found.reduce) != 1:
        return None
    few = m <= 2
    steps = WRITTEN_OUT if few else IN_A_LOOP
    step = steps[0] if depth is None else next((d for d in steps if depth % d == 0), None)
    if step is None or (depth is not None and depth < 4 * step):
        return None
    rows, vectors = (m, 2 * m) if few else tile(m, n, lanes, processor)
    if not processor.has_masks and (m == 1 or n is None or n % (vectors * lanes)):
        return None
    return Sweep(rows, vectors, step, few, LONG_PIECE if few else PIECE)
