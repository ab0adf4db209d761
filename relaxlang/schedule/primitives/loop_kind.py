"""parallel, vectorize, unroll: how a loop runs."""

from __future__ import annotations

from relaxlang.ir.prim import IntImm, Var
from relaxlang.schedule.checks import require_independent
from relaxlang.schedule.state import State


def parallel(state: State, var: Var) -> State:
    """The loop's iterations are shared among threads, where there is more than one. RLX1007 when they depend on each
    other."""
    loop = state.loops[var]
    require_independent(state, loop, "parallel")
    if isinstance(loop.extent, IntImm) and loop.extent.value <= 1:
        return state
    return state.replace({loop: loop.replace(kind="parallel")})


def vectorize(state: State, var: Var) -> State:
    """The loop's iterations become lanes of vectors. RLX1007 when they depend on each other; RLX1006 when their
    number is not known while compiling."""
    loop = state.loops[var]
    if not isinstance(loop.extent, IntImm):
        state.fail("RLX1006", f"`vectorize` takes loops of a constant extent; `{var.name}` has {loop.extent}", loop,
                   help="`split` it by the number of lanes first")  # fmt: skip
    require_independent(state, loop, "vectorize")
    return state.replace({loop: loop.replace(kind="vectorized")})


def unroll(state: State, var: Var) -> State:
    """The loop is written out when its extent is constant."""
    loop = state.loops[var]
    return state.replace({loop: loop.replace(kind="unroll")})
