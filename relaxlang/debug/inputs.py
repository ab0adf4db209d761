"""Values for the parameters of a function: random, but the same for the same seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from relaxlang.base.diagnostics import fail
from relaxlang.base.dtype import DType, dtype
from relaxlang.base.source import Span
from relaxlang.base.suggest import did_you_mean
from relaxlang.ir import prim
from relaxlang.ir.prim import PrimExpr
from relaxlang.ir.struct_info import (
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from relaxlang.ir.visit import free_vars, substitute
from relaxlang.runtime.ndarray import ShapeTuple, empty, numpy_dtype

DEFAULT_DIM = 16
"""What a symbolic dimension is when neither an argument nor `--dim` says."""


class Parameter(NamedTuple):
    """A parameter of the function: its name, what is known of it (None: nothing), whether the function writes it."""

    name: str
    info: StructInfo | None
    output: bool = False


def require_known(name: str, names: Sequence[str], what: str, span: Span) -> None:
    """RLX7005 for a name that is not among `names`; `what` begins the message."""
    if name not in names:
        near = did_you_mean(name, names)
        listed = "there are " + ", ".join(f"`{n}`" for n in names) if names else ""
        fail("RLX7005", f"{what} `{name}`", span, help=f"did you mean `{near}`?" if near else listed)


class Filler:
    """Makes values for parameters that have none.

    Floats are uniform in [-1, 1), integers from 0 to 9, truth values even; each parameter has a sequence of its own, so
    that giving one of them does not change the others. Symbolic dimensions are what the given values say, then what
    `dims` says, then `DEFAULT_DIM`; `defaulted` lists those.
    """

    def __init__(
        self, seed: int, params: Sequence[Parameter], values: Mapping[str, Any], dims: Mapping[str, Any]
    ) -> None:
        self.seed = seed
        self.sizes: dict[prim.Var, PrimExpr] = {}
        self.defaulted: dict[str, int] = {}
        self.dims = dims
        for param in params:
            if param.name in values:
                self._learn(param.info, values[param.name])
        symbols = {v.name for p in params if p.info is not None for v in free_vars(p.info)}
        for name, (_, span) in dims.items():
            require_known(name, sorted(symbols), "there is no dimension", span)

    def _learn(self, info: StructInfo | None, value: Any) -> None:
        """Take the sizes of symbolic dimensions from a value; what does not fit is the run time's to report."""
        expected: tuple[PrimExpr, ...] | None = None
        if isinstance(info, TensorStructInfo) and isinstance(value, np.ndarray):
            expected, found = info.dims, tuple(value.shape)
        elif isinstance(info, ShapeStructInfo) and isinstance(value, ShapeTuple):
            expected, found = info.values, tuple(value)
        for dim, size in zip(expected or (), found if expected else ()):
            if isinstance(dim, prim.Var):
                self.sizes.setdefault(dim, prim.IntImm(dim.dtype, size))

    def make(self, param: Parameter, index: int, zeros: bool = False) -> Any:
        """A value for a parameter, of zeros when asked. RLX7005 when its struct info does not say enough."""
        rng = np.random.default_rng((self.seed, index))
        return self._value(param, param.info, None if zeros else rng)

    def _value(self, param: Parameter, info: StructInfo | None, rng: np.random.Generator | None) -> Any:
        if isinstance(info, TensorStructInfo) and info.ndim >= 0:
            return _tensor(self._shape(param, info.dims, info.ndim), info.dtype or dtype("float32"), rng)
        if isinstance(info, ShapeStructInfo) and info.ndim >= 0:
            return ShapeTuple(self._shape(param, info.values, info.ndim))
        if isinstance(info, PrimStructInfo):
            if info.value is not None:
                return self._size(param, info.value)
            return _tensor((), info.dtype, rng).item()
        if isinstance(info, TupleStructInfo):
            return tuple(self._value(param, field, rng) for field in info.fields)
        what = f": {info}" if info is not None else ""
        fail("RLX7005", f"no value can be made up for `{param.name}`{what}", help=f"give one: `--arg '{param.name}=…'`")

    def _shape(self, param: Parameter, dims: tuple[PrimExpr, ...] | None, ndim: int) -> tuple[int, ...]:
        if dims is None:
            self.defaulted[f"a dimension of {param.name}"] = DEFAULT_DIM
            return (DEFAULT_DIM,) * ndim
        return tuple(self._size(param, dim) for dim in dims)

    def _size(self, param: Parameter, dim: PrimExpr) -> int:
        from relaxlang.arith import Analyzer

        for var in free_vars(dim):
            if var not in self.sizes:
                size = self.dims[var.name][0] if var.name in self.dims else DEFAULT_DIM
                if var.name not in self.dims:
                    self.defaulted[var.name] = size
                self.sizes[var] = prim.IntImm(var.dtype, size)
        size_expr = Analyzer().simplify(substitute(dim, self.sizes))
        if not isinstance(size_expr, prim.IntImm) or size_expr.value < 0:
            fail("RLX7005", f"`{param.name}` cannot have a dimension `{dim}` = {size_expr}", help="say `--dim n=…`")
        return size_expr.value


def _tensor(shape: tuple[int, ...], element: DType, rng: np.random.Generator | None) -> Any:
    made = empty(shape, element)
    if rng is None:
        made[...] = 0
    elif element.is_bool:
        made[...] = rng.integers(0, 2, shape, np.uint8)
    elif element.is_integer:
        made[...] = rng.integers(0, 10, shape)
    else:
        made[...] = rng.uniform(-1, 1, shape).astype(numpy_dtype(element))
    return made
