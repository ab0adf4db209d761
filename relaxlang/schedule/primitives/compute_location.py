"""What compute_at and reverse_compute_at share: a block moves under a loop and computes just what is needed there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from relaxlang.arith.analyzer import Analyzer
from relaxlang.arith.intervals import IntSet, union
from relaxlang.ir.prim import GE, LT, IntImm, PrimExpr, Var, cast, const
from relaxlang.ir.tir import BlockRealize, Buffer, BufferRegion, For, Range, SeqStmt, Stmt, seq
from relaxlang.ir.visit import free_vars, substitute
from relaxlang.schedule.checks import box_under, is_below
from relaxlang.schedule.primitives.loops import conjunction, nest, requirements
from relaxlang.schedule.state import TRUE, State


def needed(
    state: State, blocks: list[BlockRealize], buffers: list[Buffer], loop: For, analyzer: Analyzer, reads: bool
) -> dict[Buffer, list[IntSet]]:
    """What the blocks below the loop read (or write) of the buffers in one iteration."""
    boxes: dict[Buffer, list[list[IntSet]]] = {}
    for realize in blocks:
        regions = realize.block.reads if reads else realize.block.writes
        for one in regions or ():
            if one.buffer in buffers:
                boxes.setdefault(one.buffer, []).append(box_under(state, realize, one.region, loop, analyzer))
    return {b: [union(list(dim), analyzer) for dim in zip(*found)] for b, found in boxes.items()}


def domains(
    realize: BlockRealize, regions: tuple[BufferRegion, ...], boxes: Mapping[Buffer, list[IntSet]], analyzer: Analyzer
) -> dict[Var, Range]:
    """What each axis of a block must run through so that its `regions` cover the boxes: those axes that alone (plus a
    constant) index a dimension; others are left out."""
    axes = {a.var: a for a in realize.block.iter_vars}
    found: dict[Var, list[IntSet]] = {}
    for region in regions:
        for dim, box in zip(region.region, boxes.get(region.buffer, ())):
            var, shift = _axis(dim.min, set(axes))
            if var is None or box.min is None or box.max is None or not _one(dim.extent):
                continue
            found.setdefault(var, []).append(IntSet(box.min - shift, box.max - shift))
    result = {}
    for var, sets in found.items():
        whole = union(sets, analyzer)
        if whole.min is None or whole.max is None:
            continue
        extent = analyzer.simplify(whole.max - whole.min + 1)
        result[var] = Range(cast(analyzer.simplify(whole.min), var.dtype), cast(extent, var.dtype))
    return result


def _one(e: PrimExpr) -> bool:
    return isinstance(e, IntImm) and e.value == 1


def _axis(index: PrimExpr, axes: set[Var]) -> tuple[Var | None, PrimExpr]:
    """The axis v and the rest c of an index v + c; (None, …) for another index."""
    if isinstance(index, Var):
        return (index, const(0, index.dtype)) if index in axes else (None, index)
    used = [v for v in free_vars(index) if v in axes]
    if len(used) != 1:
        return None, index
    rest = Analyzer().simplify(index - cast(used[0], index.dtype))
    return (None, index) if used[0] in free_vars(rest) else (used[0], rest)


def placed(
    state: State, realize: BlockRealize, wanted: Mapping[Var, Range], analyzer: Analyzer, unit_loops: bool
) -> Stmt:
    """The block in loops of its own, over the wanted part of each axis' domain (all of it where nothing is said)."""
    loops: list[tuple[Var, PrimExpr]] = []
    values: list[PrimExpr] = []
    condition: PrimExpr = TRUE
    for axis in realize.block.iter_vars:
        low, extent = cast(axis.dom.min, axis.var.dtype), cast(axis.dom.extent, axis.var.dtype)
        part = wanted.get(axis.var)
        whole = part is None or _covers(part, low, extent, analyzer)
        first, count = (low, extent) if whole or part is None else (part.min, part.extent)
        if _one(count) and not unit_loops:
            value: PrimExpr = first
        else:
            var = Var(f"ax{len(loops)}", axis.var.dtype)
            loops.append((var, count))
            value = first + var
        values.append(value)
        if not whole:
            condition = conjunction(condition, _inside(first, count, value, low, extent, analyzer))
    for var, count in loops:
        analyzer.bind(var, Range(const(0, var.dtype), count))
    for term in _kept(state, realize, values):
        if not analyzer.can_prove(term):
            condition = conjunction(condition, term)
    moved = realize.replace(iter_values=tuple(values), predicate=condition)
    return nest(loops, moved)


def _kept(state: State, realize: BlockRealize, values: Sequence[PrimExpr]) -> list[PrimExpr]:
    """The parts of a block's condition that speak of its axes, with the axes' new values. Others are about the loops
    that drove one axis together, and hold within its domain."""
    known = {old: new for old, new in zip(realize.iter_values, values) if isinstance(old, Var)}
    unknown = {loop.loop_var for loop in state.loops_around(realize)} - set(known)
    terms = [t for t in requirements(realize.predicate) if not unknown & set(free_vars(t))]
    return [substitute(term, known) for term in terms]


def _covers(part: Range, low: PrimExpr, extent: PrimExpr, analyzer: Analyzer) -> bool:
    """Whether a part is known to be the whole domain or more."""
    if isinstance(part.extent, IntImm) and isinstance(extent, IntImm) and part.extent.value < extent.value:
        return False
    return analyzer.can_prove(part.min <= low) and analyzer.can_prove(part.min + part.extent >= low + extent)


def _inside(
    first: PrimExpr, count: PrimExpr, value: PrimExpr, low: PrimExpr, extent: PrimExpr, analyzer: Analyzer
) -> PrimExpr:
    """The condition under which a value is in the domain; constant true where it always is."""
    condition: PrimExpr = TRUE
    if not analyzer.can_prove(first >= low):
        condition = GE(value, low)
    if not analyzer.can_prove(first + count <= low + extent):
        condition = conjunction(condition, LT(value, analyzer.simplify(low + extent)))
    return condition


def check_place(state: State, realize: BlockRealize, loop: For, what: str) -> None:
    """RLX1010 unless the loop is in the block's scope and not around the block."""
    name = realize.block.name_hint
    if state.scope(loop) is not state.scope(realize):
        state.fail(
            "RLX1010", f"`{what}`: the loop `{loop.loop_var.name}` is not in the scope of the block `{name}`", loop
        )
    if is_below(state, realize, loop):
        state.fail("RLX1010", f"`{what}`: the block `{name}` is below `{loop.loop_var.name}` already", realize)


def moved(state: State, realize: BlockRealize, loop: For, made: Stmt, at: int) -> State:
    """The state without a block, and with a statement inserted as the `at`-th of a loop's body instead."""
    children = children_of(loop)
    body = seq(*children[:at], made, *children[at:])
    return state.replace({loop: loop.replace(body=body), realize: None})


def children_of(loop: For) -> tuple[Stmt, ...]:
    """The statements of a loop's body."""
    return loop.body.seq if isinstance(loop.body, SeqStmt) else (loop.body,)


def child_index(state: State, loop: For, realize: BlockRealize) -> int:
    """Which statement of the loop's body a block is in."""
    return next(k for k, child in enumerate(children_of(loop)) if is_below(state, realize, child))


def known(state: State, loop: For) -> Analyzer:
    """An analyzer that knows what runs around the body of the loop."""
    analyzer = state.analyzer()
    for around in [*state.loops_around(loop), loop]:
        analyzer.bind(around.loop_var, Range(around.min, around.extent))
    return analyzer
