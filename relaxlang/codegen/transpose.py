"""Square tiles that are transposed in registers: rows are loaded and shuffled, where each element would be gathered."""

from __future__ import annotations

from relaxlang.codegen.lltypes import memory_type
from relaxlang.codegen.stmt import StmtEmitter
from relaxlang.ir import prim, tir
from relaxlang.ir.prim import BufferLoad, IntImm, PrimExpr, Ramp, Var
from relaxlang.ir.tir import BufferStore
from relaxlang.ir.visit import free_vars, substitute
from relaxlang.schedule.access import linear_form

SIDES = (4, 8, 16)


def emit_transposed(em: StmtEmitter, s: tir.For) -> bool:
    """Write a loop `for u in unroll(n): to[run of n] = source[u + n lanes, a stride apart]` as a transposition; whether
    it was one."""
    found = _strided_load(s)
    if found is None or not isinstance(s.body, BufferStore):
        return False
    load, source = found
    n, of = source.lanes, load.buffer.dtype
    kind = f"<{n} x {memory_type(of)}>"
    first = substitute(source.base, {s.loop_var: IntImm(s.loop_var.dtype, 0)})
    rows = []
    for k in range(n):
        place = em.address(load.buffer, (first + source.stride * k if k else first,))
        rows.append(em.at.value(f"load {kind}, ptr {place}, align {of.itemsize}"))
    for u, row in enumerate(_transposed(em, rows, kind)):
        target = s.body.indices[0]
        assert isinstance(target, Ramp)
        base = substitute(target.base, {s.loop_var: IntImm(s.loop_var.dtype, u)})
        place = em.address(s.body.buffer, (base,))
        em.at.effect(f"store {kind} {row}, ptr {place}, align {of.itemsize}")
    return True


def _strided_load(s: tir.For) -> tuple[BufferLoad, Ramp] | None:
    """The load of a loop that transposes a tile, and its indices; None for another loop."""
    body, n = s.body, s.extent.value if isinstance(s.extent, IntImm) else 0
    if n not in SIDES or not isinstance(body, BufferStore) or not isinstance(body.value, BufferLoad):
        return None
    load = body.value
    if body.predicate is not None or load.predicate is not None or load.buffer.data is body.buffer.data:
        return None
    if len(load.indices) != 1 or len(body.indices) != 1 or not (isinstance(s.min, IntImm) and s.min.value == 0):
        return None
    source, target = load.indices[0], body.indices[0]
    if not isinstance(source, Ramp) or not isinstance(target, Ramp) or source.lanes != n or target.lanes != n:
        return None
    of = load.buffer.dtype
    plain = of.lanes == 1 and of is body.buffer.dtype and of.bits >= 32 and not of.is_handle
    if not plain or not _is_one(target.stride) or _is_one(source.stride) or s.loop_var in free_vars(source.stride):
        return None
    return (load, source) if _steps_by_one(source.base, s.loop_var) else None


def _is_one(e: PrimExpr) -> bool:
    return isinstance(e, IntImm) and e.value == 1


def _steps_by_one(index: PrimExpr, var: Var) -> bool:
    form = linear_form(index)
    if form is not None:
        return form[0].get(var) == 1
    if isinstance(index, prim.Add):
        inside = [part for part in (index.a, index.b) if var in free_vars(part)]
        return len(inside) == 1 and _steps_by_one(inside[0], var)
    return False


def _transposed(em: StmtEmitter, rows: list[str], kind: str) -> list[str]:
    """The columns of a square of vectors, by exchanges of ever larger parts (Eklundh)."""
    n, step = len(rows), 1
    while step < n:
        for k in range(n):
            if not k & step:
                a, b = rows[k], rows[k + step]
                low = [lane if not lane & step else n + lane - step for lane in range(n)]
                high = [lane + step if not lane & step else n + lane for lane in range(n)]
                rows[k], rows[k + step] = (_shuffled(em, a, b, kind, order) for order in (low, high))
        step *= 2
    return rows


def _shuffled(em: StmtEmitter, a: str, b: str, kind: str, order: list[int]) -> str:
    lanes = ", ".join(f"i32 {lane}" for lane in order)
    return em.at.value(f"shufflevector {kind} {a}, {kind} {b}, <{len(order)} x i32> <{lanes}>")
