"""Stores past the caches, of results that are larger than the last of them.

A line of memory that is written whole need not be read first, and what does not fit cannot be there for whoever reads
it next. Whether that holds is decided when the code runs, where sizes or addresses are not known before.
"""

from __future__ import annotations

from relaxlang.codegen.access import LINE, is_line
from relaxlang.codegen.algebra import Num
from relaxlang.codegen.memory import constant_count
from relaxlang.codegen.stmt import StmtEmitter
from relaxlang.ir import prim, tir
from relaxlang.ir.prim import INT64, PrimExpr
from relaxlang.ir.tir import Buffer, BufferStore
from relaxlang.ir.visit import free_vars, walk
from relaxlang.schedule.state import STREAMING

LAST_LEVEL = 32 << 20
"""Bytes from which on a result is taken not to fit into the last-level cache."""


def emit_streaming(em: StmtEmitter, s: tir.For) -> None:
    """Write a loop with the annotation `STREAMING` in two forms, one of which stores past the caches: for results that
    are large and begin at a line of the cache."""
    plain = s.replace(annotations={k: v for k, v in s.annotations.items() if k != STREAMING})
    stores = [n for n in walk(s.body) if isinstance(n, BufferStore) and is_line(n)]
    outputs = {n.buffer.data: n.buffer for n in stores if not _is_small(n.buffer)}
    if not em.env.keys() >= set(free_vars(tuple([buffer.shape for buffer in outputs.values()]))):
        outputs = {}  # in a function of its own, which is not given what it does not use
    if not outputs or em.streaming or not em.context.target.mtriple.startswith("x86_64"):
        em.stmt(plain)
        return
    conditions = [_is_large(em, buffer) & _is_aligned(em, buffer) for buffer in outputs.values()]
    worth = conditions[0]
    for one in conditions[1:]:
        worth = worth & one
    then, other, done = em.at.label("streaming"), em.at.label("cached"), em.at.label("stored")
    em.at.branch_if(worth.ref, then, other)
    em.at.start(then)
    em.streaming = frozenset(outputs)
    em.stmt(plain)
    end_streaming(em)
    em.streaming = frozenset()
    em.at.branch(done)
    em.at.start(other)
    em.stmt(plain)
    em.at.start(done)


def end_streaming(em: StmtEmitter) -> None:
    """Let what was stored past the caches be seen before anything that is stored later."""
    em.at.call("void", em.module.declare("llvm.x86.sse.sfence", "void", []))


def _is_small(buffer: Buffer) -> bool:
    count = constant_count(buffer.shape)
    return count is not None and count * buffer.dtype.itemsize < LAST_LEVEL


def _is_large(em: StmtEmitter, buffer: Buffer) -> Num:
    count: PrimExpr = prim.IntImm(INT64, 1)
    for extent in buffer.shape:
        count = count * prim.cast(extent, INT64)
    return em.num(count).compare("sge", LAST_LEVEL // buffer.dtype.itemsize)


def _is_aligned(em: StmtEmitter, buffer: Buffer) -> Num:
    address = em.value(em.at.value(f"ptrtoint ptr {em.pointer(buffer.data)} to i64"), INT64)
    return (address & (LINE - 1)).equals(0)
