"""Elementwise and other data-parallel blocks: one pass along memory, shared among threads."""

from __future__ import annotations

from relaxlang.ir.prim import BufferLoad, IntImm, PrimExpr, Var
from relaxlang.ir.tir import BlockRealize, BufferStore
from relaxlang.schedule.checks import is_output
from relaxlang.schedule.rules.analysis import constant, is_costly, is_plain, loads_of, stride
from relaxlang.schedule.rules.processor import Processor
from relaxlang.schedule.schedule import Schedule
from relaxlang.schedule.state import STREAMING
from relaxlang.schedule.trace import LoopRV

UNROLLED = 4
"""Registers that a vector takes where the line is long."""
MOST_LANES = 64
BLOCK = 64
"""Side of a block that is transposed: its lines fit into the first-level cache."""
LARGE = 32 << 20
"""Bytes of a large last-level cache."""
SIDE = 16
"""Side of a tile that is transposed in registers."""


def schedule_spatial(sch: Schedule, name: str, processor: Processor) -> bool:
    """Schedule a block whose axes are all spatial and that stores one expression along memory; whether it did."""
    realize = sch.state.blocks[name]
    store = realize.block.body
    axes = realize.block.iter_vars
    if not is_plain(sch.state, realize) or not isinstance(store, BufferStore) or not axes:
        return False
    if any(a.kind != "spatial" for a in axes) or realize.block.init is not None:
        return False
    loops = sch.get_loops(name)
    last = axes[-1].var
    if stride(store.buffer, store.indices, last) != "unit":
        return False
    loads = loads_of(store.value)
    together = _flat(realize, store, loads)
    if any(stride(one.buffer, one.indices, last) == "strided" for one in loads):
        _transpose(sch, name, realize, loads)
        return True
    inner = loops[together:]
    line = sch.fuse(*inner) if len(inner) > 1 else inner[0]
    outer = loops[:together]
    first = _line(sch, line, outer, processor.lanes(store.buffer.dtype.itemsize))
    _stream(sch, name, store, first)
    return True


def _stream(sch: Schedule, name: str, store: BufferStore, outermost: LoopRV | None) -> None:
    """Let results go past the caches where storing may be what takes the time: they are as large as a last-level cache,
    or may be, and take few operations an element."""
    size = store.buffer.dtype.itemsize
    for extent in store.buffer.shape:
        size *= constant(extent) or LARGE
    large = size >= LARGE and not is_costly(store)
    if outermost is not None and large and is_output(sch.state, sch.state.blocks[name]):
        sch.annotate(outermost, STREAMING, 1)


def _flat(realize: BlockRealize, store: BufferStore, loads: list[BufferLoad]) -> int:
    """From which axis on the block is one run through memory in every buffer: all of them use these axes as their last
    indices, or none of them."""
    axes = [a.var for a in realize.block.iter_vars]
    first = len(axes) - 1
    accesses: list[BufferStore | BufferLoad] = [store, *loads]
    for k in range(len(axes) - 1, -1, -1):
        run = axes[k:]
        if not all(_runs(one.buffer.shape, one.indices, run, realize) for one in accesses):
            break
        first = k
    return first


def _runs(shape: tuple[PrimExpr, ...], indices: tuple[PrimExpr, ...], run: list[Var], realize: BlockRealize) -> bool:
    """Whether the last indices are the axes of a run, over whole dimensions (the first of the run may be a part)."""
    from relaxlang.ir.visit import free_vars

    if len(run) == 1:
        return True
    if not set(run) & set(free_vars(indices)):
        return True
    if (
        len(indices) < len(run)
        or list(indices[-len(run) :]) != list(run)
        or set(run) & set(free_vars(indices[: -len(run)]))
    ):
        return False
    extents = {a.var: a.dom.extent for a in realize.block.iter_vars}
    return all(extents[v] == dim for v, dim in zip(run[1:], shape[len(shape) - len(run) + 1 :]))


def _line(sch: Schedule, line: LoopRV, outer: list[LoopRV], lanes: int) -> LoopRV | None:
    """Split a line into vectors, several at a time, and share the outermost loop, which is returned."""
    extent = constant(sch.get(line).extent)
    if extent is not None and extent <= lanes:
        pieces = []
        if extent > 1:
            sch.vectorize(line)
    else:
        several = min(lanes * UNROLLED, MOST_LANES)
        width = several if extent is None or extent >= several * 2 else lanes
        piece, vector = sch.split(line, [None, width])
        sch.vectorize(vector)
        pieces = [piece]
    for one in [*outer, *pieces]:
        found = sch.get(one)
        if found.kind == "serial" and not (isinstance(found.extent, IntImm) and found.extent.value <= 1):
            sch.parallel(one)
            return one
    return None


def _transpose(sch: Schedule, name: str, realize: BlockRealize, loads: list[BufferLoad]) -> None:
    """Blocks of 64 × 64, in tiles of 16 × 16 that registers hold, for the axis along which the result is contiguous and
    the one along which an input is."""
    axes = realize.block.iter_vars
    loops = sch.get_loops(name)
    last = len(axes) - 1
    source = next(one for one in loads if stride(one.buffer, one.indices, axes[last].var) == "strided")
    along = [k for k, a in enumerate(axes) if k != last and stride(source.buffer, source.indices, a.var) == "unit"]
    if not along:
        for one in loops:
            if (constant(sch.get(one).extent) or 2) > 1:
                sch.parallel(one)
                return
        return
    row = along[-1]
    a0, a1, a2 = sch.split(loops[row], [None, BLOCK // SIDE, SIDE])
    b0, b1, b2 = sch.split(loops[last], [None, BLOCK // SIDE, SIDE])
    others = [loops[k] for k in range(last) if k != row]
    sch.reorder(*others, a0, b0, a1, b1, a2, b2)
    sch.unroll(a2)
    sch.vectorize(b2)
    for one in [*others, a0, b0]:
        if (constant(sch.get(one).extent) or 2) > 1:
            sch.parallel(one)
            return
