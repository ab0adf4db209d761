"""Matrix products by a BLAS: the functions `relaxlang.blas.matmul…` that the back end `blas` calls.

    relaxlang.blas.matmul[_bias][.nt]        (a, b, [bias], out)

`a` and `b` are float32 or float64 tensors of two dimensions or more, of which the last two are matrices; `t` says that
one is given transposed. The leading dimensions broadcast. `bias` broadcasts to the result, to which it is added.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

from relaxlang.base.diagnostics import fail
from relaxlang.runtime import checks
from relaxlang.runtime.registry import LinkedFunction, register_func
from relaxlang.runtime.shared_library import Library, blas

Array = np.ndarray[Any, Any]
_ROW_MAJOR = 101
_PLAIN, _TRANSPOSED = 111, 112
_ROUTINES = {"float32": ("cblas_sgemm", ctypes.c_float), "float64": ("cblas_dgemm", ctypes.c_double)}


def function_name(transposed: tuple[bool, bool], bias: bool) -> str:
    """The name of the function for a product of these kinds."""
    letters = "".join("t" if t else "n" for t in transposed)
    return f"relaxlang.blas.matmul{'_bias' * bias}{'' if letters == 'nn' else '.' + letters}"


class Matmul(LinkedFunction):
    """A product, perhaps of transposed matrices, perhaps with a bias. Immutable."""

    def __init__(self, transposed: tuple[bool, bool], bias: bool) -> None:
        self.transposed = transposed
        self.bias = bias
        self.name = function_name(transposed, bias)

    def link(self) -> None:
        """See to it that there is a BLAS; RLX6038 else."""
        blas("a matrix product")

    def __call__(self, *args: Any) -> None:
        """Compute into the last argument. RLX600x for arguments that do not fit."""
        if len(args) != 3 + self.bias:
            names = ("a", "b", "bias", "out") if self.bias else ("a", "b", "out")
            checks.wrong_count(self.name, names, len(names), len(args))
        a, b, out = (self._tensor(name, x) for name, x in (("a", args[0]), ("b", args[1]), ("out", args[-1])))
        rows, inner, columns = self._sizes(a, b, out)
        if self.bias:
            np.copyto(out, args[2])
        elif inner == 0:
            out.fill(0)
        if 0 in (rows, inner, columns) or out.size == 0:
            return
        target = out if out.flags.c_contiguous and out.flags.aligned else out.copy(order="C")
        if b.ndim == 2 and not self.transposed[0]:
            rows, a, result = a.size // inner, a.reshape(-1, inner), target.reshape(-1, columns)
            self._gemm(a, b, result, rows, inner, columns)
        else:
            lead = out.shape[:-2]
            left, right = np.broadcast_to(a, (*lead, *a.shape[-2:])), np.broadcast_to(b, (*lead, *b.shape[-2:]))
            for at in np.ndindex(*lead):
                self._gemm(left[at], right[at], target[at], rows, inner, columns)
        if target is not out:
            np.copyto(out, target)

    def _tensor(self, name: str, value: Any) -> Array:
        place = f"parameter `{name}` of `{self.name}`"
        if not isinstance(value, np.ndarray):
            checks.wrong_kind(place, "a tensor", value)
        if value.ndim < 2:
            checks.wrong_rank(place, 2, value)
        if value.dtype.name not in _ROUTINES:
            checks.wrong_dtype(place, "float32 or float64", value)
        if name == "out" or value.flags.c_contiguous:
            return value
        return value.copy(order="C")

    def _sizes(self, a: Array, b: Array, out: Array) -> tuple[int, int, int]:
        """The rows, the inner dimension and the columns; RLX6005 where the shapes do not fit."""
        rows, inner = a.shape[-2:][:: -1 if self.transposed[0] else 1]
        inner_b, columns = b.shape[-2:][:: -1 if self.transposed[1] else 1]
        try:
            lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        except ValueError:
            lead = None
        if inner != inner_b or lead is None or out.shape != (*lead, rows, columns):
            shapes = ", ".join(str(x.shape) for x in (a, b, out))
            fail("RLX6005", f"the shapes {shapes} do not fit the product `{self.name}`")
        if not a.dtype == b.dtype == out.dtype:
            checks.wrong_dtype(f"parameter `b` of `{self.name}`", a.dtype.name, b if a.dtype != b.dtype else out)
        return rows, inner, columns

    def _gemm(self, a: Array, b: Array, out: Array, rows: int, inner: int, columns: int) -> None:
        """One product of matrices that lie in memory row by row."""
        order = [_TRANSPOSED if t else _PLAIN for t in self.transposed]
        widths = (rows if self.transposed[0] else inner, inner if self.transposed[1] else columns)
        add = 1.0 if self.bias else 0.0
        call = _routine(a.dtype.name)
        call(
            _ROW_MAJOR, *order, rows, columns, inner, 1.0, a.ctypes.data, widths[0], b.ctypes.data, widths[1], add,
            out.ctypes.data, columns,
        )  # fmt: skip


@cache
def _routine(dtype: str) -> Any:
    """The C function for an element type."""
    library: Library = blas("a matrix product")
    name, real = _ROUTINES[dtype]
    size, word = library.integer, ctypes.c_int
    types = [word, word, word, size, size, size, real, ctypes.c_void_p, size, ctypes.c_void_p, size, real,
             ctypes.c_void_p, size]  # fmt: skip
    return ctypes.CFUNCTYPE(None, *types)(library.symbol(name, "a matrix product"))


for _transposed in ((False, False), (False, True), (True, False), (True, True)):
    for _bias in (False, True):
        _function = Matmul(_transposed, _bias)
        register_func(_function.name, _function)
