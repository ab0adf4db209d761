"""The names that operator bodies see besides their own file: `T.…`, `R.…` and a few functions about dimensions."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from relaxlang.base.dtype import DType, dtype
from relaxlang.ir import prim, relax
from relaxlang.ir.attrs import EMPTY
from relaxlang.ir.intrinsics import INTRINSICS, Intrinsic
from relaxlang.ir.prim import INT64, PrimExpr
from relaxlang.ir.struct_info import (
    OBJECT,
    VOID_TUPLE,
    PrimStructInfo,
    TupleStructInfo,
    shape_info,
)
from relaxlang.ir.visit import free_vars, substitute
from relaxlang.ops.body import Computed, OpEvaluator
from relaxlang.ops.layouts import Axis, layout_axes
from relaxlang.ops.reductions import REDUCERS, reduce_with
from relaxlang.ops.values import Erased, TensorValue, Unknown, as_dim, from_dim
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import Builtin, Evaluator, Namespace, Scope, Value, as_dtype, error

Run = Callable[[OpEvaluator, list[Any], dict[str, Any], tree.Call], Any]


def _builtin(name: str, run: Callable[..., Any], anywhere: bool = False) -> Builtin:
    """A builtin of bodies; `anywhere`: it makes scalars, so lambdas with it can be used in TensorIR functions."""

    def checked(ev: Evaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
        if not anywhere and not isinstance(ev, OpEvaluator):
            raise error("RLX0111", f"`{name}` can be called only in the body of an operator", node.span)
        try:
            return run(ev, args, kwargs, node)
        except (IndexError, KeyError, AttributeError, TypeError, ValueError, OverflowError) as fault:
            raise error("RLX0113", f"`{name}` got arguments it can't use ({fault})", node.span) from fault

    return Builtin(name, checked)


# --- functions about dimensions and dtypes ----------------------------------------------------------------------------
def _same(ev: OpEvaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> bool:
    return ev.same(args[0], args[1])


def _differ(ev: OpEvaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> bool:
    return ev.differ(args[0], args[1])


def _known(ev: OpEvaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> bool:
    return not isinstance(args[0], (PrimExpr, Unknown)) or isinstance(args[0], prim.IntImm)


def _under(ev: OpEvaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> tuple[Any, ...]:
    """`under(i, S)`: the indices `i` of a broadcast result as indices of a tensor of shape `S`: the last `len(S)` of
    them, 0 where the dimension is 1."""
    index, shape = args
    if isinstance(shape, Unknown):
        raise Erased
    picked = []
    for at, dim in zip(index[len(index) - len(shape) :], shape):
        extent = ev.extent(at)
        if not isinstance(dim, PrimExpr):
            picked.append(0 if dim == 1 else at)
        elif extent is not None and ev.same(dim, extent):
            picked.append(at)
        else:
            is_one = prim.EQ(dim, prim.const(1, dim.dtype))
            picked.append(prim.Call(INT64, "if_then_else", (is_one, prim.const(0, INT64), as_dim(at))))
    return tuple(picked)


def _is_kind(test: Callable[[DType], bool]) -> Run:
    # What is not known may be right: the check is made again when it is known.
    return lambda ev, args, kwargs, node: isinstance(args[0], Unknown) or test(as_dtype(args[0], node.span))


def _simplify(ev: Evaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
    """`simplify(e)`: the expression in a simpler form; in TensorIR functions (which are simplified later) as it is."""
    if isinstance(args[0], PrimExpr) and isinstance(ev, OpEvaluator):
        return ev.analyzer.simplify(args[0])
    return args[0]


def _settled(ev: OpEvaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
    """`settled(d)`: a dimension that is a number or a symbol of the program; another one is not known."""
    if isinstance(args[0], Unknown) or (
        isinstance(args[0], PrimExpr) and any(v in ev.fresh for v in free_vars(args[0]))
    ):
        raise Erased
    return args[0]


def _number(ev: OpEvaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
    """`number(x)`: the value of a constant scalar; what is not constant is not known."""
    value = args[0]
    if isinstance(value, prim.Cast) and isinstance(value.value, (prim.IntImm, prim.FloatImm)):
        value = value.value
    if isinstance(value, (prim.IntImm, prim.FloatImm)):
        return value.value
    if isinstance(value, PrimExpr):
        raise Erased
    return value


def _mapped_shape(ev: OpEvaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> tuple[Any, ...]:
    """`mapped_shape(f, S)`: the shape that a tensor of shape `S` has in the layout of an index map."""
    index_map, shape = args
    if isinstance(shape, Unknown):
        raise Erased
    dims = index_map.with_dtype(INT64).map_shape([as_dim(d) for d in shape], ev.analyzer)
    return tuple(from_dim(ev.analyzer.simplify(d)) for d in dims)


def _unmapped(ev: OpEvaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> tuple[Any, ...]:
    """`unmapped(f, S, i)`: where an index of the mapped tensor comes from, and whether it is padding."""
    index_map, shape, index = args
    inverse, padding = index_map.with_dtype(INT64).non_surjective_inverse([as_dim(d) for d in shape], ev.analyzer)
    values = dict(zip(inverse.initial_indices, index))
    return inverse.map_indices(index, ev.analyzer), ev.analyzer.simplify(substitute(padding, values))


def _layout_axes(ev: Evaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> tuple[Axis, ...]:
    """`layout_axes(layout)`: the dimensions of a layout."""
    return layout_axes(args[0])


FUNCTIONS: dict[str, Value] = {
    "layout_axes": _builtin("layout_axes", _layout_axes, anywhere=True),
    "mapped_shape": _builtin("mapped_shape", _mapped_shape),
    "unmapped": _builtin("unmapped", _unmapped),
    "number": _builtin("number", _number),
    "settled": _builtin("settled", _settled),
    "same": _builtin("same", _same),
    "differ": _builtin("differ", _differ),
    "known": _builtin("known", _known),
    "under": _builtin("under", _under),
    "simplify": _builtin("simplify", _simplify, anywhere=True),
    "is_float": _builtin("is_float", _is_kind(lambda d: d.is_float)),
    "is_integer": _builtin("is_integer", _is_kind(lambda d: d.is_integer)),
    "is_signed": _builtin("is_signed", _is_kind(lambda d: d.is_int or d.is_float)),
    "is_bool": _builtin("is_bool", _is_kind(lambda d: d.is_bool)),
}


# --- T ----------------------------------------------------------------------------------------------------------------
def _compute(ev: OpEvaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
    return ev.compute(args[0], args[1], kwargs.get("name", ev.operator.rsplit(".", 1)[-1]), node.span)


def _reduce_axis(ev: OpEvaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
    return ev.reduce_axis(args[0], kwargs.get("name", "k"))


def _cast(ev: OpEvaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> PrimExpr:
    value, to = (args[1], args[0]) if isinstance(args[0], (str, DType)) else args
    if isinstance(to, Unknown):
        raise Erased
    of = as_dtype(to, node.span)
    return prim.cast(value, of) if isinstance(value, PrimExpr) else prim.const(value, of)


def _select(ev: OpEvaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
    condition, a, b = args
    if isinstance(condition, (bool, prim.IntImm)):
        return a if ev.truth(condition, node.span) else b
    left, right = prim.match(a, b)
    return prim.Select(condition, left, right)


def _if_then_else(ev: OpEvaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
    condition, a, b = args
    if isinstance(condition, (bool, prim.IntImm)):
        return a if ev.truth(condition, node.span) else b
    left, right = prim.match(a, b)
    return prim.Call(left.dtype, "if_then_else", (condition, left, right))


def _extreme(kind: type[prim.Min] | type[prim.Max], reducer: str) -> Run:
    def run(ev: OpEvaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
        if "axis" in kwargs:
            return reduce_with(ev, REDUCERS[reducer], args[0], kwargs["axis"], node)
        return prim.fold(kind, *prim.match(args[0], args[1]))

    return run


def _reduction(reducer: str) -> Run:
    def run(ev: OpEvaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
        if "axis" not in kwargs:
            raise error("RLX0138", f"`T.{reducer}` needs `axis=`, which is what `T.reduce_axis` gave", node.span)
        return reduce_with(ev, REDUCERS[reducer], args[0], kwargs["axis"], node)

    return run


def _limit(intrinsic: str) -> Run:
    """`T.min_value(D)`, `T.max_value(D)`, `T.infinity(D)` as constants."""

    def run(ev: OpEvaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> PrimExpr:
        if isinstance(args[0], Unknown):
            raise Erased
        return limit(as_dtype(args[0], node.span), intrinsic)

    return run


def limit(of: DType, which: str) -> PrimExpr:
    """The least or greatest value of a type (`min_value`, `max_value`: finite), or `infinity`."""
    import numpy as np

    if which == "infinity":
        return prim.FloatImm(of, float("inf"))
    if of.is_bool:
        return prim.const(which == "max_value", of)
    if of.is_integer:
        low = -(1 << of.bits - 1) if of.is_int else 0
        return prim.IntImm(of, low if which == "min_value" else low + (1 << of.bits) - 1)
    if of.kind == "float":
        info: Any = np.finfo(of.numpy)
    else:
        import ml_dtypes

        finfo: Any = ml_dtypes.finfo
        info = finfo(of.numpy)
    return prim.FloatImm(of, float(info.min if which == "min_value" else info.max))


def _intrinsic(row: Intrinsic) -> Run:
    def run(ev: OpEvaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> PrimExpr:
        if row.arity >= 0 and len(args) != row.arity:
            raise error("RLX0113", f"`T.{row.name}` takes {row.arity} arguments, {len(args)} were given", node.span)
        operands = list(prim.match(args[0], args[1])) if row.arity == 2 else [prim.as_prim(a) for a in args]
        result = {"bool": prim.BOOL, "int32": prim.INT32}.get(row.result, operands[0].dtype if operands else INT64)
        return prim.Call(result, row.name, tuple(operands))

    return run


def _constructor(of: DType) -> Run:
    def run(ev: OpEvaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> PrimExpr:
        value = float(args[0]) if isinstance(args[0], str) else args[0]
        return prim.cast(value, of) if isinstance(value, PrimExpr) else prim.const(value, of)

    return run


def _binary(kind: type[prim.BinaryOp]) -> Run:
    def run(ev: OpEvaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> PrimExpr:
        return prim.fold(kind, *prim.match(args[0], args[1]))

    return run


def _ceildiv(ev: OpEvaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
    # -(-a // b) rounds up without the overflow of (a + b - 1) // b.
    return ev.unary("-", ev.binary("//", ev.unary("-", args[0], node.span), args[1], node.span), node.span)


_SCALARS: dict[str, Run] = {
    **{n: _binary(kind) for n, kind in (("truncdiv", prim.Div), ("truncmod", prim.Mod), ("floordiv", prim.FloorDiv),
        ("floormod", prim.FloorMod))},
    **{n: _intrinsic(row) for n, row in INTRINSICS.items() if row.result not in ("explicit", "last")},
    **{n: _constructor(dtype(n)) for n in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
        "float16", "float32", "float64", "bfloat16", "bool")},
    **{n: _limit(n) for n in ("min_value", "max_value", "infinity")},
    "max": _extreme(prim.Max, "max"), "min": _extreme(prim.Min, "min"), "ceildiv": _ceildiv, "cast": _cast,
    "Cast": _cast, "Select": _select, "if_then_else": _if_then_else,
}  # fmt: skip
_T: dict[str, Value] = {
    **{n: _builtin(f"T.{n}", run, anywhere=True) for n, run in _SCALARS.items()},
    **{n: _builtin(f"T.{n}", _reduction(n)) for n in ("sum", "prod", "any", "all")},
    "compute": _builtin("T.compute", _compute),
    "reduce_axis": _builtin("T.reduce_axis", _reduce_axis),
    "comm_reducer": Builtin("T.comm_reducer", lambda ev, args, kwargs, node: _comm_reducer(ev, args, node)),
}


def _comm_reducer(ev: Evaluator, args: list[Any], node: tree.Call) -> Builtin:
    """`T.comm_reducer(lambda x, y: …, identity)`: a reduction of one's own, called as `r(values, axis=k)`."""
    from relaxlang.ops.reductions import custom_reducer

    reducer = custom_reducer(args[0], args[1])
    return _builtin(
        "reducer",
        lambda ev, given, kwargs, at: reduce_with(
            ev, reducer, given[0] if len(given) == 1 else tuple(given), kwargs["axis"], at
        ),
    )


# --- R ----------------------------------------------------------------------------------------------------------------
def _tuple_info(ev: OpEvaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> TupleStructInfo:
    fields = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
    return TupleStructInfo(tuple(fields)) if fields else VOID_TUPLE


def _shape_info(ev: OpEvaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
    if not args or isinstance(args[0], Unknown):
        return shape_info(None, kwargs.get("ndim", -1))
    return shape_info(tuple(as_dim(d) for d in args[0]))


def _call_packed(op: str) -> Run:
    """`R.call_pure_packed("name", x, …, sinfo_args=…)` as the meaning of an operator: arguments are the call's own, or
    what the body computed of them."""

    def run(ev: OpEvaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> relax.Expr:
        infos = kwargs.get("sinfo_args", ())
        values = tuple(ev.handed_on(a) if isinstance(a, Computed) else as_relax(a, node) for a in args[1:])
        callee = relax.ExternFunc(args[0])
        sinfo = tuple(infos) if isinstance(infos, (tuple, list)) else (infos,)
        if op == "call_packed":
            return relax.Call(callee, values, EMPTY, sinfo)
        return relax.Call(relax.Op(op), (callee, *values), EMPTY, sinfo)

    return run


def _call_tir(ev: OpEvaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
    from relaxlang.ops.nested import call_kernel

    return call_kernel(ev, args[0], args[1], args[2] if len(args) > 2 else kwargs["out_sinfo"], node)


def as_relax(value: Any, node: tree.Call) -> relax.Expr:
    """A value of a body as an argument of a packed call."""
    if isinstance(value, TensorValue) and value.expr is not None and not isinstance(value, Computed):
        return value.expr
    if isinstance(value, relax.Expr):
        return value
    if isinstance(value, str):
        return relax.StringImm(value)
    if isinstance(value, DType):
        return relax.DataTypeImm(value)
    if isinstance(value, (bool, int, float, PrimExpr)):
        of = prim.BOOL if isinstance(value, bool) else INT64 if isinstance(value, int) else prim.FLOAT32
        return relax.PrimValue(value if isinstance(value, PrimExpr) else prim.const(value, of))
    if isinstance(value, (tuple, list)):
        return relax.Tuple(tuple(as_relax(v, node) for v in value))
    raise error("RLX0137", "this value can't be an argument of a packed call", node.span)


_R: dict[str, Any] = {
    "Tuple": _builtin("R.Tuple", _tuple_info),
    "Shape": _builtin("R.Shape", _shape_info),
    "Prim": _builtin("R.Prim", lambda ev, args, kwargs, node: PrimStructInfo(as_dtype(args[0], node.span))),
    "Object": OBJECT,
    "call_pure_packed": _builtin("R.call_pure_packed", _call_packed("call_pure_packed")),
    "call_packed": _builtin("R.call_packed", _call_packed("call_packed")),
    "prim_value": _builtin("R.prim_value", lambda ev, args, kwargs, node: relax.PrimValue(prim.as_prim(args[0]))),
    "call_tir": _builtin("R.call_tir", _call_tir),
}


def root_scope(has: Callable[[str], bool], names: Callable[[], Collection[str]]) -> Scope:
    """The outermost scope of definitions. `has` says whether a dotted name is an operator or a prefix of one."""

    def operators(prefix: str) -> Namespace:
        def lookup(attr: str) -> Any:
            name = prefix + attr
            if name in _R:
                return _R[name]
            if not has(name):
                return None
            return Operator(name) if name in names() else operators(name + ".")

        def below() -> list[str]:
            return [name.removeprefix(prefix) for name in names() if name.startswith(prefix)]

        return Namespace(("R." + prefix).rstrip("."), lookup, below)

    scope = Scope({"T": Namespace("T", _T.get, _T.keys), "R": operators(""), **FUNCTIONS})
    return scope


class Operator(Value):
    """`R.name` in a body: called with tensors of the body, it is inlined."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.kind = f"operator `R.{name}`"

    def call(self, ev: Evaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
        if not isinstance(ev, OpEvaluator) or ev.inline is None:
            raise error("RLX0111", f"`R.{self.name}` can't be called here", node.span)
        return ev.inline(self.name, args, kwargs, node.span)
