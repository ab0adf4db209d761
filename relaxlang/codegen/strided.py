"""Loads of every other element: two contiguous loads and a shuffle, where the elements would be gathered."""

from __future__ import annotations

from relaxlang.codegen.expr import ExprEmitter
from relaxlang.codegen.lltypes import memory_type, value_type
from relaxlang.codegen.text import mangled
from relaxlang.ir import prim
from relaxlang.ir.prim import Broadcast, BufferLoad, IntImm, PrimExpr, Ramp

LANES = (4, 8, 16)


def alternate(em: ExprEmitter, e: BufferLoad) -> Ramp | None:
    """The places of a load of every other element; None for other loads."""
    index = em.flat_index(e.buffer, e.indices)
    if (
        not isinstance(index, Ramp)
        or index.lanes not in LANES
        or e.buffer.dtype.lanes > 1
        or index.base.dtype.lanes > 1
    ):
        return None
    return index if isinstance(index.stride, IntImm) and index.stride.value == 2 else None


def load_alternate(em: ExprEmitter, e: BufferLoad, other: PrimExpr) -> str:
    """Every other element where a predicate holds, else `other`. Most often it holds for all lanes, which is asked
    first. Empty for other loads."""
    run = alternate(em, e)
    if run is None or e.predicate is None or not em.speculable(other):
        return ""
    if _elements(e.predicate, 0, run.lanes) is None or memory_type(e.dtype) != value_type(e.dtype):
        return ""
    outside = em.expr(other)
    whole = all_lanes(em, e.predicate)
    return em.conditional(whole, lambda: shuffled(em, e, run), lambda: masked(em, e, run, outside), value_type(e.dtype))


def shuffled(em: ExprEmitter, e: BufferLoad, run: Ramp) -> str:
    """All lanes of such a load. The second of the two contiguous loads ends at the last element that is wanted, so that
    nothing is read that is not there."""
    n, kind, size = run.lanes, memory_type(e.dtype), e.buffer.dtype.itemsize
    places = [em.address(e.buffer, (place,)) for place in (run.base, run.base + (n - 1))]
    first, second = (em.at.value(f"load {kind}, ptr {place}, align {size}") for place in places)
    made = em.at.value(f"shufflevector {kind} {first}, {kind} {second}, <{n} x i32> <{_order(n)}>")
    return em.from_memory(made, e.dtype)


def _order(n: int) -> str:
    """Where the lanes are among those of the two loads."""
    return ", ".join(f"i32 {2 * lane if 2 * lane < n else n + 2 * lane - (n - 1)}" for lane in range(n))


def masked(em: ExprEmitter, e: BufferLoad, run: Ramp, other: str) -> str:
    """The lanes of such a load that its predicate takes in, of the others the value `other`, a vector. Empty when the
    predicate says nothing of single elements."""
    kind, assumed = memory_type(e.dtype), e.predicate
    if assumed is None or kind != value_type(e.dtype):
        return ""
    n, parts = run.lanes, []
    truth = f"<{n} x i1>"
    function = em.module.declare(f"llvm.masked.load.{mangled(kind)}.p0", kind, ["ptr", "i32", truth, kind])
    for first in (0, n - 1):
        elements = _elements(assumed, first, n)
        if elements is None:
            return ""
        wanted = ", ".join(f"i1 {'false' if (first + k) % 2 else 'true'}" for k in range(n))
        mask = em.at.value(f"and {truth} {em.expr(elements)}, <{wanted}>")
        place = em.address(e.buffer, (run.base + first if first else run.base,))
        call = f"call {kind} {function}(ptr {place}, i32 {e.buffer.dtype.itemsize}, {truth} {mask}, {kind} {other})"
        parts.append(em.at.value(call))
    return em.at.value(f"shufflevector {kind} {parts[0]}, {kind} {parts[1]}, <{n} x i32> <{_order(n)}>")


def _elements(mask: PrimExpr, first: int, n: int) -> PrimExpr | None:
    """What a mask of lanes, which are two elements apart, says of the `n` elements from the one `first` after that of
    lane 0 on. Only what it says of those that lanes have counts. None when it is not one of few kinds."""
    if isinstance(mask, Broadcast) and mask.value.dtype.lanes == 1:
        return mask
    if isinstance(mask, prim.And):
        a, b = _elements(mask.a, first, n), _elements(mask.b, first, n)
        return None if a is None or b is None else prim.And(a, b)
    sides = (mask.a, mask.b) if isinstance(mask, (prim.LT, prim.LE, prim.GT, prim.GE)) else ()
    steps = [s.stride.value for s in sides if isinstance(s, Ramp) and isinstance(s.stride, IntImm)]
    plain = all(isinstance(s, (Ramp, Broadcast)) and s.dtype.lanes == n and s.dtype.is_int for s in sides)
    if len(sides) != 2 or len(steps) != 1 or steps[0] not in (1, 2) or not plain:
        return None
    scale = 2 // steps[0]
    made: list[PrimExpr] = []
    for side in sides:
        if isinstance(side, Ramp):
            base = side.base * scale + first
            made.append(Ramp(base, IntImm(base.dtype, 1), n))
        else:
            assert isinstance(side, Broadcast)
            made.append(Broadcast(side.value * scale, n))
    return mask.__class__(*made)


def all_lanes(em: ExprEmitter, mask: PrimExpr) -> str:
    """Whether a mask leaves out no lane, as an i1: comparisons of a rising run with one value are those of its ends."""
    ends = _ends(mask)
    if ends is not None:
        return em.expr(ends)
    of = value_type(mask.dtype)
    function = em.module.declare(f"llvm.vector.reduce.and.v{mask.dtype.lanes}i1", "i1", [of])
    return em.at.call("i1", function, (of, em.expr(mask)))


def _ends(mask: PrimExpr) -> PrimExpr | None:
    """A condition that holds where a mask leaves out no lane; None when it is not one of few kinds."""
    if isinstance(mask, Broadcast) and mask.value.dtype.lanes == 1:
        return mask.value
    if isinstance(mask, prim.And):
        a, b = _ends(mask.a), _ends(mask.b)
        return None if a is None or b is None else prim.And(a, b)
    if not isinstance(mask, (prim.LT, prim.LE, prim.GT, prim.GE)):
        return None
    below = isinstance(mask, (prim.LT, prim.LE))
    for run, other in ((mask.a, mask.b), (mask.b, mask.a)):
        if isinstance(run, Ramp) and isinstance(other, Broadcast) and other.value.dtype.lanes == 1:
            if not isinstance(run.stride, IntImm) or run.stride.value < 0 or run.base.dtype.lanes > 1:
                return None
            # A run that is to stay below is nearest to its bound with its last lane.
            last = below == (run is mask.a)
            place = run.base + run.stride * (run.lanes - 1) if last else run.base
            return mask.__class__(place, other.value) if run is mask.a else mask.__class__(other.value, place)
    return None
