"""blockize: what is below a loop becomes one block."""

from __future__ import annotations

from relaxlang.arith.iter_map import subspace_divide
from relaxlang.ir.prim import PrimExpr, Var, const
from relaxlang.ir.tir import Block, BlockRealize, For, IterVar, Range, Stmt
from relaxlang.ir.visit import free_vars, substitute
from relaxlang.schedule.access import regions
from relaxlang.schedule.checks import loops_below
from relaxlang.schedule.state import State


def blockize(state: State, var: Var) -> tuple[State, str]:
    """The loop and what is below it, a single block in a chain of loops, become the body of a new block `<name>_o`,
    whose axes count tiles. RLX1017: more than one block, or bindings that are not divided at the loop."""
    loop = state.loops[var]
    below = state.blocks_under(loop)
    if len(below) != 1:
        state.fail(
            "RLX1017", f"`blockize`: below the loop `{var.name}` there are {len(below)} blocks; it takes one", loop
        )
    realize = below[0]
    inner = [loop, *loops_below(state, realize, loop)]
    for outer, one in zip(inner, [*inner[1:], realize]):
        if outer.body is not one:
            state.fail("RLX1017", f"`blockize`: the loop `{outer.loop_var.name}` holds more than one statement", outer)
    inside = [s.loop_var for s in inner]
    if set(inside) & set(free_vars(realize.predicate)):
        state.fail(
            "RLX1017", f"`blockize`: the condition of `{realize.block.name_hint}` is not the same in the tile", realize
        )
    parts = subspace_divide(realize.iter_values, state.ranges(realize), inside, analyzer=state.analyzer())
    if parts is None:
        message = f"`blockize`: the axes of `{realize.block.name_hint}` are not divided at the loop `{var.name}`"
        state.fail("RLX1017", message, realize)
    made, name = _outer(state, realize, inner, parts)
    return state.replace({loop: made}), name


def _outer(
    state: State, realize: BlockRealize, inner: list[For], parts: list[tuple[PrimExpr, PrimExpr, PrimExpr]]
) -> tuple[BlockRealize, str]:
    block = realize.block
    analyzer = state.analyzer()
    axes: list[IterVar] = []
    values, bindings = [], []
    for axis, (outer, tile, extent) in zip(block.iter_vars, parts):
        count = analyzer.simplify((axis.dom.extent + (extent - 1)) // extent)
        made = Var(f"{axis.var.name}_o", axis.var.dtype)
        axes.append(IterVar(made, Range(const(0, made.dtype), count), axis.kind))
        values.append(outer)
        bindings.append(analyzer.simplify(made * extent + tile))
    body: Stmt = realize.replace(
        iter_values=tuple(bindings), predicate=const(1, "bool"), block=block.replace(init=None)
    )
    for loop in reversed(inner):
        body = loop.replace(body=body)
    init = None if block.init is None else _init(block, realize, inner, bindings)
    name = state.unique(f"{block.name_hint}_o")
    outer_block = Block(tuple(axes), None, None, name, body, init)
    reads, writes = regions(outer_block)
    return BlockRealize(tuple(values), realize.predicate, outer_block.replace(reads=reads, writes=writes)), name


def _init(block: Block, realize: BlockRealize, inner: list[For], bindings: list[PrimExpr]) -> Stmt:
    """The init of the tile, in loops over the spatial axes."""
    assert block.init is not None
    spatial = [(a, b) for a, b in zip(block.iter_vars, bindings) if a.kind == "spatial"]
    used = set(free_vars(tuple(b for _, b in spatial)))
    loops = [s for s in inner if s.loop_var in used]
    renamed = {s.loop_var: Var(f"{s.loop_var.name}_init", s.loop_var.dtype) for s in loops}
    axes = {a.var: Var(f"{a.var.name}_init", a.var.dtype) for a, _ in spatial}
    writes, body = substitute((block.writes, block.init), axes)
    init = Block(tuple(a.replace(var=axes[a.var]) for a, _ in spatial), (), writes, f"{block.name_hint}_init", body)
    made: Stmt = BlockRealize(tuple(substitute(b, renamed) for _, b in spatial), const(1, "bool"), init)
    for s in reversed(loops):
        made = For(renamed[s.loop_var], s.min, s.extent, "serial", made)
    return made
