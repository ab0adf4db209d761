"""The builtin functions of compile-time evaluation: `len`, `range`, `zip`, `min`, …"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.ir import prim
from relaxlang.ir.prim import PrimExpr
from relaxlang.syntax import tree
from relaxlang.syntax.comptime_values import MAX_SIZE, Builtin, error
from relaxlang.syntax.scalars import parse_float

if TYPE_CHECKING:
    from relaxlang.syntax.comptime import Evaluator


def _python(name: str, function: Callable[..., Any]) -> Builtin:
    """A Python function over plain values."""

    def run(ev: Evaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
        plain = [a.value if isinstance(a, prim.IntImm) else a for a in args]
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


def _extreme(name: str, kind: type[prim.Min] | type[prim.Max], plain: Callable[[Any], Any]) -> Builtin:
    def run(ev: Evaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
        values = ev.iterate(args[0], node.span) if len(args) == 1 else args
        if not values:
            raise error("RLX0116", f"`{name}` of an empty sequence", node.span)
        if not any(isinstance(v, PrimExpr) for v in values):
            return plain(values)
        result = values[0]
        for value in values[1:]:
            result = prim.fold(kind, *prim.match(result, value))
        return result

    return Builtin(name, run)


def _sum(ev: Evaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
    result = args[1] if len(args) > 1 else 0
    for value in ev.iterate(args[0], node.span):
        result = ev.binary("+", result, value, node.span)
    return result


def _map_over(name: str, test: Callable[[Iterable[Any]], bool]) -> Builtin:
    return Builtin(
        name, lambda ev, args, kwargs, node: test(ev.truth(v, node.span) for v in ev.iterate(args[0], node.span))
    )


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
    "str": _python("str", str),
    "dict": _python("dict", dict),
    "set": _python("set", lambda seq=(): list(dict.fromkeys(seq))),
    "isinstance": _python("isinstance", lambda value, kind: describe_kind(value) == getattr(kind, "name", None)),
    "min": _extreme("min", prim.Min, min),
    "max": _extreme("max", prim.Max, max),
    "sum": Builtin("sum", _sum),
    "any": _map_over("any", any),
    "all": _map_over("all", all),
}


def describe_kind(value: Any) -> str:
    """The name of the builtin type of a plain value, for `isinstance`."""
    return type(value).__name__
