"""Runs one operator on numpy arrays: inferred, lowered, and its kernel run by the reference interpreter.

`dims` says what is known while compiling: "static" (every dimension), "symbolic" (dimensions other than 1 are
variables, one for each size), "ranks" (ranks alone).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relaxlang.base.dtype import from_numpy
from relaxlang.interp import Interpreter
from relaxlang.interp.kernel import call_prim_func
from relaxlang.ir import prim, relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.prim import INT64, PrimExpr
from relaxlang.ir.struct_info import ShapeStructInfo, StructInfo, TensorStructInfo, TupleStructInfo, tensor_info
from relaxlang.ir.visit import substitute
from relaxlang.ops import default_operators
from relaxlang.ops.kernel import Kernel

OPERATORS = default_operators()
HOST = Interpreter(IRModule({}), OPERATORS.lower)


class Dims:
    """The struct info of arrays, and the values of the variables in it."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.values: dict[PrimExpr, int] = {}
        self._sizes: dict[int, PrimExpr] = {}

    def info(self, array: np.ndarray[Any, Any]) -> TensorStructInfo:
        """What is known of an array."""
        if self.kind == "ranks":
            return tensor_info(None, from_numpy(array.dtype), array.ndim)
        return tensor_info(tuple(self._dim(n) for n in array.shape), from_numpy(array.dtype))

    def _dim(self, size: int) -> PrimExpr:
        if self.kind == "static" or size == 1:
            return prim.IntImm(INT64, size)
        if size not in self._sizes:
            var = prim.Var(f"n{size}", INT64)
            self._sizes[size] = var
            self.values[var] = size
        return self._sizes[size]


class Inputs:
    """The arguments of a call: a variable for each array, and which array it is."""

    def __init__(self, known: Dims) -> None:
        self.known = known
        self.arrays: dict[relax.Expr, np.ndarray[Any, Any]] = {}

    def call(self, name: str, args: Sequence[Any], attrs: dict[str, Any]) -> relax.Call:
        """`R.name(*args, **attrs)`; numpy arrays are tensors, lists and tuples of arrays tuples."""
        named = {k: self._argument(v) for k, v in attrs.items()}
        return OPERATORS.make_call(name, [self._argument(a) for a in args], named, None)

    def _argument(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            var = relax.Var(f"a{len(self.arrays)}", self.known.info(value))
            self.arrays[var] = value
            return var
        if isinstance(value, (tuple, list)) and value and all(isinstance(v, np.ndarray) for v in value):
            return relax.Tuple(tuple(self._argument(v) for v in value))
        return value


def run(name: str, *args: Any, dims: str = "static", **attrs: Any) -> Any:
    """The result of `R.name(*args, **attrs)`."""
    inputs = Inputs(Dims(dims))
    call = inputs.call(name, args, attrs)
    info = OPERATORS.infer(call)
    kernel = OPERATORS.lower(call.replace(struct_info=info))
    if not isinstance(kernel, Kernel):
        main = relax.Function(tuple(inputs.arrays), relax.seq_expr((), kernel), None)
        result = Interpreter(IRModule({"main": main}), OPERATORS.lower).run("main", *inputs.arrays.values())
    else:
        result = call_kernel(kernel, inputs.arrays, inputs.known)
        if kernel.finish is not None:
            handed = dict(zip(kernel.handed, result if isinstance(result, tuple) else (result,)))
            main = relax.Function(tuple(handed), relax.seq_expr((), kernel.finish), None)
            result = Interpreter(IRModule({"main": main}), OPERATORS.lower).run("main", *handed.values())
    check_info(info, result, inputs.known)
    return result


def call_kernel(kernel: Kernel, arrays: dict[relax.Expr, np.ndarray[Any, Any]], known: Dims) -> Any:
    """Run a kernel on the arrays; a new array, or a tuple of them."""
    env: dict[prim.Var, PrimExpr] = {v: prim.IntImm(INT64, n) for v, n in known.values.items()}
    for expr, info in kernel.casts:
        dims = (
            info.dims
            if isinstance(info, TensorStructInfo)
            else info.values
            if isinstance(info, ShapeStructInfo)
            else None
        )
        for dim, size in zip(dims or (), arrays[expr].shape):
            env[dim] = prim.IntImm(INT64, size)
    infos = kernel.out.fields if isinstance(kernel.out, TupleStructInfo) else (kernel.out,)
    outputs = [np.zeros(shape_of(i, env), i.dtype.numpy) for i in infos]
    given = [value_of(a, arrays) for a in kernel.args]
    extra = [evaluate(v, env) for v in kernel.tir_vars]
    with np.errstate(all="ignore"):
        call_prim_func(HOST, kernel.func, "kernel", [*given, *outputs, *extra])
    return tuple(outputs) if isinstance(kernel.out, TupleStructInfo) else outputs[0]


def value_of(expr: relax.Expr, arrays: dict[relax.Expr, np.ndarray[Any, Any]]) -> Any:
    """The value of a kernel's argument."""
    if isinstance(expr, relax.Constant):
        return expr.data
    return arrays[expr]


def evaluate(dim: PrimExpr, env: dict[prim.Var, PrimExpr]) -> int:
    """The value of a dimension."""
    from relaxlang.interp.expr import Frame

    with np.errstate(all="ignore"):
        return int(Frame(HOST, {v: np.int64(c.value) for v, c in env.items()})(dim))


def shape_of(info: StructInfo, env: dict[prim.Var, PrimExpr]) -> tuple[int, ...]:
    """The shape that struct info states, given its variables."""
    assert isinstance(info, TensorStructInfo) and info.dims is not None
    return tuple(evaluate(substitute(d, env), env) for d in info.dims)


def check_info(info: StructInfo, result: Any, known: Dims) -> None:
    """What was inferred must be true of the result."""
    if isinstance(info, TupleStructInfo):
        assert len(info.fields) == len(result)
        for field, part in zip(info.fields, result):
            check_info(field, part, known)
    elif isinstance(info, TensorStructInfo):
        assert info.dtype is None or info.dtype.numpy == np.asarray(result).dtype, (info.dtype, result.dtype)
        assert info.ndim in (-1, np.ndim(result)), (info.ndim, np.ndim(result))
        if info.dims is not None:
            env: dict[prim.Var, PrimExpr] = {v: prim.IntImm(INT64, n) for v, n in known.values.items()}
            assert shape_of(info, env) == np.shape(result)
