"""Loops. Every kind runs its iterations in order; where they touch different elements, all are computed at once.

That gives the same values (see `interp.parallel`), and numpy's speed. Long sums of floats are added up by halves (see
`interp.sums`). A reduction over nothing still initialises (see `interp.empty`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from relaxlang.interp import numeric
from relaxlang.interp.empty import initialise
from relaxlang.interp.expr import Frame
from relaxlang.interp.numeric import is_array
from relaxlang.interp.parallel import independent
from relaxlang.interp.stmt import execute, executes, masked
from relaxlang.interp.sums import add_up
from relaxlang.ir import tir
from relaxlang.ir.tir import Stmt


class Leave(Exception):
    """Leaves the innermost loop: how `break` gets out of the statements around it."""


class Next(Exception):
    """Leaves the current iteration of the innermost loop: how `continue` gets out of the statements around it."""


@executes(tir.Break)
def _break(frame: Frame, s: tir.Break) -> None:
    raise Leave


@executes(tir.Continue)
def _continue(frame: Frame, s: tir.Continue) -> None:
    raise Next


@executes(tir.While)
def _while(frame: Frame, s: tir.While) -> None:
    try:
        while frame(s.condition):
            iterate(frame, s.body)
    except Leave:
        return


@executes(tir.For)
def _for(frame: Frame, s: tir.For) -> None:
    first, count, step = frame.number(s.min), frame.number(s.extent), frame.number(s.step)
    if is_array(first) or is_array(count) or is_array(step):
        _ragged(frame, s, first, count, step)
    elif count <= 0:
        initialise(frame, s)
    elif independent(frame, s, first, count, step):
        _all_at_once(frame, s, first, count, step)
    elif not add_up(frame, s):
        of = s.loop_var.dtype
        try:
            for at in range(first, first + count * step, step) if step else [first] * count:
                frame.env[s.loop_var] = numeric.integer(at, of)
                iterate(frame, s.body)
        except Leave:
            return


def iterate(frame: Frame, body: Stmt) -> None:
    """Run one iteration of a loop."""
    try:
        execute(frame, body)
    except Next:
        return


def _all_at_once(frame: Frame, s: tir.For, first: int, count: int, step: int) -> None:
    """Compute all iterations together, along a new first axis."""
    outer, mask = frame.grid, frame.mask
    values = (first + step * np.arange(count)).astype(numeric.numpy_type(s.loop_var.dtype))
    frame.env[s.loop_var] = values.reshape(count, *[1] * len(outer))
    frame.grid = (count, *outer)
    try:
        execute(frame, s.body)
    finally:
        frame.grid, frame.mask = outer, mask


def _ragged(frame: Frame, s: tir.For, first: Any, count: Any, step: Any) -> None:
    """A loop whose bounds differ between the instances: those that are through sit out the rest."""
    masked(frame, np.less_equal(count, 0), lambda: initialise(frame, s))
    most = int(np.max(np.where(frame.active(np.greater(count, 0)), count, 0), initial=0))
    of = numeric.numpy_type(s.loop_var.dtype)
    for at in range(most):
        frame.env[s.loop_var] = np.asarray(first + at * step).astype(of)[()]
        masked(frame, np.greater(count, at), lambda: execute(frame, s.body))
