"""What Relax computes with, and how a value is held against struct info.

Tensors are numpy arrays, shapes ShapeTuples, scalars Python's, tuples tuples; strings and element types stand for
themselves; functions are callable. `Scope` holds a function's variables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any, NoReturn

import numpy as np

from relaxlang.base.diagnostics import fail
from relaxlang.interp.shapes import Equations
from relaxlang.ir import prim, relax
from relaxlang.ir.prim import PrimExpr
from relaxlang.ir.struct_info import (
    FuncStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from relaxlang.runtime import checks
from relaxlang.runtime.kernel_signature import scalar_fits
from relaxlang.runtime.ndarray import ShapeTuple
from relaxlang.runtime.params import Expected

Evaluate = Callable[["Scope", PrimExpr], Any]


class Dims(MutableMapping[prim.Var, Any]):
    """The symbolic variables of a scope, and of those around it."""

    def __init__(self, outer: Dims | None = None) -> None:
        self.own: dict[prim.Var, Any] = {}
        self.outer = outer

    def __getitem__(self, var: prim.Var) -> Any:
        level: Dims | None = self
        while level is not None:
            if var in level.own:
                return level.own[var]
            level = level.outer
        raise KeyError(var)

    def __setitem__(self, var: prim.Var, value: Any) -> None:
        self.own[var] = value

    def __delitem__(self, var: prim.Var) -> None:
        del self.own[var]

    def __iter__(self) -> Iterator[prim.Var]:
        level: Dims | None = self
        while level is not None:
            yield from level.own
            level = level.outer

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Scope:
    """The variables of one call of a function; those of the function around it are seen too.

    `function` names it in messages; `depth` counts the calls that it runs within.
    """

    def __init__(self, evaluate: Evaluate, function: str, depth: int, outer: Scope | None = None) -> None:
        self.function = function
        self.depth = depth
        self.outer = outer
        self.values: dict[relax.Var, Any] = {}
        self.dims: Dims = Dims(outer.dims if outer is not None else None)
        self.equations = Equations(self.dims, lambda e: evaluate(self, e))

    def __getitem__(self, var: relax.Var) -> Any:
        scope: Scope | None = self
        while scope is not None:
            if var in scope.values:
                return scope.values[var]
            scope = scope.outer
        fail("RLX6032", f"the variable `{var.name}` has no value here", var.span)


def expected(info: StructInfo) -> Expected:
    """What an argument must be, in the run time's terms: how a caller's Python values are converted."""
    if isinstance(info, TensorStructInfo):
        return Expected("tensor", info.dtype, info.ndim)
    if isinstance(info, ShapeStructInfo):
        return Expected("shape", ndim=info.ndim)
    if isinstance(info, PrimStructInfo):
        return Expected("scalar", info.dtype)
    if isinstance(info, TupleStructInfo):
        return Expected("tuple", elements={i: expected(f) for i, f in enumerate(info.fields)})
    return Expected()


def match(scope: Scope, info: StructInfo, value: Any, place: str) -> None:
    """Require that a value is of struct info; `place` says what it is in messages.

    Dimensions become equations of the scope, which count from its next `solve` on. Raises RLX6002 to RLX6005.
    """
    context = checks.err_ctx(place, str(info))
    if isinstance(info, TensorStructInfo):
        _match_tensor(scope, info, value, context)
    elif isinstance(info, ShapeStructInfo):
        if not isinstance(value, ShapeTuple):
            checks.wrong_kind(context, "a shape", value)
        if info.ndim >= 0 and len(value) != info.ndim:
            checks.wrong_rank(context, info.ndim, value)
        _match_dims(scope, info.values or (), value, context)
    elif isinstance(info, PrimStructInfo):
        if not isinstance(value, (bool, int, float)):
            checks.wrong_kind(context, f"a scalar of dtype {info.dtype}", value)
        if not scalar_fits(info.dtype.name, value):
            checks.wrong_dtype(context, info.dtype.name, value)
        if info.value is not None:
            scope.equations.add(info.value, value, _refuse_value(context, value))
    elif isinstance(info, TupleStructInfo):
        if not isinstance(value, tuple) or isinstance(value, ShapeTuple) or len(value) != len(info.fields):
            checks.wrong_kind(context, f"a tuple of {len(info.fields)}", value)
        for index, (field, item) in enumerate(zip(info.fields, value)):
            match(scope, field, item, f"element {index} of {place}")
    elif isinstance(info, FuncStructInfo) and not callable(value):
        checks.wrong_kind(context, "a function", value)


def _match_tensor(scope: Scope, info: TensorStructInfo, value: Any, context: str) -> None:
    if not isinstance(value, np.ndarray):
        checks.wrong_kind(context, "a tensor", value)
    if info.dtype is not None and value.dtype != info.dtype.numpy:
        checks.wrong_dtype(context, info.dtype.name, value)
    if info.ndim >= 0 and value.ndim != info.ndim:
        checks.wrong_rank(context, info.ndim, value)
    if isinstance(info.shape, tuple):
        _match_dims(scope, info.shape, value, context)
    elif isinstance(info.shape, relax.Var):
        wanted = scope[info.shape]
        if len(wanted) != value.ndim:
            checks.wrong_rank(context, len(wanted), value)
        for axis, (dim, extent) in enumerate(zip(wanted, value.shape)):
            if dim != extent:
                checks.wrong_dim(context, axis, dim, value)


def _match_dims(scope: Scope, dims: tuple[PrimExpr, ...], value: Any, context: str) -> None:
    shape = value if isinstance(value, tuple) else value.shape
    for axis, (dim, extent) in enumerate(zip(dims, shape)):
        scope.equations.add(dim, extent, _refuse_dim(context, axis, value, dim))


def _refuse_dim(context: str, axis: int, value: Any, dim: PrimExpr) -> Callable[[Any], NoReturn]:
    def refuse(wanted: int) -> NoReturn:
        checks.wrong_dim(context, axis, wanted, value, dim_text(dim))

    return refuse


def _refuse_value(context: str, value: Any) -> Callable[[Any], NoReturn]:
    def refuse(wanted: int) -> NoReturn:
        checks.wrong_value(context, wanted, value)

    return refuse


def dim_text(dim: PrimExpr) -> str | None:
    """How a dimension is named in a message; None for a constant."""
    return None if isinstance(dim, prim.IntImm) else dim.name if isinstance(dim, prim.Var) else str(dim)
