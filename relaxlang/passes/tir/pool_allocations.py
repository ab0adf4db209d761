"""PoolAllocations: memory of intermediates comes from a pool that the caller gives."""

from __future__ import annotations

from relaxlang.base.diagnostics import fail
from relaxlang.base.dtype import dtype
from relaxlang.base.record import record
from relaxlang.ir import prim
from relaxlang.ir.prim import HANDLE, INT64, IntImm, PointerType, Var
from relaxlang.ir.tir import Allocate, Buffer, For, LetStmt, PrimFunc, Stmt
from relaxlang.ir.visit import Rewriter, on
from relaxlang.passes.base import PassContext, PrimFuncPass

POOL = "pool"


@record
class PoolAllocations(PrimFuncPass):
    """Intermediates larger than `stack_bytes` lie in a last parameter, a pool of bytes, as far apart as `alignment`
    asks. Parallel loops become serial, since their iterations would share the pool. A size that is not constant is
    RLX5032.

    For code that may not allocate while it runs.

    Before:

        @T.prim_func
        def f(A: T.Buffer((64,), "float32")):
            t = T.allocate([64], "float32", "global")
            T_1 = T.decl_buffer((64,), data=t)
            T_1[0] = A[0]
            A[1] = T_1[0]

    After:

        @T.prim_func
        def f(A: T.Buffer((64,), "float32"), pool: T.Buffer((T.int64(256),), "uint8")):
            t: T.handle("float32", "global") = T.address_of(pool[T.int64(0)])
            T_1 = T.decl_buffer((64,), data=t)
            T_1[0] = A[0]
            A[1] = T_1[0]
    """

    stack_bytes: int = 64
    alignment: int = 64

    def run_prim_func(self, func: PrimFunc, ctx: PassContext) -> PrimFunc:
        return pool_allocations(func, self.stack_bytes, self.alignment)


def pool_allocations(func: PrimFunc, stack_bytes: int, alignment: int) -> PrimFunc:
    """The function with its larger intermediates in a pool parameter; as it is when there are none."""
    data = Var(POOL, HANDLE, PointerType(dtype("uint8")))
    move = _Move(data, stack_bytes, max(alignment, 1))
    body = move(func.body)
    if not move.size:
        return func.replace(body=body)
    param = Var(POOL, HANDLE)
    pool = Buffer(POOL, (IntImm(INT64, move.size),), dtype("uint8"), data)
    body = _Rename(move.buffer, pool)(body)
    return func.replace(params=(*func.params, param), buffer_map={**func.buffer_map, param: pool}, body=body)


def pool_bytes(func: PrimFunc) -> int:
    """The size of the pool that a function wants after the pass; 0 for none."""
    last = func.buffer_map.get(func.params[-1]) if func.params else None
    if last is None or last.name != POOL or last.data.name != POOL:
        return 0
    size = last.shape[0]
    return size.value if isinstance(size, IntImm) else 0


class _Move(Rewriter):
    """`size` bytes are taken so far. No two intermediates share bytes: in C, memory has a type while it is used."""

    def __init__(self, data: Var, stack_bytes: int, alignment: int) -> None:
        self.buffer = Buffer(POOL, (IntImm(INT64, 0),), dtype("uint8"), data)
        self.stack_bytes = stack_bytes
        self.alignment = alignment
        self.size = 0

    @on(For)
    def loop(self, node: For) -> Stmt:
        """A loop; no longer parallel."""
        made = self.below(node)
        return made.replace(kind="serial") if made.kind == "parallel" else made

    @on(Allocate)
    def allocate(self, node: Allocate) -> Stmt:
        """An intermediate."""
        count = 1
        for extent in node.extents:
            if not isinstance(extent, IntImm):
                message = f"the size of the intermediate `{node.buffer_var.name}` is known only at run time"
                fail("RLX5032", message, node.span, node=node)
            count *= max(extent.value, 0)
        size = count * node.dtype.itemsize
        if size <= self.stack_bytes:
            return self.below(node)
        start = -(-self.size // self.alignment) * self.alignment
        self.size = start + size
        body = self.visit(node.body)
        where = prim.Call(HANDLE, "address_of", (prim.BufferLoad(self.buffer, (IntImm(INT64, start),)),))
        return LetStmt(node.buffer_var, where, body, span=node.span)


class _Rename(Rewriter):
    """The pool with the size that was found."""

    def __init__(self, old: Buffer, new: Buffer) -> None:
        self.old = old
        self.new = new

    @on(prim.BufferLoad)
    def load(self, node: prim.BufferLoad) -> prim.PrimExpr:
        """An address in the pool."""
        made = self.below(node)
        return made.replace(buffer=self.new) if made.buffer is self.old else made
