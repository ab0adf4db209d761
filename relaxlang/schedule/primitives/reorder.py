"""reorder: nested loops in another order."""

from __future__ import annotations

from collections.abc import Sequence

from relaxlang.ir.prim import Var
from relaxlang.ir.tir import For, Stmt
from relaxlang.ir.visit import free_vars
from relaxlang.schedule.checks import hands_on
from relaxlang.schedule.state import State


def reorder(state: State, variables: Sequence[Var]) -> State:
    """The given loops of one chain in the given order; others in the chain stay in place.

    RLX1003: the loops are in no chain. RLX1015: a loop would leave the one that its bounds depend on. RLX1007: a block
    below may not run in another order.
    """
    if len(set(variables)) != len(variables):
        twice = next(v for k, v in enumerate(variables) if v in variables[:k])
        state.fail("RLX1003", f"`{twice.name}` is given twice", state.loops[twice])
    chain = _chain(state, variables)
    wanted = iter(variables)
    order = [state.loops[next(wanted)] if s.loop_var in variables else s for s in chain]
    if order == chain:
        return state
    _check_bounds(state, order)
    _check_blocks(state, chain)
    made: Stmt = chain[-1].body
    for loop in reversed(order):
        made = loop.replace(body=made)
    return state.replace({chain[0]: made})


def _chain(state: State, variables: Sequence[Var]) -> list[For]:
    """The loops from the outermost to the innermost of those given."""
    depth = {v: len(state.loops_around(state.loops[v])) for v in variables}
    inner = state.loops[max(variables, key=lambda v: depth[v])]
    chain = [inner]
    missing = set(variables) - {inner.loop_var}
    while missing:
        above = state.parent(chain[0])
        if not isinstance(above, For):
            name = next(v for v in variables if v in missing).name
            message = (
                f"`{name}` and `{inner.loop_var.name}` do not stand in one chain of loops, each alone in the one around"
            )
            state.fail("RLX1003", message, chain[0])
        chain.insert(0, above)
        missing.discard(above.loop_var)
    return chain


def _check_bounds(state: State, order: list[For]) -> None:
    for k, loop in enumerate(order):
        inside = {s.loop_var for s in order[k:]}
        if inside & set(free_vars((loop.min, loop.extent))):
            name = next(v.name for v in free_vars((loop.min, loop.extent)) if v in inside)
            message = f"the bounds of `{loop.loop_var.name}` depend on `{name}`, which would be inside of it"
            state.fail("RLX1015", message, loop)


def _check_blocks(state: State, chain: list[For]) -> None:
    variables = {s.loop_var for s in chain}
    for realize in state.blocks_under(chain[0]):
        for axis, value in zip(realize.block.iter_vars, realize.iter_values):
            if axis.kind not in ("spatial", "reduce") and variables & set(free_vars(value)):
                message = f"the axis `{axis.var.name}` of the block `{realize.block.name_hint}` has an order of its own"
                state.fail("RLX1007", message, realize)
    carried = hands_on(state, chain[-1]) if len(state.blocks_under(chain[0])) > 1 else None
    if carried is not None:
        reader, buffer = carried
        message = (
            f"the block `{reader.block.name_hint}` may read elements of `{buffer.name}` that another iteration writes"
        )
        state.fail("RLX1007", message, reader)
