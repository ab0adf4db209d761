"""The algebra of struct info: which says more, what two have in common, what a call returns.

`base_check(base, derived)` answers whether every value of `derived` is one of `base`; `least_upper_bound` is the most
exact info that both sides imply; `erase` forgets what mentions symbolic variables that are not in scope; `call_result`
matches arguments with a function's parameters and gives the result in terms of the arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import IntEnum

from relaxlang.ir import prim, relax
from relaxlang.ir.prim import PrimExpr
from relaxlang.ir.struct_info import (
    OBJECT,
    DTensorStructInfo,
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    lone_var,
    shape_info,
    tensor_info,
)
from relaxlang.ir.visit import free_vars, substitute


class BaseCheck(IntEnum):
    """The outcomes of `base_check`, from worst to best.

    `NEVER`: no value is both. `CAST`: some values are, but nothing known while compiling says so. `PROOF`: the kinds
    agree, and only the equality of dimensions is not proved. `HOLDS`: `base` implies nothing that `derived` does not.
    """

    NEVER = 0
    CAST = 1
    PROOF = 2
    HOLDS = 3


# --- dimensions -------------------------------------------------------------------------------------------------------
def same_dim(a: PrimExpr, b: PrimExpr) -> bool | None:
    """Whether two dimensions are equal: True or False when that is proved, None when it depends on the variables.

    Variables stand for sizes and are taken to be >= 0.
    """
    if a == b:
        return True
    if isinstance(a, prim.IntImm) and isinstance(b, prim.IntImm):
        return a.value == b.value
    from relaxlang.arith.analyzer import Analyzer  # loaded when first needed: most dimensions are equal as written

    analyzer = Analyzer(v for v in free_vars((a, b)) if v.dtype.is_integer)
    left, right = prim.cast(a, prim.INT64), prim.cast(b, prim.INT64)
    if analyzer.can_prove_equal(left, right):
        return True
    return False if analyzer.can_prove(prim.NE(left, right)) else None


def _same_dims(base: tuple[PrimExpr, ...], derived: tuple[PrimExpr, ...]) -> BaseCheck:
    if len(base) != len(derived):
        return BaseCheck.NEVER
    result = BaseCheck.HOLDS
    for a, b in zip(base, derived):
        same = same_dim(a, b)
        if same is False:
            return BaseCheck.NEVER
        if same is None:
            result = BaseCheck.PROOF
    return result


# --- subtyping --------------------------------------------------------------------------------------------------------
def base_check(base: StructInfo, derived: StructInfo) -> BaseCheck:
    """Whether `base` says nothing about a value that `derived` does not say as well."""
    if base is derived or isinstance(base, ObjectStructInfo):
        return BaseCheck.HOLDS
    if isinstance(derived, ObjectStructInfo):
        return BaseCheck.CAST
    rule = _CHECK.get(base.__class__)
    return BaseCheck.NEVER if rule is None or base.__class__ is not derived.__class__ else rule(base, derived)


def _check_prim(base: PrimStructInfo, derived: PrimStructInfo) -> BaseCheck:
    if base.dtype is not derived.dtype:
        return BaseCheck.NEVER
    if base.value is None:
        return BaseCheck.HOLDS
    return BaseCheck.PROOF if derived.value is None else _same_dims((base.value,), (derived.value,))


def _check_shape(base: ShapeStructInfo, derived: ShapeStructInfo) -> BaseCheck:
    if base.ndim >= 0 and derived.ndim != base.ndim:
        return BaseCheck.CAST if derived.ndim < 0 else BaseCheck.NEVER
    if base.values is None:
        return BaseCheck.HOLDS
    return BaseCheck.PROOF if derived.values is None else _same_dims(base.values, derived.values)


def _check_tensor(base: TensorStructInfo, derived: TensorStructInfo) -> BaseCheck:
    result = BaseCheck.HOLDS
    if base.dtype is not None and base.dtype is not derived.dtype:
        if derived.dtype is not None:
            return BaseCheck.NEVER
        result = BaseCheck.CAST
    if base.ndim >= 0 and derived.ndim != base.ndim:
        if derived.ndim >= 0:
            return BaseCheck.NEVER
        result = BaseCheck.CAST
    if base.vdevice is not None and derived.vdevice is not None and not _same_device(base, derived):
        return BaseCheck.NEVER
    if base.shape is None or base.shape is derived.shape:
        return result
    left, right = dims_of(base), dims_of(derived)
    if left is None or right is None:
        return min(result, BaseCheck.PROOF)
    return min(result, _same_dims(left, right))


def _same_device(a: TensorStructInfo, b: TensorStructInfo) -> bool:
    x, y = a.vdevice, b.vdevice
    return x is y or (
        x is not None
        and y is not None
        and (x.target, x.vdevice_id, x.memory_scope) == (y.target, y.vdevice_id, y.memory_scope)
    )


def _check_tuple(base: TupleStructInfo, derived: TupleStructInfo) -> BaseCheck:
    if len(base.fields) != len(derived.fields):
        return BaseCheck.NEVER
    return min((base_check(a, b) for a, b in zip(base.fields, derived.fields)), default=BaseCheck.HOLDS)


def _check_function(base: FuncStructInfo, derived: FuncStructInfo) -> BaseCheck:
    if base.purity and not derived.purity:
        return BaseCheck.NEVER
    if base.params is None:
        return BaseCheck.HOLDS
    if derived.params is None:
        return BaseCheck.CAST
    if len(base.params) != len(derived.params):
        return BaseCheck.NEVER
    # Each function has its own dimensions: the derived one's are renamed to those of the base before they are compared.
    mapping: dict[prim.Var, PrimExpr] = {}
    for mine, theirs in zip(derived.params, base.params):
        unify(mine, theirs, mapping)
    params = [base_check(substitute(d, mapping), b) for b, d in zip(base.params, derived.params)]
    return min([*params, base_check(base.ret, substitute(derived.ret, mapping))])


def _check_dtensor(base: DTensorStructInfo, derived: DTensorStructInfo) -> BaseCheck:
    if (base.mesh, base.placement) != (derived.mesh, derived.placement):
        return BaseCheck.NEVER
    return base_check(base.tensor, derived.tensor)


_CHECK: dict[type, Callable[..., BaseCheck]] = {
    PrimStructInfo: _check_prim,
    ShapeStructInfo: _check_shape,
    TensorStructInfo: _check_tensor,
    TupleStructInfo: _check_tuple,
    FuncStructInfo: _check_function,
    DTensorStructInfo: _check_dtensor,
}


def dims_of(info: StructInfo | None) -> tuple[PrimExpr, ...] | None:
    """The dimensions of a tensor or shape, where they are known; through a variable that holds the shape."""
    if isinstance(info, ShapeStructInfo):
        return info.values
    if isinstance(info, TensorStructInfo):
        if isinstance(info.shape, relax.Expr):
            return dims_of(info.shape.struct_info)
        return info.dims
    return None


# --- joining ----------------------------------------------------------------------------------------------------------
def least_upper_bound(a: StructInfo, b: StructInfo) -> StructInfo:
    """The most exact info that both `a` and `b` imply."""
    if a is b:
        return a
    if isinstance(a, PrimStructInfo) and isinstance(b, PrimStructInfo) and a.dtype is b.dtype:
        same = a.value is not None and b.value is not None and same_dim(a.value, b.value)
        return a if same else PrimStructInfo(a.dtype)
    if isinstance(a, ShapeStructInfo) and isinstance(b, ShapeStructInfo):
        if a.values is not None and b.values is not None and _same_dims(a.values, b.values) is BaseCheck.HOLDS:
            return a
        return shape_info(None, a.ndim if a.ndim == b.ndim else -1)
    if isinstance(a, TensorStructInfo) and isinstance(b, TensorStructInfo):
        dtype = a.dtype if a.dtype is b.dtype else None
        device = a.vdevice if a.vdevice is not None and b.vdevice is not None and _same_device(a, b) else None
        left, right = dims_of(a), dims_of(b)
        if a.shape is not None and a.shape is b.shape:
            return tensor_info(a.shape, dtype, a.ndim, device)
        if left is not None and right is not None and _same_dims(left, right) is BaseCheck.HOLDS:
            return tensor_info(a.shape, dtype, a.ndim, device)
        return tensor_info(None, dtype, a.ndim if a.ndim == b.ndim else -1, device)
    if isinstance(a, TupleStructInfo) and isinstance(b, TupleStructInfo) and len(a.fields) == len(b.fields):
        return TupleStructInfo(tuple(least_upper_bound(x, y) for x, y in zip(a.fields, b.fields)))
    if isinstance(a, FuncStructInfo) and isinstance(b, FuncStructInfo):
        if base_check(a, b) is BaseCheck.HOLDS:
            return a
        return b if base_check(b, a) is BaseCheck.HOLDS else FuncStructInfo(None, OBJECT, a.purity and b.purity)
    return a if isinstance(a, DTensorStructInfo) and base_check(a, b) is BaseCheck.HOLDS else OBJECT


# --- erasing ----------------------------------------------------------------------------------------------------------
def erase(info: StructInfo, keep: Collection[prim.Var], keep_vars: Collection[relax.Var] | None = None) -> StructInfo:
    """`info` without what mentions a scalar variable outside `keep`, or (unless None) a Relax variable outside
    `keep_vars`."""

    def known(values: tuple[PrimExpr, ...] | None) -> bool:
        return values is not None and all(v in keep for v in free_vars(values))

    if isinstance(info, PrimStructInfo):
        return info if info.value is None or known((info.value,)) else PrimStructInfo(info.dtype)
    if isinstance(info, ShapeStructInfo):
        return info if info.values is None or known(info.values) else shape_info(None, info.ndim)
    if isinstance(info, TensorStructInfo):
        if info.shape is None or known(info.dims):
            return info
        if isinstance(info.shape, relax.Var) and (keep_vars is None or info.shape in keep_vars):
            return info
        return tensor_info(None, info.dtype, info.ndim, info.vdevice)
    if isinstance(info, TupleStructInfo):
        fields = tuple(erase(f, keep, keep_vars) for f in info.fields)
        return info if all(a is b for a, b in zip(fields, info.fields)) else TupleStructInfo(fields)
    if isinstance(info, FuncStructInfo) and info.params is not None:
        own = {*keep, *bound_vars(info.params)}
        return FuncStructInfo(
            tuple(erase(p, own, keep_vars) for p in info.params),
            erase(info.ret, own, keep_vars),
            info.purity,
            info.derive_func,
        )
    if isinstance(info, FuncStructInfo):
        return info.replace(ret=erase(info.ret, keep, keep_vars))
    if isinstance(info, DTensorStructInfo):
        return info.replace(tensor=erase(info.tensor, keep, keep_vars))
    return info


def bound_vars(params: tuple[StructInfo, ...]) -> list[prim.Var]:
    """The scalar variables that parameters define: those that stand alone as a dimension or value, each once, in
    order."""
    found: dict[prim.Var, None] = {}
    stack: list[StructInfo] = list(reversed(params))
    while stack:
        info = stack.pop()
        if isinstance(info, TupleStructInfo):
            stack.extend(reversed(info.fields))
            continue
        if isinstance(info, DTensorStructInfo):
            info = info.tensor
        values: tuple[PrimExpr, ...] = ()
        if isinstance(info, (ShapeStructInfo, TensorStructInfo)):
            values = (info.values if isinstance(info, ShapeStructInfo) else info.dims) or ()
        elif isinstance(info, PrimStructInfo) and info.value is not None:
            values = (info.value,)
        found.update((v, None) for v in map(lone_var, values) if v is not None)
    return list(found)


# --- calls ------------------------------------------------------------------------------------------------------------
def unify(param: StructInfo, arg: StructInfo, mapping: dict[prim.Var, PrimExpr]) -> None:
    """Add to `mapping` what the variables of a parameter must be, for the argument to fit; first come, first bound."""
    if isinstance(param, TupleStructInfo) and isinstance(arg, TupleStructInfo):
        for p, a in zip(param.fields, arg.fields):
            unify(p, a, mapping)
        return
    if isinstance(param, DTensorStructInfo) and isinstance(arg, DTensorStructInfo):
        param, arg = param.tensor, arg.tensor
    wanted: tuple[PrimExpr, ...] | None
    given: tuple[PrimExpr, ...] | None
    if isinstance(param, PrimStructInfo) and isinstance(arg, PrimStructInfo):
        wanted = None if param.value is None else (param.value,)
        given = None if arg.value is None else (arg.value,)
    else:
        wanted, given = dims_of(param), dims_of(arg)
    if wanted is None or given is None or len(wanted) != len(given):
        return
    for want, have in zip(wanted, given):
        var = lone_var(want)
        if var is not None and var not in mapping:
            mapping[var] = prim.cast(have, var.dtype)


def call_result(function: FuncStructInfo, mapping: Mapping[prim.Var, PrimExpr]) -> StructInfo:
    """The result's info in the caller's terms: the function's own variables replaced by what `mapping` gives them, and
    what mentions others of its own forgotten."""
    if function.params is None:
        return function.ret
    unknown = set(bound_vars(function.params)) - mapping.keys()
    known = {v for v in free_vars(function.ret) if v not in unknown}
    return replaced(erase(function.ret, known), mapping)


def replaced(info: StructInfo, mapping: Mapping[prim.Var, PrimExpr]) -> StructInfo:
    """`info` with variables replaced; the dimensions that this changes are simplified."""
    if not mapping or not any(v in mapping for v in free_vars(info)):
        return info
    if isinstance(info, TupleStructInfo):
        return TupleStructInfo(tuple(replaced(f, mapping) for f in info.fields))
    if isinstance(info, ShapeStructInfo) and info.values is not None:
        return shape_info(_replaced_dims(info.values, mapping))
    if isinstance(info, TensorStructInfo) and info.dims is not None:
        return tensor_info(_replaced_dims(info.dims, mapping), info.dtype, info.ndim, info.vdevice)
    return substitute(info, mapping)


def _replaced_dims(dims: tuple[PrimExpr, ...], mapping: Mapping[prim.Var, PrimExpr]) -> tuple[PrimExpr, ...]:
    made: list[PrimExpr] = []
    for before in dims:
        after = substitute(before, mapping)
        if after is not before and not isinstance(after, (prim.IntImm, prim.Var)) and not isinstance(before, prim.Var):
            from relaxlang.arith.analyzer import Analyzer  # loaded when first needed

            after = Analyzer(v for v in free_vars(after) if v.dtype.is_integer).simplify(after)
        made.append(after)
    return tuple(made)


def is_distributed(info: StructInfo | None) -> bool:
    """Whether a value is, or holds, a tensor that is spread over devices."""
    stack: list[StructInfo | None] = [info]
    while stack:
        top = stack.pop()
        if isinstance(top, DTensorStructInfo):
            return True
        if isinstance(top, TupleStructInfo):
            stack.extend(top.fields)
    return False


def may_declare(declared: StructInfo, inferred: StructInfo) -> bool:
    """Whether a binding or a result may be declared so: its value is known to be that. What operators make of tensors
    that are spread over devices is not inferred, and taken as declared."""
    return base_check(declared, inferred) is BaseCheck.HOLDS or (inferred is OBJECT and is_distributed(declared))
