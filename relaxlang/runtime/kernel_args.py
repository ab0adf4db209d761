"""Binding of a caller's arguments to a kernel's parameters, with every check that keeps compiled code within its buffers."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaxlang.base.diagnostics import fail
from relaxlang.runtime import checks
from relaxlang.runtime.kernel import BufferParam, KernelSignature, ScalarParam, dim_text, evaluate_dim, scalar_fits
from relaxlang.runtime.ndarray import NDArray, address, as_tensor, dtype_name, is_tensor, numpy_dtype

Array = np.ndarray[Any, Any]
Copies = list[tuple[Array, NDArray]]


def bind(signature: KernelSignature, args: tuple[Any, ...]) -> tuple[list[Any], Copies]:
    """The values to run a kernel with, and for outputs computed beside the caller's array the pairs (target, computed).

    Raises RLX6001 to RLX6005 and RLX6015, naming the parameter.
    """
    params = signature.params
    if len(args) != len(params):
        checks.wrong_count(signature.name, tuple(p.name for p in params), len(params), len(args))
    values: list[Any] = []
    copies: Copies = []
    for param, arg in zip(params, args, strict=True):
        if isinstance(param, ScalarParam):
            values.append(_scalar(signature, param, arg))
        else:
            values.append(_buffer(signature, param, arg, copies))
    _check_dims(signature, values)
    _separate_outputs(signature, args, values, copies)
    return values, copies


def _context(signature: KernelSignature, param: BufferParam | ScalarParam) -> str:
    place = f"argument `{param.name}` of `{signature.name}`"
    if isinstance(param, ScalarParam):
        return checks.err_ctx(place, f"T.{param.dtype}")
    dims = ", ".join(dim_text(d) for d in param.dims) + ("," if len(param.dims) == 1 else "")
    return checks.err_ctx(place, f'T.Buffer(({dims}), "{param.dtype}")')


def _scalar(signature: KernelSignature, param: ScalarParam, arg: Any) -> Any:
    value = arg.item() if isinstance(arg, (np.generic, np.ndarray)) and arg.ndim == 0 else arg
    if not isinstance(value, (bool, int, float)):
        checks.wrong_kind(_context(signature, param), f"a scalar of dtype {param.dtype}", arg)
    if not scalar_fits(param.dtype, value):
        checks.wrong_dtype(_context(signature, param), param.dtype, arg)
    return value


def _buffer(signature: KernelSignature, param: BufferParam, arg: Any, copies: Copies) -> NDArray:
    if not is_tensor(arg) or (param.output and isinstance(arg, np.generic)):
        checks.wrong_kind(_context(signature, param), "a tensor", arg)
    given = arg if isinstance(arg, np.ndarray) else as_tensor(arg)
    expected = numpy_dtype(param.dtype)
    if given.dtype != expected and dtype_name(given.dtype) != dtype_name(expected):
        checks.wrong_dtype(_context(signature, param), param.dtype, given)
    if given.ndim != len(param.dims):
        checks.wrong_rank(_context(signature, param), len(param.dims), given)
    if param.output and not given.flags.writeable:
        fail("RLX6015", f"argument `{param.name}` of `{signature.name}` is written to, but the array is read-only")
    taken = as_tensor(given)
    if param.output and taken._address != address(given):
        copies.append((given, taken))
    return taken


def _check_dims(signature: KernelSignature, values: list[Any]) -> None:
    known = {
        symbol: values[index].shape[axis]
        for symbol, (index, axis) in zip(signature.symbols, signature.sources(), strict=True)
    }
    for param, value in zip(signature.params, values, strict=True):
        if isinstance(param, ScalarParam) and isinstance(value, int):
            known[param.name] = value
    for param, value in zip(signature.params, values, strict=True):
        if not isinstance(param, BufferParam):
            continue
        for axis, dim in enumerate(param.dims):
            try:
                expected = evaluate_dim(dim, known)
            except ZeroDivisionError:
                fail("RLX6005", f"argument `{param.name}` of `{signature.name}`: dimension {axis} divides by zero")
            if expected is not None and expected != value.shape[axis]:
                checks.wrong_dim(_context(signature, param), axis, expected, value, dim_text(dim))


def _separate_outputs(signature: KernelSignature, args: tuple[Any, ...], values: list[Any], copies: Copies) -> None:
    """Compute an output that shares memory with another argument beside it: kernels assume that buffers do not overlap."""
    extents = [
        (v._address, v._address + v.nbytes) if isinstance(v, np.ndarray) and v.nbytes else None for v in values
    ]
    for index, param in enumerate(signature.params):
        mine = extents[index]
        if not isinstance(param, BufferParam) or not param.output or mine is None:
            continue
        others = (e for j, e in enumerate(extents) if j != index and e is not None)
        if any(low < mine[1] and mine[0] < high for low, high in others):
            fresh = values[index].copy()
            fresh._address = address(fresh)
            copies.append((args[index] if isinstance(args[index], np.ndarray) else values[index], fresh))
            values[index] = fresh
