"""Intrinsics that need the frame: pointers, packed functions, return, assumptions, output."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaxlang.base.diagnostics import fail
from relaxlang.base.dtype import DType, dtype
from relaxlang.interp import numeric
from relaxlang.interp.expr import Frame, checked, special
from relaxlang.interp.memory import Pointer
from relaxlang.interp.numeric import Value
from relaxlang.ir import prim
from relaxlang.runtime.checks import substitute, value_text

DONE = numeric.integer(0, prim.INT32)


class Returned(Exception):
    """Leaves a PrimFunc with a value: how `T.ret` gets out of the statements around it."""

    def __init__(self, value: Value) -> None:
        super().__init__(value)
        self.value = value


@special("ret")
def _ret(frame: Frame, e: prim.Call) -> Value:
    raise Returned(frame(e.args[0]))


@special("assume")
def _assume(frame: Frame, e: prim.Call) -> Value:
    holds = frame(e.args[0])
    if np.any(frame.active(np.logical_not(holds))):
        fail("RLX6035", "an assumption of `T.assume` does not hold", e.span)
    return holds


# --- pointers ---------------------------------------------------------------------------------------------------------
@special("address_of")
def _address_of(frame: Frame, e: prim.Call) -> Value:
    (load,) = e.args
    if not isinstance(load, prim.BufferLoad):
        fail("RLX6034", "`T.address_of` needs an element of a buffer", e.span)
    view = frame.view(load.buffer)
    offset = checked(frame, view, load, frame.mask)
    step = view.flat.dtype.itemsize * view.buffer.dtype.lanes
    return view.pointer.moved((offset - view.base) * step)


@special("tvm_access_ptr")
def _access_ptr(frame: Frame, e: prim.Call) -> Value:
    """`tvm_access_ptr(type, data, offset, extent, rw_mask)`: the pointer `offset` elements of the type after `data`."""
    of, data = e.args[0].dtype, frame(e.args[1])
    _expect_pointer(data, e)
    return data.moved(frame.number(e.args[2]) * of.itemsize)


@special("isnullptr")
def _isnullptr(frame: Frame, e: prim.Call) -> Value:
    return np.bool_(not isinstance(frame(e.args[0]), (Pointer, np.ndarray)))


def _expect_pointer(value: Value, e: prim.Call) -> None:
    if not isinstance(value, Pointer):
        fail("RLX6034", f"`T.{e.op}` needs the data of a buffer", e.span)


# --- functions outside of the module ----------------------------------------------------------------------------------
@special("call_packed", "call_cpacked")
def _call_packed(frame: Frame, e: prim.Call) -> Value:
    """`call_packed(name, …)`: scalars as Python's, buffers' data as 1-D arrays from the pointer on."""
    result = _call(frame, e)
    return DONE if result is None else result if isinstance(result, str) else _as(e.of, result)


@special("call_extern", "call_pure_extern")
def _call_extern(frame: Frame, e: prim.Call) -> Value:
    """An external C function: here the packed function of that name, which takes its place."""
    result = _call(frame, e)
    return None if e.of.name == "void" else _as(e.of, result)


def _call(frame: Frame, e: prim.Call) -> Any:
    name = e.args[0]
    if not isinstance(name, prim.StringImm):
        fail("RLX6034", f"`T.{e.op}` needs the name of a function as a string", e.span)
    function = frame.host.packed_func(name.value, e.span)
    return function(*[_argument(frame, a) for a in e.args[1:]])


def _argument(frame: Frame, e: prim.PrimExpr) -> Any:
    value = frame(e)
    if isinstance(value, Pointer):
        pointee = e.pointer.element if isinstance(e, prim.Var) and e.pointer is not None else _element(e)
        return value.memory.elements(numeric.numpy_type(pointee), 0)[value.offset // pointee.itemsize :]
    return value.item() if isinstance(value, np.generic) else value


def _element(e: prim.PrimExpr) -> DType:
    """The type that a computed pointer points to."""
    if isinstance(e, prim.Call) and e.op == "address_of":
        return e.args[0].dtype.scalar
    return e.args[0].dtype.scalar if isinstance(e, prim.Call) and e.op == "tvm_access_ptr" else dtype("uint8")


def _as(of: DType, result: Any) -> Value:
    if of.is_handle or of.name == "void":
        return result
    return np.asarray(result).astype(numeric.numpy_type(of))[()]


@special("print")
def _print(frame: Frame, e: prim.Call) -> Value:
    """Print the values; a first argument that is a string is a format with `{}` in the places of the others."""
    values = [frame(a) for a in e.args]
    if values and isinstance(values[0], str):
        print(substitute(values[0], tuple(values[1:])), flush=True)
    else:
        print(" ".join([value_text(v) for v in values]), flush=True)
    return DONE
