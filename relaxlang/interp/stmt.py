"""Execution of TensorIR's statements other than loops, one instance at a time or many at once (see `interp.expr`).

Blocks bind their axes, run `init` when every reduction axis is at its first value, and ignore what they state to read
and write.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from relaxlang.base.diagnostics import fail
from relaxlang.interp import numeric
from relaxlang.interp.expr import Frame, checked, lanes_at
from relaxlang.interp.memory import View, allocate, of_array
from relaxlang.interp.numeric import Value, is_array
from relaxlang.ir import prim, tir
from relaxlang.ir.tir import Stmt
from relaxlang.ir.visit import free_vars

Executor: TypeAlias = Callable[[Frame, Any], None]
EXEC: dict[type, Executor] = {}


def executes(*classes: type) -> Callable[[Executor], Executor]:
    """Enter the executor of these classes."""

    def enter(function: Executor) -> Executor:
        EXEC.update(dict.fromkeys(classes, function))
        return function

    return enter


def execute(frame: Frame, s: Stmt) -> None:
    """Run a statement."""
    EXEC[s.__class__](frame, s)


def masked(frame: Frame, condition: Value, run: Callable[[], None]) -> None:
    """Run something for the instances for which `condition` holds, if there are any."""
    if not is_array(condition):
        if condition:
            run()
        return
    outer = frame.mask
    frame.mask = frame.active(condition)
    try:
        if np.any(frame.mask):
            run()
    finally:
        frame.mask = outer


# --- stores, sequences, control ---------------------------------------------------------------------------------------
@executes(tir.BufferStore)
def _store(frame: Frame, s: tir.BufferStore) -> None:
    value = frame(s.value)
    view = frame.view(s.buffer)
    mask: Value = frame.mask
    if s.predicate is not None:
        mask = frame.active(frame(s.predicate))
    offset = checked(frame, view, s, mask)
    flat = view.flat
    if not flat.flags.writeable:
        fail("RLX6015", f"`{s.buffer.name}` is written to, but its memory is read-only", s.span)
    lanes = s.buffer.dtype.lanes
    if lanes > 1:
        offset = lanes_at(offset, lanes)
        mask = np.repeat(mask, lanes) if is_array(mask) else mask
    if mask is None:
        flat[offset] = value
        return
    at, new, mask = np.broadcast_arrays(offset, value, mask)
    flat[at[mask]] = new[mask]


@executes(tir.SeqStmt)
def _seq(frame: Frame, s: tir.SeqStmt) -> None:
    for stmt in s.seq:
        EXEC[stmt.__class__](frame, stmt)


@executes(tir.IfThenElse)
def _if(frame: Frame, s: tir.IfThenElse) -> None:
    condition = frame(s.condition)
    masked(frame, condition, lambda: execute(frame, s.then_case))
    otherwise = s.else_case
    if otherwise is not None:
        masked(frame, np.logical_not(condition), lambda: execute(frame, otherwise))


@executes(tir.Evaluate)
def _evaluate(frame: Frame, s: tir.Evaluate) -> None:
    frame(s.value)


@executes(tir.LetStmt)
def _let(frame: Frame, s: tir.LetStmt) -> None:
    frame.env[s.var] = frame(s.value)
    execute(frame, s.body)


@executes(tir.AssertStmt)
def _assert(frame: Frame, s: tir.AssertStmt) -> None:
    if np.any(frame.active(np.logical_not(frame(s.condition)))):
        message = s.message
        for var in free_vars(s.condition):
            message = message.replace(f"{{{var.name}}}", str(frame(var)))
        fail("RLX6009", f"assertion failed: {message}" if message else "assertion failed", s.span)
    execute(frame, s.body)


@executes(tir.AttrStmt)
def _attr(frame: Frame, s: tir.AttrStmt) -> None:
    axis = s.node
    if s.key == "thread_extent" and isinstance(axis, tir.IterVar):  # a loop over the threads of a launch
        for at in range(frame.number(s.value)):
            frame.env[axis.var] = numeric.integer(at, axis.var.dtype)
            execute(frame, s.body)
    else:
        execute(frame, s.body)


# --- blocks -----------------------------------------------------------------------------------------------------------
@executes(tir.BlockRealize)
def _realize(frame: Frame, s: tir.BlockRealize) -> None:
    def run() -> None:
        for axis, value in zip(s.block.iter_vars, s.iter_values):
            frame.env[axis.var] = frame(value)
        run_block(frame, s.block)

    masked(frame, frame(s.predicate), run)


@executes(tir.Block)
def run_block(frame: Frame, block: tir.Block) -> None:
    """Run a block whose axes are bound."""
    enter_block(frame, block)
    init = block.init
    if init is not None:
        first: Value = np.True_
        for axis in block.iter_vars:
            if axis.kind == "reduce":
                first = np.logical_and(first, np.equal(frame.number(axis.var), frame.number(axis.dom.min)))
        masked(frame, first, lambda: execute(frame, init))
    execute(frame, block.body)


def enter_block(frame: Frame, block: tir.Block) -> None:
    """Make the buffers that live as long as the block."""
    for buffer in block.alloc_buffers:
        allocate_buffer(frame, buffer)
    for match in block.match_buffers:
        _match_buffer(frame, match)


def _match_buffer(frame: Frame, match: tir.MatchBufferRegion) -> None:
    """Bind a buffer to a box of another one: its last dimensions are the box's, those before have extent 1."""
    buffer, source = match.buffer, frame.view(match.source.buffer)
    start = [frame.number(r.min) for r in match.source.region]
    extents = [frame.number(r.extent) for r in match.source.region]
    skipped = len(extents) - buffer.ndim
    if skipped < 0 or any(n != 1 for n in extents[:skipped]):
        fail("RLX6031", f"`{buffer.name}` cannot stand for a region of `{source.buffer.name}` of this rank", match.span)
    for axis, (at, extent, whole) in enumerate(zip(start, extents, source.shape)):
        if extent > 0 and (at < 0 or at + extent > whole):
            what = f"the region of `{source.buffer.name}` that `{buffer.name}` stands for is out of bounds"
            where = f"{at} to {at + extent} in dimension {axis}, whose extent is {whole}"
            fail("RLX6030", f"{what}: {where}", match.span)
    shape, strides = extents[skipped:], source.strides[skipped:]
    first = source.first + source.offset(start) - source.base
    given = [*zip(buffer.shape, shape), *zip(buffer.strides, strides)]
    if buffer.elem_offset is not None:
        given.append((buffer.elem_offset, first))
    for e, value in given:
        _bind(frame, e, value, match)
    frame.env[buffer.data] = source.pointer
    frame.views[buffer] = View(buffer, source.pointer, shape, strides, first)


def _bind(frame: Frame, e: prim.PrimExpr, value: int, match: tir.MatchBufferRegion) -> None:
    """Define a variable of a matched buffer; for anything else require that it has the value."""
    if isinstance(e, prim.Var) and (e not in frame.env or e in frame.matched):
        frame.env[e] = numeric.integer(value, e.dtype)
        frame.matched.add(e)
    elif frame.number(e) != value:
        declared = f"{frame.number(e)} where the region has {value}"
        fail("RLX6031", f"`{match.buffer.name}` is declared with {declared}", match.span)


# --- allocation -------------------------------------------------------------------------------------------------------
def allocate_buffer(frame: Frame, buffer: tir.Buffer) -> None:
    """Memory for a buffer, and its view."""
    shape = [frame.number(n) for n in buffer.shape]
    if any(np.any(np.less(n, 0)) for n in shape):
        fail("RLX6006", f"cannot allocate `{buffer.name}`: a dimension is negative", buffer.span)
    strides = [frame.number(n) for n in buffer.strides]
    size: Any = 1
    for extent in shape:
        size = size * extent
    if strides:
        size = 1 + sum((extent - 1) * stride for extent, stride in zip(shape, strides))
    first = 0 if buffer.elem_offset is None else frame.number(buffer.elem_offset)
    frame.env[buffer.data] = allocate(int(np.max(size + first, initial=0)), buffer.dtype, frame.grid)
    frame.views[buffer] = frame.declared(buffer)


@executes(tir.Allocate)
def _allocate(frame: Frame, s: tir.Allocate) -> None:
    size: Any = 1
    for n in s.extents:
        size = size * frame.number(n)
    if np.any(np.less(size, 0)):
        fail("RLX6006", f"cannot allocate `{s.buffer_var.name}`: a dimension is negative", s.span)
    frame.env[s.buffer_var] = allocate(int(np.max(size, initial=0)), s.dtype, frame.grid)
    execute(frame, s.body)


@executes(tir.AllocConst)
def _alloc_const(frame: Frame, s: tir.AllocConst) -> None:
    frame.env[s.buffer_var] = of_array(np.array(s.data, numeric.numpy_type(s.dtype)))
    execute(frame, s.body)


@executes(tir.DeclBuffer)
def _decl_buffer(frame: Frame, s: tir.DeclBuffer) -> None:
    buffer = s.buffer
    if buffer.data not in frame.env or buffer in frame.owned:  # a declaration without `data=` allocates
        allocate_buffer(frame, buffer)
        frame.owned.add(buffer)
    else:
        frame.views[buffer] = frame.declared(buffer)
    execute(frame, s.body)


@executes(tir.BufferRealize)
def _realize_buffer(frame: Frame, s: tir.BufferRealize) -> None:
    allocate_buffer(frame, s.buffer)
    execute(frame, s.body)
