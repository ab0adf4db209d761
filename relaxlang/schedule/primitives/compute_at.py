"""compute_at and reverse_compute_at: where a block is computed."""

from __future__ import annotations

from relaxlang.ir.prim import Var
from relaxlang.ir.tir import BlockRealize, For
from relaxlang.ir.visit import free_vars
from relaxlang.schedule.access import read_buffers, written_buffers
from relaxlang.schedule.checks import (
    box_under,
    consumers,
    holds,
    is_below,
    is_output,
    producers,
    require_complete,
)
from relaxlang.schedule.primitives.compute_location import (
    check_place,
    child_index,
    children_of,
    domains,
    known,
    moved,
    needed,
    placed,
)
from relaxlang.schedule.state import State


def compute_at(state: State, name: str, var: Var, unit_loops: bool, index: int) -> State:
    """The block moves into the loop, before its consumers there, and computes what these read in one iteration.

    `index`: the position in the loop's body; -1 the last possible one, -2 the first. RLX1004: the block is neither
    complete nor a reduction. RLX1010: the place is not possible.
    """
    realize, loop = state.blocks[name], state.loops[var]
    check_place(state, realize, loop, "compute_at")
    require_complete(state, realize)
    if is_output(state, realize):
        state.fail("RLX1010", f"`compute_at`: the block `{name}` writes an output, which is needed whole", realize)
    users = consumers(state, realize)
    outside = next((u for u in users if not is_below(state, u, loop)), None)
    if outside is not None or not users:
        who = f"the consumer `{outside.block.name_hint}` of `{name}` is" if outside else f"no consumer of `{name}` is"
        message = f"`compute_at`: {who} {'not ' if outside else ''}below the loop `{var.name}`"
        state.fail("RLX1010", message, outside or loop)
    analyzer = known(state, loop)
    last = min(child_index(state, loop, u) for u in users)
    sources = [p for p in producers(state, realize) if is_below(state, p, loop)]
    first = max((child_index(state, loop, p) + 1 for p in sources), default=0)
    at = _position(state, loop, index, first, last)
    boxes = needed(state, users, written_buffers(realize), loop, analyzer, reads=True)
    wanted = domains(realize, realize.block.writes or (), boxes, analyzer)
    made = placed(state, realize, wanted, analyzer, unit_loops)
    return moved(state, realize, loop, made, at)


def reverse_compute_at(state: State, name: str, var: Var, unit_loops: bool, index: int) -> State:
    """The block moves into the loop, after its producers there, and uses what these wrote in one iteration.

    RLX1004: the block is not complete or a reduction. RLX1010: the place is not possible, or an iteration does not
    finish what the block would use.
    """
    realize, loop = state.blocks[name], state.loops[var]
    check_place(state, realize, loop, "reverse_compute_at")
    require_complete(state, realize)
    makers = producers(state, realize)
    inside = [p for p in makers if is_below(state, p, loop)]
    if not inside:
        state.fail("RLX1010", f"`reverse_compute_at`: no producer of `{name}` is below the loop `{var.name}`", loop)
    for user in consumers(state, realize):
        if is_below(state, user, loop):
            message = (
                f"`reverse_compute_at`: `{user.block.name_hint}`, which uses `{name}`, is below `{var.name}` already"
            )
            state.fail("RLX1010", message, user)
    _check_order(state, loop, realize, makers, inside)
    for maker in inside:
        _check_finished(state, maker, loop, name)
    analyzer = known(state, loop)
    boxes = needed(state, inside, read_buffers(realize), loop, analyzer, reads=False)
    used = tuple(r for r in realize.block.reads or () if r.buffer in boxes)
    wanted = domains(realize, used, boxes, analyzer)
    first = max(child_index(state, loop, p) + 1 for p in inside)
    at = _position(state, loop, index, first, len(children_of(loop)))
    made = placed(state, realize, wanted, analyzer, unit_loops)
    after = moved(state, realize, loop, made, at)
    _check_covered(after, name, var)
    return after


def _position(state: State, loop: For, index: int, first: int, last: int) -> int:
    at = {-1: last, -2: first}.get(index, index)
    if not first <= at <= last or first > last:
        message = f"position {index} of the loop `{loop.loop_var.name}` is not between producers and consumers"
        state.fail("RLX1010", message,
                   loop, help=f"possible are {first} to {last}, -1 and -2" if first <= last else "")  # fmt: skip
    return at


def _check_order(
    state: State, loop: For, realize: BlockRealize, makers: list[BlockRealize], inside: list[BlockRealize]
) -> None:
    """Producers elsewhere must have run before the loop starts."""
    order = list(state.blocks)
    start = min(order.index(b.block.name_hint) for b in state.blocks_under(loop))
    for maker in makers:
        if maker not in inside and order.index(maker.block.name_hint) > start:
            message = f"`reverse_compute_at`: `{maker.block.name_hint}` runs after the loop `{loop.loop_var.name}`"
            state.fail("RLX1010", f"{message}, and `{realize.block.name_hint}` reads what it writes", maker)


def _check_finished(state: State, maker: BlockRealize, loop: For, name: str) -> None:
    outer = {s.loop_var for s in [*state.loops_around(loop), loop]}
    for axis, value in zip(maker.block.iter_vars, maker.iter_values):
        shared = [v for v in free_vars(value) if v in outer]
        if axis.kind != "spatial" and shared:
            message = (
                f"`reverse_compute_at`: in the loop `{loop.loop_var.name}` the block `{maker.block.name_hint}` is not "
            )
            message += f"finished: `{shared[0].name}` drives its reduction axis `{axis.var.name}`"
            state.fail("RLX1010", message, maker,
                       help=f"choose a loop outside of `{shared[0].name}`")  # fmt: skip


def _check_covered(state: State, name: str, var: Var) -> None:
    """In each iteration the block reads only what was made in it."""
    realize, loop = state.blocks[name], state.loops[var]
    analyzer = known(state, loop)
    for maker in producers(state, realize):
        if not is_below(state, maker, loop):
            continue
        for made in maker.block.writes or ():
            for used in realize.block.reads or ():
                if used.buffer is not made.buffer:
                    continue
                read = box_under(state, realize, used.region, loop, analyzer)
                written = box_under(state, maker, made.region, loop, analyzer)
                if not holds(read, written, used.buffer, analyzer):
                    message = (
                        f"`reverse_compute_at`: an iteration of `{var.name}` makes less of `{used.buffer.name}` than "
                    )
                    state.fail("RLX1010", f"{message}`{name}` would read in it", realize)
