"""BindParams: parameters become constants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from relaxlang.base.diagnostics import fail
from relaxlang.base.record import record
from relaxlang.base.suggest import did_you_mean
from relaxlang.ir import prim, relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.struct_info import TensorStructInfo
from relaxlang.ir.visit import Rewriter, on
from relaxlang.passes.base import Pass, PassContext
from relaxlang.passes.bindings import specialize
from relaxlang.runtime.ndarray import array as array_of
from relaxlang.runtime.ndarray import as_tensor


@record
class BindParams(Pass):
    """Replace parameters of a function by constants. `params` are pairs of a parameter's name and an array.

    Symbolic dimensions that the bound parameters define get the constants' values.
    """

    func_name: str = "main"
    params: tuple[tuple[str, Any], ...] = ()

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        return bind_params(mod, self.func_name, dict(self.params))


def bind_params(mod: IRModule, func_name: str, params: Mapping[str, Any]) -> IRModule:
    """A module with parameters of one function bound to arrays: a diagnostic for a name or shape that does not fit.

    The values are those of this moment: arrays are copied unless they are read-only.
    """
    if not isinstance(params, Mapping):
        fail("RLX0454", f"parameters are bound by name: a mapping to arrays, not `{type(params).__name__}`")
    if not params:
        return mod
    func = mod[func_name]
    if not isinstance(func, relax.Function):
        fail("RLX3112", f"`{func_name}` is no Relax function, its parameters can't be bound", func.span)
    names = {p.name: p for p in func.params}
    values: dict[relax.Var, relax.Expr] = {}
    dims: dict[prim.Var, prim.PrimExpr] = {}
    for name, array in params.items():
        if name not in names:
            near = did_you_mean(name, names)
            fail(
                "RLX3112",
                f"`{func_name}` has no parameter `{name}`",
                func.span,
                help=f"did you mean `{near}`?" if near else "",
            )
        if not isinstance(array, (np.ndarray, np.generic, bool, int, float)) and not hasattr(array, "__dlpack__"):
            fail("RLX3112", f"the parameter `{name}` is bound to a `{type(array).__name__}`, which is no array")
        tensor = as_tensor(array).numpy()
        if tensor.flags.writeable:  # whoever has it may write to it, and nobody writes to constants
            tensor = array_of(tensor).numpy()
            tensor.flags.writeable = False
        constant = relax.Constant(tensor, span=names[name].span)
        _match(name, names[name].struct_info, constant, dims)
        values[names[name]] = constant
    bound = func.replace(params=tuple(p for p in func.params if p not in values), body=_Replace(values)(func.body))
    return mod.with_function(func_name, specialize(bound, dims))


def _match(name: str, info: Any, constant: relax.Constant, dims: dict[prim.Var, prim.PrimExpr]) -> None:
    """Check a constant against the parameter's struct info; collect what its dimensions define."""
    have: Any = constant.struct_info
    if not isinstance(info, TensorStructInfo):
        fail("RLX3112", f"the parameter `{name}` is `{info}`, not a tensor", constant.span)
    if info.dtype is not None and info.dtype is not have.dtype:
        fail("RLX3112", f"the parameter `{name}` is {info.dtype}, the array is {have.dtype}", constant.span)
    if info.dims is None:
        return
    if len(info.dims) != have.ndim:
        fail(
            "RLX3112",
            f"the parameter `{name}` has {len(info.dims)} dimensions, the array has {have.ndim}",
            constant.span,
        )
    for k, (dim, size) in enumerate(zip(info.dims, have.dims)):
        if isinstance(dim, prim.Var):
            size = dims.setdefault(dim, size)
            dim = size
        if isinstance(dim, prim.IntImm) and dim != have.dims[k]:
            fail(
                "RLX3112",
                f"dimension {k} of the parameter `{name}` is {dim.value}, the array has {have.dims[k].value}",
                constant.span,
            )


class _Replace(Rewriter):
    def __init__(self, values: Mapping[relax.Var, relax.Expr]) -> None:
        self.values = values

    @on(relax.Var, relax.DataflowVar)
    def var(self, node: relax.Var) -> relax.Expr:
        """A parameter's constant."""
        return self.values.get(node, node)
