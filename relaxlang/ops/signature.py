"""From `R.name(arguments)` to a `Call`: arguments bound to the parameters, converted as their kinds ask, sorted into
values of Relax (`args`) and compile-time values (`attrs`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relaxlang.arith.index_map import IndexMap
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.base.dtype import DType
from relaxlang.base.source import Span
from relaxlang.base.suggest import place_of, suggestion
from relaxlang.ir import prim, relax
from relaxlang.ir.attrs import Attrs, freeze
from relaxlang.ir.prim import INT64, PrimExpr
from relaxlang.ir.struct_info import PrimStructInfo, TensorStructInfo
from relaxlang.ops.definition import OpDef, OpParam
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import Evaluator, Scope, as_dtype, describe, error, literal

_MISSING = object()


def make_call(definition: OpDef, args: list[Any], kwargs: dict[str, Any], span: Span | None) -> relax.Call:
    """The call of an operator; see `syntax.operators.OperatorTable.make_call`."""
    given = bind(definition, args, kwargs, span)
    if definition.takes_scalars:
        _numbers_beside_scalars(given, span)
    values: list[relax.Expr] = []
    gap: OpParam | None = None
    like: DType | None = None
    for param in definition.arg_params:
        value = given.get(param.name, _MISSING)
        if param.variadic:
            several = value if isinstance(value, (tuple, list)) else () if value in (_MISSING, None) else (value,)
            flat = [v for one in several for v in (one if isinstance(one, (tuple, list)) else (one,))]
            values.extend(_ARG[param.kinds[0]](definition, param, v, like, span) for v in flat)
            continue
        if value is _MISSING or value is None:
            if param.default is None:
                raise _lacks(definition, param, span)
            gap = gap or param
            continue
        if gap is not None:
            values.append(_default_arg(definition, gap, given, span))
            gap = None
        converted = _ARG[param.kinds[0]](definition, param, value, like, span)
        if isinstance(converted.struct_info, TensorStructInfo) and like is None:
            like = converted.struct_info.dtype
        given[param.name] = converted
        values.append(converted)
    attrs: dict[str, Any] = {}
    for param in definition.attr_params:
        attrs[param.name] = attribute_value(definition, param, given, span)
    return relax.Call(relax.Op(definition.name), tuple(values), Attrs(attrs), span=span)


def _numbers_beside_scalars(given: dict[str, Any], span: Span | None) -> None:
    """A number beside a scalar of Relax is a scalar of its type."""
    infos = [v.struct_info for v in given.values() if isinstance(v, relax.Expr)]
    if len(given) == 2 and len(infos) == 1 and isinstance(infos[0], PrimStructInfo):
        for name, value in given.items():
            if isinstance(value, (bool, int, float)):
                given[name] = relax.PrimValue(literal(infos[0].dtype, value, span), span=span)


def attribute_value(definition: OpDef, param: OpParam, given: dict[str, Any], span: Span | None) -> Any:
    """The value of an attribute: as given, converted, or its default."""
    if param.name in given:
        return _attribute(definition, param, given[param.name], span)
    if param.default is None:
        raise _lacks(definition, param, span)
    return _attribute(definition, param, Evaluator().expr(param.default, definition.scope), span)


def bind(definition: OpDef, args: list[Any], kwargs: dict[str, Any], span: Span | None) -> dict[str, Any]:
    """Parameter names to the values given."""
    params = definition.params
    given: dict[str, Any] = {}
    star = next((k for k, p in enumerate(params) if p.variadic), None)
    if star is not None and len(args) > star:
        given[params[star].name] = tuple(args[star:])
        args = args[:star]
    if len(args) > len(params):
        takes = f"takes at most {count_of(len(params), 'argument')}, {len(args)} were given"
        raise error("RLX0113", f"`R.{definition.name}` {takes}", span, notes=[signature_text(definition)])
    given.update((p.name, a) for p, a in zip(params, args))
    names = [p.name for p in params]
    for name, value in kwargs.items():
        if name not in names:
            unknown = f"`R.{definition.name}` has no parameter `{name}`"
            place, hint = place_of(name, span), suggestion(name, names, span)
            raise error("RLX0114", unknown, place, notes=[signature_text(definition)], **hint)
        if name in given:
            raise error("RLX0113", f"`R.{definition.name}` got `{name}` twice", span)
        given[name] = value
    return given


def count_of(n: int, noun: str) -> str:
    """`1 argument`, `2 arguments`."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _lacks(definition: OpDef, param: OpParam, span: Span | None) -> Exception:
    return error(
        "RLX0113", f"`R.{definition.name}` lacks its argument `{param.name}`", span, notes=[signature_text(definition)]
    )


def signature_text(definition: OpDef) -> str:
    """`R.name(x, axis=-1)`: the parameters with their defaults, on one line."""
    parts = []
    for p in definition.params:
        star = "*" if p.variadic else ""
        parts.append(
            f"{star}{p.name}" + ("" if p.default is None else f"={p.default.span.text if p.default.span else '…'}")
        )
    return f"R.{definition.name}({', '.join(parts)})"


def _wrong(definition: OpDef, param: OpParam, wanted: str, value: Any, span: Span | None) -> Exception:
    written = isinstance(value, (relax.Expr, PrimExpr)) and not isinstance(value, (relax.Var, prim.Var))
    where = value.span if written and value.span else span  # a variable's own place is its definition
    said = "an expression of Relax" if isinstance(value, relax.Expr) else describe(value)
    return error(
        "RLX0206",
        f"`{param.name}` of `R.{definition.name}` must be {wanted}, not {said}",
        where,
        notes=[signature_text(definition)],
    )


# --- arguments --------------------------------------------------------------------------------------------------------
def _default_arg(definition: OpDef, param: OpParam, given: dict[str, Any], span: Span | None) -> relax.Expr:
    """The default of a parameter that was left out before one that was given; it may name an earlier parameter."""
    value = None if param.default is None else Evaluator().expr(param.default, Scope(given, definition.scope))
    if value is None:
        raise error("RLX0113", f"`R.{definition.name}`: give `{param.name}` before the parameters after it", span)
    return _ARG[param.kinds[0]](definition, param, value, None, span)


def _tensor(definition: OpDef, param: OpParam, value: Any, like: DType | None, span: Span | None) -> relax.Expr:
    if isinstance(value, relax.Expr):
        return value
    import numpy as np  # most programs have no such constant, and checking one then needs no numpy

    if isinstance(value, (prim.IntImm, prim.FloatImm)):
        return relax.Constant(np.array(value.value, dtype=value.dtype.numpy), span=value.span)
    if isinstance(value, (bool, int, float)):
        natural = "bool" if isinstance(value, bool) else "int32" if isinstance(value, int) else "float32"
        try:
            return relax.Constant(np.array(value, dtype=natural if like is None else like.numpy), span=span)
        except (OverflowError, ValueError):  # a NaN is no integer
            raise error("RLX0129", f"`{value}` is out of range for `{like or natural}`", span) from None
    raise _wrong(definition, param, "a tensor", value, span)


def _tensors(definition: OpDef, param: OpParam, value: Any, like: DType | None, span: Span | None) -> relax.Expr:
    if isinstance(value, relax.Expr):
        return value
    if isinstance(value, (tuple, list)):
        return relax.Tuple(tuple(_tensor(definition, param, v, like, span) for v in value), span=span)
    raise _wrong(definition, param, "a tuple of tensors", value, span)


def _shape(definition: OpDef, param: OpParam, value: Any, like: DType | None, span: Span | None) -> relax.Expr:
    if isinstance(value, relax.Tuple) and all(isinstance(f, relax.PrimValue) for f in value.fields):
        value = tuple(f.value for f in value.fields if isinstance(f, relax.PrimValue))
    if isinstance(value, relax.Expr):
        return value
    if isinstance(value, (int, PrimExpr)) and not isinstance(value, bool):
        value = (value,)
    if isinstance(value, (tuple, list)) and all(_is_integer(v) for v in value):
        return relax.ShapeExpr(tuple(prim.cast(prim.as_prim(v, INT64), INT64) for v in value), span=span)
    raise _wrong(definition, param, "a shape", value, span)


def _scalar(definition: OpDef, param: OpParam, value: Any, like: DType | None, span: Span | None) -> relax.Expr:
    if isinstance(value, relax.Expr):
        return value
    if isinstance(value, PrimExpr):
        return relax.PrimValue(value, span=span)
    if isinstance(value, (bool, int, float)):
        of = prim.BOOL if isinstance(value, bool) else INT64 if isinstance(value, int) else "float64"
        return relax.PrimValue(prim.const(value, of), span=span)
    raise _wrong(definition, param, "a scalar", value, span)


def _object(definition: OpDef, param: OpParam, value: Any, like: DType | None, span: Span | None) -> relax.Expr:
    if isinstance(value, relax.Expr):
        return value
    if isinstance(value, str):
        return relax.StringImm(value, span=span)
    return _scalar(definition, param, value, like, span)


_ARG: dict[str, Callable[[OpDef, OpParam, Any, DType | None, Span | None], relax.Expr]] = {
    "tensor": _tensor,
    "tensors": _tensors,
    "shape": _shape,
    "scalar": _scalar,
    "object": _object,
}


# --- attributes -------------------------------------------------------------------------------------------------------
def _is_integer(value: Any) -> bool:
    if isinstance(value, PrimExpr):
        return value.dtype.is_integer
    return isinstance(value, int) and not isinstance(value, bool)


def plain(value: Any) -> Any:
    """A value of Relax or a constant node as a plain compile-time value, where it is one."""
    if isinstance(value, relax.PrimValue):
        value = value.value
    if isinstance(value, prim.IntImm):
        return bool(value.value) if value.dtype.is_bool else value.value
    if isinstance(value, (prim.FloatImm, prim.StringImm, relax.StringImm, relax.DataTypeImm)):
        return value.value
    if isinstance(value, relax.Tuple):
        return tuple(plain(f) for f in value.fields)
    if isinstance(value, relax.ShapeExpr):
        return tuple(plain(v) for v in value.values)
    if isinstance(value, (tuple, list)):
        return tuple(plain(v) for v in value)
    return value


def _attribute(definition: OpDef, param: OpParam, value: Any, span: Span | None) -> Any:
    """An attribute converted to the first kind that takes it."""
    value = plain(value)
    if value is None and param.default is not None:
        return None
    for kind in param.kinds:
        if kind == "dtype" and isinstance(value, (str, DType)):
            return _dtype(definition, param, value, span)
        if kind == "float" and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if kind == "bool" and isinstance(value, int) and value in (0, 1):
            return bool(value)
        if kind == "tuple" and isinstance(value, tuple):
            return freeze(value)
        if kind == "ints" and isinstance(value, tuple) and all(_is_index(v) for v in value):
            return freeze(value)
        if kind == "floats" and isinstance(value, tuple) and all(type(v) in (int, float) for v in value):
            return tuple(float(v) for v in value)
        if kind == "index_map" and isinstance(value, IndexMap):
            return value
        if kind == "int" and _is_index(value):
            return value
        if kind in ("float", "bool", "str") and type(value).__name__ == kind:
            return value
    if param.kinds == ("ints",) and _is_index(value):
        return (value,)
    raise _wrong(definition, param, " or ".join(_WORDS[k] for k in param.kinds), value, span)


_WORDS = {
    "int": "an int", "float": "a float", "bool": "a bool", "str": "a string", "dtype": "a dtype", "tuple": "a tuple",
    "ints": "a tuple of ints", "floats": "a tuple of numbers", "index_map": "an index map",
}  # fmt: skip


def _is_index(value: Any) -> bool:
    """Whether a value is an integer of 64 bits, perhaps a symbolic one."""
    return _is_integer(value) and (isinstance(value, PrimExpr) or -(1 << 63) <= value < 1 << 63)


def _dtype(definition: OpDef, param: OpParam, value: str | DType, span: Span | None) -> DType | None:
    """A dtype that tensors have; None for TVM's "" and "void" where the default says what the dtype is then."""
    if value in ("", "void") or (isinstance(value, DType) and not value.bits):
        if param.default is None or not isinstance(param.default, tree.Constant) or param.default.value is not None:
            raise _wrong(definition, param, "a dtype", str(value), span)
        return None
    try:
        found = as_dtype(value, span)
    except DiagnosticError as fault:
        first = fault.diagnostics[0]
        said = f"`{param.name}` of `R.{definition.name}`: {first.message}"
        raise DiagnosticError([first.replace(message=said)]) from None
    if found.is_handle:
        raise _wrong(definition, param, "a dtype of elements", str(value), span)
    return found
