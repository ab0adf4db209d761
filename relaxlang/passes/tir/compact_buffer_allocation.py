"""CompactBufferAllocation: an intermediate has the size that one iteration needs."""

from __future__ import annotations

from typing import NamedTuple

from relaxlang.arith.analyzer import Analyzer
from relaxlang.arith.intervals import IntSet, union
from relaxlang.base.record import record
from relaxlang.ir.prim import BufferLoad, IntImm, PrimExpr, Var, cast
from relaxlang.ir.tir import (
    Block,
    BlockRealize,
    Buffer,
    BufferRegion,
    BufferStore,
    For,
    PrimFunc,
    Range,
)
from relaxlang.ir.visit import Rewriter, Visitor, free_vars, on
from relaxlang.passes.base import PassContext, PrimFuncPass
from relaxlang.schedule.checks import box_under, holds
from relaxlang.schedule.state import TRUE, State, normalized
from relaxlang.schedule.stmts import walk_stmts

SMALL = 16 << 10
"""Bytes up to which memory is allocated in the innermost loop: it lives on the stack then."""


@record
class CompactBufferAllocation(PrimFuncPass):
    """A buffer that is filled and used up in each iteration of a loop is as large as one iteration needs, and allocated
    inside: in that loop when it is small, else in the parallel loop around.

    Before:

        @T.prim_func
        def f(A: T.Buffer((32, 16), "float32"), B: T.Buffer((32, 16), "float32")):
            C = T.alloc_buffer((32, 16), "float32")
            for i in range(32):
                for j in range(16):
                    with T.block("C"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        C[vi, vj] = A[vi, vj] * T.float32(2)
                for j in range(16):
                    with T.block("B"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        B[vi, vj] = C[vi, 15 - vj]

    After:

        @T.prim_func
        def f(A: T.Buffer((32, 16), "float32"), B: T.Buffer((32, 16), "float32")):
            for i in range(32):
                with T.block("C_1"):
                    T.reads()
                    T.writes()
                    C = T.alloc_buffer((1, 16), "float32")
                    for j in range(16):
                        with T.block("C"):
                            vi, vj = T.axis.remap("SS", [i, j])
                            T.reads(A[vi, vj])
                            T.writes(C[vi - i, vj])
                            C[vi - i, vj] = A[vi, vj] * T.float32(2)
                    for j in range(16):
                        with T.block("B"):
                            vi, vj = T.axis.remap("SS", [i, j])
                            T.reads(C[vi - i, 15 - vj])
                            T.writes(B[vi, vj])
                            B[vi, vj] = C[vi - i, 15 - vj]
    """

    def run_prim_func(self, func: PrimFunc, ctx: PassContext) -> PrimFunc:
        return compact_buffer_allocation(func)


def compact_buffer_allocation(func: PrimFunc) -> PrimFunc:
    """The function with smaller intermediates."""
    if not any(isinstance(s, Block) and s.alloc_buffers for s in walk_stmts(func.body)):
        return func
    made = State(normalized(func), "f")
    homes: dict[Var, list[Buffer]] = {}
    users = _Users(made)
    changed = False
    for name in list(made.blocks):
        for buffer in made.blocks[name].block.alloc_buffers:
            found = _compact(made, name, buffer, users)
            if found is not None:
                made, home, small = found
                changed = True
                if home is not None:
                    homes.setdefault(home, []).append(small)
    for home, buffers in homes.items():
        made = _allocate_in(made, home, tuple(buffers))
    return made.func if changed else func


def _compact(state: State, scope_name: str, buffer: Buffer, known: _Users) -> tuple[State, Var | None, Buffer] | None:
    """The state with one buffer made smaller, the loop to allocate it in (None: it is allocated where it was), and the
    new buffer; None when that is not possible."""
    scope = state.blocks[scope_name]
    users = [b for b in state.blocks_under(scope) if buffer in _touched(b)]
    if not users or _touched_elsewhere(known, scope, users, buffer):
        return None
    home = _common_loop(state, users, buffer)
    if home is None or buffer.strides or buffer.elem_offset is not None:
        return None
    analyzer = state.analyzer()
    for around in [*state.loops_around(home), home]:
        analyzer.bind(around.loop_var, Range(around.min, around.extent))
    accesses = _accesses(state, home, buffer, users, analyzer)
    if _hands_on(accesses, buffer, analyzer):
        return None
    lows, extents = _box(state, buffer, accesses, analyzer)
    inside = all(isinstance(e, IntImm) for e in extents)
    if not inside and all(a is b for a, b in zip(extents, buffer.shape)):
        return None
    small = buffer.replace(shape=tuple(extents), data=Var(buffer.data.name, buffer.data.of, buffer.data.pointer))
    bytes_ = buffer.dtype.itemsize
    for extent in extents:
        bytes_ = bytes_ * extent.value if isinstance(extent, IntImm) else SMALL + 1
    parallel = (s for s in [*state.loops_around(home), home] if s.kind == "parallel")
    into = home if bytes_ <= SMALL else next(parallel, None)
    state = state.with_buffers(scope, drop=(buffer,), add=(small,) if into is None else ())
    state = state.replace({home: _Shrink(buffer, small, lows).visit(home)})
    return state, None if into is None else into.loop_var, small


def _allocate_in(state: State, var: Var, buffers: tuple[Buffer, ...]) -> State:
    loop = state.loops[var]
    block = Block((), (), (), state.unique(buffers[0].name), loop.body, alloc_buffers=buffers)
    return state.replace({loop: loop.replace(body=BlockRealize((), TRUE, block))})


def _touched(realize: BlockRealize) -> set[Buffer]:
    block = realize.block
    return {r.buffer for r in (*(block.reads or ()), *(block.writes or ()))}


def _touched_elsewhere(known: _Users, scope: BlockRealize, users: list[BlockRealize], buffer: Buffer) -> bool:
    """Whether something outside of the blocks, or a view, uses the buffer, or an opaque block whose regions say
    little."""
    if any(u.block.match_buffers or not u.block.iter_vars for u in users):
        return True
    return not known.of(scope, buffer) <= {u.block.name_hint for u in users}


class _Users:
    """Which blocks use buffers, found for all buffers of a scope at once. Making one buffer smaller changes nothing for
    the others, so what is found in the state at the beginning serves for all."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.known: dict[str, dict[Var, set[str | None]]] = {}

    def of(self, scope: BlockRealize, buffer: Buffer) -> set[str | None]:
        """The names of the blocks of a scope that use a buffer's memory; None for what is in none of them."""
        name = scope.block.name_hint
        found = self.known.get(name)
        if found is None:
            uses = _Uses()
            uses(self.state.blocks[name].block.body)
            found = self.known[name] = uses.found
        return found.get(buffer.data, set())


class _Uses(Visitor):
    """Collects, for each pointer, the outermost blocks that use it."""

    def __init__(self) -> None:
        self.found: dict[Var, set[str | None]] = {}
        self.block: str | None = None

    @on(Block)
    def enter(self, node: Block) -> None:
        """A block."""
        outer = self.block
        self.block = node.name_hint if outer is None else outer
        self.below(node)
        self.block = outer

    @on(BufferLoad, BufferStore, BufferRegion)
    def access(self, node: BufferLoad | BufferStore | BufferRegion) -> None:
        """A load, a store, or a stated region."""
        self.found.setdefault(node.buffer.data, set()).add(self.block)
        self.below(node)

    @on(Var)
    def var(self, node: Var) -> None:
        """A variable, which may be a pointer."""
        self.found.setdefault(node, set()).add(self.block)


def _common_loop(state: State, users: list[BlockRealize], buffer: Buffer) -> For | None:
    """The innermost loop around all of the blocks in whose iterations they use nothing of earlier ones: a reduction
    goes on with what it has in the buffer since its `init`."""
    chains = [state.loops_around(u) for u in users]
    carrying = {v for u in users if u.block.init is not None and _writes(u, buffer) for v in _reduced_over(u)}
    found = None
    for level in zip(*chains):
        if any(one is not level[0] for one in level) or level[0].loop_var in carrying:
            break
        found = level[0]
    while found is not None and found.kind in ("vectorized", "unroll"):
        found = next(iter(state.loops_around(found)[::-1]), None)
    return found


def _writes(realize: BlockRealize, buffer: Buffer) -> bool:
    return any(region.buffer is buffer for region in realize.block.writes or ())


def _reduced_over(realize: BlockRealize) -> list[Var]:
    """The variables that drive the reduction axes of a block."""
    axes = zip(realize.block.iter_vars, realize.iter_values)
    return free_vars(tuple(value for axis, value in axes if axis.kind != "spatial"))


class _Access(NamedTuple):
    """What a block reads or writes of a buffer in one iteration of a loop."""

    writes: bool
    box: list[IntSet]


def _accesses(state: State, home: For, buffer: Buffer, users: list[BlockRealize], analyzer: Analyzer) -> list[_Access]:
    """The accesses of the blocks that use a buffer, in program order; of each, what it reads before what it writes."""
    return [
        _Access(writes, box_under(state, user, region.region, home, analyzer))
        for user in users
        for writes, regions in ((False, user.block.reads), (True, user.block.writes))
        for region in regions or ()
        if region.buffer is buffer
    ]


def _hands_on(accesses: list[_Access], buffer: Buffer, analyzer: Analyzer) -> bool:
    """Whether an iteration may read elements of the buffer that it has not written before. An update of what another
    block initialised counts as covered by that."""
    written: list[list[IntSet]] = []
    for access in accesses:
        if access.writes:
            written.append(access.box)
        elif not any(holds(access.box, box, buffer, analyzer) for box in written):
            return True
    return False


def _box(
    state: State, buffer: Buffer, accesses: list[_Access], analyzer: Analyzer
) -> tuple[list[PrimExpr], list[PrimExpr]]:
    """Where the part begins that an iteration uses, and its extents; whole dimensions where that is not known."""
    lows: list[PrimExpr] = []
    extents: list[PrimExpr] = []
    for dim, sets in zip(buffer.shape, zip(*(access.box for access in accesses))):
        low, high = union(sets, analyzer)
        extent = None if low is None or high is None else analyzer.simplify(high - low + 1)
        unknown = extent is None or low is None or any(var in state.loops for var in free_vars(extent))
        # A register tile keeps its size beyond the edge of a smaller buffer: its rows must not overlap.
        padded = buffer.scope == "local" and isinstance(extent, IntImm)
        if unknown or low is None or extent is None or (not padded and analyzer.can_prove(extent >= dim)):
            low, extent = cast(IntImm(dim.dtype, 0), dim.dtype), dim
        lows.append(low)
        extents.append(cast(extent, dim.dtype))
    return lows, extents


class _Shrink(Rewriter):
    """Accesses to a buffer become accesses to a part of it."""

    def __init__(self, old: Buffer, new: Buffer, lows: list[PrimExpr]) -> None:
        self.old = old
        self.new = new
        self.lows = lows

    @on(BufferLoad, BufferStore)
    def access(self, node: BufferLoad | BufferStore) -> BufferLoad | BufferStore:
        """A load or store."""
        made = self.below(node)
        if made.buffer is not self.old:
            return made
        indices = tuple(i - cast(low, i.dtype) for i, low in zip(made.indices, self.lows))
        return made.replace(buffer=self.new, indices=indices)

    @on(BufferRegion)
    def region(self, node: BufferRegion) -> BufferRegion:
        """A stated region."""
        if node.buffer is not self.old:
            return node
        parts = tuple(Range(r.min - cast(low, r.min.dtype), r.extent) for r, low in zip(node.region, self.lows))
        return BufferRegion(self.new, parts)
