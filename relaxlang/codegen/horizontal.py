"""Partial results in the lanes of a vector, combined by halves where a loop would take them one by one."""

from __future__ import annotations

import math

from relaxlang.base.dtype import DType
from relaxlang.codegen.access import store
from relaxlang.codegen.algebra import Num
from relaxlang.codegen.arithmetic import extremum
from relaxlang.codegen.stmt import StmtEmitter
from relaxlang.ir import prim, tir
from relaxlang.ir.prim import Broadcast, BufferLoad, IntImm, PrimExpr, Ramp
from relaxlang.ir.tir import BufferStore, Stmt
from relaxlang.ir.visit import free_vars

LANES = (4, 8, 16, 32, 64)


def emit_combined(em: StmtEmitter, s: tir.For) -> bool:
    """Write a loop `for u in range(n): if u < end: total[0] = total[0] + parts[u]`, or with a product, a minimum or a
    maximum, as operations on halves of a vector; whether it was one. The condition may be missing."""
    n = s.extent.value if isinstance(s.extent, IntImm) else 0
    plain = s.kind == "serial" and isinstance(s.min, IntImm) and s.min.value == 0
    if n not in LANES or not plain or not isinstance(s.step, IntImm) or s.step.value != 1:
        return False
    body, end = _without_end(s)
    found = _update(s, body)
    if found is None or not isinstance(body, BufferStore):
        return False
    kind, old, part = found
    em.begin(body)
    lanes = Ramp(IntImm(s.loop_var.dtype, 0), IntImm(s.loop_var.dtype, 1), n)
    value = em.num(BufferLoad(part.buffer, (lanes,)))
    if end is not None:
        value = em.num(prim.LT(lanes, Broadcast(end, n))).where(value, _identity(kind, part.dtype))
    while n > 1:
        n //= 2
        value = _combine(kind, _part(em, value, 0, n), _part(em, value, n, n), part.dtype)
    store(em, body, _combine(kind, em.num(old), value, part.dtype).ref)
    return True


def _without_end(s: tir.For) -> tuple[Stmt, PrimExpr | None]:
    """The body of a loop without the condition that its variable is below an end, and that end."""
    body = s.body
    if isinstance(body, tir.IfThenElse) and body.else_case is None and isinstance(body.condition, prim.LT):
        low, end = body.condition.a, body.condition.b
        if low is s.loop_var and s.loop_var not in free_vars(end):
            return body.then_case, end
    return body, None


def _update(s: tir.For, body: Stmt) -> tuple[type[prim.BinaryOp], BufferLoad, BufferLoad] | None:
    """What combines the parts, the load of the total and the load of a part; None for other statements."""
    if not isinstance(body, BufferStore) or body.predicate is not None or s.loop_var in free_vars(body.indices):
        return None
    value, of = body.value, body.buffer.dtype
    if not isinstance(value, (prim.Add, prim.Mul, prim.Min, prim.Max)) or of.lanes > 1 or of.bits < 32 or of.is_handle:
        return None
    for old, part in ((value.a, value.b), (value.b, value.a)):
        if not isinstance(old, BufferLoad) or not isinstance(part, BufferLoad) or part.predicate is not None:
            continue
        same = old.buffer is body.buffer and old.indices == body.indices
        if same and part.buffer.data is not old.buffer.data and part.indices == (s.loop_var,) and part.dtype is of:
            return type(value), old, part
    return None


def _identity(kind: type[prim.BinaryOp], of: DType) -> float | int:
    if kind in (prim.Add, prim.Mul):
        return 0 if kind is prim.Add else 1
    if of.is_float:
        return -math.inf if kind is prim.Max else math.inf
    low, high = (-(1 << of.bits - 1), (1 << of.bits - 1) - 1) if of.is_int else (0, (1 << of.bits) - 1)
    return low if kind is prim.Max else high


def _combine(kind: type[prim.BinaryOp], a: Num, b: Num, of: DType) -> Num:
    if kind is prim.Add:
        return a + b
    return a * b if kind is prim.Mul else extremum(a, b, of, kind is prim.Max)


def _part(em: StmtEmitter, value: Num, first: int, count: int) -> Num:
    """Some of the lanes of a vector; one lane as a scalar."""
    if count == 1:
        return Num(em.at, em.at.value(f"extractelement {value.type} {value.ref}, i64 {first}"), value.scalar)
    lanes = ", ".join(f"i32 {first + k}" for k in range(count))
    text = f"shufflevector {value.type} {value.ref}, {value.type} poison, <{count} x i32> <{lanes}>"
    return Num(em.at, em.at.value(text), f"<{count} x {value.scalar}>")
