"""What stands for a value of an ONNX graph while it is imported.

A value is an expression of Relax (a tensor that is computed at run time), a `Known`, a `Sequence` of values, or None
(an optional input that is left out).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relaxlang.base.diagnostics import fail
from relaxlang.base.dtype import DType, from_numpy
from relaxlang.ir import relax
from relaxlang.ir.prim import IntImm, PrimExpr

Dim = int | PrimExpr
"""A dimension, or an element of a shape: a number, or an int64 expression of symbolic dimensions."""


class Known:
    """A tensor whose elements are known while importing.

    `data` is a plain array of `dtype`, or an array of objects: Python ints and integer expressions of symbolic
    dimensions. The elements of an expression's tensor are whole numbers even where `dtype` is a float.
    `parameter` is the name of the initializer that the tensor is, if it is one.
    """

    __slots__ = ("data", "dtype", "parameter")

    def __init__(self, data: np.ndarray[Any, Any], dtype: DType | None = None, parameter: str = "") -> None:
        self.data = data
        self.dtype = dtype if dtype is not None else from_numpy(data.dtype)
        self.parameter = parameter

    @property
    def is_symbolic(self) -> bool:
        """Whether an element depends on symbolic dimensions."""
        return bool(self.data.dtype.hasobject)

    @property
    def only(self) -> Any:
        """The only element of a plain tensor; RLX8003 when there are others, or none."""
        if self.data.size != 1:
            fail("RLX8003", f"a single element is needed, and this is a tensor of shape {self.data.shape}")
        return self.data.reshape(-1)[0]

    @staticmethod
    def of(elements: np.ndarray[Any, Any], dtype: DType) -> Known:
        """A tensor from an array of ints and expressions; a plain one when all are numbers."""
        plain = [e.value if isinstance(e, IntImm) else e for e in elements.reshape(-1)]
        if not any(isinstance(e, PrimExpr) for e in plain):
            return Known(np.array(plain, dtype=dtype.numpy).reshape(elements.shape), dtype)
        kept = np.empty(len(plain), dtype=object)
        kept[:] = plain
        return Known(kept.reshape(elements.shape), dtype)


class Sequence:
    """A sequence of values, whose length is known while importing."""

    __slots__ = ("items",)

    def __init__(self, items: tuple[Value, ...]) -> None:
        self.items = items


Value = relax.Expr | Known | Sequence | None
Result = Value | tuple[Value, ...]
"""What a converter gives: the value of a node's only output, or one for each."""


def objects(data: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array with its elements as Python objects, for arithmetic with expressions."""
    made = np.empty(data.size, dtype=object)
    made[:] = data.reshape(-1).tolist() if not data.dtype.hasobject else data.reshape(-1)
    return made.reshape(data.shape)


def elementwise(function: Callable[..., Any], *arrays: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """`function` of the elements of arrays that broadcast together."""
    made = np.frompyfunc(function, len(arrays), 1)(*(objects(a) for a in arrays))
    out = np.empty(np.broadcast_shapes(*(a.shape for a in arrays)), dtype=object)
    out[...] = made
    return out
