"""The signature as the shape rule: arguments' struct info is matched with the parameters' patterns.

A bare name in `R.Tensor(…)` is a pattern variable: a whole shape, a dimension, a run of dimensions (`*B`), a dtype. Its
first occurrence binds it, every later one must agree: provably different is an error at the call, not provably equal a
requirement that the kernel checks at run time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relaxlang.base.dtype import DType
from relaxlang.base.source import Span
from relaxlang.ir import prim, relax
from relaxlang.ir.prim import INT64, PrimExpr
from relaxlang.ir.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from relaxlang.ops.body import OpEvaluator
from relaxlang.ops.definition import OpDef, OpParam
from relaxlang.ops.signature import signature_text
from relaxlang.ops.values import UNKNOWN, Dim, Erased, TensorValue, Unknown, as_dim, from_dim, refusal
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import Scope, error


def match_arguments(
    ev: OpEvaluator, definition: OpDef, values: list[Any], attrs: Mapping[str, Any], span: Span | None
) -> Scope:
    """The scope of a call: parameters and pattern variables by name.

    `values` are what `argument_value` made of the arguments, in order; parameters beyond them have their defaults.
    """
    scope = Scope({p.name: attrs.get(p.name) for p in definition.attr_params}, definition.scope)
    params = definition.arg_params
    matcher = _Matcher(ev, definition, scope, span)
    for k, param in enumerate(params):
        if param.variadic:
            scope.names[param.name] = tuple(values[k:])
        elif k < len(values):
            scope.names[param.name] = values[k]
            matcher.param(param, values[k])
        elif param.default is None:
            raise error("RLX0113", f"`R.{definition.name}` lacks its argument `{param.name}`", span)
        else:
            value = ev.expr(param.default, scope)
            # A scalar is an expression, whoever gave it.
            scope.names[param.name] = (
                prim.const(value, INT64) if param.kinds[0] == "scalar" and isinstance(value, int) else value
            )
    return scope


def argument_value(ev: OpEvaluator, definition: OpDef, param: OpParam, expr: relax.Expr, call: relax.Call) -> Any:
    """An argument as the body sees it: a tensor, a tuple of tensors, a shape, a scalar."""
    info = _known(expr)
    kind = param.kinds[0]
    if kind == "object":
        return expr
    if kind == "tensor" and isinstance(info, (TensorStructInfo, ObjectStructInfo)):
        return tensor_value(ev, param.name, info, expr)
    if kind == "tensor" and isinstance(info, PrimStructInfo) and definition.takes_scalars:
        scalar = info.value if info.value is not None else ev.runtime_scalar(param.name, info.dtype, expr)
        return ev.scalar_tensor(param.name, scalar)
    if kind == "tensors" and isinstance(info, TupleStructInfo):
        fields = (
            expr.fields
            if isinstance(expr, relax.Tuple)
            else tuple(relax.TupleGetItem(expr, k) for k in range(len(info.fields)))
        )
        return tuple(
            tensor_value(ev, f"{param.name}_{k}", f.struct_info or ObjectStructInfo(), f) for k, f in enumerate(fields)
        )
    if kind == "shape" and isinstance(info, ShapeStructInfo):
        return _dims(ev, info.values, info.ndim, param.name)
    if kind == "shape" and isinstance(info, ObjectStructInfo):
        return UNKNOWN
    if kind == "scalar" and isinstance(info, PrimStructInfo):
        return info.value if info.value is not None else ev.runtime_scalar(param.name, info.dtype, expr)
    wanted = {"tensor": "a tensor", "tensors": "a tuple of tensors", "shape": "a shape", "scalar": "a scalar"}[kind]
    raise error(
        "RLX0206",
        f"`{param.name}` of `R.{definition.name}` must be {wanted}, not `{info}`",
        call.span,
        notes=[signature_text(definition)],
    )


def _known(expr: relax.Expr) -> StructInfo:
    """What is known of an argument: of a function that was not read yet, that it is one."""
    if expr.struct_info is not None:
        return expr.struct_info
    if isinstance(expr, relax.Tuple):
        return TupleStructInfo(tuple(f.struct_info or ObjectStructInfo() for f in expr.fields))
    return FuncStructInfo(None, ObjectStructInfo()) if isinstance(expr, relax.GlobalVar) else ObjectStructInfo()


def tensor_value(ev: OpEvaluator, name: str, info: StructInfo, expr: relax.Expr) -> TensorValue:
    """A tensor argument; what is not known of its shape becomes fresh dimensions, or UNKNOWN when the rank is not."""
    if not isinstance(info, TensorStructInfo):
        return TensorValue(name, UNKNOWN, UNKNOWN, expr)
    values, ndim = info.dims, info.ndim
    if values is None and isinstance(info.shape, relax.Expr) and isinstance(info.shape.struct_info, ShapeStructInfo):
        values, ndim = info.shape.struct_info.values, info.shape.struct_info.ndim
    return TensorValue(name, _dims(ev, values, ndim, name), info.dtype or UNKNOWN, expr)


def _dims(ev: OpEvaluator, values: tuple[PrimExpr, ...] | None, ndim: int, name: str) -> tuple[Dim, ...] | Unknown:
    if values is not None:
        return tuple(from_dim(v) for v in values)
    if ndim < 0:
        return UNKNOWN
    return tuple(ev.fresh_dim(f"{name}_{k}") for k in range(ndim))


class _Matcher:
    """Matches the values of one call with the patterns of its parameters."""

    def __init__(self, ev: OpEvaluator, definition: OpDef, scope: Scope, span: Span | None) -> None:
        self.ev = ev
        self.definition = definition
        self.scope = scope
        self.span = span
        self.origin: dict[str, str] = {}

    def param(self, param: OpParam, value: Any) -> None:
        """Match one parameter."""
        pattern = param.pattern
        if not isinstance(pattern, tree.Call):
            return
        if isinstance(value, TensorValue):
            named = {k.name: k.value for k in pattern.keywords}
            if pattern.args:
                self.shape(param, pattern.args[0], value.shape)
            kind = pattern.args[1] if len(pattern.args) > 1 else named.get("dtype")
            if kind is not None:
                self.dtype(param, kind, value.dtype)
            if "ndim" in named and not isinstance(value.shape, Unknown):
                self.rank(param, len(value.shape), self.ev.expr(named["ndim"], self.scope))
        elif param.kinds[0] == "shape" and pattern.args:
            self.shape(param, pattern.args[0], value)

    def shape(self, param: OpParam, pattern: tree.Expr, shape: tuple[Dim, ...] | Unknown) -> None:
        """Match a shape with a name (the whole shape) or a tuple of dimensions."""
        if isinstance(pattern, tree.Name):
            bound = self.scope.names.get(pattern.id)
            if bound is None or isinstance(bound, Unknown):
                self.bind(param, pattern.id, shape)
            elif not isinstance(shape, Unknown):
                self.rank(param, len(shape), len(bound), pattern.id)
                for k, (have, want) in enumerate(zip(shape, bound)):
                    self.equal(param, f"{pattern.id}[{k}]", have, want, pattern.id)
            return
        if not isinstance(pattern, tree.TupleExpr):
            raise error("RLX0130", "a shape pattern is a name or a tuple", pattern.span)
        self.elements(param, pattern.elements, shape)

    def elements(self, param: OpParam, patterns: tuple[tree.Expr, ...], shape: tuple[Dim, ...] | Unknown) -> None:
        star = next((k for k, p in enumerate(patterns) if isinstance(p, tree.Starred)), None)
        if isinstance(shape, Unknown):
            for pattern in patterns:
                inner = pattern.value if isinstance(pattern, tree.Starred) else pattern
                if isinstance(inner, tree.Name):
                    self.scope.names.setdefault(inner.id, UNKNOWN)
            return
        if star is None:
            self.rank(param, len(shape), len(patterns))
        elif len(shape) < len(patterns) - 1:
            self.fail(f"`{param.name}` must have at least {len(patterns) - 1} dimensions, not {len(shape)}")
        for k, pattern in enumerate(patterns):
            if star is None or k < star:
                self.dim(param, pattern, shape[k], k)
            elif isinstance(pattern, tree.Starred):
                self.shape(param, pattern.value, shape[k : k + len(shape) - len(patterns) + 1])
            else:
                at = len(shape) + k - len(patterns)
                self.dim(param, pattern, shape[at], at)

    def dim(self, param: OpParam, pattern: tree.Expr, dim: Dim, axis: int) -> None:
        if isinstance(pattern, tree.Name):
            bound = self.scope.names.get(pattern.id)
            if bound is None or isinstance(bound, Unknown):
                self.bind(param, pattern.id, dim)
            else:
                self.equal(param, pattern.id, dim, bound, pattern.id)
            return
        try:
            self.equal(param, f"dimension {axis}", dim, self.ev.expr(pattern, self.scope), "")
        except Erased:
            return

    def bind(self, param: OpParam, name: str, value: Any) -> None:
        self.scope.names[name] = value
        self.origin[name] = param.name

    def equal(self, param: OpParam, what: str, have: Dim, want: Dim, name: str) -> None:
        """Both are one dimension: known to be, known not to be (an error), or to be checked at run time."""
        if self.ev.same(have, want):
            return
        first = self.origin.get(name)
        said = (
            f"`{what}` is {want} in `{first}` but {have} in `{param.name}`"
            if first
            else f"{what} of `{param.name}` must be {want}, not {have}"
        )
        if self.ev.differ(have, want):
            self.fail(said)
        self.ev.require(prim.fold(prim.EQ, as_dim(have), as_dim(want)), f"`R.{self.definition.name}`: {said}")

    def rank(self, param: OpParam, have: int, want: int, name: str = "") -> None:
        if have != want:
            noun = "dimension" if want == 1 else "dimensions"
            like = f", as `{self.origin[name]}` has" if name in self.origin else ""
            self.fail(f"`{param.name}` must have {want} {noun}{like}, not {have}", "RLX0202")

    def dtype(self, param: OpParam, pattern: tree.Expr, dtype: DType | Unknown) -> None:
        if isinstance(pattern, tree.Constant):
            if not isinstance(dtype, Unknown) and dtype.name != pattern.value:
                self.fail(f"`{param.name}` must be {pattern.value}, not {dtype}", "RLX0204")
        elif isinstance(pattern, tree.Name):
            bound = self.scope.names.get(pattern.id)
            if bound is None or isinstance(bound, Unknown):
                self.bind(param, pattern.id, dtype)
            elif not isinstance(dtype, Unknown) and bound is not dtype:
                first = self.origin.get(pattern.id, "an earlier argument")
                self.fail(
                    f"`{first}` is {bound} but `{param.name}` is {dtype}",
                    "RLX0204",
                    "convert one of them with `R.astype`",
                )

    def fail(self, message: str, code: str = "RLX0203", help: str = "") -> None:
        tensors = [v for v in self.scope.names.values() if isinstance(v, TensorValue) and v.expr is not None]
        raise refusal(code, f"`R.{self.definition.name}`: {message}", self.span, tensors, help=help)
