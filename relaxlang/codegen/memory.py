"""Memory of intermediates: small ones of constant size on the stack, others on the heap, constants in the code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from relaxlang.base.dtype import DType
from relaxlang.codegen.algebra import Num
from relaxlang.codegen.lltypes import memory_type
from relaxlang.codegen.stmt import StmtEmitter
from relaxlang.ir import prim, tir
from relaxlang.ir.prim import PrimExpr

STACK_ONE = 16 << 10
"""Bytes up to which an intermediate of constant size lives on the stack."""
STACK_ALL = 128 << 10
"""Bytes of stack that the intermediates of one function take together."""
ALIGN = 64
ALIGNMENT = "alignment"
"""The annotation of constant data that asks for an alignment, in bytes."""


def emit_allocate(em: StmtEmitter, s: tir.Allocate) -> None:
    """Memory for the body of the statement."""
    with allocated(em, s):
        em.stmt(s.body)


@contextmanager
def allocated(em: StmtEmitter, s: tir.Allocate) -> Iterator[None]:
    """Memory for what is written within."""
    fixed = constant_count(s.extents)
    size = None if fixed is None else fixed * s.dtype.itemsize
    if size is not None and size <= STACK_ONE and em.context.stack + size <= STACK_ALL:
        em.context.stack += size
        kind, count = memory_type(s.dtype.scalar), max(1, size // s.dtype.scalar.itemsize)
        em.env[s.buffer_var] = em.at.alloca(f"alloca [{count} x {kind}], align {ALIGN}")
        em.own.add(s.buffer_var)
        yield
        return
    message = f"no memory for the intermediate `{s.name}`"
    if size is not None and size >= 1 << 62:
        em.fail("RLX5016", f"the intermediate `{s.name}` is larger than any memory", s)
    bytes_ = str(max(size, ALIGN) + ALIGN - 1 & -ALIGN) if size is not None else _dynamic_size(em, s, message)
    function = em.module.external("aligned_alloc", "noalias ptr", ["i64", "i64"])
    pointer = em.at.call("noalias ptr", function, ("i64", str(ALIGN)), ("i64", bytes_))
    em.require(em.at.value(f"icmp ne ptr {pointer}, null"), em.context.status(message))
    em.env[s.buffer_var] = pointer
    em.heap.append(pointer)
    yield
    em.free(len(em.heap) - 1)
    em.heap.pop()


def constant_count(extents: tuple[PrimExpr, ...]) -> int | None:
    """The number of elements when every extent is constant."""
    count = 1
    for extent in extents:
        if not isinstance(extent, prim.IntImm):
            return None
        count *= max(extent.value, 0)
    return count


def _dynamic_size(em: StmtEmitter, s: tir.Allocate, message: str) -> str:
    """The bytes of an allocation, rounded up; a size that 64 bits cannot hold fails like an assertion."""
    total = Num(em.at, str(s.dtype.itemsize), "i64")
    bad = Num(em.at, "false", "i1")
    multiply = em.module.declare("llvm.umul.with.overflow.i64", "{ i64, i1 }", ["i64", "i64"])
    for extent in s.extents:
        value = em.num(prim.cast(extent, prim.INT64))
        pair = em.at.call("{ i64, i1 }", multiply, ("i64", total.ref), ("i64", value.ref))
        total = Num(em.at, em.at.value(f"extractvalue {{ i64, i1 }} {pair}, 0"), "i64")
        over = Num(em.at, em.at.value(f"extractvalue {{ i64, i1 }} {pair}, 1"), "i1")
        bad = bad | over | (value < 0)
    bad = bad | total.compare("ugt", 1 << 62)
    em.require((bad ^ 1).ref, em.context.status(message))
    return ((total + (2 * ALIGN - 1)) & -ALIGN).ref


def emit_constant(em: StmtEmitter, s: tir.AllocConst) -> None:
    """Constant data for the body of the statement."""
    data = np.ascontiguousarray(np.asarray(s.data, dtype=_numpy(s.dtype)))
    wanted = s.annotations.get(ALIGNMENT)
    alignment = wanted if isinstance(wanted, int) else ALIGN
    em.env[s.buffer_var] = em.module.data(data.tobytes(), alignment)
    em.stmt(s.body)


def _numpy(of: DType) -> np.dtype[np.generic]:
    return of.scalar.numpy
