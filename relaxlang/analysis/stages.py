"""A kernel as a sequence of stages: loop nests, each around one block that computes elements of its outputs."""

from __future__ import annotations

from relaxlang.base.record import record
from relaxlang.ir import prim
from relaxlang.ir.intrinsics import INTRINSICS
from relaxlang.ir.prim import IntImm, PrimExpr
from relaxlang.ir.tir import (
    AssertStmt,
    Block,
    BlockRealize,
    Buffer,
    BufferStore,
    Evaluate,
    For,
    LetStmt,
    PrimFunc,
    SeqStmt,
    Stmt,
)
from relaxlang.ir.visit import walk


@record
class Stage:
    """A loop nest, or a block without loops; `stores` are the stores of its block, in order (those of `init` aside)."""

    nest: Stmt
    loops: tuple[For, ...]
    realize: BlockRealize
    stores: tuple[BufferStore, ...]

    @property
    def block(self) -> Block:
        """The block."""
        return self.realize.block

    @property
    def is_reduction(self) -> bool:
        """Whether the block accumulates."""
        return self.block.init is not None or any(axis.kind != "spatial" for axis in self.block.iter_vars)

    def loads(self) -> list[prim.BufferLoad]:
        """Every load in the block, those of what it accumulates included."""
        parts = (self.block.body, self.block.init)
        return [n for part in parts if part is not None for n in walk(part) if isinstance(n, prim.BufferLoad)]


@record
class Stages:
    """A whole kernel: what it asserts first, its stages in order, the buffers that it allocates."""

    asserts: tuple[AssertStmt, ...]
    stages: tuple[Stage, ...]
    buffers: tuple[Buffer, ...]


def stages_of(func: PrimFunc) -> Stages | None:
    """The stages of a kernel that nobody scheduled; None when it is anything else.

    Loops are serial and plain, every block is a leaf that stores to buffers and does nothing else, assertions are about
    sizes and stand in front.
    """
    body, asserts = func.body, []
    buffers: tuple[Buffer, ...] = ()
    while True:
        if isinstance(body, AssertStmt) and _is_about_sizes(body.condition):
            asserts.append(body)
            body = body.body
        elif isinstance(body, BlockRealize) and _is_root(body):
            buffers += body.block.alloc_buffers
            body = body.block.body
        else:
            break
    parts = body.seq if isinstance(body, SeqStmt) else (body,)
    stages = []
    for part in parts:
        if isinstance(part, Evaluate) and isinstance(part.value, IntImm):
            continue
        stage = _stage(part)
        if stage is None:
            return None
        stages.append(stage)
    return Stages(tuple(asserts), tuple(stages), buffers) if stages else None


def _is_root(realize: BlockRealize) -> bool:
    block = realize.block
    plain = not block.iter_vars and block.init is None and not block.match_buffers and not block.annotations
    return plain and (bool(block.alloc_buffers) or not _stores(block.body)) and _is_true(realize.predicate)


def _is_true(e: PrimExpr) -> bool:
    return isinstance(e, IntImm) and e.value == 1


def _is_about_sizes(e: PrimExpr) -> bool:
    return not any(isinstance(n, prim.BufferLoad) or isinstance(n, prim.Call) for n in walk(e))


def _stage(stmt: Stmt) -> Stage | None:
    loops: list[For] = []
    inner = stmt
    while isinstance(inner, For):
        if inner.kind != "serial" or inner.annotations or inner.thread_binding is not None or not _is_one(inner.step):
            return None
        loops.append(inner)
        inner = inner.body
    if not isinstance(inner, BlockRealize):
        return None
    block = inner.block
    if block.alloc_buffers or block.match_buffers or block.annotations:
        return None
    stores = _stores(block.body)
    if not stores or (block.init is not None and not _stores(block.init)) or has_effects(block.body):
        return None
    return Stage(stmt, tuple(loops), inner, stores)


def _is_one(e: PrimExpr) -> bool:
    return isinstance(e, IntImm) and e.value == 1


def _stores(stmt: Stmt) -> tuple[BufferStore, ...]:
    """The stores of a statement that is nothing but stores, perhaps under lets; none for any other."""
    if isinstance(stmt, BufferStore):
        return (stmt,) if stmt.predicate is None else ()
    if isinstance(stmt, LetStmt):
        return _stores(stmt.body)
    if isinstance(stmt, SeqStmt):
        parts = [_stores(s) for s in stmt.seq]
        return tuple(s for part in parts for s in part) if all(parts) else ()
    return ()


def has_effects(node: Stmt | PrimExpr) -> bool:
    """Whether a statement or expression calls what may do more than give a value."""
    for call in walk(node):
        if isinstance(call, prim.Call):
            known = INTRINSICS.get(call.op) if isinstance(call.op, str) else None
            if known is None or not known.pure or known.name == "address_of":
                return True
    return False
