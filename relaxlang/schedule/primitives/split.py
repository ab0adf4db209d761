"""split: one loop becomes several nested ones."""

from __future__ import annotations

from collections.abc import Sequence

from relaxlang.ir.prim import LT, IntImm, PrimExpr, Var, cast, const
from relaxlang.ir.tir import For, Range
from relaxlang.ir.visit import free_vars
from relaxlang.schedule.checks import require_plain
from relaxlang.schedule.primitives.loops import Rebind, clean, nest
from relaxlang.schedule.state import State

Factor = int | PrimExpr | None


def split(state: State, var: Var, factors: Sequence[Factor], disable_predication: bool) -> tuple[State, list[Var]]:
    """The loops for `factors`, outermost first; at most one factor is None: as much as it takes.

    Where the factors' product is more than the extent, blocks below get the condition that the iteration exists.
    RLX1005: factors that do not fit.
    """
    loop = state.loops[var]
    require_plain(state, loop, "split")
    extents = _extents(state, var, factors)
    total = extents[0]
    for extent in extents[1:]:
        total = total * extent
    exact, enough = _compared(state, loop, total)
    if not enough:
        state.fail("RLX1005", f"the factors of `{var.name}` make {total} iterations, and it has {loop.extent}", loop,
                   help="let one factor be `None`: it is computed")  # fmt: skip
    made = [Var(f"{var.name}_{k}", var.dtype) for k in range(len(extents))]
    index: PrimExpr = made[0]
    for inner, extent in zip(made[1:], extents[1:]):
        index = index * extent + inner
    condition = None if exact or disable_predication else LT(index, cast(loop.extent, var.dtype))
    plain = _plain(state, loop) and condition is None and not any(_is_one(e) for e in extents)
    body = Rebind({var: index}, condition)(loop.body)
    split_loops = nest(list(zip(made, extents)), body)
    state = state.replace({loop: split_loops.replace(span=loop.span)})
    return state if plain else clean(state, state.loops[made[0]]), made


def _compared(state: State, loop: For, total: PrimExpr) -> tuple[bool, bool]:
    """Whether so many iterations are provably those of the loop, and whether they are at least as many."""
    if isinstance(total, IntImm) and isinstance(loop.extent, IntImm):
        return total.value == loop.extent.value, total.value >= loop.extent.value
    analyzer = state.analyzer()
    for around in state.loops_around(loop):
        analyzer.bind(around.loop_var, Range(around.min, around.extent))
    exact = analyzer.can_prove_equal(total, loop.extent)
    return exact, exact or analyzer.can_prove(total >= loop.extent)


def _plain(state: State, loop: For) -> bool:
    """Whether the blocks below have the loop's variable as the value of an axis, or nowhere: what it is replaced by
    is in its simplest form then."""
    return all(
        value is loop.loop_var or loop.loop_var not in free_vars(value)
        for realize in state.blocks_under(loop)
        for value in (*realize.iter_values, realize.predicate)
    )


def _is_one(extent: PrimExpr) -> bool:
    return isinstance(extent, IntImm) and extent.value == 1


def _extents(state: State, var: Var, factors: Sequence[Factor]) -> list[PrimExpr]:
    """The extent of each new loop."""
    loop = state.loops[var]
    if not factors:
        state.fail("RLX1005", f"`split` of `{var.name}` without factors", loop)
    if sum(f is None for f in factors) > 1:
        state.fail("RLX1005", f"only one factor of `{var.name}` may be `None`", loop)
    known: PrimExpr = const(1, var.dtype)
    extents: list[PrimExpr | None] = []
    for factor in factors:
        if isinstance(factor, int) and factor < 1:
            state.fail("RLX1005", f"a factor of `{var.name}` is {factor}; factors are positive", loop)
        extent = const(factor, var.dtype) if isinstance(factor, int) else factor
        extents.append(extent if extent is None else cast(extent, var.dtype))
        known = known if extent is None else known * extents[-1]  # type: ignore[operator]
    rest = (loop.extent + (known - 1)) // known
    if not isinstance(rest, IntImm):
        rest = state.analyzer().simplify(rest)
    return [rest if e is None else e for e in extents]
