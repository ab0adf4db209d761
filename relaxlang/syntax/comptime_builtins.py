"""The builtin functions of compile-time evaluation: `len`, `range`, `zip`, `min`, …"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.base.dtype import DType
from relaxlang.ir import prim, relax
from relaxlang.ir.prim import PrimExpr
from relaxlang.syntax import tree
from relaxlang.syntax.comptime_values import MAX_SIZE, Builtin, as_key, describe, error, format_text, join_text
from relaxlang.syntax.scalars import parse_float

if TYPE_CHECKING:
    from relaxlang.syntax.comptime import Evaluator


def _python(name: str, function: Callable[..., Any], of_any: bool = False) -> Builtin:
    """A Python function over plain values; `of_any`: also of what is known at run time only, as its text is."""

    def run(ev: Evaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
        plain = [a.value if isinstance(a, prim.IntImm) else a for a in args]
        late = next((a for a in plain if isinstance(a, (relax.Expr, PrimExpr))), None)
        if late is not None and not of_any:
            loop = "a loop over it is written in a `T.prim_func`, which `R.call_tir` calls"
            help = loop if name == "range" and isinstance(late, relax.Expr) else ""
            text = f"`{name}` takes what is known while compiling, not {describe(late)}"
            raise error("RLX0116", text, node.span, help=help)
        try:
            result = function(*plain, **kwargs)
        except DiagnosticError:
            raise
        except (TypeError, ValueError, OverflowError) as fault:
            raise error("RLX0116", f"`{name}`: {fault}", node.span) from None
        if isinstance(result, (range, list, tuple)) and len(result) > MAX_SIZE:
            raise error("RLX0120", f"a sequence of more than {MAX_SIZE:,} elements", node.span)
        ev.steps += len(result) if isinstance(result, (list, tuple)) else 0
        return result

    return Builtin(name, run)


def _one(name: str, args: list[Any], kwargs: dict[str, Any], node: tree.Call, most: int = 1) -> Any:
    """The first argument of a builtin that takes one to `most`, none of them by name."""
    if kwargs or not 1 <= len(args) <= most:
        takes = "one argument" if most == 1 else f"one to {most} arguments"
        raise error("RLX0113", f"`{name}` takes {takes}, {len(args) + len(kwargs)} were given", node.span)
    return args[0]


def _extreme(name: str, kind: type[prim.Min] | type[prim.Max], plain: Callable[[Any], Any]) -> Builtin:
    def run(ev: Evaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
        if kwargs or not args:
            word = f"has no parameter `{next(iter(kwargs))}`" if kwargs else "takes at least one argument"
            raise error("RLX0114" if kwargs else "RLX0113", f"`{name}` {word}", node.span)
        values = ev.iterate(args[0], node.span) if len(args) == 1 else args
        if not values:
            raise error("RLX0116", f"`{name}` of an empty sequence", node.span)
        if not any(isinstance(v, PrimExpr) for v in values):
            try:
                return plain(values)
            except TypeError as fault:
                raise error("RLX0116", f"`{name}`: {fault}", node.span) from None
        wrong = next((v for v in values if not isinstance(v, (PrimExpr, int, float))), None)
        if wrong is not None:
            raise error("RLX0116", f"`{name}` compares numbers, not {describe(wrong)}", node.span)
        result = values[0]
        for value in values[1:]:
            result = prim.fold(kind, *prim.match(result, value))
        return result

    return Builtin(name, run)


def _sum(ev: Evaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
    values = ev.iterate(_one("sum", args, kwargs, node, 2), node.span)
    result = args[1] if len(args) > 1 else 0
    for value in values:
        result = ev.binary("+", result, value, node.span)
    return result


def _map_over(name: str, test: Callable[[Iterable[Any]], bool]) -> Builtin:
    def run(ev: Evaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> bool:
        return test(ev.truth(v, node.span) for v in ev.iterate(_one(name, args, kwargs, node), node.span))

    return Builtin(name, run)


BUILTINS: dict[str, Builtin] = {
    "len": _python("len", len),
    "range": _python("range", range),
    "zip": _python("zip", lambda *seqs: list(zip(*seqs))),
    "enumerate": _python("enumerate", lambda seq, start=0: list(enumerate(seq, start))),
    "sorted": _python("sorted", sorted),
    "reversed": _python("reversed", lambda seq: list(reversed(seq))),
    "abs": _python("abs", abs),
    "tuple": _python("tuple", tuple),
    "list": _python("list", list),
    "int": _python("int", int),
    "float": _python("float", lambda value=0.0: parse_float(value) if isinstance(value, str) else float(value)),
    "bool": _python("bool", bool),
    "str": _python("str", str, of_any=True),
    "dict": _python("dict", dict),
    "set": _python("set", lambda seq=(): list(dict.fromkeys(seq))),
    "isinstance": _python(
        "isinstance", lambda value, kind: describe_kind(value) == getattr(kind, "name", None), of_any=True
    ),
    "min": _extreme("min", prim.Min, min),
    "max": _extreme("max", prim.Max, max),
    "sum": Builtin("sum", _sum),
    "any": _map_over("any", any),
    "all": _map_over("all", all),
}


def describe_kind(value: Any) -> str:
    """The name of the builtin type of a plain value, for `isinstance`."""
    return type(value).__name__


# --- methods ----------------------------------------------------------------------------------------------------------
METHODS: dict[tuple[type, str], Callable[[Any], Any]] = {
    (str, "find"): lambda s: method("find", 1, 1, lambda ev, node, part: s.find(str(part))),
    (str, "join"): lambda s: method(
        "join", 1, 1, lambda ev, node, v: join_text(s, ev.iterate(v, node.span), node.span)
    ),
    (str, "format"): lambda s: method("format", 0, MAX_SIZE, lambda ev, node, *v: format_text(s, list(v), node.span)),
    (dict, "items"): lambda d: method("items", 0, 0, lambda ev, node: list(d.items())),
    (dict, "keys"): lambda d: method("keys", 0, 0, lambda ev, node: list(d)),
    (dict, "values"): lambda d: method("values", 0, 0, lambda ev, node: list(d.values())),
    (dict, "get"): lambda d: method("get", 1, 2, lambda ev, node, key, *other: d.get(as_key(key, node.span), *other)),
    (DType, "bits"): lambda d: d.bits,
    (DType, "lanes"): lambda d: d.lanes,
}


def method(name: str, least: int, most: int, function: Callable[..., Any]) -> Builtin:
    """A method, `function(ev, node, *args)`, that takes `least` to `most` arguments, none of them by name."""

    def run(ev: Evaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
        if kwargs or not least <= len(args) <= most:
            takes = str(least) if least == most else f"{least} to {most}"
            raise error("RLX0113", f"`{name}` takes {takes} arguments by position", node.span)
        return function(ev, node, *args)

    return Builtin(name, run)
