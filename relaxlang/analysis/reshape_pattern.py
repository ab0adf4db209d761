"""Kernels that only give a tensor another shape."""

from __future__ import annotations

from relaxlang.arith import Analyzer
from relaxlang.ir import prim
from relaxlang.ir.prim import IntImm, PrimExpr
from relaxlang.ir.tir import Block, BufferStore, PrimFunc, Range
from relaxlang.ir.visit import walk


def has_reshape_pattern(func: PrimFunc) -> bool:
    """Whether a kernel of one input and one output copies every element to the same place in row-major order.

    The index arithmetic of the kernel decides, whatever it is called; what can't be proved is no reshape.
    """
    buffers = [func.buffer_map[p] for p in func.params if p in func.buffer_map]
    if len(buffers) != 2 or buffers[0].dtype is not buffers[1].dtype:
        return False
    source, target = buffers
    if any(b.strides or b.elem_offset is not None for b in buffers):
        return False
    blocks = [n for n in walk(func.body) if isinstance(n, Block) and n.iter_vars]
    stores = [n for n in walk(func.body) if isinstance(n, BufferStore)]
    if len(stores) != 1 or len(blocks) != (1 if target.shape else len(blocks)):
        return False
    store = stores[0]
    load = store.value
    if store.buffer is not target or not isinstance(load, prim.BufferLoad) or load.buffer is not source:
        return False
    if not covers(store, blocks[0] if blocks else None):
        return False
    steps = _steps(load.indices, source.shape), _steps(store.indices, target.shape)
    if blocks and steps[0] is not None and steps[1] is not None:
        longer = [axis.var for axis in blocks[0].iter_vars if not _is_one(axis.dom.extent)]
        return all(steps[0].get(var) == steps[1].get(var) for var in (None, *longer))
    dims = [d for b in buffers for d in b.shape if isinstance(d, prim.Var)]
    analyzer = Analyzer(dims)
    if not analyzer.can_prove_equal(_count(source.shape), _count(target.shape)):
        return False
    if blocks:
        for axis in blocks[0].iter_vars:
            analyzer.bind(axis.var, Range(prim.cast(axis.dom.min, axis.var.dtype), axis.dom.extent))
    return analyzer.can_prove_equal(_linear(load.indices, source.shape), _linear(store.indices, target.shape))


def _steps(indices: tuple[PrimExpr, ...], shape: tuple[PrimExpr, ...]) -> dict[PrimExpr | None, int] | None:
    """How far apart in memory the elements along each axis are, where the indices are the axes themselves (or 0) and
    the dimensions are known, and under None the count of all elements; None for other indices. What reads and writes
    like this needs no proof."""
    found: dict[PrimExpr | None, int] = {}
    step = 1
    for index, dim in zip(reversed(indices), reversed(shape)):
        if not isinstance(dim, IntImm) or dim.value < 1 or index in found:
            return None
        if isinstance(index, prim.Var):
            found[index] = step
        elif not _is_zero(index):
            return None
        step *= dim.value
    found[None] = step
    return found


def covers(store: BufferStore, block: Block | None) -> bool:
    """Whether a store writes every element of its buffer, each in one instance of its block.

    Its indices are the spatial axes of the block, over the whole of each dimension (0 where a dimension is 1)."""
    axes = {axis.var: axis for axis in (block.iter_vars if block is not None else ())}
    for index, dim in zip(store.indices, store.buffer.shape):
        if isinstance(index, IntImm):
            if index.value != 0 or not (isinstance(dim, IntImm) and dim.value == 1):
                return False
            continue
        axis = axes.pop(index, None) if isinstance(index, prim.Var) else None
        if axis is None or axis.kind != "spatial" or not _is_zero(axis.dom.min):
            return False
        if axis.dom.extent != dim and not Analyzer().can_prove_equal(axis.dom.extent, dim):
            return False
    return all(_is_one(axis.dom.extent) for axis in axes.values() if axis.kind == "spatial")


def _is_zero(e: PrimExpr) -> bool:
    return isinstance(e, IntImm) and e.value == 0


def _is_one(e: PrimExpr) -> bool:
    return isinstance(e, IntImm) and e.value == 1


def _count(shape: tuple[PrimExpr, ...]) -> PrimExpr:
    total: PrimExpr = IntImm(prim.INT64, 1)
    for dim in shape:
        total = total * dim
    return total


def _linear(indices: tuple[PrimExpr, ...], shape: tuple[PrimExpr, ...]) -> PrimExpr:
    """The row-major place of an element."""
    place: PrimExpr = IntImm(prim.INT64, 0)
    for index, dim in zip(indices, shape):
        place = place * dim + index
    return place
