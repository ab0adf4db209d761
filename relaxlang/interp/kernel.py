"""Calls of PrimFuncs: arguments bound to parameters, symbolic dimensions to values, and the body run.

Buffers are the arguments' own memory, written in place. An argument whose layout a buffer does not describe (a strided
array for a buffer without strides) is copied, and copied back afterwards; arguments that overlap stay overlapping as
long as no copy is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

import relaxlang.interp.loops  # noqa: F401 - enters the executors of loops
from relaxlang.base.diagnostics import fail
from relaxlang.interp import calls, numeric
from relaxlang.interp.expr import Frame, Host
from relaxlang.interp.memory import Array, Pointer, element_strides, share
from relaxlang.interp.shapes import Equations
from relaxlang.interp.stmt import execute
from relaxlang.ir import prim, tir
from relaxlang.runtime import checks
from relaxlang.runtime.kernel_signature import scalar_fits
from relaxlang.runtime.ndarray import as_tensor, is_tensor


def call_prim_func(host: Host, func: tir.PrimFunc, name: str, args: Sequence[Any]) -> Any:
    """Run `func` (called `name` in messages) on arrays, pointers and scalars; what `T.ret` returned, or None.

    Raises RLX6001 to RLX6005 for arguments that do not fit the parameters, and what the body raises.
    """
    if len(args) != len(func.params):
        checks.wrong_count(name, tuple([p.name for p in func.params]), len(func.params), len(args))
    frame = Frame(host, {})
    copies = _bind_buffers(frame, func, name, args)
    for param, arg in zip(func.params, args):
        if param not in func.buffer_map:
            frame.env[param] = _scalar(param, arg, f"argument `{param.name}` of `{name}`")
    _bind_dimensions(frame, func, name, args)
    try:
        execute(frame, func.body)
        result = None
    except calls.Returned as returned:
        result = returned.value
    for target, computed in copies:
        if target.flags.writeable:
            np.copyto(target, computed)
    return result


def _bind_buffers(frame: Frame, func: tir.PrimFunc, name: str, args: Sequence[Any]) -> list[tuple[Array, Array]]:
    """Give the buffers' pointers their memory; pairs of a caller's array and the copy that is used in its place."""
    arrays: list[Array] = []
    owners: list[prim.Var] = []
    copies: list[tuple[Array, Array]] = []
    for param, arg in zip(func.params, args):
        buffer = func.buffer_map.get(param)
        if buffer is None:
            continue
        if isinstance(arg, Pointer):
            frame.env[buffer.data] = arg
            continue
        array = _array(buffer, arg, f"argument `{buffer.name}` of `{name}`")
        used = array if buffer.strides and element_strides(array) is not None else np.ascontiguousarray(array)
        used = used.reshape(array.shape)  # a contiguous copy of a scalar has a dimension
        if not np.may_share_memory(used, array) and used.size:
            copies.append((array, used))
        arrays.append(used)
        owners.append(buffer.data)
    for var, pointer in zip(owners, share(arrays)):
        frame.env[var] = pointer
    return copies


def _array(buffer: tir.Buffer, arg: Any, place: str) -> Array:
    context = checks.err_ctx(place)
    if not is_tensor(arg) or isinstance(arg, np.generic):
        checks.wrong_kind(context, "a tensor", arg)
    array: Array = arg if isinstance(arg, np.ndarray) else as_tensor(arg)
    if array.dtype != numeric.numpy_type(buffer.dtype):
        checks.wrong_dtype(context, buffer.dtype.name, array)
    rank = buffer.ndim + (buffer.dtype.lanes > 1)
    if array.ndim != rank:
        checks.wrong_rank(context, rank, array)
    return array.view(np.ndarray)


def _bind_dimensions(frame: Frame, func: tir.PrimFunc, name: str, args: Sequence[Any]) -> None:
    """Define the symbolic dimensions and strides from the arguments, and check those that are known."""
    equations = Equations(frame.env, frame)
    for param, arg in zip(func.params, args):
        buffer = func.buffer_map.get(param)
        if buffer is None:
            continue
        place = checks.err_ctx(f"argument `{buffer.name}` of `{name}`")
        if buffer.elem_offset is not None:
            equations.add(buffer.elem_offset, 0, _refuse_offset(place))
        if isinstance(arg, Pointer):
            continue
        array = arg if isinstance(arg, np.ndarray) else as_tensor(arg)
        for axis, dim in enumerate(buffer.shape):
            equations.add(dim, array.shape[axis], _refuse_dim(place, axis, array, dim))
        strides = element_strides(array) or ()
        for axis, (stride, actual) in enumerate(zip(buffer.strides, strides)):
            equations.add(stride, actual, _refuse_stride(place, axis, actual))
    equations.solve()


def _refuse_dim(place: str, axis: int, array: Array, dim: prim.PrimExpr) -> Any:
    def refuse(expected: int) -> NoReturn:
        text = None if isinstance(dim, prim.IntImm) else dim.name if isinstance(dim, prim.Var) else str(dim)
        checks.wrong_dim(place, axis, expected, array, text)

    return refuse


def _refuse_stride(place: str, axis: int, actual: int) -> Any:
    def refuse(expected: int) -> NoReturn:
        fail("RLX6005", f"{place}: the stride of dimension {axis} is {actual} elements, expected {expected}")

    return refuse


def _refuse_offset(place: str) -> Any:
    def refuse(expected: int) -> NoReturn:
        fail("RLX6005", f"{place}: the buffer starts {expected} elements after its data, a tensor starts at 0")

    return refuse


def _scalar(param: prim.Var, arg: Any, place: str) -> Any:
    """A scalar argument in the parameter's type; pointers and objects as they are."""
    if param.dtype.is_handle:
        return share([np.ascontiguousarray(arg)])[0] if isinstance(arg, np.ndarray) else arg
    value = arg.item() if isinstance(arg, (np.generic, np.ndarray)) and arg.ndim == 0 else arg
    if not isinstance(value, (bool, int, float)):
        checks.wrong_kind(place, f"a scalar of dtype {param.dtype}", arg)
    if not scalar_fits(param.dtype.name, value):
        checks.wrong_dtype(place, param.dtype.name, arg)
    return numeric.scalar_type(param.dtype)(value)
