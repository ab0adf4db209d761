"""What rules ask of blocks: how accesses move through memory, which blocks are elementwise, what a reduction adds
up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from relaxlang.arith.analyzer import Analyzer
from relaxlang.arith.deduce import detect_linear_equation
from relaxlang.base.record import record
from relaxlang.ir import prim
from relaxlang.ir.prim import BufferLoad, IntImm, PrimExpr, Var
from relaxlang.ir.tir import BlockRealize, Buffer, BufferStore, For
from relaxlang.ir.visit import free_vars, walk
from relaxlang.schedule.access import linear_form
from relaxlang.schedule.state import State

Stride = Literal["none", "unit", "strided"]


def stride(buffer: Buffer, indices: Sequence[PrimExpr], var: Var) -> Stride:
    """How an access to a row-major buffer moves through memory when `var` goes up by one."""
    seen: Stride = "none"
    inner = True
    for index, dim in zip(reversed(indices), reversed(buffer.shape)):
        if var in free_vars(index):
            if not (inner and seen == "none") or step(index, var) != 1 or buffer.strides:
                return "strided"
            seen = "unit"
        if not (isinstance(dim, IntImm) and dim.value == 1):
            inner = False
    return seen


def step(index: PrimExpr, var: Var) -> int | None:
    """What is added to an index when `var` goes up by one; None when that varies or is not known."""
    form = linear_form(index)
    if form is not None:
        return form[0].get(var, 0)
    factors = detect_linear_equation(index, [var], Analyzer())
    return factors[0].value if factors is not None and isinstance(factors[0], IntImm) else None


def loop_of(state: State, realize: BlockRealize, axis: Var) -> For | None:
    """The loop that alone drives an axis, and nothing else; None when there is none."""
    values = {a.var: v for a, v in zip(realize.block.iter_vars, realize.iter_values)}
    value = values[axis]
    if not isinstance(value, Var) or sum(value in free_vars(v) for v in values.values()) != 1:
        return None
    return next((s for s in state.loops_around(realize) if s.loop_var is value), None)


def is_plain(state: State, realize: BlockRealize) -> bool:
    """Whether a block stands alone in serial loops from 0, one an axis, in the order of its axes."""
    loops = state.loops_around(realize)
    values = realize.iter_values
    if len(loops) != len(values) or any(s.loop_var is not v for s, v in zip(loops, values)):
        return False
    below: object = realize
    for loop in reversed(loops):
        if loop.body is not below or loop.kind != "serial" or loop.annotations:
            return False
        below = loop
    return isinstance(realize.predicate, IntImm)


def loads_of(expr: object) -> list[BufferLoad]:
    """The loads in an expression or statement, in order."""
    return [n for n in walk(expr) if isinstance(n, BufferLoad)]  # type: ignore[arg-type]


@record
class Update:
    """`store.buffer[...] = kind(itself, value)`: what a reduction block does."""

    store: BufferStore
    kind: type[prim.BinaryOp]
    value: PrimExpr


def update_of(realize: BlockRealize) -> Update | None:
    """The update of a reduction block with one store; None for others."""
    store = realize.block.body
    if realize.block.init is None or not isinstance(store, BufferStore):
        return None
    value = store.value
    if not isinstance(value, (prim.Add, prim.Mul, prim.Min, prim.Max)):
        return None
    for old, new in ((value.a, value.b), (value.b, value.a)):
        if isinstance(old, BufferLoad) and old.buffer is store.buffer and old.indices == store.indices:
            return Update(store, type(value), new)
    return None


def constant(extent: PrimExpr) -> int | None:
    """The value of a constant extent."""
    return extent.value if isinstance(extent, IntImm) else None


LAYOUT_REWRITE = "meta_schedule.layout_rewrite_preproc"
"""The annotation of a block that only brings a constant into another order, and may do so beforehand."""
UNKNOWN = 1 << 14
"""What an extent that is not constant counts as."""
CALL = 8
"""Operations that a call of a function counts as."""


def work(state: State) -> int:
    """An estimate of the operations that all blocks do together."""
    total = 0
    for name, realize in state.blocks.items():
        if name != state.root.block.name_hint:
            count = sum(CALL if isinstance(n, prim.Call) else 1 for n in walk(realize.block.body) if _computes(n))
            for axis in realize.block.iter_vars:
                extent = constant(axis.dom.extent)
                count *= UNKNOWN if extent is None else extent
            total += count
    return total


def _computes(node: object) -> bool:
    return isinstance(node, (prim.BinaryOp, prim.Call, prim.Select, prim.Cast, BufferLoad))


def is_costly(expr: PrimExpr | BufferStore) -> bool:
    """Whether an expression calls functions that take many instructions."""
    cheap = {"if_then_else", "likely", "fabs", "floor", "ceil", "sqrt", "bitwise_and", "bitwise_or", "shift_left"}
    return any(isinstance(n, prim.Call) and n.op not in cheap for n in walk(expr))
