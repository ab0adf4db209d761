"""Reductions over nothing.

The initial value belongs to each point of a block's spatial axes, whether or not there is anything to reduce: a sum
over no element is 0. So when a loop has no iteration, the blocks below it initialise the points that they would have
computed; nothing else of the loop's body runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from relaxlang.interp import numeric
from relaxlang.interp.expr import Frame
from relaxlang.interp.stmt import allocate_buffer, enter_block, execute, masked
from relaxlang.ir import prim, tir
from relaxlang.ir.prim import PrimExpr
from relaxlang.ir.tir import Stmt
from relaxlang.ir.visit import conjuncts, free_vars, walk

_Visit: TypeAlias = "Callable[[_Points, Any], None]"
_VISIT: dict[type, _Visit] = {}


def initialise(frame: Frame, loop: tir.For) -> None:
    """Run what a loop without iterations leaves to do."""
    if any(isinstance(node, tir.Block) and node.init is not None for node in walk(loop.body)):
        points = _Points(frame, loop.body)
        points.unknown.add(loop.loop_var)
        points.visit(loop.body)


class _Points:
    """Walks to the blocks with an initial value. `unknown` are the variables of loops without iterations, and of loops
    over which only is reduced; `spatial` those on which the points depend."""

    def __init__(self, frame: Frame, body: Stmt) -> None:
        self.frame = frame
        self.unknown: set[prim.Var] = set()
        self.spatial: set[prim.Var] = set()
        for node in walk(body):
            if isinstance(node, tir.BlockRealize):
                axes = zip(node.block.iter_vars, node.iter_values)
                self.spatial.update(free_vars(tuple([v for axis, v in axes if axis.kind != "reduce"])))
            elif isinstance(node, tir.LetStmt):
                self.spatial.update(free_vars(node.value))
            elif isinstance(node, tir.For):
                self.spatial.update(free_vars((node.min, node.extent, node.step)))

    def visit(self, s: Stmt) -> None:
        """Walk on; statements that hold no other ones have nothing to initialise."""
        handler = _VISIT.get(s.__class__)
        if handler is not None:
            handler(self, s)

    def known(self, *exprs: PrimExpr) -> bool:
        """Whether the expressions depend on known variables alone."""
        return self.unknown.isdisjoint(free_vars(exprs))

    def bind(self, var: prim.Var, value: PrimExpr) -> None:
        """Give a variable its value, or note that it has none."""
        if self.known(value):
            self.frame.env[var] = self.frame(value)
        else:
            self.unknown.add(var)


def _visits(*classes: type) -> Callable[[_Visit], _Visit]:
    def enter(function: _Visit) -> _Visit:
        _VISIT.update(dict.fromkeys(classes, function))
        return function

    return enter


@_visits(tir.For)
def _for(points: _Points, s: tir.For) -> None:
    frame = points.frame
    if s.loop_var not in points.spatial or not points.known(s.min, s.extent, s.step):
        points.unknown.add(s.loop_var)
        points.visit(s.body)
        return
    first, count, step = frame.number(s.min), frame.number(s.extent), frame.number(s.step)
    of = numeric.numpy_type(s.loop_var.dtype)
    for at in range(int(np.max(count, initial=0))):
        frame.env[s.loop_var] = np.asarray(first + at * step).astype(of)[()]
        masked(frame, np.greater(count, at), lambda: points.visit(s.body))


@_visits(tir.BlockRealize)
def _realize(points: _Points, s: tir.BlockRealize) -> None:
    frame, block, init = points.frame, s.block, s.block.init
    for axis, value in zip(block.iter_vars, s.iter_values):
        if init is not None and axis.kind == "reduce":
            frame.env[axis.var] = frame(prim.cast(axis.dom.min, axis.var.dtype))
        else:
            points.bind(axis.var, value)
    if init is not None and any(axis.var in points.unknown for axis in block.iter_vars):
        return

    def run() -> None:
        enter_block(frame, block)
        if init is not None:
            execute(frame, init)
        else:
            points.visit(block.body)

    holds: Any = np.True_
    for condition in conjuncts(s.predicate):
        if points.known(condition):
            holds = np.logical_and(holds, frame(condition))
    masked(frame, holds, run)


@_visits(tir.SeqStmt)
def _seq(points: _Points, s: tir.SeqStmt) -> None:
    for stmt in s.seq:
        points.visit(stmt)


@_visits(tir.IfThenElse)
def _if(points: _Points, s: tir.IfThenElse) -> None:
    if not points.known(s.condition):
        return
    condition = points.frame(s.condition)
    masked(points.frame, condition, lambda: points.visit(s.then_case))
    otherwise = s.else_case
    if otherwise is not None:
        masked(points.frame, np.logical_not(condition), lambda: points.visit(otherwise))


@_visits(tir.LetStmt)
def _let(points: _Points, s: tir.LetStmt) -> None:
    points.bind(s.var, s.value)
    points.visit(s.body)


@_visits(tir.BufferRealize)
def _realize_buffer(points: _Points, s: tir.BufferRealize) -> None:
    allocate_buffer(points.frame, s.buffer)
    points.visit(s.body)


@_visits(tir.AttrStmt, tir.AssertStmt, tir.DeclBuffer)
def _body(points: _Points, s: tir.AttrStmt | tir.AssertStmt | tir.DeclBuffer) -> None:
    points.visit(s.body)
