"""Reductions in operator bodies: `T.sum(x[i, k], axis=k)` and reducers of one's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relaxlang.base.dtype import DType
from relaxlang.ir import prim, tir
from relaxlang.ir.prim import PrimExpr
from relaxlang.ops.body import OpEvaluator, ev_call
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import Closure, error

# Makes the combination for the types of the values reduced.
Reducer = Callable[[OpEvaluator, tuple[DType, ...]], prim.CommReducer]


def _binary(kind: type[prim.BinaryOp] | type[prim.CmpOp], identity: Callable[[DType], PrimExpr]) -> Reducer:
    def make(ev: OpEvaluator, types: tuple[DType, ...]) -> prim.CommReducer:
        x, y = prim.Var("x", types[0]), prim.Var("y", types[0])
        return prim.CommReducer((x,), (y,), (kind(x, y),), (identity(types[0]),))

    return make


def _lowest(of: DType) -> PrimExpr:
    from relaxlang.ops.namespaces import limit

    return prim.FloatImm(of, float("-inf")) if of.is_float else limit(of, "min_value")


def _highest(of: DType) -> PrimExpr:
    from relaxlang.ops.namespaces import limit

    return prim.FloatImm(of, float("inf")) if of.is_float else limit(of, "max_value")


REDUCERS: dict[str, Reducer] = {
    "sum": _binary(prim.Add, lambda of: prim.const(0, of)),
    "prod": _binary(prim.Mul, lambda of: prim.const(1, of)),
    "max": _binary(prim.Max, _lowest),
    "min": _binary(prim.Min, _highest),
    "any": _binary(prim.Or, lambda of: prim.const(False, of)),
    "all": _binary(prim.And, lambda of: prim.const(True, of)),
}


def custom_reducer(combine: Any, identity: Any) -> Reducer:
    """A reducer from a lambda: `combine(x, y)` for one value, `combine(x0, x1, y0, y1)` for two, …; `identity` is one
    value or a tuple of values."""

    def make(ev: OpEvaluator, types: tuple[DType, ...]) -> prim.CommReducer:
        if not isinstance(combine, Closure):
            raise error("RLX0135", "a reducer needs a lambda", None)
        lhs = tuple(prim.Var(f"x{k}", t) for k, t in enumerate(types))
        rhs = tuple(prim.Var(f"y{k}", t) for k, t in enumerate(types))
        result = ev_call(ev, combine, [*lhs, *rhs], None)
        results = result if isinstance(result, tuple) else (result,)
        neutral = identity if isinstance(identity, (tuple, list)) else (identity,)
        return prim.CommReducer(
            lhs,
            rhs,
            tuple(prim.cast(prim.as_prim(r), t) for r, t in zip(results, types)),
            tuple(prim.cast(n, t) if isinstance(n, PrimExpr) else prim.const(n, t) for n, t in zip(neutral, types)),
        )

    return make


def reduce_with(ev: OpEvaluator, reducer: Reducer, value: Any, axis: Any, node: tree.Call) -> Any:
    """The reduction of `value` (a scalar, or a tuple of them reduced together) over `axis` (one or a tuple of axes).

    Without any axis it is `value` itself.
    """
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    sources = tuple(prim.as_prim(v) for v in value) if isinstance(value, (tuple, list)) else (prim.as_prim(value),)
    if not axes:
        return value if isinstance(value, (tuple, list)) else sources[0]
    iters = []
    for var in axes:
        if var not in ev.reduce_axes:
            raise error("RLX0138", "`axis` must be what `T.reduce_axis` gave", node.span)
        iters.append(tir.IterVar(var, ev.reduce_axes[var], "reduce"))
    combiner = reducer(ev, tuple(s.dtype for s in sources))
    made = tuple(prim.Reduce(combiner, sources, tuple(iters), value_index=k) for k in range(len(sources)))
    return made if isinstance(value, (tuple, list)) else made[0]
