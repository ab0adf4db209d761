"""Schedules: how a program is computed, step by step, in the open.

`Schedule` (in `schedule`) is what users see. Reading order: `stmts` (what is below a statement), `state` (a function
whose blocks and loops can be found), `access` (what blocks read and write), `checks` (what primitives require),
`primitives/` (one a file), `trace` (the instructions as data and as text), `tensor_intrin` (what `tensorize` puts in),
`rules/` (schedules for processors, chosen by analysing the program).
"""

from relaxlang.schedule.schedule import Schedule
from relaxlang.schedule.tensor_intrin import TensorIntrin
from relaxlang.schedule.trace import BlockRV, ExprRV, LoopRV, Trace

__all__ = ["BlockRV", "ExprRV", "LoopRV", "Schedule", "TensorIntrin", "Trace"]
