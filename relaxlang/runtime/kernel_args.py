"""Binding a caller's arguments to a kernel's parameters, with every check that keeps compiled code within its
buffers."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaxlang.base.diagnostics import fail
from relaxlang.runtime import checks
from relaxlang.runtime.kernel_signature import (
    BufferParam,
    KernelSignature,
    ScalarParam,
    dim_text,
    evaluate_dim,
    scalar_fits,
)
from relaxlang.runtime.ndarray import NDArray, address, as_tensor, dtype_name, is_tensor, numpy_dtype, wrap

Array = np.ndarray[Any, Any]


class Binder:
    """The checks and conversions of one kernel's arguments."""

    def __init__(self, signature: KernelSignature) -> None:
        self.signature = signature
        self._elements = [numpy_dtype(p.dtype) if isinstance(p, BufferParam) else None for p in signature.params]
        self._sources = [(name, *place) for name, place in zip(signature.symbols, signature.sources(), strict=True)]
        found = {(index, axis) for _, index, axis in self._sources}
        self._dims = [
            (index, axis, dim)
            for index, param in enumerate(signature.params)
            if isinstance(param, BufferParam)
            for axis, dim in enumerate(param.dims)
            if dim is not None and (index, axis) not in found
        ]
        self._scalars = [(i, p.name) for i, p in enumerate(signature.params) if isinstance(p, ScalarParam)]
        self._outputs = [i for i, p in enumerate(signature.params) if isinstance(p, BufferParam) and p.output]

    def bind(self, args: tuple[Any, ...]) -> tuple[list[Any], list[tuple[Array, NDArray]]]:
        """The values to run the kernel with, and for outputs computed beside the caller's array the pairs (target,
        computed). Raises RLX6001 to RLX6005 and RLX6015, naming the parameter."""
        params = self.signature.params
        if len(args) != len(params):
            checks.wrong_count(self.signature.name, tuple(p.name for p in params), len(params), len(args))
        copies: list[tuple[Array, NDArray]] = []
        values: list[Any] = []
        for param, element, arg in zip(params, self._elements, args, strict=True):
            if isinstance(param, ScalarParam):
                values.append(self._scalar(param, arg))
            elif isinstance(arg, np.ndarray) and arg.dtype is element and arg.flags.carray:
                if arg.ndim != len(param.dims):
                    checks.wrong_rank(self._context(param), len(param.dims), arg)
                values.append(wrap(arg))
            else:
                values.append(self._buffer(param, element, arg, copies))
        self._check_dims(values)
        self._separate_outputs(args, values, copies)
        return values, copies

    def _context(self, param: BufferParam | ScalarParam) -> str:
        place = f"argument `{param.name}` of `{self.signature.name}`"
        if isinstance(param, ScalarParam):
            return checks.err_ctx(place, f"T.{param.dtype}")
        dims = ", ".join(dim_text(d) for d in param.dims) + ("," if len(param.dims) == 1 else "")
        return checks.err_ctx(place, f'T.Buffer(({dims}), "{param.dtype}")')

    def _scalar(self, param: ScalarParam, arg: Any) -> Any:
        value = arg.item() if isinstance(arg, (np.generic, np.ndarray)) and arg.ndim == 0 else arg
        if not isinstance(value, (bool, int, float)):
            checks.wrong_kind(self._context(param), f"a scalar of dtype {param.dtype}", arg)
        if not scalar_fits(param.dtype, value):
            checks.wrong_dtype(self._context(param), param.dtype, arg)
        return value

    def _buffer(self, param: BufferParam, element: Any, arg: Any, copies: list[tuple[Array, NDArray]]) -> NDArray:
        if not is_tensor(arg) or (param.output and isinstance(arg, np.generic)):
            checks.wrong_kind(self._context(param), "a tensor", arg)
        given = arg if isinstance(arg, np.ndarray) else as_tensor(arg)
        if given.dtype != element and dtype_name(given.dtype) != dtype_name(element):
            checks.wrong_dtype(self._context(param), param.dtype, given)
        if given.ndim != len(param.dims):
            checks.wrong_rank(self._context(param), len(param.dims), given)
        if param.output and not given.flags.writeable:
            fail(
                "RLX6015",
                f"argument `{param.name}` of `{self.signature.name}` is written to, but the array is read-only",
            )
        taken = as_tensor(given)
        if param.output and taken._address != address(given):
            copies.append((given, taken))
        return taken

    def _check_dims(self, values: list[Any]) -> None:
        known = {name: values[index].shape[axis] for name, index, axis in self._sources}
        for index, name in self._scalars:
            known[name] = values[index]
        for index, axis, dim in self._dims:
            try:
                expected = dim if isinstance(dim, int) else evaluate_dim(dim, known)
            except ZeroDivisionError:
                expected = -1  # no array has such a dimension
            if expected is not None and expected != values[index].shape[axis]:
                context = self._context(self.signature.params[index])
                checks.wrong_dim(context, axis, expected, values[index], dim_text(dim))

    def _separate_outputs(self, args: tuple[Any, ...], values: list[Any], copies: list[tuple[Array, NDArray]]) -> None:
        """Compute an output that overlaps another argument beside it: kernels assume that buffers do not overlap."""
        extents = [(v._address, v._address + v.nbytes) if isinstance(v, NDArray) else (0, 0) for v in values]
        for index in self._outputs:
            low, high = extents[index]
            if low < high and any(a < high and low < b for j, (a, b) in enumerate(extents) if j != index and a < b):
                fresh = values[index].copy()
                fresh._address = address(fresh)
                copies.append((values[index], fresh))
                values[index] = fresh
