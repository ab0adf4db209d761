"""Products of a number of rows that is not known, with a large factor that is not known either.

Many rows are worth a copy of the other factor in panels, few are not, and a single row is a sum of weighted lines: what
is best for one of them takes several times as long for another. Such a function has a version for each, and chooses
when it is called.
"""

from __future__ import annotations

from relaxlang.ir.prim import Add, IntImm, Var
from relaxlang.ir.tir import PrimFunc
from relaxlang.ir.visit import Substitute
from relaxlang.schedule.rules.analysis import is_plain, update_of
from relaxlang.schedule.rules.contraction import rows_of_panels
from relaxlang.schedule.rules.online_softmax import Instead
from relaxlang.schedule.rules.processor import Processor
from relaxlang.schedule.state import State


def unknown_rows(state: State, processor: Processor) -> tuple[Var, bool] | None:
    """The number of rows of a product for which panels would be copied whatever it is, and whether few rows do without
    them; None when there is none."""
    for realize in state.blocks.values():
        update = update_of(realize)
        unknown = any(isinstance(a.dom.extent, Var) for a in realize.block.iter_vars)
        if unknown and update is not None and update.kind is Add and is_plain(state, realize):
            found = rows_of_panels(realize, processor)
            if found is not None:
                return found
    return None


class OneRow:
    """A function, `func`, as that of a single row; `restored` makes one of any number of rows of it again, which does
    the same where there is one."""

    def __init__(self, func: PrimFunc, rows: Var) -> None:
        self.given = func
        bind = Substitute({rows: IntImm(rows.dtype, 1)})
        bound = {param: bind.buffer(buffer) for param, buffer in func.buffer_map.items()}
        self.func = func.replace(buffer_map=bound, body=bind(func.body))

    def restored(self, scheduled: PrimFunc) -> PrimFunc:
        """The scheduled function, of the parameters that were given."""
        given = {self.func.buffer_map[param]: buffer for param, buffer in self.given.buffer_map.items()}
        return self.given.replace(body=Instead(given)(scheduled.body))
