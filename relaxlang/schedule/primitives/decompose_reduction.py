"""decompose_reduction: the init of a reduction becomes a block of its own."""

from __future__ import annotations

from collections.abc import Iterable

from relaxlang.ir.prim import PrimExpr, Var, all_of, const
from relaxlang.ir.tir import Block, BlockRealize, BufferRegion, For, Range, Stmt, seq
from relaxlang.ir.visit import free_vars, substitute
from relaxlang.schedule.access import at_values
from relaxlang.schedule.checks import is_below, require_reduction
from relaxlang.schedule.primitives.loops import requirements
from relaxlang.schedule.state import State


def decompose_reduction(state: State, name: str, var: Var) -> tuple[State, str, str]:
    """The init runs in loops of its own right before the loop; the names of the init block and of the rest.

    RLX1004: the block is no reduction. RLX1011: the loop is not around the block, or a loop around it belongs to the
    reduction.
    """
    realize, loop = state.blocks[name], state.loops[var]
    require_reduction(state, realize)
    if not is_below(state, realize, loop):
        state.fail("RLX1011", f"the loop `{var.name}` is not around the block `{name}`", loop)
    block = realize.block
    values = dict(zip((a.var for a in block.iter_vars), realize.iter_values))
    driving = set(_vars(values[a.var] for a in block.iter_vars if a.kind != "spatial"))
    around = state.loops_around(realize)
    at = around.index(loop)
    early = next((s for s in around[:at] if s.loop_var in driving), None)
    if early is not None:
        message = f"the loop `{early.loop_var.name}`, outside of `{var.name}`, belongs to the reduction of `{name}`"
        state.fail("RLX1011", message, early, help=f"decompose at `{early.loop_var.name}` or outside of it")
    made, init_name = _init(state, realize, around[at:], driving)
    update_name = state.unique(f"{name}_update")
    update = block.replace(init=None, name_hint=update_name, reads=_with_own(block))
    after = state.replace({block: update}, {loop: lambda rest: seq(made, rest)})
    return after, init_name, update_name


def _with_own(block: Block) -> tuple[BufferRegion, ...]:
    """What the block reads without an init: also what it updates."""
    reads = block.reads or ()
    known = {r.buffer for r in reads}
    return tuple(w for w in block.writes or () if w.buffer not in known) + reads


def _vars(exprs: Iterable[PrimExpr]) -> list[Var]:
    return free_vars(tuple(exprs))


def _init(state: State, realize: BlockRealize, inner: list[For], driving: set[Var]) -> tuple[Stmt, str]:
    """The init as a nest over the spatial loops among `inner`."""
    block = realize.block
    assert block.init is not None
    values = dict(zip((a.var for a in block.iter_vars), realize.iter_values))
    spatial = [a for a in block.iter_vars if a.kind == "spatial"]
    inside = {s.loop_var for s in inner}
    terms = [t for t in requirements(realize.predicate) if not set(free_vars(t)) & driving]
    dropped = [t for t in requirements(realize.predicate) if t not in terms]
    wanted = set(_vars([*(values[a.var] for a in spatial), *terms])) & inside
    mixed = next((s for s in inner if s.loop_var in wanted & driving), None)
    if mixed is not None:
        message = f"the loop `{mixed.loop_var.name}` drives spatial and reduction axes of `{block.name_hint}` at once"
        state.fail("RLX1011", message, mixed)
    if any(set(free_vars(t)) & wanted for t in dropped):
        _require_in_bounds(state, realize, all_of(*terms))
    loops = [s for s in inner if s.loop_var in wanted]
    renamed = {s.loop_var: Var(f"{s.loop_var.name}_init", s.loop_var.dtype) for s in loops}
    axes = {a.var: Var(f"{a.var.name}_init", a.var.dtype) for a in spatial}
    name = state.unique(f"{block.name_hint}_init")
    writes, body = substitute((block.writes, block.init), axes)
    init = Block(tuple(a.replace(var=axes[a.var]) for a in spatial), (), writes, name, body)
    bindings = tuple(substitute(values[a.var], renamed) for a in spatial)
    made: Stmt = BlockRealize(bindings, substitute(all_of(*terms), renamed), init)
    for s in reversed(loops):
        low, extent = substitute((s.min, s.extent), renamed)
        kind = "serial" if s.kind in ("parallel", "thread_binding") else s.kind
        made = For(renamed[s.loop_var], low, extent, kind, made, step=s.step, annotations=s.annotations)
    return made, name


def _require_in_bounds(state: State, realize: BlockRealize, condition: PrimExpr) -> None:
    """RLX1011 unless the places of the init exist without a condition that speaks of the reduction too."""
    analyzer = state.analyzer()
    for loop in state.loops_around(realize):
        analyzer.bind(loop.loop_var, Range(loop.min, loop.extent))
    with analyzer.assuming(condition):
        for write in realize.block.writes or ():
            for dim, extent in zip(at_values(realize, write.region), write.buffer.shape):
                low = analyzer.can_prove(dim.min >= const(0, dim.min.dtype))
                if not low or not analyzer.can_prove(dim.min + dim.extent <= extent):
                    message = f"a condition of the block `{realize.block.name_hint}` mixes spatial and reduction loops"
                    state.fail("RLX1011", message, realize)
