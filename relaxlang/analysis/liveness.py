"""How long variables are needed."""

from __future__ import annotations

from relaxlang.analysis.uses import Uses
from relaxlang.ir import relax
from relaxlang.ir.visit import walk


def last_uses(body: relax.SeqExpr) -> dict[relax.Var, int]:
    """The number of the last binding of a sequence that uses each variable, counted from 0 through all its blocks.

    A use in a branch or an inner function counts where that stands; a use as (or in) the sequence's result is the last
    of all, with the number of bindings. Variables that are not used are left out.
    """
    last: dict[relax.Var, int] = {}
    at = 0
    for block in body.blocks:
        for binding in block.bindings:
            for var in _used(binding.value):
                last[var] = at
            if isinstance(binding, relax.MatchCast):
                # The shape that a struct info names is read by the check.
                last.update((n, at) for n in walk(binding.struct_info) if isinstance(n, relax.Var))
            at += 1
    for var in _used(body.body):
        last[var] = at
    return last


def _used(value: relax.Expr) -> list[relax.Var]:
    uses = Uses()
    uses(value)
    return list(uses.counts)
