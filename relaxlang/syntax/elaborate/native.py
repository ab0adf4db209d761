"""Builtin functions of the language that are Python functions here, with their arguments checked before the call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relaxlang.base.source import Span
from relaxlang.base.stored_array import StoredArray
from relaxlang.base.suggest import place_of, suggestion
from relaxlang.ir import relax, tir
from relaxlang.ir.attrs import EMPTY, Attrs
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import Evaluator, Value, describe, error
from relaxlang.syntax.spellings import canonical_attribute_key


class Native(Value):
    """`name(*args, **kwargs)` runs `function(ev, node, *args, **kwargs)`; its Python signature is the language's."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        code = function.__code__
        named = code.co_argcount
        defaults = len(function.__defaults__ or ())
        self.name = name
        self.kind = f"function `{name}`"
        self.function = function
        self.names = code.co_varnames[2:named]
        self.required = self.names[: len(self.names) - defaults]
        self.only = code.co_varnames[named : named + code.co_kwonlyargcount]
        self.variadic = bool(code.co_flags & 0x04)
        self.open = bool(code.co_flags & 0x08)

    def call(self, ev: Evaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
        if len(args) < len(self.required) or kwargs or len(args) > len(self.names):
            self._check(args, kwargs, node.span)
        try:
            return self.function(ev, node, *args, **kwargs)
        except (TypeError, ValueError, AttributeError, LookupError, OverflowError) as fault:
            # Whatever a program passes, it gets a diagnostic; the functions check what deserves a better one.
            raise error("RLX0116", f"`{self.name}` got an argument that it can't use: {fault}", node.span) from fault

    def _check(self, args: list[Any], kwargs: dict[str, Any], span: Span | None) -> None:
        if len(args) > len(self.names) and not self.variadic:
            raise error(
                "RLX0113",
                f"`{self.name}` takes at most {len(self.names)} positional arguments, {len(args)} were given",
                span,
            )
        given = self.names[: len(args)]
        for name in kwargs:
            if name in given:
                raise error("RLX0113", f"`{self.name}` got `{name}` twice", span)
            if name not in self.names and name not in self.only and not self.open:
                hint = suggestion(name, (*self.names, *self.only), span)
                raise error("RLX0114", f"`{self.name}` has no parameter `{name}`", place_of(name, span), **hint)
        for name in self.required[len(args) :]:
            if name not in kwargs:
                raise error("RLX0113", f"`{self.name}` lacks its argument `{name}`", span)


def attributes(given: Any, what: str, node: tree.Call) -> dict[str, Any]:
    """The attributes of a function, block or module: strings to plain values, under their canonical keys."""
    if not isinstance(given, dict) or not all(isinstance(key, str) for key in given):
        raise error("RLX0116", f"`{what}` takes a dict with string keys", node.span)
    return {canonical_attribute_key(key): attribute_value(value, node.span) for key, value in given.items()}


def annotation_attrs(given: Any, what: str, node: tree.Call) -> Attrs:
    """The annotations of a loop or an allocation: none, or strings to plain values."""
    if given is None:
        return EMPTY
    if not isinstance(given, dict) or not all(isinstance(key, str) for key in given):
        raise error("RLX0116", f"the annotations of `{what}` are a dict with string keys", node.span)
    made = {key: attribute_value(value, node.span) for key, value in given.items()}
    return Attrs(made) if made else EMPTY


def attribute_value(value: Any, span: Span | None) -> Any:
    """A value that an attribute may hold; constants of Relax become what they hold."""
    if isinstance(value, (relax.PrimValue, relax.StringImm, relax.DataTypeImm)):
        return value.value
    if isinstance(value, relax.Constant):
        return value.data
    if isinstance(value, StoredArray):
        return value.read()
    if isinstance(value, (list, tuple)):
        return tuple(attribute_value(v, span) for v in value)
    if isinstance(value, dict):
        return {str(key): attribute_value(v, span) for key, v in value.items()}
    if getattr(value, "bare", None) is not None:  # an annotation such as `R.Object`
        return value.bare
    if isinstance(value, (relax.Expr, Value, tir.Stmt, tir.BufferRegion, tir.Range)):
        raise error("RLX0116", f"{describe(value)} cannot be an attribute", span)
    return value


class Names:
    """A table of builtins in the making: `@names("serial")` above a function puts it in."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.table: dict[str, Any] = {}

    def __call__(self, *names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def put(function: Callable[..., Any]) -> Callable[..., Any]:
            native = Native(f"{self.prefix}.{names[0]}", function)
            for name in names:
                self.table[name] = native
            return function

        return put
