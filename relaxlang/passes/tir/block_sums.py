"""BlockSums: long sums of floats are added up in blocks, and the blocks with what rounding takes from them."""

from __future__ import annotations

import math

from relaxlang.arith import Analyzer
from relaxlang.base.dtype import DType
from relaxlang.base.record import record
from relaxlang.ir import prim
from relaxlang.ir.prim import INT64, BufferLoad, IntImm, PrimExpr, Ramp, Var, const
from relaxlang.ir.tir import Allocate, Buffer, BufferStore, DeclBuffer, For, LetStmt, PrimFunc, Stmt, seq
from relaxlang.ir.visit import Rewriter, free_vars, on, substitute, walk
from relaxlang.passes.base import PassContext, PrimFuncPass

LONG = 8192
"""Terms from which a sum is long."""
BLOCK = 2048
"""Terms of a block at most, in all lanes."""
SHORT = 256
"""Terms below which a block does not pay."""


@record
class BlockSums(PrimFuncPass):
    """A loop that adds 8192 or more floats to one element adds up blocks of 2048 instead, and these with the remainders
    of their additions (Kahan and Babuska).

    A float32 that holds a long sum has few digits left for the next term: 0.1 added up 2**25 times, in 16 lanes, is off
    by 0.4 %. Loops whose extent is not known are taken to be long. It applies to nests of plain serial loops around one
    store.

    Before:

        @T.prim_func
        def f(A: T.Buffer((16384,), "float32"), B: T.Buffer((1,), "float32")):
            for k in range(16384):
                B[0] = B[0] + A[k]

    After:

        @T.prim_func
        def f(A: T.Buffer((16384,), "float32"), B: T.Buffer((1,), "float32")):
            total = T.allocate([T.int64(1)], "float32", "global")
            total_1 = T.decl_buffer((T.int64(1),), "float32", data=total)
            lost = T.allocate([T.int64(1)], "float32", "global")
            lost_1 = T.decl_buffer((T.int64(1),), "float32", data=lost)
            block = T.allocate([T.int64(1)], "float32", "global")
            block_1 = T.decl_buffer((T.int64(1),), "float32", data=block)
            total_1[T.int64(0)] = B[0]
            lost_1[T.int64(0)] = T.float32(0.0)
            for k_block in range(8):
                block_1[T.int64(0)] = T.float32(0.0)
                for k in range(2048):
                    block_1[T.int64(0)] = block_1[T.int64(0)] + A[k_block * 2048 + k]
                old: T.float32 = total_1[T.int64(0)]
                new: T.float32 = block_1[T.int64(0)]
                made: T.float32 = old + new
                part: T.float32 = made - old
                lost_1[T.int64(0)] = lost_1[T.int64(0)] + (old - (made - part) + (new - part))
                total_1[T.int64(0)] = made
            B[0] = T.Select(
                lost_1[T.int64(0)] == lost_1[T.int64(0)],
                total_1[T.int64(0)] + lost_1[T.int64(0)],
                total_1[T.int64(0)],
            )
    """

    def run_prim_func(self, func: PrimFunc, ctx: PassContext) -> PrimFunc:
        body = _Blocks()(func.body)
        return func if body is func.body else func.replace(body=body)


def _extent(loop: For) -> int | None:
    return loop.extent.value if isinstance(loop.extent, IntImm) else None


def _most(extent: PrimExpr) -> int | None:
    """The most iterations that a loop may have: the last piece of a longer one has some number up to a limit."""
    if isinstance(extent, prim.Min):
        known = [n for n in (_most(extent.a), _most(extent.b)) if n is not None]
        return min(known, default=None)
    return extent.value if isinstance(extent, IntImm) else None


class _Blocks(Rewriter):
    @on(For)
    def loop(self, node: For) -> Stmt:
        """The outermost loop of a nest that adds to one element."""
        loops, body = [], node
        inner: Stmt = body
        while isinstance(inner, For) and _is_plain(inner):
            loops.append(inner)
            inner = inner.body
        term = _term(inner)
        if term is None or not isinstance(inner, BufferStore):
            return self.below(node)
        variables = {one.loop_var for one in loops}
        places = variables & set(free_vars(inner.indices))
        first = max((k + 1 for k, one in enumerate(loops) if one.loop_var in places), default=0)
        reduce = loops[first:]
        bound = {v for one in reduce for v in free_vars((one.min, one.extent))} & {one.loop_var for one in reduce}
        sizes = [_most(one.extent) for one in reduce]
        long = None in sizes or math.prod(n for n in sizes if n is not None) * term.dtype.lanes >= LONG
        if not reduce or bound or not long:
            return self.below(node)
        made = _in_blocks(reduce, inner, term)
        for one in reversed(loops[:first]):
            made = one.replace(body=made)
        return made


def _is_plain(loop: For) -> bool:
    return loop.kind == "serial" and not loop.annotations and isinstance(loop.step, IntImm) and loop.step.value == 1


def _term(stmt: Stmt) -> PrimExpr | None:
    """What a store adds to the float32 or float64 (or vector of them) where it stores to; None for other statements."""
    if not isinstance(stmt, BufferStore) or stmt.predicate is not None:
        return None
    value = stmt.value
    if not isinstance(value, prim.Add) or not value.dtype.is_float or value.dtype.bits < 32:
        return None
    for old, new in ((value.a, value.b), (value.b, value.a)):
        if isinstance(old, BufferLoad) and old.buffer is stmt.buffer and old.indices == stmt.indices:
            loads = [n for n in walk(new) if isinstance(n, BufferLoad)]
            calls = [n for n in walk(new) if isinstance(n, prim.Call) and not isinstance(n.op, str)]
            return None if calls or any(one.buffer.data is stmt.buffer.data for one in loads) else new
    return None


def _in_blocks(loops: list[For], store: BufferStore, term: PrimExpr) -> Stmt:
    """The loops with blocks: as many of the innermost as fit go into one; the next is cut into pieces if these are too
    short."""
    most, short = BLOCK // term.dtype.lanes, SHORT // term.dtype.lanes
    terms, at = 1, len(loops)
    while at > 0:
        size = _extent(loops[at - 1])
        if size is None or terms * size > most:
            break
        terms, at = terms * size, at - 1
    of = term.dtype
    total, lost, block = (_cell(name, of) for name in ("total", "lost", "block"))
    inside = loops[at:]
    outside = loops[:at]
    if terms < short and at > 0:
        outer, inner, index = _cut(loops[at - 1], most // terms)
        inside, outside = [inner, *inside], [*loops[: at - 1], outer]
        term = substitute(term, index)
    body: Stmt = block.store(block.load() + term)
    for one in reversed(inside):
        body = one.replace(body=body)
    body = seq(block.store(const(0.0, of)), body, _accumulate(total, lost, block.load()))
    for one in reversed(outside):
        body = one.replace(body=body)
    loss = lost.load()
    # The loss is NaN where the total is infinite.
    result = prim.Select(prim.EQ(loss, loss), total.load() + loss, total.load())
    body = seq(
        total.store(BufferLoad(store.buffer, store.indices)),
        lost.store(const(0.0, of)),
        body,
        store.replace(value=result),
    )
    for cell in (block, lost, total):
        body = cell.allocate(body)
    return body


def _cut(loop: For, length: int) -> tuple[For, For, dict[Var, PrimExpr]]:
    """A loop as one over pieces and one in a piece, and the old variable by theirs."""
    of = loop.loop_var.dtype
    outer, inner = Var(f"{loop.loop_var.name}_block", of), Var(loop.loop_var.name, of)
    size, extent = const(length, of), loop.extent
    count = (extent + (length - 1)) // size
    begin = outer * size
    analyzer = Analyzer()
    known = _extent(loop)
    rest = size if known is not None and known % length == 0 else prim.Min(size, extent - begin)
    index = {loop.loop_var: analyzer.simplify(loop.min + begin + inner)}
    zero = const(0, of)
    outside = loop.replace(loop_var=outer, min=zero, extent=analyzer.simplify(count))
    return outside, loop.replace(loop_var=inner, min=zero, extent=rest), index


def _accumulate(total: _Cell, lost: _Cell, value: PrimExpr) -> Stmt:
    """Add `value` to `total`, and what rounding takes from the sum to `lost` (Knuth)."""
    of = value.dtype
    old, new, made, part = (Var(name, of) for name in ("old", "new", "made", "part"))
    body = seq(lost.store(lost.load() + ((old - (made - part)) + (new - part))), total.store(made))
    for var, bound in ((part, made - old), (made, old + new), (new, value), (old, total.load())):
        body = LetStmt(var, bound, body)
    return body


@record
class _Cell:
    """Memory for one value."""

    buffer: Buffer
    indices: tuple[PrimExpr, ...]

    def load(self) -> PrimExpr:
        return BufferLoad(self.buffer, self.indices)

    def store(self, value: PrimExpr) -> Stmt:
        return BufferStore(self.buffer, value, self.indices)

    def allocate(self, body: Stmt) -> Stmt:
        true = IntImm(prim.BOOL, 1)
        return Allocate(self.buffer.data, self.buffer.dtype, self.buffer.shape, true, DeclBuffer(self.buffer, body))


def _cell(name: str, of: DType) -> _Cell:
    data = Var(name, prim.HANDLE, prim.PointerType(of.scalar))
    zero = const(0, INT64)
    index = zero if of.lanes == 1 else Ramp(zero, const(1, INT64), of.lanes)
    return _Cell(Buffer(name, (const(of.lanes, INT64),), of.scalar, data), (index,))
