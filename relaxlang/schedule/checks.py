"""What primitives require of blocks and loops, and the faults when it is not so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from relaxlang.arith.analyzer import Analyzer
from relaxlang.arith.intervals import IntSet
from relaxlang.ir.prim import IntImm, PrimExpr, Var
from relaxlang.ir.tir import Block, BlockRealize, Buffer, BufferRegion, For, Range, Stmt
from relaxlang.ir.visit import free_vars
from relaxlang.schedule.access import at_values, read_buffers, relaxed, written_buffers
from relaxlang.schedule.state import State


# --- blocks -----------------------------------------------------------------------------------------------------------
def why_not_complete(state: State, realize: BlockRealize) -> str:
    """Why a block is not complete; empty when it is: all axes spatial, the only writer of its outputs, which it does
    not read."""
    block = realize.block
    for axis in block.iter_vars:
        if axis.kind != "spatial":
            return f"its axis `{axis.var.name}` is {_KINDS[axis.kind]}"
    other = _other_writer(state, realize)
    if other is not None:
        return other
    both = [b.name for b in read_buffers(realize) if b in written_buffers(realize)]
    return f"it reads `{both[0]}`, which it writes" if both else ""


def why_not_reduction(state: State, realize: BlockRealize) -> str:
    """Why a block is not a reduction; empty when it is: an init, axes spatial or reduce, the only writer of its
    outputs, whose place no reduction axis changes."""
    block = realize.block
    if block.init is None:
        return "it has no init"
    for axis in block.iter_vars:
        if axis.kind not in ("spatial", "reduce"):
            return f"its axis `{axis.var.name}` is {_KINDS[axis.kind]}"
    other = _other_writer(state, realize)
    if other is not None:
        return other
    reduce = {a.var for a in block.iter_vars if a.kind == "reduce"}
    for region in block.writes or ():
        if reduce & set(free_vars(tuple(r.min for r in region.region))):
            return f"a reduction axis changes where it writes `{region.buffer.name}`"
    return ""


_KINDS = {"spatial": "spatial", "reduce": "a reduction", "scan": "a scan", "opaque": "opaque", "thread": "a thread"}


def _other_writer(state: State, realize: BlockRealize) -> str | None:
    mine = set(written_buffers(realize))
    for other in state.blocks_under(state.scope(realize)):
        shared = mine & set(written_buffers(other))
        if other is not realize and shared:
            return f"the block `{other.block.name_hint}` writes `{min(b.name for b in shared)}` too"
    return None


def require_complete(state: State, realize: BlockRealize, reduction: bool = True) -> None:
    """RLX1004 unless a block is complete (or, with `reduction`, a reduction)."""
    reason = why_not_complete(state, realize)
    if reason and (not reduction or why_not_reduction(state, realize)):
        if reduction and realize.block.init is not None:
            reason = why_not_reduction(state, realize)
        wanted = "neither complete nor a reduction" if reduction else "not complete"
        state.fail("RLX1004", f"the block `{realize.block.name_hint}` is {wanted}: {reason}", realize)


def require_reduction(state: State, realize: BlockRealize) -> None:
    """RLX1004 unless a block is a reduction."""
    reason = why_not_reduction(state, realize)
    if reason:
        state.fail("RLX1004", f"the block `{realize.block.name_hint}` is no reduction: {reason}", realize)


def producers(state: State, realize: BlockRealize) -> list[BlockRealize]:
    """The blocks of the same scope that write what a block reads, in program order."""
    wanted = set(read_buffers(realize))
    found = state.blocks_under(state.scope(realize))
    return [b for b in found if b is not realize and wanted & set(written_buffers(b))]


def consumers(state: State, realize: BlockRealize) -> list[BlockRealize]:
    """The blocks of the same scope that read what a block writes, in program order."""
    made = set(written_buffers(realize))
    found = state.blocks_under(state.scope(realize))
    return [b for b in found if b is not realize and made & set(read_buffers(b))]


def is_output(state: State, realize: BlockRealize) -> bool:
    """Whether a block writes a buffer that its scope does not allocate."""
    own = state.scope(realize).block.alloc_buffers
    return any(b not in own for b in written_buffers(realize))


# --- loops ------------------------------------------------------------------------------------------------------------
def require_plain(state: State, loop: For, what: str) -> None:
    """RLX1006 unless a loop is serial, from 0 by 1, without annotations."""
    name = loop.loop_var.name
    if loop.kind != "serial" or loop.thread_binding is not None:
        state.fail("RLX1006", f"`{what}` takes serial loops; `{name}` is {loop.kind}", loop)
    if loop.annotations:
        state.fail("RLX1006", f"`{what}` takes loops without annotations; `{name}` has some", loop)
    if not (_is(loop.min, 0) and _is(loop.step, 1)):
        state.fail("RLX1006", f"`{what}` takes loops from 0 by 1; `{name}` is not", loop)


def _is(e: object, value: int) -> bool:
    return getattr(e, "value", None) == value


def loops_below(state: State, stmt: Stmt, top: Stmt) -> list[For]:
    """The loops between `top` (excluded) and a statement below it, outermost first."""
    found: list[For] = []
    for above in state.ancestors(stmt):
        if above is top:
            break
        if isinstance(above, For):
            found.append(above)
    return found[::-1]


def is_below(state: State, stmt: Stmt, top: Stmt) -> bool:
    """Whether `top` is around a statement, or the statement itself."""
    return stmt is top or any(a is top for a in state.ancestors(stmt))


def box_under(
    state: State, realize: BlockRealize, region: Sequence[Range], top: Stmt, analyzer: Analyzer
) -> list[IntSet]:
    """What a block's region covers while the loops below `top` run."""
    domain = {s.loop_var: Range(s.min, s.extent) for s in loops_below(state, realize, top)}
    return [relaxed(dim, domain, analyzer) for dim in at_values(realize, region)]


def holds(inner: Sequence[IntSet], outer: Sequence[IntSet], buffer: Buffer, analyzer: Analyzer) -> bool:
    """Whether what a box holds of a buffer is provably within another box."""
    return all(_within(a, b, dim, analyzer) for a, b, dim in zip(inner, outer, buffer.shape))


def _within(a: IntSet, b: IntSet, dim: PrimExpr, analyzer: Analyzer) -> bool:
    if b.min is None or b.max is None:
        return False
    low = a.min == b.min or analyzer.can_prove(b.min <= 0) or (a.min is not None and analyzer.can_prove(b.min <= a.min))
    if not low:
        return False
    if a.max == b.max or analyzer.can_prove(b.max + 1 >= dim):
        return True
    return a.max is not None and analyzer.can_prove(a.max <= b.max)


def _pairs(blocks: list[BlockRealize]) -> Iterator[tuple[BlockRealize, BufferRegion, BlockRealize, BufferRegion]]:
    for writer in blocks:
        for made in writer.block.writes or ():
            for reader in blocks:
                for used in reader.block.reads or ():
                    if reader is not writer and used.buffer is made.buffer:
                        yield writer, made, reader, used


def hands_on(state: State, loop: For) -> tuple[BlockRealize, Buffer] | None:
    """A block below the loop that may read what another wrote in another iteration, and the buffer; None when each
    iteration reads only what it wrote itself (or what was there before)."""
    blocks = state.blocks_under(loop)
    pairs = list(_pairs(blocks))
    if not pairs:
        return None
    analyzer = state.analyzer()
    for around in [*state.loops_around(loop), loop]:
        analyzer.bind(around.loop_var, Range(around.min, around.extent))
    seen: dict[tuple[int, Buffer], bool] = {}
    for writer, made, reader, used in pairs:
        key = (id(reader), used.buffer)
        if seen.get(key):
            continue
        read = box_under(state, reader, used.region, loop, analyzer)
        written = box_under(state, writer, made.region, loop, analyzer)
        seen[key] = holds(read, written, used.buffer, analyzer)
    for (reader_id, buffer), fine in seen.items():
        if not fine:
            return next(b for b in blocks if id(b) == reader_id), buffer
    return None


def require_independent(state: State, loop: For, what: str) -> None:
    """RLX1007 unless the iterations of a loop may run in any order and at once."""
    name = loop.loop_var.name
    if isinstance(loop.extent, IntImm) and loop.extent.value <= 1:
        return
    for realize in state.blocks_under(loop):
        block = realize.block
        for axis, value in zip(block.iter_vars, realize.iter_values):
            if axis.kind != "spatial" and loop.loop_var in free_vars(value):
                message = f"`{what}` of the loop `{name}`, which drives the axis `{axis.var.name}` of the block "
                state.fail("RLX1007", f"{message}`{block.name_hint}`: it is {_KINDS[axis.kind]}", realize,
                           help="`rfactor` gives each iteration a partial result of its own")  # fmt: skip
        if not any(loop.loop_var in free_vars(v) for v in realize.iter_values) and not _private(state, realize, loop):
            message = (
                f"`{what}` of the loop `{name}`: the block `{block.name_hint}` writes the same place in every iteration"
            )
            state.fail("RLX1007", message, realize)
    carried = hands_on(state, loop)
    if carried is not None:
        reader, buffer = carried
        message = f"`{what}` of the loop `{name}`: the block `{reader.block.name_hint}` may read elements of "
        state.fail("RLX1007", f"{message}`{buffer.name}` that another iteration writes", reader)


def _private(state: State, realize: BlockRealize, loop: For) -> bool:
    """Whether what a block writes is allocated in its scope and used below the loop alone."""
    scope = state.scope(realize)
    written = written_buffers(realize)
    if any(b not in scope.block.alloc_buffers for b in written):
        return False
    inside = {id(b) for b in state.blocks_under(loop)}
    return all(
        id(other) in inside or not set(written) & {*read_buffers(other), *written_buffers(other)}
        for other in state.blocks_under(scope)
    )


def axis_values(realize: BlockRealize) -> dict[Var, object]:
    """What each axis of a block is bound to."""
    return dict(zip((a.var for a in realize.block.iter_vars), realize.iter_values))


def own_axes(block: Block) -> set[Var]:
    """The variables of a block's axes."""
    return {a.var for a in block.iter_vars}
