"""Kernels that may write their result over an argument."""

from __future__ import annotations

from relaxlang.analysis.reshape_pattern import covers
from relaxlang.ir import prim
from relaxlang.ir.tir import Block, Buffer, BufferStore, PrimFunc
from relaxlang.ir.visit import walk


def overwritable(func: PrimFunc) -> list[int]:
    """The places, among the parameters of a kernel with one output (its last buffer), of the inputs that the output may
    lie on: the kernel reads such an input only at the element that it then writes."""
    handles = [k for k, p in enumerate(func.params) if p in func.buffer_map]
    if len(handles) < 2:
        return []
    target = func.buffer_map[func.params[handles[-1]]]
    blocks = [n for n in walk(func.body) if isinstance(n, Block) and (n.iter_vars or n.alloc_buffers)]
    stores = [n for n in walk(func.body) if isinstance(n, BufferStore)]
    if len(stores) != 1 or stores[0].buffer is not target or not covers(stores[0], blocks[0] if blocks else None):
        return []
    if len(blocks) > 1 or any(b.init is not None or b.alloc_buffers or b.match_buffers for b in blocks):
        return []
    read: dict[Buffer, bool] = {}
    for load in (n for n in walk(func.body) if isinstance(n, prim.BufferLoad)):
        read[load.buffer] = read.get(load.buffer, True) and load.indices == stores[0].indices
    found = []
    for k in handles[:-1]:
        buffer = func.buffer_map[func.params[k]]
        if read.get(buffer, False) and _alike(buffer, target):
            found.append(k)
    return found


def _alike(a: Buffer, b: Buffer) -> bool:
    """Whether two buffers have one dtype and shape, plain rows and no offset."""
    plain = not (a.strides or b.strides) and a.elem_offset is None and b.elem_offset is None
    return plain and a.dtype is b.dtype and a.shape == b.shape
