"""`T.…` in expressions: constants, casts, arithmetic by name, intrinsics, vectors, reductions.

The nodes are exactly what is written; nothing is folded. Plain Python numbers take the type of what they meet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from relaxlang.arith.analyzer import Analyzer
from relaxlang.arith.index_map import IndexMap
from relaxlang.base.dtype import DType
from relaxlang.base.node import Node
from relaxlang.base.source import Span
from relaxlang.base.suggest import suggestion
from relaxlang.ir import prim, tir
from relaxlang.ir.intrinsics import CARRIED, INTRINSICS, Intrinsic
from relaxlang.ir.prim import PrimExpr
from relaxlang.ir.relax import GlobalVar
from relaxlang.ir.visit import walk
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import (
    Closure,
    Evaluator,
    Scope,
    Value,
    as_dtype,
    check_fits,
    check_shift,
    converted,
    describe,
    error,
    literal,
)
from relaxlang.syntax.elaborate.native import Names

names = Names("T")
op_names = Names("tvm.ir.Op")
_INT64_RANGE = range(-(1 << 63), 1 << 63)


# --- conversion -------------------------------------------------------------------------------------------------------
def scalar(value: Any, span: Span | None, like: DType | None = None) -> PrimExpr:
    """A compile-time value as a scalar expression: numbers as constants (of type `like` when given), regions as vector
    loads, strings as string constants. Anything else is an error at `span`."""
    if isinstance(value, PrimExpr):
        return value
    if isinstance(value, (bool, int, float)):
        if isinstance(value, int) and value not in _INT64_RANGE:
            raise error(
                "RLX0129", f"`{value}` is out of range for `int64`", span, help="write `T.uint64(…)` if that is meant"
            )
        if like is not None and type(value) is int:
            check_fits(value, like.scalar, span)
        made = prim.as_prim(value, like)
        return made.replace(span=span)
    if isinstance(value, tir.BufferRegion):
        return region_load(value, span)
    if isinstance(value, tir.IterVar):
        return value.var
    if isinstance(value, str):
        return prim.StringImm(value, span=span)
    if isinstance(value, tir.Buffer):
        raise error("RLX0322", f"the buffer `{value.name}` stands without indices where a value is needed", span)
    raise error("RLX0321", f"{describe(value)} is not a scalar value", span)


def region_load(region: tir.BufferRegion, span: Span | None) -> PrimExpr:
    """`A[i:i + 4]` as a value: a load of a vector."""
    return prim.BufferLoad(region.buffer, vector_indices(region, span), span=span)


def vector_indices(region: tir.BufferRegion, span: Span | None) -> tuple[PrimExpr, ...]:
    """The indices of a region with a constant extent: a `Ramp` where it has more than one element."""
    indices: list[PrimExpr] = []
    if region.buffer.dtype.is_handle:
        raise error("RLX0303", f"`{region.buffer.name}` holds pointers, of which there are no vectors", span)
    for axis in region.region:
        lanes = axis.extent.value if isinstance(axis.extent, prim.IntImm) else scalable_lanes(axis.extent)
        if lanes is None:
            raise error("RLX0303", "a slice used as a value needs a length known while compiling", span)
        if lanes == 1:
            indices.append(axis.min)
        else:
            indices.append(prim.Ramp(axis.min, prim.const(1, axis.min.dtype), lanes, span=span))
    return tuple(indices)


def extent_between(start: PrimExpr, stop: PrimExpr) -> PrimExpr:
    """The extent of `range(start, stop)`, such that the text `range(start, start + extent)` gives back `extent`
    itself."""
    if isinstance(start, prim.IntImm) and isinstance(stop, prim.IntImm):
        return prim.const(stop.value - start.value, stop.dtype)
    if isinstance(start, prim.IntImm) and start.value == 0:
        return stop
    if isinstance(stop, prim.Add) and stop.a == start:
        return stop.b
    extent = prim.Sub(stop, start)
    known = Analyzer().simplify(extent)  # `i * 16` to `(i + 1) * 16`
    return known if isinstance(known, prim.IntImm) else extent


def as_range(value: Any, span: Span | None) -> tir.Range:
    """A domain: an extent, or a pair (start, stop)."""
    if isinstance(value, tir.Range):
        return value
    if isinstance(value, (tuple, list)):
        if len(value) != 2:
            raise error("RLX0304", f"a domain is an extent or a pair (start, stop), not {len(value)} values", span)
        start, stop = prim.match(operand(value[0], span, value[1]), operand(value[1], span, value[0]))
        return tir.Range(start, extent_between(start, stop))
    extent = scalar(value, span)
    return tir.Range(prim.const(0, extent.dtype), extent)


def scalable_lanes(value: Any) -> int | None:
    """-n for `T.vscale() * n`, the length of a scalable vector."""
    if isinstance(value, prim.Mul):
        a, b = value.a, value.b
        factor, rest = (a, b) if isinstance(a, prim.IntImm) else (b, a)
        if not isinstance(factor, prim.IntImm) or factor.value < 1:
            return None
        inner = scalable_lanes(rest)
        return None if inner is None else inner * factor.value
    return -1 if isinstance(value, prim.Call) and value.op == "vscale" else None


def lanes_of(value: Any, span: Span | None) -> int:
    """A vector length known while compiling; a negative one counts in units of `T.vscale()`."""
    scalable = scalable_lanes(value)
    if scalable is not None:
        return scalable
    if isinstance(value, prim.IntImm):
        value = value.value
    if not isinstance(value, int) or value < 1:
        raise error(
            "RLX0303", f"a vector length must be a positive integer known while compiling, not {describe(value)}", span
        )
    return value


# --- operators by name ------------------------------------------------------------------------------------------------
def _binary(name: str, kind: type[prim.BinaryOp] | type[prim.CmpOp]) -> None:
    called = name.split()[0]

    def make(ev: Evaluator, node: tree.Call, a: Any, b: Any, span: Any = None) -> PrimExpr:
        _numbers(called, (a, b), node.span)
        left, right = prim.match(operand(a, node.span, b), operand(b, node.span, a))
        return kind(left, right, span=node.span)

    names(*name.split())(make)


def _numbers(called: str, sides: Sequence[Any], span: Span | None) -> None:
    for side in sides:
        if isinstance(side, (str, prim.StringImm)):
            raise error("RLX0112", f"`T.{called}` needs numbers, not {describe(side)}", span)


def operand(value: Any, span: Span | None, *others: Any) -> Any:
    """A side of an operation: an expression, or a number that fits the type of the `others`."""
    if isinstance(value, PrimExpr):
        return value
    if isinstance(value, (bool, int, float)):
        if type(value) is int:
            known = [o.dtype.scalar for o in others if isinstance(o, PrimExpr)]
            check_fits(value, known[0] if known else prim.INT64, span)
        return value
    return scalar(value, span)


for _name, _kind in (
    ("Add", prim.Add), ("Sub", prim.Sub), ("Mul", prim.Mul), ("Div div truncdiv", prim.Div), ("Mod truncmod", prim.Mod),
    ("FloorDiv floordiv floor_div indexdiv", prim.FloorDiv), ("FloorMod floormod floor_mod indexmod", prim.FloorMod),
    ("Min min", prim.Min), ("Max max", prim.Max), ("EQ", prim.EQ), ("NE", prim.NE), ("LT", prim.LT), ("LE", prim.LE),
    ("GT", prim.GT), ("GE", prim.GE), ("And", prim.And), ("Or", prim.Or),
):  # fmt: skip
    _binary(_name, _kind)


@names("Not")
def _not(ev: Evaluator, node: tree.Call, a: Any) -> PrimExpr:
    return prim.Not(scalar(a, node.span, prim.BOOL), span=node.span)


@names("ceildiv")
def _ceildiv(ev: Evaluator, node: tree.Call, a: Any, b: Any) -> PrimExpr:
    left, right = prim.match(operand(a, node.span, b), operand(b, node.span, a))
    of = left.dtype
    if of.bits < 64 and any(isinstance(n, prim.BufferLoad) for n in walk(left)):
        # Data, unlike sizes, may lie at the end of its type's range, where adding the divisor would overflow.
        left, right = prim.cast(left, "int64"), prim.cast(right, "int64")
    above = prim.fold(prim.Sub, right, prim.const(1, right.dtype))
    return prim.cast(prim.FloorDiv(prim.Add(left, above), right, span=node.span), of)


@names("Select")
def _select(ev: Evaluator, node: tree.Call, condition: Any, true_value: Any, false_value: Any) -> PrimExpr:
    left, right = prim.match(operand(true_value, node.span, false_value), operand(false_value, node.span, true_value))
    return prim.Select(scalar(condition, node.span, prim.BOOL), left, right, span=node.span)


@names("Cast")
def _cast(ev: Evaluator, node: tree.Call, dtype: Any, value: Any) -> PrimExpr:
    return prim.Cast(as_dtype(dtype, node.span), scalar(value, node.span), span=node.span)


@names("cast")
def _cast_value(ev: Evaluator, node: tree.Call, value: Any, dtype: Any) -> PrimExpr:
    if isinstance(value, (str, DType)):
        value, dtype = dtype, value
    return converted(as_dtype(dtype, node.span), scalar(value, node.span), node.span)


@names("IntImm", "FloatImm")
def _constant(ev: Evaluator, node: tree.Call, dtype: Any, value: Any) -> PrimExpr:
    return literal(as_dtype(dtype, node.span), value, node.span)


@names("StringImm")
def _string(ev: Evaluator, node: tree.Call, value: Any) -> PrimExpr:
    return prim.StringImm(str(value), span=node.span)


@names("Let")
def _let(ev: Evaluator, node: tree.Call, expr: Any, where: Any) -> PrimExpr:
    body = scalar(expr, node.span)
    if not isinstance(where, dict):
        raise error("RLX0116", "`T.Let` takes `where={variable: value}`", node.span)
    for var, value in reversed(list(where.items())):
        if not isinstance(var, prim.Var):
            raise error("RLX0116", f"`where` binds variables, not {describe(var)}", node.span)
        bound = converted(var.dtype, scalar(value, node.span, var.dtype), node.span)  # as a let is
        body = prim.Let(var, bound, body, span=node.span)
    return body


# --- vectors ----------------------------------------------------------------------------------------------------------
@names("Ramp", "ramp")
def _ramp(ev: Evaluator, node: tree.Call, base: Any, stride: Any, lanes: Any) -> PrimExpr:
    start, step = prim.match(operand(base, node.span, stride), operand(stride, node.span, base))
    return prim.Ramp(start, step, lanes_of(lanes, node.span), span=node.span)


@names("Broadcast", "broadcast")
def _broadcast(ev: Evaluator, node: tree.Call, value: Any, lanes: Any) -> PrimExpr:
    return prim.Broadcast(scalar(value, node.span), lanes_of(lanes, node.span), span=node.span)


@names("Shuffle", "shuffle")
def _shuffle(ev: Evaluator, node: tree.Call, vectors: Any, indices: Any) -> PrimExpr:
    return prim.Shuffle(_each(ev, vectors, node), _each(ev, indices, node), span=node.span)


def _each(ev: Evaluator, values: Any, node: tree.Call) -> tuple[PrimExpr, ...]:
    return tuple(scalar(v, node.span) for v in ev.iterate(values, node.span))


# --- reductions -------------------------------------------------------------------------------------------------------
@names("comm_reducer")
def _comm_reducer(ev: Evaluator, node: tree.Call, combiner: Any, identity: Any) -> Node:
    if not isinstance(combiner, Closure):
        raise error("RLX0116", "`T.comm_reducer` takes a lambda and the neutral values", node.span)
    neutral = _each(ev, identity, node)
    params = [p.name for p in combiner.node.params]
    if len(params) != 2 * len(neutral):
        raise error("RLX0113", f"the lambda needs {2 * len(neutral)} parameters for {len(neutral)} values", node.span)
    made = [prim.Var(name, neutral[k % len(neutral)].dtype) for k, name in enumerate(params)]
    result = ev.expr(combiner.node.body, Scope(dict(zip(params, made)), combiner.scope))
    results = tuple(scalar(r, node.span) for r in (result if isinstance(result, (tuple, list)) else (result,)))
    half = len(neutral)
    return prim.CommReducer(tuple(made[:half]), tuple(made[half:]), results, neutral, span=node.span)


@names("Reduce", "reduce")
def _reduce(
    ev: Evaluator,
    node: tree.Call,
    combiner: Any,
    source: Any,
    axis: Any,
    condition: Any = None,
    value_index: Any = 0,
    init: Any = (),
) -> PrimExpr:
    given = None if condition is None else scalar(condition, node.span)
    axes = tuple(ev.iterate(axis, node.span))
    return prim.Reduce(
        combiner,
        _each(ev, source, node),
        axes,
        given,
        _each(ev, init or (), node),
        lanes_of(value_index + 1, node.span) - 1,
        span=node.span,
    )


@names("index_map")
def _index_map(
    ev: Evaluator, node: tree.Call, mapping: Any, *, inverse_index_map: Any = None, index_dtype: Any = "int64"
) -> IndexMap:
    inverse = None
    if inverse_index_map is not None:
        inverse = index_map(ev, inverse_index_map, as_dtype(index_dtype, node.span), node.span)
    return index_map(ev, mapping, as_dtype(index_dtype, node.span), node.span, inverse)


def index_map(ev: Evaluator, mapping: Any, of: DType, span: Span | None, inverse: IndexMap | None = None) -> IndexMap:
    """The map between layouts that a lambda states: `lambda i, j: (i // 4, j, i % 4)`."""
    if isinstance(mapping, IndexMap):
        return mapping
    if not isinstance(mapping, Closure) or any(p.kind for p in mapping.node.params):
        raise error("RLX0116", "an index map is a lambda over the indices, by name", span)
    params = [prim.Var(p.name, of, span=p.span) for p in mapping.node.params]
    result = ev.expr(mapping.node.body, Scope({v.name: v for v in params}, mapping.scope))
    values = result if isinstance(result, (tuple, list)) else (result,)
    return IndexMap(tuple(params), tuple(prim.cast(scalar(v, span, of), of) for v in values), inverse, span=span)


# --- intrinsics -------------------------------------------------------------------------------------------------------
def call_args(args: Sequence[Any], span: Span | None) -> tuple[PrimExpr, ...]:
    """Arguments of a call whose parameters have no types: numbers, strings, buffers (their pointer), dtypes (by
    name)."""
    made: list[PrimExpr] = []
    for arg in args:
        if isinstance(arg, tir.Buffer):
            made.append(arg.data)
        elif isinstance(arg, DType):
            made.append(prim.StringImm(arg.name, span=span))
        else:
            made.append(scalar(arg, span))
    return tuple(made)


def _accepts(row: Intrinsic, args: tuple[PrimExpr, ...], span: Span | None) -> None:
    for arg in args if row.accepts != "any" else ():
        of = arg.dtype
        fine = of.is_float if row.accepts == "float" else of.is_integer or of.is_bool
        if row.accepts == "number":
            fine = of.is_float or of.is_integer
        if not fine:
            raise error("RLX0323", f"`T.{row.name}` needs {row.accepts} operands, not `{of}`", span, label=f"`{of}`",
                        help="convert with `T.Cast`")  # fmt: skip


def intrinsic(row: Intrinsic, args: list[Any], span: Span | None) -> PrimExpr:
    """A call of an intrinsic whose result type follows from its arguments."""
    if row.arity >= 0 and len(args) != row.arity:
        raise error("RLX0113", f"`T.{row.name}` takes {row.arity} arguments, {len(args)} were given", span)
    if row.result == "second" and len(args) == 3:
        left, right = prim.match(operand(args[1], span, args[2]), operand(args[2], span, args[1]))
        return prim.Call(left.dtype, row.name, (scalar(args[0], span, prim.BOOL), left, right), span=span)
    if row.result == "same" and row.arity == 2:
        _numbers(row.name, args, span)
        first, second = args
        values: tuple[PrimExpr, ...] = prim.match(operand(first, span, second), operand(second, span, first))
    else:
        like = next((a.dtype for a in args if isinstance(a, PrimExpr)), None) if row.result == "same" else None
        typed = row.arity >= 0 and not any(isinstance(a, (str, DType, tir.Buffer)) for a in args)
        values = tuple(scalar(a, span, like) for a in args) if typed else call_args(args, span)
    _accepts(row, values, span)
    if row.name in ("shift_left", "shift_right"):
        check_shift(values[0].dtype, values[1], span)
    return prim.Call(_result(row, values), row.name, values, span=span)


_FIXED = {"bool": prim.BOOL, "int32": prim.INT32, "handle": prim.HANDLE, "void": prim.VOID}


def _result(row: Intrinsic, args: tuple[PrimExpr, ...]) -> DType:
    if row.result == "same":
        return args[0].dtype
    of = _FIXED[row.result]
    return of.with_lanes(args[0].dtype.lanes) if of is prim.BOOL and args and args[0].dtype.lanes > 1 else of


def _explicit(row: Intrinsic) -> Callable[..., PrimExpr]:
    """An intrinsic whose result type is stated: first argument since TVM 0.11, the keyword `dtype` before."""

    def make(ev: Evaluator, node: tree.Call, *args: Any, dtype: Any = None) -> PrimExpr:
        given = list(args)
        if dtype is None and given and isinstance(given[0], (str, DType)):
            dtype = given.pop(0)
        if dtype is None:
            raise error(
                "RLX0113",
                f"`T.{row.name}` needs the type of its result",
                node.span,
                help=f'write `T.{row.name}("float32", …)`',
            )
        if row.arity >= 0 and len(given) != row.arity:
            raise error(
                "RLX0113",
                f"`T.{row.name}` takes {row.arity} arguments after the type, {len(given)} were given",
                node.span,
            )
        of = prim.VOID if dtype == "" else as_dtype(dtype, node.span)
        return prim.Call(of, row.name, call_args(given, node.span), span=node.span)

    return make


def _last(row: Intrinsic) -> Callable[..., PrimExpr]:
    """An intrinsic whose result type is stated behind its arguments."""

    def make(ev: Evaluator, node: tree.Call, *args: Any, dtype: Any = None) -> PrimExpr:
        given = list(args)
        if dtype is None and len(given) == row.arity + 1:
            dtype = given.pop()
        if dtype is None or len(given) != row.arity:
            text = f"`T.{row.name}` takes {row.arity} arguments and the type of its result"
            raise error("RLX0113", f"{text}, {len(args)} were given", node.span)
        return prim.Call(as_dtype(dtype, node.span), row.name, call_args(given, node.span), span=node.span)

    return make


def _first_element(value: Any) -> Any:
    """A buffer's address is that of its first element."""
    if not isinstance(value, tir.Buffer):
        return value
    return prim.BufferLoad(value, tuple(prim.const(0, d.dtype) for d in value.shape))


def _implied(row: Intrinsic) -> Callable[..., PrimExpr]:
    def make(ev: Evaluator, node: tree.Call, *args: Any, dtype: Any = None) -> PrimExpr:
        if row.name == "address_of":
            args = tuple(_first_element(a) for a in args)
        made = intrinsic(row, list(args), node.span)
        return made if dtype is None else made.replace(of=as_dtype(dtype, node.span))

    return make


_FORMS = {"explicit": _explicit, "last": _last}
for _row in INTRINSICS.values():
    names(_row.name)(_FORMS.get(_row.result, _implied)(_row))
names("fabs")(_implied(INTRINSICS["abs"]))
names("power")(_implied(INTRINSICS["pow"]))
names("tvm_call_packed")(_implied(INTRINSICS["call_packed"]))
names("tvm_call_cpacked")(_implied(INTRINSICS["call_cpacked"]))
for _old, _new in (
    ("LShift", "shift_left"),
    ("RShift", "shift_right"),
    ("BitwiseAnd", "bitwise_and"),
    ("BitwiseOr", "bitwise_or"),
    ("BitwiseXor", "bitwise_xor"),
    ("BitwiseNot", "bitwise_not"),
):
    names(_old)(_implied(INTRINSICS[_new]))


@op_names("get")
def _op(ev: Evaluator, node: tree.Call, name: Any) -> str:
    """`tvm.ir.Op.get("tirx.call_packed")`: an operator by its name, for `T.Call`."""
    return str(name)


@names("Call")
def _call(ev: Evaluator, node: tree.Call, *args: Any, ret_ty: Any = None, dtype: Any = None) -> PrimExpr:
    """`T.Call(op, [arguments], ret_ty="bool")`, with the type first up to TVM 0.24."""
    given = list(args)
    if len(given) == 3:
        dtype = given.pop(0)
    if len(given) != 2 or not isinstance(given[1], (list, tuple)):
        raise error("RLX0113", "`T.Call` takes an operator and the list of its arguments", node.span)
    op, values = given
    of = as_dtype(dtype if ret_ty is None else ret_ty, node.span)
    name = str(op).rpartition(".")[2]
    row = INTRINSICS.get(name.removeprefix("tvm_") if name in ("tvm_call_packed", "tvm_call_cpacked") else name)
    if row is None and name not in CARRIED:
        raise error("RLX0102", f"`T` has no `{name}`", node.span, **suggestion(name, INTRINSICS, node.span))
    return prim.Call(of, name if row is None else row.name, call_args(values, node.span), span=node.span)


def call_function(name: GlobalVar, result: DType | None, args: list[Any], span: Span | None) -> PrimExpr:
    """A call of another function of the module."""
    return prim.Call(result or prim.VOID, name, call_args(args, span), span=span)


class Fresh(Value):
    """`T.int64()`: a variable that gets its name from what it is assigned to."""

    kind = "new variable"

    def __init__(self, of: DType, size: bool, pointer: prim.PointerType | None = None) -> None:
        self.of = of
        self.size = size
        self.pointer = pointer

    def attribute(self, ev: Evaluator, name: str, span: Span | None) -> Any:
        if name == "ty":  # `dtype=T.handle("int32").ty`, since TVM 0.26
            return self.of
        return super().attribute(ev, name, span)

    def make(self, name: str, span: Span | None) -> prim.Var:
        """The variable."""
        return (prim.SizeVar if self.size else prim.Var)(name, self.of, self.pointer, span=span)
