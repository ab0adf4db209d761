"""What an operator call means: the struct info of its result, and its kernel."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from relaxlang.base.diagnostics import DiagnosticError, Label
from relaxlang.base.source import Span
from relaxlang.ir import prim, relax
from relaxlang.ir.struct_info import (
    OBJECT,
    PrimStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    shape_info,
    tensor_info,
)
from relaxlang.ir.visit import children, free_vars
from relaxlang.ops.body import Computed, OpEvaluator
from relaxlang.ops.definition import OpDef
from relaxlang.ops.functions import CompileTimeFunction
from relaxlang.ops.kernel import Kernel, build_kernel
from relaxlang.ops.signature import attribute_value, bind
from relaxlang.ops.unify import argument_value, match_arguments
from relaxlang.ops.values import Dim, Erased, TensorValue, Unknown, as_dim, from_dim
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import Scope, error

Lookup = Callable[[str], OpDef]


def infer_call(definition: OpDef, call: relax.Call) -> StructInfo:
    """The struct info of a call's result: requirements are checked, then the result annotation is evaluated.

    What mentions a dimension that is not known is erased.
    """
    try:
        return _infer(definition, call)
    except DiagnosticError as fault:
        raise _blamed(definition, call, fault) from fault.__cause__


def _infer(definition: OpDef, call: relax.Call) -> StructInfo:
    ev = _evaluator(definition, call, None)
    values = [argument_value(ev, definition, p, a, call) for p, a in zip(_params(definition, call), call.args)]
    ev.tensors = _tensors(values)
    scope = match_arguments(ev, definition, values, call.attrs, call.span)
    try:
        ev.run(_requirements(definition), Scope({}, scope))
    except Erased:
        pass  # What is not known can't be checked yet.
    info = _erase(ev, _result_info(ev, definition.returns, scope))
    if isinstance(info, TensorStructInfo):
        _check_size(definition, info, call.span)
    if _on_scalars(definition, call) and isinstance(info, TensorStructInfo) and info.dtype is not None:
        return PrimStructInfo(info.dtype)
    return info


def _check_size(definition: OpDef, info: TensorStructInfo, span: Span | None) -> None:
    """No dimension of a result is negative, and its elements can be counted."""
    known = [d.value for d in info.dims or () if isinstance(d, prim.IntImm)]
    negative = next((d for d in known if d < 0), None)
    if negative is not None:
        raise error("RLX0221", f"`R.{definition.name}` makes a tensor with the dimension {negative}", span)
    if len(known) == info.ndim and prod(known) >= 1 << 63:
        raise error("RLX0221", f"`R.{definition.name}` makes a tensor of {prod(known)} elements, 2**63 or more", span)


def _on_scalars(definition: OpDef, call: relax.Call) -> bool:
    """Whether both operands are scalars; then the result is one."""
    return definition.takes_scalars and all(isinstance(a.struct_info, PrimStructInfo) for a in call.args)


def _scalar_call(definition: OpDef, call: relax.Call) -> relax.Expr:
    """An operator on scalars as a call of the machine, which has them as values."""
    first = call.args[0].struct_info
    assert isinstance(first, PrimStructInfo)
    name, of = relax.StringImm(definition.name), relax.StringImm(str(first.dtype))
    args = (relax.ExternFunc("vm.builtin.scalar_operation"), name, of, *call.args)
    info = call.struct_info or infer_call(definition, call)
    return relax.Call(relax.Op("call_pure_packed"), args, sinfo_args=(info,), struct_info=info, span=call.span)


def lower_call(definition: OpDef, call: relax.Call, lookup: Lookup) -> Kernel | relax.Expr:
    """What computes a call: a kernel, or an expression (a packed call) for operators that are defined by one alone."""
    if _on_scalars(definition, call):
        return _scalar_call(definition, call)
    try:
        return _lower(definition, call, lookup)
    except DiagnosticError as fault:
        raise _blamed(definition, call, fault) from fault.__cause__


def _blamed(definition: OpDef, call: relax.Call, fault: DiagnosticError) -> DiagnosticError:
    """What goes wrong in a definition names the operator. In one of the library it is a fault of the call, and stands
    there; in one of the user's it stands where it is, and the call is mentioned."""
    first, *rest = fault.diagnostics
    if "`R." in first.message:
        return fault
    place, at = first.span, call.span
    changes: dict[str, Any] = {"message": f"`R.{definition.name}`: {first.message}"}
    if place is None or at is None:
        changes["span"] = place or at
    elif place.source.name.startswith("stdlib/"):
        changes |= {"span": at, "label": "", "labels": (), "fixes": (), "notes": (*first.notes, f"found at {place}")}
    elif place.source is not at.source:
        changes["notes"] = (*first.notes, f"in the call at {at}")
    elif place is not at:
        changes["labels"] = (*first.labels, Label(at, "in this call"))
    return DiagnosticError([first.replace(**changes), *rest])


def _check_result(ev: OpEvaluator, definition: OpDef, call: relax.Call, made: StructInfo) -> None:
    """What the body makes is what the signature says, as far as both are known."""
    stated = call.struct_info or infer_call(definition, call)
    pairs: list[tuple[StructInfo, StructInfo]] = [(stated, made)]
    if isinstance(stated, TupleStructInfo) and isinstance(made, TupleStructInfo):
        pairs = list(zip(stated.fields, made.fields))
        if len(stated.fields) != len(made.fields):
            raise _other_result(definition, stated, made)
    for want, have in pairs:
        if isinstance(want, TupleStructInfo) != isinstance(have, TupleStructInfo):
            raise _other_result(definition, want, have)
        if not isinstance(want, TensorStructInfo) or not isinstance(have, TensorStructInfo):
            continue
        dims = list(zip(want.dims, have.dims)) if want.dims is not None and have.dims is not None else []
        if (
            (want.ndim >= 0 and want.ndim != have.ndim)
            or (want.dtype is not None and want.dtype is not have.dtype)
            or any(a != b and ev.differ(from_dim(a), from_dim(b)) for a, b in dims)
        ):
            raise _other_result(definition, want, have)


def _other_result(definition: OpDef, stated: StructInfo, made: StructInfo) -> DiagnosticError:
    said = f"the result of `R.{definition.name}` is stated as `{stated}`, its body makes `{made}`"
    return error("RLX0186", said, definition.returns.span)


def _lower(definition: OpDef, call: relax.Call, lookup: Lookup) -> Kernel | relax.Expr:
    ev = _evaluator(definition, call, lookup)
    params = _params(definition, call)
    values = [argument_value(ev, definition, p, a, call) for p, a in zip(params, call.args)]
    tensors = ev.tensors = _tensors(values)
    try:
        scope = match_arguments(ev, definition, values, call.attrs, call.span)
        result = ev.run(definition.body, Scope({}, scope))
    except Erased:
        raise _not_known(definition, call, tensors) from None
    if isinstance(result, relax.Expr):
        if ev.fresh and any(v in ev.fresh for v in free_vars(result)):
            raise _not_known(definition, call, tensors)
        result = result.replace(span=call.span) if isinstance(result, relax.Call) else result
        if not ev.handed:
            return result
        kernel = build_kernel(ev, tensors, list(ev.handed), len(ev.handed) > 1)
        kernel = kernel.replace(handed=tuple(ev.handed.values()), finish=result)
    else:
        is_tuple = isinstance(result, (tuple, list))
        results = list(result) if is_tuple else [result]
        if not results or not all(isinstance(r, TensorValue) for r in results):
            raise error("RLX0139", f"the body of `R.{definition.name}` does not return a tensor", definition.span)
        kernel = build_kernel(ev, tensors, results, is_tuple)
        _check_result(ev, definition, call, kernel.out)
    if not ev.fresh:
        return kernel
    shapes = [(a, v) for a, v, p in zip(call.args, values, params) if p.kinds[0] == "shape" and isinstance(v, tuple)]
    return kernel.replace(casts=_casts(ev, tensors, shapes))


def _tensors(values: list[Any]) -> list[TensorValue]:
    """The tensors among arguments, those in tuples too."""
    flat = (t for v in values for t in (v if isinstance(v, tuple) else (v,)))
    return [t for t in flat if isinstance(t, TensorValue) and not isinstance(t, Computed)]


def _evaluator(definition: OpDef, call: relax.Call, lookup: Lookup | None) -> OpEvaluator:
    ev = OpEvaluator()
    ev.operator = definition.name
    ev.call_span = call.span
    if lookup is not None:
        ev.inline = lambda name, args, kwargs, span: _inline(ev, lookup(name), args, kwargs, span)
    return ev


def _params(definition: OpDef, call: relax.Call) -> tuple[Any, ...]:
    params = definition.slots(len(call.args))
    if len(call.args) > len(params):
        takes = f"takes at most {len(params)} values, {len(call.args)} were given"
        raise error("RLX0113", f"`R.{definition.name}` {takes}", call.span)
    return params


def _inline(ev: OpEvaluator, definition: OpDef, args: list[Any], kwargs: dict[str, Any], span: Span | None) -> Any:
    """The result of another operator's body on tensors of this one."""
    given = bind(definition, args, kwargs, span)
    values = [given[p.name] for p in definition.arg_params if p.name in given]
    attrs = {p.name: attribute_value(definition, p, given, span) for p in definition.attr_params}
    outer, ev.operator = ev.operator, definition.name
    scope = match_arguments(ev, definition, values, attrs, ev.call_span)
    result = ev.run(definition.body, Scope({}, scope))
    ev.operator = outer
    return result


# --- inference --------------------------------------------------------------------------------------------------------
_requirement_cache: dict[int, tuple[OpDef, tuple[tree.Stmt, ...]]] = {}


def _requirements(definition: OpDef) -> tuple[tree.Stmt, ...]:
    """The leading statements of a body, up to the first that computes a tensor or returns."""
    cached = _requirement_cache.get(id(definition))
    if cached is None:
        count = 0
        for stmt in definition.body:
            if _computes(stmt, definition.scope):
                break
            count += 1
        cached = _requirement_cache[id(definition)] = (definition, definition.body[:count])
    return cached[1]


def _computes(stmt: tree.Stmt, scope: Scope) -> bool:
    """Whether a statement returns or makes a tensor, itself or in a function that it calls."""
    work: list[Any] = [stmt]
    seen: set[int] = set()
    while work:
        node = work.pop()
        if (isinstance(node, tree.Return) and node is stmt) or (isinstance(node, tree.FunctionDef) and node.decorators):
            return True
        if isinstance(node, tree.Call) and isinstance(node.func, tree.Name):
            place = scope.find(node.func.id)
            function = place.names[node.func.id] if place is not None else None
            if isinstance(function, CompileTimeFunction) and id(function) not in seen:
                seen.add(id(function))
                work.extend(function.function.body)
        if isinstance(node, tree.Attribute) and isinstance(node.value, tree.Name):
            if node.value.id == "R" or (node.value.id == "T" and node.attr in ("compute", "reduce_axis")):
                return True
        work.extend(children(node))
    return False


def _result_info(ev: OpEvaluator, annotation: tree.Expr, scope: Scope) -> StructInfo:
    """The result annotation evaluated; what is not known is left open."""
    try:
        info = ev.expr(annotation, scope)
    except Erased:
        return OBJECT
    if isinstance(info, (tuple, list)):
        return TupleStructInfo(tuple(info))
    if not isinstance(info, StructInfo):
        raise error("RLX0131", "the result of an operator must be a struct info", annotation.span)
    return info


def _erase(ev: OpEvaluator, info: StructInfo) -> StructInfo:
    """Without what mentions a dimension that is not known."""
    unknown = {**ev.fresh, **dict.fromkeys(ev.scalars)}
    if not unknown:
        return info
    if isinstance(info, TensorStructInfo) and info.dims is not None and any(v in unknown for v in free_vars(info.dims)):
        return tensor_info(None, info.dtype, info.ndim)
    if isinstance(info, TupleStructInfo):
        return TupleStructInfo(tuple(_erase(ev, f) for f in info.fields))
    return info


# --- lowering ---------------------------------------------------------------------------------------------------------
def _casts(
    ev: OpEvaluator, tensors: list[TensorValue], shapes: list[tuple[relax.Expr, tuple[Dim, ...]]]
) -> tuple[tuple[relax.Expr, StructInfo], ...]:
    """The arguments whose dimensions are not known, each with the struct info that names them."""
    casts: list[tuple[relax.Expr, StructInfo]] = []
    for tensor in tensors:
        shape = tensor.shape
        if (
            not isinstance(shape, Unknown)
            and tensor.expr is not None
            and any(isinstance(d, prim.Var) and d in ev.fresh for d in shape)
        ):
            dtype = None if isinstance(tensor.dtype, Unknown) else tensor.dtype
            casts.append((tensor.expr, tensor_info(tuple(as_dim(d) for d in shape), dtype)))
    for expr, dims in shapes:
        if any(isinstance(d, prim.Var) and d in ev.fresh for d in dims):
            casts.append((expr, shape_info(tuple(as_dim(d) for d in dims))))
    return tuple(casts)


def _not_known(definition: OpDef, call: relax.Call, tensors: list[TensorValue]) -> DiagnosticError:
    vague = [t.name for t in tensors if isinstance(t.shape, Unknown) or isinstance(t.dtype, Unknown)]
    what = f"the rank or dtype of `{vague[0]}`" if vague else "a shape that it needs"
    return error(
        "RLX0211",
        f"`R.{definition.name}` can't be compiled: {what} is not known",
        call.span,
        help='state it with `R.match_cast(x, R.Tensor((n, m), "float32"))`',
    )
