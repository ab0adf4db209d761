"""How much arithmetic a kernel does and how much memory it touches, from its TensorIR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from relaxlang.base.diagnostics import fail
from relaxlang.base.record import record
from relaxlang.ir import prim, tir
from relaxlang.ir.prim import INT64, IntImm, PrimExpr, Var
from relaxlang.ir.tir import PrimFunc, Stmt
from relaxlang.ir.visit import LEAVES, children, free_vars, substitute

_OPERATIONS = (
    prim.Add, prim.Sub, prim.Mul, prim.Div, prim.Mod, prim.FloorDiv, prim.FloorMod, prim.Min, prim.Max,
)  # fmt: skip
# Intrinsics that move, choose or name values, and compute none.
_FREE = frozenset(
    "if_then_else likely reinterpret infinity min_value max_value undef assume address_of isnullptr ret "
    "tvm_access_ptr".split()
)


@record
class Work:
    """`flops`: operations on values of tensors (not on indices), each of one lane, a function such as `exp` counting as
    one; `nbytes`: the size of all buffers that the kernel is given. Both are int64 expressions of the kernel's symbolic
    dimensions. Branches count as if always taken, a loop without a known end as one iteration."""

    flops: PrimExpr
    nbytes: PrimExpr

    def at(self, func: PrimFunc, shapes: Sequence[Sequence[int]]) -> tuple[int, int]:
        """Operations and bytes for arguments of these shapes, in the order of the buffers. RLX3112 when they leave a
        dimension without a value."""
        values: dict[Var, PrimExpr] = {}
        buffers = [func.buffer_map[p] for p in func.params if p in func.buffer_map]
        for buffer, shape in zip(buffers, shapes):
            for dim, size in zip(buffer.shape, shape):
                if isinstance(dim, Var):
                    values[dim] = IntImm(dim.dtype, size)
        return _number(self.flops, values), _number(self.nbytes, values)


def _number(expr: PrimExpr, values: Mapping[Var, PrimExpr]) -> int:
    missing = [v.name for v in free_vars(expr) if v not in values]
    if missing:
        fail("RLX3112", f"the dimension `{missing[0]}` has no value")
    from relaxlang.arith import Analyzer

    made = Analyzer().simplify(substitute(expr, values))
    if not isinstance(made, IntImm):
        fail("RLX3112", f"`{expr}` has no constant value")
    return made.value


def work_of(func: PrimFunc) -> Work:
    """The work of a kernel, at any stage of lowering."""
    nbytes: PrimExpr = IntImm(INT64, 0)
    for param in func.params:
        buffer = func.buffer_map.get(param)
        if buffer is not None:
            size: PrimExpr = IntImm(INT64, buffer.dtype.itemsize)
            for dim in buffer.shape:
                size = size * prim.cast(dim, INT64)
            nbytes = nbytes + size
    return Work(_statement(func.body), nbytes)


def _statement(s: Stmt) -> PrimExpr:
    if isinstance(s, tir.For):
        extent = prim.cast(s.extent, INT64)
        if s.loop_var in set(free_vars(extent)) or any(isinstance(n, prim.BufferLoad) for n in _inside(extent)):
            extent = IntImm(INT64, 1)
        inner = _statement(s.body)
        if s.loop_var in set(free_vars(inner)):  # a bound of an inner loop depends on this one: take its middle
            middle = prim.cast(s.min, INT64) + extent // IntImm(INT64, 2)
            inner = substitute(inner, {s.loop_var: prim.cast(middle, s.loop_var.dtype)})
        return extent * inner
    if isinstance(s, tir.Block):
        return _statement(s.body)
    if isinstance(s, tir.BlockRealize):
        made = _statement(s.block.body)
        values = {var.var: value for var, value in zip(s.block.iter_vars, s.iter_values)}
        return substitute(made, values) if values else made
    total: PrimExpr = IntImm(INT64, 0)
    if isinstance(s, tir.BufferStore):
        return total + IntImm(INT64, _operations(s.value))
    if isinstance(s, (tir.Evaluate, tir.LetStmt)):
        total = total + IntImm(INT64, _operations(s.value) if s.value.dtype.is_float else 0)
    for child in children(s):
        if isinstance(child, Stmt):
            total = total + _statement(child)
    return total


def _inside(e: PrimExpr) -> list[object]:
    from relaxlang.ir.visit import walk

    return list(walk(e))


def _operations(e: PrimExpr) -> int:
    """The operations of a value; those of the indices at which it loads are not counted."""
    seen: set[int] = set()
    waiting, count = [e], 0
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, prim.BufferLoad) or one.__class__ in LEAVES:
            continue
        seen.add(id(one))
        counts = isinstance(one, _OPERATIONS) or (isinstance(one, prim.Call) and str(one.op) not in _FREE)
        count += one.dtype.lanes if counts else 0
        waiting.extend(child for child in children(one) if isinstance(child, PrimExpr))
    return count
