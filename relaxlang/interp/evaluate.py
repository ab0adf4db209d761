"""Evaluation of Relax's expressions.

An operator of the library is computed by its definition: it is lowered for variables that have the struct info of the
values at hand, and the kernel (or the expression) that this gives is run. Calls that are part of the IR stand in
`interp.structural`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np

from relaxlang.base.diagnostics import DiagnosticError, fail
from relaxlang.base.dtype import DType, from_numpy
from relaxlang.base.source import Span
from relaxlang.interp.expr import Frame
from relaxlang.interp.kernel import call_prim_func
from relaxlang.interp.memory import fresh
from relaxlang.interp.values import Scope, match
from relaxlang.ir import prim, relax
from relaxlang.ir.attrs import Attrs
from relaxlang.ir.prim import INT64, IntImm, PrimExpr
from relaxlang.ir.struct_info import StructInfo, TensorStructInfo, TupleStructInfo, tensor_info
from relaxlang.ir.visit import free_vars, substitute
from relaxlang.ops.kernel import Kernel
from relaxlang.ops.values import dims_text, from_dim
from relaxlang.runtime import checks
from relaxlang.runtime.builtins import read_if_cond
from relaxlang.runtime.ndarray import ShapeTuple, wrap
from relaxlang.syntax.struct_info import dims_of

if TYPE_CHECKING:
    from relaxlang.interp.interpreter import Interpreter

Evaluator: TypeAlias = "Callable[[Interpreter, Scope, Any], Any]"
_RING = (prim.Add, prim.Sub, prim.Mul)
EVAL: dict[type, Evaluator] = {}
OPERATIONS: dict[str, Evaluator] = {}
"""The calls that are part of the IR, by the name of their `Op`."""


def evaluates(*classes: type) -> Callable[[Evaluator], Evaluator]:
    """Enter the evaluator of these classes."""

    def enter(function: Evaluator) -> Evaluator:
        EVAL.update(dict.fromkeys(classes, function))
        return function

    return enter


def evaluate_dim(interp: Interpreter, scope: Scope, e: PrimExpr) -> Any:
    """The value of a scalar expression, a numpy scalar. RLX6009 when a sum or product of integers overflows."""
    frame = Frame(interp, scope.dims)
    value = frame(e)
    if isinstance(e, _RING) and e.dtype.is_int and _exact(frame, e) != int(value):
        fail("RLX6009", f"the dimension `{e}` overflows")
    return value


def _exact(frame: Frame, e: PrimExpr) -> int:
    """What sums and products really are."""
    if not isinstance(e, _RING):
        return int(frame(e))
    a, b = _exact(frame, e.a), _exact(frame, e.b)
    return a * b if isinstance(e, prim.Mul) else a + b if isinstance(e, prim.Add) else a - b


def shape_of(interp: Interpreter, scope: Scope, dims: Sequence[PrimExpr]) -> ShapeTuple:
    """The values of dimensions."""
    return ShapeTuple([d.value if isinstance(d, IntImm) else int(evaluate_dim(interp, scope, d)) for d in dims])


# --- leaves -----------------------------------------------------------------------------------------------------------
@evaluates(relax.Var, relax.DataflowVar)
def _var(interp: Interpreter, scope: Scope, e: relax.Var) -> Any:
    return scope[e]


@evaluates(relax.GlobalVar)
def _global_var(interp: Interpreter, scope: Scope, e: relax.GlobalVar) -> Any:
    return interp[e.name]


@evaluates(relax.ExternFunc)
def _extern(interp: Interpreter, scope: Scope, e: relax.ExternFunc) -> Any:
    return interp.packed_func(e.name, e.span)


@evaluates(relax.Constant)
def _constant(interp: Interpreter, scope: Scope, e: relax.Constant) -> Any:
    data = np.ascontiguousarray(e.data).reshape(e.data.shape).view()
    data.flags.writeable = False
    return wrap(data)


@evaluates(relax.ShapeExpr)
def _shape(interp: Interpreter, scope: Scope, e: relax.ShapeExpr) -> Any:
    return shape_of(interp, scope, e.values)


@evaluates(relax.PrimValue)
def _prim_value(interp: Interpreter, scope: Scope, e: relax.PrimValue) -> Any:
    return evaluate_dim(interp, scope, e.value).item()


@evaluates(relax.StringImm, relax.DataTypeImm)
def _literal(interp: Interpreter, scope: Scope, e: relax.StringImm | relax.DataTypeImm) -> Any:
    return e.value


# --- compound ---------------------------------------------------------------------------------------------------------
@evaluates(relax.Tuple)
def _tuple(interp: Interpreter, scope: Scope, e: relax.Tuple) -> Any:
    return tuple([interp.evaluate(scope, f) for f in e.fields])


@evaluates(relax.TupleGetItem)
def _item(interp: Interpreter, scope: Scope, e: relax.TupleGetItem) -> Any:
    value = interp.evaluate(scope, e.tuple_value)
    if not isinstance(value, tuple) or isinstance(value, ShapeTuple):
        fail("RLX6018", f"{checks.describe(value)} is no tuple", e.span)
    if not 0 <= e.index < len(value):
        fail("RLX6018", f"a tuple of {len(value)} has no element {e.index}", e.span)
    return value[e.index]


@evaluates(relax.SeqExpr)
def _seq(interp: Interpreter, scope: Scope, e: relax.SeqExpr) -> Any:
    for block in e.blocks:
        for binding in block.bindings:
            interp.bind(scope, binding)
    return interp.evaluate(scope, e.body)


@evaluates(relax.If)
def _if(interp: Interpreter, scope: Scope, e: relax.If) -> Any:
    condition = read_if_cond(interp.evaluate(scope, e.condition))
    return interp.evaluate(scope, e.true_branch if condition else e.false_branch)


@evaluates(relax.Function)
def _function(interp: Interpreter, scope: Scope, e: relax.Function) -> Any:
    return interp.closure(e, f"a function in `{scope.function}`", scope)


@evaluates(relax.Call)
def _call(interp: Interpreter, scope: Scope, e: relax.Call) -> Any:
    callee = e.op
    if isinstance(callee, relax.Op):
        operation = OPERATIONS.get(callee.name)
        if operation is not None:
            return operation(interp, scope, e)
        return _operator(interp, scope, e)
    if not isinstance(callee, (relax.GlobalVar, relax.ExternFunc)):
        function = interp.evaluate(scope, callee)
        return interp.apply(function, [interp.evaluate(scope, a) for a in e.args], scope, e.span)
    args = [interp.evaluate(scope, a) for a in e.args]
    if isinstance(callee, relax.GlobalVar):
        return interp.call_global(callee, args, scope.depth + 1, e.span)
    return interp.call_packed(callee.name, args, e.span)


# --- operators --------------------------------------------------------------------------------------------------------
def _operator(interp: Interpreter, scope: Scope, e: relax.Call) -> Any:
    assert isinstance(e.op, relax.Op)
    inner = Scope(interp.dim, scope.function, scope.depth + 1)
    dims = {v: _literal_of(scope.dims[v], v) for v in _dims_in(e) if v in scope.dims}
    args = tuple([_stand_in(interp, inner, a, interp.evaluate(scope, a)) for a in e.args])
    call = relax.Call(e.op, args, substitute_attrs(e.attrs, dims), substitute(e.sinfo_args, dims), span=e.span)
    try:
        lowered = interp.lower_operator(call)
    except DiagnosticError as fault:
        raise _with_dims(fault, scope, e) from fault.__cause__
    if not isinstance(lowered, Kernel):
        return interp.evaluate(inner, lowered)
    for tensor, info in lowered.casts:
        match(inner, info, interp.evaluate(inner, tensor), f"an argument of `R.{e.op.name}`")
    inner.equations.solve()
    values = [interp.evaluate(inner, a) for a in lowered.args]
    scalars = shape_of(interp, inner, lowered.tir_vars)
    outputs = outputs_for(interp, inner, lowered.out)
    call_prim_func(interp, lowered.func, f"R.{e.op.name}", [*values, *leaves(outputs), *scalars])
    if lowered.finish is None:
        return outputs
    inner.values.update(zip(lowered.handed, leaves(outputs)))
    return interp.evaluate(inner, lowered.finish)


def _with_dims(fault: DiagnosticError, scope: Scope, e: relax.Call) -> DiagnosticError:
    """What is wrong with the values of a call, and what they are in the program: symbols, with their values."""
    operands = [f for a in e.args for f in (a.fields if isinstance(a, relax.Tuple) else (a,))]
    args = {a: dims for a in operands if isinstance(a, relax.Var) and (dims := dims_of(a.struct_info)) is not None}
    symbols = dict.fromkeys(v for dims in args.values() for v in free_vars(dims) if v in scope.dims)
    if not symbols:
        return fault
    shapes = ", ".join(f"`{a.name}` is {dims_text(tuple(from_dim(d) for d in dims))}" for a, dims in args.items())
    values = ", ".join(f"{v.name} = {scope.dims[v]}" for v in symbols)
    first, *rest = fault.diagnostics
    return DiagnosticError([first.replace(notes=(*first.notes, f"{shapes} with {values}")), *rest])


def _dims_in(e: relax.Call) -> list[prim.Var]:
    return free_vars((*e.sinfo_args, *[v for v in e.attrs.values() if isinstance(v, (PrimExpr, tuple))]))


def _literal_of(value: Any, var: prim.Var) -> PrimExpr:
    return prim.const(value.item(), var.dtype)


def substitute_attrs(attrs: Attrs, dims: dict[prim.Var, PrimExpr]) -> Attrs:
    """Attributes with symbolic variables replaced."""
    return Attrs({k: substitute(v, dims) if isinstance(v, (PrimExpr, tuple)) else v for k, v in attrs.items()})


def _stand_in(interp: Interpreter, scope: Scope, e: relax.Expr, value: Any) -> relax.Expr:
    """An expression for an argument whose struct info is static: it is `value`, in `scope`."""
    if isinstance(e, (relax.Constant, relax.StringImm, relax.DataTypeImm, relax.ExternFunc)):
        return e
    if isinstance(value, np.ndarray):
        shape = tuple([IntImm(INT64, n) for n in value.shape])
        name = e.name if isinstance(e, relax.Var) else "x"
        var = relax.Var(name, tensor_info(shape, from_numpy(value.dtype)), span=e.span)
        scope.values[var] = value
        return var
    if isinstance(value, ShapeTuple):
        return relax.ShapeExpr(tuple([IntImm(INT64, n) for n in value]), span=e.span)
    if isinstance(value, tuple):
        fields = e.fields if isinstance(e, relax.Tuple) else [relax.TupleGetItem(e, i) for i in range(len(value))]
        return relax.Tuple(tuple([_stand_in(interp, scope, f, v) for f, v in zip(fields, value)]), span=e.span)
    if isinstance(value, (bool, int, float)):
        return relax.PrimValue(_prim_like(e, value), span=e.span)
    var = relax.Var("x", e.struct_info or relax.Var("x").struct_info, span=e.span)
    scope.values[var] = value
    return var


def _prim_like(e: relax.Expr, value: bool | int | float) -> PrimExpr:
    of = getattr(e.struct_info, "dtype", None)
    if isinstance(of, DType):
        return prim.const(value, of)
    return prim.as_prim(value) if not isinstance(value, int) or isinstance(value, bool) else prim.const(value, INT64)


# --- results ----------------------------------------------------------------------------------------------------------
def outputs_for(interp: Interpreter, scope: Scope, info: StructInfo) -> Any:
    """Fresh tensors of struct info, for a function that writes to what it is passed."""
    if isinstance(info, TupleStructInfo):
        return tuple([outputs_for(interp, scope, f) for f in info.fields])
    if not isinstance(info, TensorStructInfo) or info.dtype is None:
        no_output(info)
    if isinstance(info.shape, tuple):
        return fresh(shape_of(interp, scope, info.shape), info.dtype)
    if isinstance(info.shape, relax.Var):
        return fresh(scope[info.shape], info.dtype)
    no_output(info)


def no_output(info: StructInfo, span: Span | None = None) -> NoReturn:
    """Report that no tensor can be made of struct info."""
    fail("RLX6034", f"the result `{info}` cannot be allocated: shape and dtype must be known", span)


def leaves(value: Any) -> list[Any]:
    """The tensors of a value, tuples taken apart."""
    found, work = [], [value]
    while work:
        item = work.pop()
        if isinstance(item, tuple):
            work.extend(reversed(item))
        else:
            found.append(item)
    return found
