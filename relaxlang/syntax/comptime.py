"""Compile-time evaluation: a small, total language over the surface tree, run by the elaborator and by operator bodies.

Values are Python's own (int, float, bool, str, None, tuple, list, dict, range), `DType`, scalar expressions
(`PrimExpr`: known only at run time), and objects that implement `Value` (namespaces, builtins, lambdas, tensors of an
operator's body, …). An operator on a `PrimExpr` builds a node; with `fold=True` constants are folded as it is built,
without it the node is exactly what was written. Every evaluation step is counted, so that a file can't keep the
compiler busy.

The values stand in `comptime_values`, the builtin functions in `comptime_builtins`; this module has the evaluator and
is where others import all of it from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relaxlang.base.dtype import DType, DTypeError
from relaxlang.base.source import Span
from relaxlang.base.suggest import suggestion
from relaxlang.ir import prim, tir
from relaxlang.ir.prim import PrimExpr
from relaxlang.syntax import tree
from relaxlang.syntax.comptime_builtins import BUILTINS, METHODS, method
from relaxlang.syntax.comptime_values import (
    MAX_SIZE,
    MAX_STEPS,
    POISON,
    Builtin,
    Closure,
    Namespace,
    Scope,
    Value,
    as_dtype,
    as_key,
    bind_parameters,
    check_fits,
    check_shift,
    converted,
    describe,
    error,
    negate,
    plain_binary,
    silent,
)
from relaxlang.syntax.scalars import parse_float

__all__ = [
    "BUILTINS", "MAX_SIZE", "MAX_STEPS", "METHODS", "POISON", "Builtin", "Closure", "Evaluator", "Namespace", "Scope",
    "Value", "as_dtype", "assign", "bind_parameters", "check_fits", "check_shift", "converted", "describe", "error",
    "literal", "negate", "plain_binary", "silent",
]  # fmt: skip


class Evaluator:
    """Evaluates expressions. `fold`: fold constants while building scalar expressions."""

    def __init__(self, *, fold: bool = False) -> None:
        self.fold = fold
        self.steps = 0

    # --- entry --------------------------------------------------------------------------------------------------------
    def expr(self, node: tree.Expr, scope: Scope) -> Any:
        """The value of an expression, as an operand of another one: the same, unless a subclass says otherwise."""
        self.steps += 1  # as in `evaluate`, which is not called because there are very many operands
        if self.steps > MAX_STEPS:
            return self.evaluate(node, scope)
        return _EVALUATE[node.__class__](self, node, scope)

    def evaluate(self, node: tree.Expr, scope: Scope) -> Any:
        """The value of an expression as it is."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise error("RLX0120", f"compile-time evaluation takes more than {MAX_STEPS:,} steps", node.span)
        return _EVALUATE[node.__class__](self, node, scope)

    def unknown_name(self, node: tree.Name, scope: Scope) -> Any:
        """The value of a name that no scope has; elaborators may define one."""
        names = scope.suggestions() | set(BUILTINS) if len(node.id) > 1 else set()
        near = {name for name in names if len(name) > 1 or name == node.id[0]}  # `m` for `m1`, and not for `lm`
        hint = suggestion(node.id, near, node.span)
        if node.id == "metadata":
            hint["help"] = "the text lacks its metadata section: TVM prints it with `mod.script(show_meta=True)`"
        raise error("RLX0101", f"undefined name `{node.id}`", node.span, label="not defined here", **hint)

    # --- operations ---------------------------------------------------------------------------------------------------
    def binary(self, op: str, a: Any, b: Any, span: Span | None) -> Any:
        """`a op b` for arithmetic, bit and comparison operators."""
        if type(a) is int and type(b) is int:
            return plain_binary(op, a, b, span)
        if isinstance(a, Value):
            return a.binary(self, op, b, False, span)
        if isinstance(b, Value):
            return b.binary(self, op, a, True, span)
        if isinstance(a, PrimExpr) or isinstance(b, PrimExpr):
            return self.prim_binary(op, a, b, span)
        return plain_binary(op, a, b, span)

    def prim_binary(self, op: str, a: Any, b: Any, span: Span | None) -> PrimExpr:
        """`a op b` where at least one side is a scalar expression."""
        for side in (a, b):
            if not isinstance(side, (PrimExpr, int, float)) or isinstance(side, prim.StringImm):
                raise error("RLX0112", f"`{op}` needs numbers, not {describe(side)}", span)
        for side, other in ((a, b), (b, a)):
            if type(side) is int and isinstance(other, PrimExpr):
                check_fits(side, other.dtype.scalar, span)
        try:
            left, right = prim.match(a, b)
        except DTypeError as fault:
            raise error("RLX0112", f"`{op}` is not defined here: {fault}", span) from None
        if op in _INTRINSIC_OPS:
            if op in ("<<", ">>"):
                check_shift(left.dtype, right, span)
            made: PrimExpr = prim.Call(left.dtype, _INTRINSIC_OPS[op], (left, right), span=span)
            return made
        kind = _PRIM_OPS.get(op)
        if kind is None:
            raise error("RLX0112", f"`{op}` is not defined for scalars", span)
        if kind is prim.Div and not left.dtype.is_float:
            raise error("RLX0306", "`/` of integers: write `//` (floor) or `T.truncdiv`", span)
        return prim.fold(kind, left, right) if self.fold else kind(left, right, span=span)

    def unary(self, op: str, a: Any, span: Span | None) -> Any:
        """`op a`."""
        if isinstance(a, Value):
            return a.unary(self, op, span)
        if isinstance(a, PrimExpr):
            if op == "not":
                return prim.Not(a, span=span)
            if op == "-":
                return prim.fold(prim.Sub, prim.const(0, a.dtype), a) if self.fold else negate(a, span)
            if op == "~":
                return prim.Call(a.dtype, "bitwise_not", (a,), span=span)
            return a
        if op == "not":
            return not self.truth(a, span)
        if isinstance(a, (int, float)):
            if op == "~" and not isinstance(a, float):
                return ~a
            if op in "+-":
                return -a if op == "-" else +a
        raise error("RLX0112", f"`{op}` is not defined for {describe(a)}", span)

    def truth(self, value: Any, span: Span | None) -> bool:
        """Whether a compile-time value counts as true; a scalar known only at run time is an error."""
        if value is True or value is False:
            return value
        if isinstance(value, PrimExpr):
            from relaxlang.arith.analyzer import Analyzer  # loaded when first needed

            known = value if isinstance(value, prim.IntImm) else Analyzer().simplify(value)  # `A.shape[0] == 8`
            if isinstance(known, prim.IntImm):
                return known.value != 0
            raise error(
                "RLX0121",
                "the condition is not known while compiling",
                span,
                help="use `T.if_then_else` or `T.Select` for a choice at run time",
            )
        if isinstance(value, Value):
            raise error("RLX0121", f"a {value.kind} is not a condition", span)
        return bool(value)

    def attribute(self, value: Any, name: str, span: Span | None) -> Any:
        """`value.name`."""
        if isinstance(value, Value):
            return value.attribute(self, name, span)
        found = METHODS.get((type(value), name))
        if found is not None:
            return found(value)
        if isinstance(value, tir.Buffer) and name in _BUFFER_FIELDS:
            return _BUFFER_FIELDS[name](value)
        if isinstance(value, PrimExpr) and name == "dtype":
            return value.dtype
        if isinstance(value, PrimExpr) and name == "astype":
            return method(
                "astype", 1, 1, lambda ev, node, of: prim.Cast(as_dtype(of, node.span), value, span=node.span)
            )
        known = [attr for kind, attr in METHODS if isinstance(value, kind)]
        known += _BUFFER_FIELDS if isinstance(value, tir.Buffer) else ()
        known += ("dtype", "astype") if isinstance(value, PrimExpr) else ()
        raise error("RLX0102", f"{describe(value)} has no attribute `{name}`", span, **suggestion(name, known, span))

    def item(self, value: Any, index: Any, span: Span | None) -> Any:
        """`value[index]`; a buffer gives a load, or a region when the index holds a slice."""
        if isinstance(value, Value):
            return value.item(self, index, span)
        if isinstance(value, tir.Buffer):
            return self.buffer_item(value, index if isinstance(index, tuple) else (index,), span)
        if isinstance(value, (tuple, list, str, range)):
            if isinstance(index, slice):
                return value[index]
            at = index.value if isinstance(index, prim.IntImm) else index
            if not isinstance(at, int):
                raise error(
                    "RLX0122", f"an index here must be an integer known while compiling, not {describe(index)}", span
                )
            if not -len(value) <= at < len(value):
                raise error("RLX0123", f"index {at} is out of range for length {len(value)}", span)
            return value[at]
        if isinstance(value, dict):
            if as_key(index, span) not in value:
                raise error("RLX0123", f"the dict has no key {index!r}", span)
            return value[index]
        raise error("RLX0110", f"{describe(value)} cannot be indexed", span)

    def buffer_item(self, buffer: tir.Buffer, index: tuple[Any, ...], span: Span | None) -> Any:
        """A load of one element (or vector); elaborators add slices."""
        if len(index) != buffer.ndim:
            raise error(
                "RLX0301", f"`{buffer.name}` has {buffer.ndim} dimensions, {len(index)} indices were given", span
            )
        return prim.BufferLoad(buffer, tuple(prim.as_prim(i) for i in index), span=span)

    def call(self, function: Any, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
        """`function(*args, **kwargs)`."""
        if isinstance(function, Value):
            return function.call(self, args, kwargs, node)
        if isinstance(function, DType):
            return self.construct(function, args, kwargs, node)
        raise error("RLX0111", f"{describe(function)} cannot be called", node.func.span)

    def call_node(self, node: tree.Call, scope: Scope) -> Any:
        """The value of a call."""
        return _evaluate_call(self, node, scope)

    def callee(self, node: tree.Expr, scope: Scope) -> Any:
        """The value of what is called; elaborators may know more names here than elsewhere."""
        return self.expr(node, scope)

    def construct(self, of: DType, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
        """`T.int64(3)`: a constant of that type, or the conversion of an expression."""
        if len(args) != 1 or kwargs:
            raise error("RLX0113", f"`{of}` takes one value, {len(args) + len(kwargs)} were given", node.span)
        value = args[0]
        if isinstance(value, PrimExpr):
            return converted(of, value, node.span)
        return literal(of, value, node.span)

    def iterate(self, value: Any, span: Span | None) -> list[Any]:
        """The elements of a compile-time sequence."""
        if isinstance(value, (tuple, list, range, dict, str)):
            if len(value) > MAX_SIZE:
                raise error("RLX0120", f"a sequence of more than {MAX_SIZE:,} elements", span)
            return list(value)
        raise error("RLX0124", f"{describe(value)} is not a sequence known while compiling", span)


def literal(of: DType, value: Any, span: Span | None) -> PrimExpr:
    """A constant of a type from a plain value; floats also from text: "inf", "nan:0x7ff8000000000001", "0x1.8p3"."""
    if isinstance(value, str) and of.is_float:
        try:
            value = parse_float(value)
        except ValueError:
            raise error("RLX0128", f"{value!r} is not a number", span) from None
    if not isinstance(value, (bool, int, float)):
        raise error("RLX0128", f"{describe(value)} cannot be made a `{of}`", span)
    if of.is_integer and not of.is_bool:
        if isinstance(value, float) and not value.is_integer():
            raise error("RLX0128", f"`{value}` is not an integer", span)
        check_fits(int(value), of, span)
    if of.lanes != 1:
        return prim.Broadcast(literal(of.scalar, value, span), of.lanes, span=span)
    if of.is_float:
        return prim.FloatImm(of, float(value), span=span)
    return prim.IntImm(of, prim.wrap(int(value), of), span=span)


# --- tables of operations ---------------------------------------------------------------------------------------------
_PRIM_OPS: dict[str, Any] = {
    "+": prim.Add, "-": prim.Sub, "*": prim.Mul, "/": prim.Div, "//": prim.FloorDiv, "%": prim.FloorMod,
    "==": prim.EQ, "!=": prim.NE, "<": prim.LT, "<=": prim.LE, ">": prim.GT, ">=": prim.GE, "and": prim.And,
    "or": prim.Or,
}  # fmt: skip
_INTRINSIC_OPS = {
    "&": "bitwise_and",
    "|": "bitwise_or",
    "^": "bitwise_xor",
    "<<": "shift_left",
    ">>": "shift_right",
    "**": "pow",
}
_BUFFER_FIELDS: dict[str, Callable[[tir.Buffer], Any]] = {
    "shape": lambda b: b.shape, "dtype": lambda b: b.dtype, "data": lambda b: b.data, "strides": lambda b: b.strides,
    "elem_offset": lambda b: prim.const(0, "int32") if b.elem_offset is None else b.elem_offset,
    "name": lambda b: b.name, "ndim": lambda b: b.ndim,
}  # fmt: skip


# --- evaluation of each node ------------------------------------------------------------------------------------------
def _name(ev: Evaluator, node: tree.Name, scope: Scope) -> Any:
    name, inner = node.id, scope
    while inner is not None:
        names = inner.names
        if name in names:
            value = names[name]
            if value is POISON:
                raise silent()
            return value
        inner = inner.parent  # type: ignore[assignment]
    builtin = BUILTINS.get(name)
    return builtin if builtin is not None else ev.unknown_name(node, scope)


def _binop(ev: Evaluator, node: tree.BinOp, scope: Scope) -> Any:
    # A chain a + b + c … leans left and may have thousands of terms: walk down without recursion.
    chain: list[tree.BinOp] = []
    left: tree.Expr = node
    while isinstance(left, tree.BinOp):
        chain.append(left)
        left = left.left
    value = ev.expr(left, scope)
    for link in reversed(chain):
        ev.steps += 1
        value = ev.binary(link.op, value, ev.expr(link.right, scope), link.span)
    return value


def _boolop(ev: Evaluator, node: tree.BoolOp, scope: Scope) -> Any:
    result = ev.expr(node.values[0], scope)
    for operand in node.values[1:]:
        if isinstance(result, PrimExpr) and not (ev.fold and isinstance(result, prim.IntImm)):
            result = ev.binary(node.op, result, ev.expr(operand, scope), node.span)
            continue
        if ev.truth(result, node.span) == (node.op == "or"):
            return result
        result = ev.expr(operand, scope)
    return result


def _compare(ev: Evaluator, node: tree.Compare, scope: Scope) -> Any:
    left, result = ev.expr(node.left, scope), None
    for op, comparator in zip(node.ops, node.comparators):
        right = ev.expr(comparator, scope)
        if op in ("is", "is not", "in", "not in"):
            this: Any = plain_binary(op, left, right, node.span)
        else:
            this = ev.binary(op, left, right, node.span)
        if result is None:
            result = this
        elif isinstance(result, PrimExpr) or isinstance(this, PrimExpr):
            result = ev.prim_binary("and", result, this, node.span)
        else:
            result = result and this
        left = right
    return result


def _ifexp(ev: Evaluator, node: tree.IfExp, scope: Scope) -> Any:
    return ev.expr(node.body if ev.truth(ev.expr(node.test, scope), node.test.span) else node.orelse, scope)


def _elements(ev: Evaluator, nodes: tuple[tree.Expr, ...], scope: Scope) -> list[Any]:
    values: list[Any] = []
    for node in nodes:
        if node.__class__ is tree.Constant:
            ev.steps += 1
            values.append(node.value)
        elif isinstance(node, tree.Starred):
            values.extend(ev.iterate(ev.expr(node.value, scope), node.span))
        else:
            values.append(ev.expr(node, scope))
    return values


def _call(ev: Evaluator, node: tree.Call, scope: Scope) -> Any:
    return ev.call_node(node, scope)


def _evaluate_call(ev: Evaluator, node: tree.Call, scope: Scope) -> Any:
    function = ev.callee(node.func, scope)
    args = _elements(ev, node.args, scope)
    kwargs: dict[str, Any] = {}
    for keyword in node.keywords:
        value = ev.expr(keyword.value, scope)
        if keyword.name is not None:
            kwargs[keyword.name] = value
        elif isinstance(value, dict) and all(isinstance(k, str) for k in value):
            kwargs.update(value)
        else:
            raise error("RLX0113", "`**` needs a dict with string keys", keyword.span)
    return ev.call(function, args, kwargs, node)


def _index(ev: Evaluator, node: tree.Expr, scope: Scope) -> Any:
    if isinstance(node, tree.Slice):
        parts = [None if part is None else ev.expr(part, scope) for part in (node.lower, node.upper, node.step)]
        return slice(*parts)
    if isinstance(node, tree.TupleExpr):
        values: list[Any] = []
        for element in node.elements:
            if isinstance(element, tree.Starred):
                values.extend(ev.iterate(ev.expr(element.value, scope), element.span))
            else:
                values.append(_index(ev, element, scope))
        return tuple(values)
    return ev.expr(node, scope)


def _comprehension(ev: Evaluator, node: tree.ComprehensionExpr, scope: Scope) -> Any:
    results: list[Any] = []

    def run(depth: int, inner: Scope) -> None:
        if depth == len(node.generators):
            element = ev.expr(node.element, inner)
            results.append(element if node.key is None else (as_key(ev.expr(node.key, inner), node.key.span), element))
            return
        generator = node.generators[depth]
        for value in ev.iterate(ev.expr(generator.iterable, inner), generator.iterable.span):
            nested = Scope({}, inner)
            assign(ev, generator.target, value, nested)
            if all(ev.truth(ev.expr(c, nested), c.span) for c in generator.conditions):
                run(depth + 1, nested)

    run(0, scope)
    return dict(results) if node.kind == "dict" else results


def assign(ev: Evaluator, target: tree.Expr, value: Any, scope: Scope) -> None:
    """Bind the names of `target` (a name, or a tuple or list of targets, one of them starred) in `scope`."""
    if isinstance(target, tree.Name):
        scope.names[target.id] = value
        return
    if not isinstance(target, (tree.TupleExpr, tree.ListExpr)):
        raise error("RLX0126", "only names and tuples of names can be bound here", target.span)
    values, wanted = ev.iterate(value, target.span), target.elements
    star = next((k for k, t in enumerate(wanted) if isinstance(t, tree.Starred)), None)
    if (star is None and len(values) != len(wanted)) or len(values) < len(wanted) - 1:
        raise error("RLX0127", f"{len(wanted)} names for {len(values)} values", target.span)
    for k, part in enumerate(wanted):
        if star is None or k < star:
            assign(ev, part, values[k], scope)
        elif isinstance(part, tree.Starred):
            assign(ev, part.value, values[k : k + len(values) - len(wanted) + 1], scope)
        else:
            assign(ev, part, values[k - len(wanted)], scope)


def _starred(ev: Evaluator, node: tree.Starred, scope: Scope) -> Any:
    raise error("RLX0115", "`*` stands only in calls, tuples, lists and subscripts", node.span)


def _slice(ev: Evaluator, node: tree.Slice, scope: Scope) -> Any:
    raise error("RLX0115", "a slice stands only in subscripts", node.span)


def _dict(ev: Evaluator, node: tree.DictExpr, scope: Scope) -> Any:
    made: dict[Any, Any] = {}
    for key, value in zip(node.keys, node.values):
        if key is None:
            more = ev.expr(value, scope)
            if not isinstance(more, dict):
                raise error("RLX0112", f"`**` needs a dict, not {describe(more)}", value.span)
            made.update(more)
        else:
            name = ev.expr(key, scope)
            if not isinstance(name, (str, int, float, tuple, PrimExpr, DType, type(None))):
                raise error("RLX0112", f"{describe(name)} cannot be the key of a dict", key.span)
            made[as_key(name, key.span)] = ev.expr(value, scope)
    return made


_EVALUATE: dict[type, Callable[[Evaluator, Any, Scope], Any]] = {
    tree.Name: _name,
    tree.Constant: lambda ev, node, scope: node.value,
    tree.Attribute: lambda ev, node, scope: ev.attribute(ev.expr(node.value, scope), node.attr, node.span),
    tree.Call: _call,
    tree.Subscript: lambda ev, node, scope: ev.item(
        ev.expr(node.value, scope), _index(ev, node.index, scope), node.span
    ),
    tree.Slice: _slice,
    tree.TupleExpr: lambda ev, node, scope: tuple(_elements(ev, node.elements, scope)),
    tree.ListExpr: lambda ev, node, scope: _elements(ev, node.elements, scope),
    tree.DictExpr: _dict,
    tree.BinOp: _binop,
    tree.UnaryOp: lambda ev, node, scope: ev.unary(node.op, ev.expr(node.operand, scope), node.span),
    tree.BoolOp: _boolop,
    tree.Compare: _compare,
    tree.IfExp: _ifexp,
    tree.Lambda: lambda ev, node, scope: Closure(node, scope),
    tree.ComprehensionExpr: _comprehension,
    tree.Starred: _starred,
}
