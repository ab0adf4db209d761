"""Blocks that are computed where they are used: fusion within one function."""

from __future__ import annotations

from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.ir.tir import BlockRealize, BufferStore
from relaxlang.schedule.checks import consumers, is_output
from relaxlang.schedule.rules.analysis import is_costly, loads_of
from relaxlang.schedule.schedule import Schedule


def inline_all(sch: Schedule) -> None:
    """Inline elementwise blocks into their consumers where that saves memory and repeats no costly work: what is used
    once an element, or is cheap. A producer of a reduction stays when it chooses (padding) or is costly."""
    for name in [n for n in sch.state.blocks if n != "root"]:
        state = sch.state
        realize = state.blocks.get(name)
        if realize is not None and _worth_it(sch, realize):
            attempt(sch, name)


def attempt(sch: Schedule, name: str) -> bool:
    """Inline a block if `compute_inline` takes it."""
    try:
        sch.compute_inline(name)
    except DiagnosticError:  # its preconditions are the question here
        return False
    return True


def _worth_it(sch: Schedule, realize: BlockRealize) -> bool:
    state = sch.state
    body = realize.block.body
    if not isinstance(body, BufferStore) or realize.block.init is not None or is_output(state, realize):
        return False
    users = consumers(state, realize)
    uses = [one for user in users for one in loads_of(user.block.body) if one.buffer is body.buffer]
    reduced = any(u.block.init is not None for u in users)
    if reduced:
        chooses = any(getattr(n, "op", None) == "if_then_else" for n in _calls(body))
        return not is_costly(body) and not chooses and len(loads_of(body)) <= 1
    return len(uses) == 1 or not is_costly(body)


def _calls(body: BufferStore) -> list[object]:
    from relaxlang.ir.prim import Call
    from relaxlang.ir.visit import walk

    return [n for n in walk(body) if isinstance(n, Call)]
