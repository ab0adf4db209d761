"""Arguments of public functions: what their annotations say, or an error at the boundary that says so."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache, wraps
from numbers import Integral, Real
from types import FunctionType, NoneType, SimpleNamespace, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from relaxlang.base.diagnostics import fail
from relaxlang.base.record import field_names, field_types

F = TypeVar("F", bound=Callable[..., Any])

Test = Callable[[Any], bool]
"""Whether a value is what an annotation says."""


def checked(function: F) -> F:
    """A public function whose arguments are tested against its annotations: RLX0454 when one does not fit.

    Annotations are read at the first call; they must be resolvable then. Elements of sequences and mappings are tested
    too, those of other iterables are not, since that would use them up. Missing and superfluous arguments stay Python's
    `TypeError`.
    """
    plan: _Plan | None = None

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal plan
        if plan is None:
            plan = _Plan(function)
        plan.check(args, kwargs)
        return function(*args, **kwargs)

    return call  # type: ignore[return-value]


C = TypeVar("C", bound=type)


def checked_methods(cls: C) -> C:
    """A class of the public API: its constructor and its public methods are `checked`."""
    for name, method in list(vars(cls).items()):
        if isinstance(method, FunctionType) and (name == "__init__" or not name.startswith("_")):
            setattr(cls, name, checked(method))
    return cls


def check_fields(made: object) -> None:
    """RLX0454 when a field of a record or dataclass is not what its annotation says; defaults are."""
    cls: Any = type(made)
    for name in field_names(cls):
        value = getattr(made, name)
        if value is getattr(cls, name, cls):
            continue
        test, wanted = _field_tests(cls)[name]
        if not test(value):
            fail("RLX0454", f"`{name}` of `{cls.__name__}` is `{wanted}`, not `{_kind(value)}`")


@cache
def _field_tests(cls: type) -> dict[str, tuple[Test, str]]:
    hints = get_type_hints(cls)
    types = field_types(cls)
    return {name: (_test(hints[name]), str(types[name])) for name in field_names(cls)}


class _Plan:
    """The tests of one function: by position, of the rest, by name."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        stated = {name: hint for name, hint in function.__annotations__.items() if name != "return"}
        hints = get_type_hints(SimpleNamespace(__annotations__=stated), inspect.unwrap(function).__globals__)
        self.by_name: dict[str, Test] = {}
        self.by_place: list[tuple[str, Test]] = []
        self.rest: tuple[str, Test] | None = None
        for name, param in inspect.signature(function).parameters.items():
            test = _test(hints.get(name, Any))
            if param.kind is param.VAR_POSITIONAL:
                self.rest = (name, test)
            elif param.kind is not param.VAR_KEYWORD:
                self.by_name[name] = test
                if param.kind is not param.KEYWORD_ONLY:
                    self.by_place.append((name, test))

    def check(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        for (name, test), value in zip(self.by_place, args):
            if not test(value):
                self.refuse(name, value)
        if self.rest is not None:
            for value in args[len(self.by_place) :]:
                if not self.rest[1](value):
                    self.refuse(self.rest[0], value)
        for name, value in kwargs.items():
            if name in self.by_name and not self.by_name[name](value):
                self.refuse(name, value)

    def refuse(self, name: str, value: Any) -> None:
        where = self.function.__qualname__.removesuffix(".__init__")
        wanted = self.function.__annotations__[name]
        fail("RLX0454", f"`{name}` of `{where}` takes `{wanted}`, not `{_kind(value)}`")


def _kind(value: Any) -> str:
    """The type of a value, for lists and tuples with the types of what they hold."""
    name = type(value).__name__
    if not isinstance(value, (list, tuple)):
        return name
    inside = list(dict.fromkeys(type(v).__name__ for v in value))
    return f"{name}[{', '.join(inside[:3])}{', …' * (len(inside) > 3)}]"


def _test(hint: Any) -> Test:
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any or isinstance(hint, TypeVar):
        return lambda value: True
    if hint in (None, NoneType):
        return lambda value: value is None
    if origin in (Union, UnionType):
        tests = [_test(a) for a in args]
        return lambda value: any(test(value) for test in tests)
    if origin is Literal:
        return lambda value: any(type(value) is type(a) and value == a for a in args)
    wanted = origin or hint
    if wanted is Callable:
        return callable
    if args and origin is not type:
        return _holding(wanted, args)
    plain = {int: Integral, float: Real}.get(wanted, wanted)
    return lambda value: isinstance(value, plain)


def _holding(wanted: Any, args: tuple[Any, ...]) -> Test:
    """The test of a generic class: what is in it counts as well."""
    if issubclass(wanted, tuple) and args[-1] is not Ellipsis:
        fields = [_test(a) for a in args]
        return lambda value: (
            isinstance(value, tuple) and len(value) == len(fields) and all(t(v) for t, v in zip(fields, value))
        )
    if issubclass(wanted, Mapping):
        key, item = (_test(a) for a in args)
        return lambda value: isinstance(value, wanted) and all(key(k) and item(v) for k, v in value.items())
    if issubclass(wanted, Sequence):
        each = _test(args[0])
        return lambda value: (
            isinstance(value, wanted) and not isinstance(value, (str, bytes)) and all(each(v) for v in value)
        )
    return lambda value: isinstance(value, wanted) and not isinstance(value, (str, bytes))
