"""tile: two nested loops run over rectangles."""

from __future__ import annotations

from relaxlang.ir.prim import Var
from relaxlang.schedule.primitives.reorder import reorder
from relaxlang.schedule.primitives.split import Factor, split
from relaxlang.schedule.state import State


def tile(state: State, x: Var, y: Var, x_factor: Factor, y_factor: Factor) -> tuple[State, list[Var]]:
    """Both loops are split by their factors, and the inner ones go inside: x outer, y outer, x inner, y inner.

    RLX1005: a factor does not fit. RLX1003, RLX1007, RLX1015: the loops cannot be reordered.
    """
    state, (xo, xi) = split(state, x, [None, x_factor], False)
    state, (yo, yi) = split(state, y, [None, y_factor], False)
    order = [xo, yo, xi, yi]
    return reorder(state, order), order
