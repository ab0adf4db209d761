"""fuse: nested loops become one."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from relaxlang.ir.prim import PrimExpr, Var
from relaxlang.ir.tir import For, Stmt
from relaxlang.ir.visit import free_vars
from relaxlang.schedule.checks import require_plain
from relaxlang.schedule.primitives.loops import Rebind, clean, nest
from relaxlang.schedule.state import State


def fuse(state: State, variables: Sequence[Var]) -> tuple[State, Var]:
    """The one loop for loops that stand directly in each other, outermost first.

    RLX1003: not directly in each other. RLX1015: a bound of an inner one depends on an outer one.
    """
    loops = [state.loops[v] for v in variables]
    for loop in loops:
        require_plain(state, loop, "fuse")
    for outer, inner in itertools.pairwise(loops):
        if outer.body is not inner:
            message = f"the loop `{inner.loop_var.name}` does not stand directly in `{outer.loop_var.name}`"
            state.fail("RLX1003", message, inner, help="list the loops from the outermost to the innermost")
        if set(variables) & set(free_vars(inner.extent)):
            state.fail("RLX1015", f"the extent of `{inner.loop_var.name}` depends on a loop that is fused", inner)
    if len(loops) == 1:
        return state, variables[0]
    return _fused(state, loops)


def _fused(state: State, loops: list[For]) -> tuple[State, Var]:
    wide = max((s.loop_var.dtype for s in loops), key=lambda d: d.bits)
    var = Var("_".join(s.loop_var.name for s in loops) + "_fused", wide)
    extent: PrimExpr = loops[0].extent
    for loop in loops[1:]:
        extent = extent * loop.extent
    values: dict[Var, PrimExpr] = {}
    rest: PrimExpr = var
    for loop in reversed(loops[1:]):
        values[loop.loop_var] = rest % loop.extent
        rest = rest // loop.extent
    values[loops[0].loop_var] = rest
    body: Stmt = Rebind(values)(loops[-1].body)
    made = nest([(var, state.analyzer().simplify(extent))], body).replace(span=loops[0].span)
    state = state.replace({loops[0]: made})
    return clean(state, state.loops[var]), var
