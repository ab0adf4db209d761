"""Loads and stores of flat buffers, and expressions that make vectors."""

from __future__ import annotations

import numpy as np

from relaxlang.arith.analyzer import Analyzer
from relaxlang.codegen.algebra import Num
from relaxlang.codegen.expr import ExprEmitter
from relaxlang.codegen.lltypes import memory_type, value_type
from relaxlang.codegen.strided import alternate, masked, shuffled
from relaxlang.codegen.text import mangled
from relaxlang.ir import prim
from relaxlang.ir.prim import PrimExpr
from relaxlang.ir.tir import Buffer, BufferStore

LINE = 64
"""Bytes of a line of the cache."""


def load(em: ExprEmitter, e: prim.BufferLoad) -> str:
    """The value of a load: a scalar, a contiguous vector, or a gather."""
    index, of = em.flat_index(e.buffer, e.indices), e.dtype
    kind = memory_type(of)
    align = e.buffer.dtype.scalar.itemsize
    run = contiguous(index)
    if run is not None:
        place = em.address(e.buffer, (run,))
        if e.predicate is None:
            return em.from_memory(em.at.load(f"load {kind}, ptr {place}, align {align}", _memory(em, e.buffer)), of)
        mask = em.expr(e.predicate)
        name, truth = f"llvm.masked.load.{mangled(kind)}.p0", f"<{of.lanes} x i1>"
        function = em.module.declare(name, kind, ["ptr", "i32", truth, kind])
        call = f"call {kind} {function}(ptr {place}, i32 {align}, {truth} {mask}, {kind} zeroinitializer)"
        return em.from_memory(em.at.load(call, _memory(em, e.buffer)), of)
    _plain_lanes(em, e.buffer.dtype.lanes, e)
    every_other = alternate(em, e)
    if every_other is None:
        return _gather(em, e)
    if e.predicate is None:
        return shuffled(em, e, every_other)
    return masked(em, e, every_other, "zeroinitializer") or _gather(em, e)


def _gather(em: ExprEmitter, e: prim.BufferLoad) -> str:
    """The value of a load of scattered elements."""
    of = e.dtype
    kind, align = memory_type(of), e.buffer.dtype.scalar.itemsize
    places, mask = em.address(e.buffer, e.indices), _mask(em, e.predicate, of.lanes)
    pointers, truth = f"<{of.lanes} x ptr>", f"<{of.lanes} x i1>"
    name = f"llvm.masked.gather.{mangled(kind)}.{mangled(pointers)}"
    function = em.module.declare(name, kind, [pointers, "i32", truth, kind])
    args = ((pointers, places), ("i32", str(align)), (truth, mask), (kind, "zeroinitializer"))
    return em.from_memory(em.at.call(kind, function, *args), of)


def _memory(em: ExprEmitter, buffer: Buffer) -> object:
    """What stands for the memory of a buffer: other memory does not overlap with it. None when it may."""
    return None if buffer.data in em.context.derived else buffer.data


def load_or(em: ExprEmitter, condition: str, e: prim.BufferLoad, other: prim.FloatImm | prim.IntImm) -> str:
    """The value of a load where the condition holds, else a constant, without a branch: what is loaded then is the
    constant, from memory of its own. Empty for loads that have no such form."""
    index, of = em.flat_index(e.buffer, e.indices), e.dtype
    if of.lanes > 1 or e.predicate is not None or not em.speculable(index):
        return ""
    kind = memory_type(of)
    content = np.asarray(other.value).astype(of.numpy).tobytes()
    place = em.at.value(f"select i1 {condition}, ptr {em.address(e.buffer, e.indices)}, ptr {em.module.data(content)}")
    return em.from_memory(em.at.value(f"load {kind}, ptr {place}, align {of.itemsize}"), of)


def store(em: ExprEmitter, s: BufferStore, value: str) -> None:
    """Store an operand of the store's value type: a scalar, a contiguous vector, or a scatter."""
    index, of = em.flat_index(s.buffer, s.indices), s.value.dtype
    kind = memory_type(of)
    align = s.buffer.dtype.scalar.itemsize
    run = contiguous(index)
    if run is not None:
        place, stored = em.address(s.buffer, (run,)), em.to_memory(value, of)
        if s.predicate is None:
            past = s.buffer.data in em.streaming and is_line(s)
            how = f"align {LINE}, !nontemporal !{{i32 1}}" if past else f"align {align}"
            em.at.effect(f"store {kind} {stored}, ptr {place}, {how}", _memory(em, s.buffer))
            return
        truth = f"<{of.lanes} x i1>"
        kind, stored = _not_truncated(em, kind, stored)
        function = em.module.declare(f"llvm.masked.store.{mangled(kind)}.p0", "void", [kind, "ptr", "i32", truth])
        given = f"{kind} {stored}, ptr {place}, i32 {align}, {truth} {em.expr(s.predicate)}"
        em.at.effect(f"call void {function}({given})", _memory(em, s.buffer))
        return
    _plain_lanes(em, s.buffer.dtype.lanes, s)
    places, mask = em.address(s.buffer, s.indices), _mask(em, s.predicate, of.lanes)
    pointers, truth = f"<{of.lanes} x ptr>", f"<{of.lanes} x i1>"
    name = f"llvm.masked.scatter.{mangled(kind)}.{mangled(pointers)}"
    function = em.module.declare(name, "void", [kind, pointers, "i32", truth])
    args = ((kind, em.to_memory(value, of)), (pointers, places), ("i32", str(align)), (truth, mask))
    em.at.call("void", function, *args)


def is_line(s: BufferStore) -> bool:
    """Whether a store writes whole lines of the cache, if its buffer begins at one."""
    index = s.indices[0] if len(s.indices) == 1 else None
    size = s.buffer.dtype.itemsize
    if s.predicate is not None or s.buffer.dtype.lanes > 1 or not isinstance(index, prim.Ramp):
        return False
    if contiguous(index) is None or index.lanes * size % LINE:
        return False
    place = Analyzer().modular_set(index.base)
    return place.modulus * size % LINE == 0 and place.remainder * size % LINE == 0


def _not_truncated(em: ExprEmitter, kind: str, stored: str) -> tuple[str, str]:
    """A vector that is to be stored under a mask, so made that its last step is no truncation: its type and operand.

    LLVM (22, for AVX-512) joins a truncation with the store, and when the first lane alone is stored, it writes as many
    bytes as before the truncation: over the neighbours. Floats of the same bits are not joined; bytes, for which there
    is no float of LLVM's, go through the stack."""
    lanes, _, scalar = kind[1:-1].partition(" x ")
    made = {"i16": f"<{lanes} x half>", "i32": f"<{lanes} x float>"}.get(scalar)
    if made is not None:
        return made, em.at.value(f"bitcast {kind} {stored} to {made}")
    if scalar != "i8":
        return kind, stored
    place = em.at.alloca(f"alloca {kind}, align 64")
    em.at.effect(f"store volatile {kind} {stored}, ptr {place}, align 64")
    return kind, em.at.value(f"load volatile {kind}, ptr {place}, align 64")


def contiguous(index: PrimExpr) -> PrimExpr | None:
    """The first index of an access to consecutive elements (a scalar index is one); None when they are scattered."""
    if isinstance(index, prim.Ramp):
        unit = isinstance(index.stride, prim.IntImm) and index.stride.value == 1 and index.base.dtype.lanes == 1
        return index.base if unit else None
    return index if index.dtype.lanes == 1 else None


def _mask(em: ExprEmitter, predicate: PrimExpr | None, lanes: int) -> str:
    return "splat (i1 true)" if predicate is None else em.expr(predicate)


def _plain_lanes(em: ExprEmitter, lanes: int, node: PrimExpr | BufferStore) -> None:
    if lanes != 1:
        em.fail("RLX5016", "a buffer of vectors cannot be accessed at a vector of indices", node)


def vector(em: ExprEmitter, e: prim.Ramp | prim.Broadcast | prim.Shuffle) -> str:
    """The operand of a vector expression."""
    if isinstance(e, prim.Shuffle):
        return _shuffle(em, e)
    inner = e.base if isinstance(e, prim.Ramp) else e.value
    wide = value_type(e.dtype)
    if inner.dtype.lanes > 1:
        spread = _repeat(em, em.num(inner), e.lanes)
    else:
        spread = Num(em.at, splat(em, em.expr(inner), value_type(inner.dtype), e.lanes), wide)
    if isinstance(e, prim.Broadcast):
        return spread.ref
    lanes, per = e.dtype.lanes, inner.dtype.lanes
    step = Num(em.at, splat(em, em.num(e.stride).ref, value_type(e.stride.dtype.scalar), lanes), wide)
    if e.stride.dtype.lanes > 1:
        step = _repeat(em, em.num(e.stride), e.lanes)
    scalar = value_type(inner.dtype.scalar)
    counts = Num(em.at, f"<{', '.join(f'{scalar} {i // per}' for i in range(lanes))}>", wide)
    return (spread + (counts if step.ref == f"splat ({scalar} 1)" else step * counts)).ref


def splat(em: ExprEmitter, ref: str, scalar: str, lanes: int) -> str:
    """A vector of which all lanes are one value."""
    wide = f"<{lanes} x {scalar}>"
    if not ref.startswith("%"):
        return f"splat ({scalar} {ref})"
    one = em.at.value(f"insertelement {wide} poison, {scalar} {ref}, i64 0")
    return em.at.value(f"shufflevector {wide} {one}, {wide} poison, <{lanes} x i32> zeroinitializer")


def _repeat(em: ExprEmitter, value: Num, times: int) -> Num:
    lanes = int(value.type[1:].split(" ")[0])
    order = ", ".join(f"i32 {i % lanes}" for i in range(lanes * times))
    text = f"shufflevector {value.type} {value.ref}, {value.type} poison, <{lanes * times} x i32> <{order}>"
    return Num(em.at, em.at.value(text), f"<{lanes * times} x {value.scalar}>")


def _shuffle(em: ExprEmitter, e: prim.Shuffle) -> str:
    lanes: list[tuple[PrimExpr, int]] = [(v, i) for v in e.vectors for i in range(v.dtype.lanes)]
    scalar, wide = value_type(e.dtype.scalar), value_type(e.dtype)
    made = "poison"
    for position, index in enumerate(e.indices):
        if not isinstance(index, prim.IntImm) or not 0 <= index.value < len(lanes):
            em.fail("RLX5013", f"the indices of a shuffle are constants from 0 to {len(lanes) - 1}", e)
        source, lane = lanes[index.value]
        one = em.expr(source)
        if source.dtype.lanes > 1:
            one = em.at.value(f"extractelement {value_type(source.dtype)} {one}, i64 {lane}")
        if len(e.indices) == 1:
            return one
        made = em.at.value(f"insertelement {wide} {made}, {scalar} {one}, i64 {position}")
    return made
