"""Loads that give the same in all iterations of a loop, which stand before it.

LLVM's passes that code in vector form goes through leave them, and what is computed from them, in the loop: a
normalisation would divide once an element. Stores of other pointers cannot reach memory that the function allocated
itself, unless its address is taken.
"""

from __future__ import annotations

from collections.abc import Collection

from relaxlang.ir import prim, tir
from relaxlang.ir.prim import BufferLoad, IntImm, Var
from relaxlang.ir.tir import Buffer, BufferStore, Stmt
from relaxlang.ir.visit import walk


def invariant_loads(body: Stmt, own: Collection[Var]) -> list[BufferLoad]:
    """The loads of single values at constant places of memory in `own` that a loop's body does not store to."""
    if not own:
        return []
    stored: set[Var] = set()
    found: dict[BufferLoad, None] = {}
    for node in walk(body):
        if isinstance(node, tir.Evaluate) or (isinstance(node, prim.Call) and _takes_addresses(node)):
            return []
        if isinstance(node, BufferStore):
            stored.add(node.buffer.data)
        elif isinstance(node, BufferLoad) and node.buffer.data in own and _is_inside(node):
            found[node] = None
    return [load for load in found if load.buffer.data not in stored]


def _takes_addresses(call: prim.Call) -> bool:
    from relaxlang.ir.intrinsics import INTRINSICS

    known = INTRINSICS.get(call.op) if isinstance(call.op, str) else None
    return known is None or not known.pure or known.name in ("address_of", "call_pure_extern", "call_llvm_pure_intrin")


def _is_inside(load: BufferLoad) -> bool:
    if len(load.indices) != 1 or load.predicate is not None or load.buffer.dtype.lanes > 1:
        return False
    index = load.indices[0]
    return isinstance(index, IntImm) and 0 <= index.value < _size(load.buffer)


def _size(buffer: Buffer) -> int:
    extent = buffer.shape[0] if len(buffer.shape) == 1 else None
    return extent.value if isinstance(extent, IntImm) else 0
