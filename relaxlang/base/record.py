"""`@record`: classes of fields, frozen and compared by value, made at a small part of what a dataclass costs.

A dataclass compiles six functions when its class is made; with the hundred of them that a build imports that takes a
tenth of a second before anything happens. The methods of records are the same functions for all of them; only the
constructor is each one's own (see `base.constructors`). Otherwise a record is a dataclass, to its readers, to type
checkers and to the standard library: `dataclasses.fields` and `replace` work, dataclasses and records derive from one
another, `__post_init__` is called. There are no slots, and a default is a value or what `fresh` says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, TypeVar, cast, dataclass_transform, overload

from relaxlang.base.constructors import constructor, declared_fields

_T = TypeVar("_T")


class _Fresh:
    """The default of a field that each record makes for itself."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


def fresh(*, factory: Callable[[], _T]) -> _T:
    """A default that is made anew for each record: `names: list[str] = fresh(factory=list)`."""
    return cast(_T, _Fresh(factory))


@overload
def record(cls: type[_T], /) -> type[_T]: ...


@overload
def record(*, frozen: bool = True, eq: bool = True) -> Callable[[type[_T]], type[_T]]: ...


@dataclass_transform(frozen_default=True, field_specifiers=(fresh,))
def record(cls: type[_T] | None = None, /, *, frozen: bool = True, eq: bool = True) -> Any:
    """Turn a class with annotated fields into a record (see the module's text).

    Its instances cannot be changed if `frozen`. With `eq` those of one class are equal when their fields are, and hash
    alike if frozen; without, each is equal to itself.
    """
    return _made(cls, frozen, eq) if cls is not None else lambda cls: _made(cls, frozen, eq)


def replace(made: _T, **changes: Any) -> _T:
    """A copy of a record with some fields changed."""
    cls: Any = type(made)
    copied: _T = cls(**{name: getattr(made, name) for name in cls.__match_args__} | changes)
    return copied


def field_names(cls: type) -> tuple[str, ...]:
    """The fields of a record or dataclass."""
    if _is_record(cls):
        return cast(tuple[str, ...], cast(Any, cls).__match_args__)
    from dataclasses import fields

    return tuple([field.name for field in fields(cls)])


def field_types(cls: type) -> dict[str, Any]:
    """What a class and its bases annotate."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        found |= base.__dict__.get("__annotations__", {})
    return found


def _is_record(cls: type) -> bool:
    """Whether the class itself is a record, and not only one of its bases."""
    return "_values" in cls.__dict__


def _made(cls: Any, frozen: bool, eq: bool) -> Any:
    fields = tuple(dict.fromkeys((*getattr(cls, "__match_args__", ()), *declared_fields(cls))))
    # Twice where there is one, because only then a tuple is made of it, which equality and hash want.
    cls._values = attrgetter(*fields if len(fields) > 1 else fields * 2) if fields else staticmethod(_nothing)
    methods: dict[str, Any] = {"__init__": _constructor(cls, fields, frozen), "__repr__": _show}
    if eq:
        methods |= {"__eq__": _equal, "__hash__": _hash if frozen else None}
    if frozen:
        methods |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
    for name, method in methods.items():
        if cls.__dict__.get(name) is None:
            setattr(cls, name, method)
    data = {name: _Standard(name, frozen, eq) for name in ("__dataclass_fields__", "__dataclass_params__")}
    for name, value in {**data, "__match_args__": fields}.items():
        setattr(cls, name, value)
    return cls


def _constructor(cls: type, fields: tuple[str, ...], frozen: bool) -> Any:
    defaults = {name: getattr(cls, name) for name in fields if hasattr(cls, name)}
    put = "object.__setattr__(self, {0!r}, {1})" if frozen else "self.{0} = {1}"
    after = ["self.__post_init__()"] if hasattr(cls, "__post_init__") else []

    def body(names: Sequence[str]) -> list[str]:
        # Until the field is set, `self.name` is the default.
        new = {name for field, name in zip(fields, names) if isinstance(defaults.get(field), _Fresh)}
        return [
            put.format(name, f"self.{name}.make() if {name} is self.{name} else {name}" if name in new else name)
            for name in names
        ] + after

    made = constructor(cls, fields, defaults, body)
    kinds = field_types(cls)
    made.__annotations__ = {name: kinds[name] for name in fields} | {"return": None}
    return made


class _Standard:
    """What the module `dataclasses` reads of a record, made when it is first asked for."""

    def __init__(self, name: str, frozen: bool, eq: bool) -> None:
        self.name, self.frozen, self.eq = name, frozen, eq

    def __get__(self, made: object, cls: Any) -> Any:
        from dataclasses import field, make_dataclass

        def standard(name: str) -> Any:
            if not hasattr(cls, name):
                return field()
            default = getattr(cls, name)
            return field(default_factory=default.make) if isinstance(default, _Fresh) else field(default=default)

        kinds = field_types(cls)
        fields = [(name, kinds[name], standard(name)) for name in cls.__match_args__]
        value = getattr(make_dataclass(cls.__name__, fields, frozen=self.frozen, eq=self.eq), self.name)
        setattr(cls, self.name, value)
        return value


def _nothing(made: object) -> tuple[()]:
    """The values of a record without fields."""
    return ()


@recursive_repr()
def _show(self: Any) -> str:
    return f"{type(self).__qualname__}({', '.join([f'{n}={getattr(self, n)!r}' for n in self.__match_args__])})"


def _equal(self: Any, other: Any) -> Any:
    return self._values(self) == self._values(other) if other.__class__ is self.__class__ else NotImplemented


def _hash(self: Any) -> int:
    return hash(self._values(self))


def _refuse_to_set(self: Any, name: str, value: object) -> None:
    _check_open(self, name, "assign to")
    object.__setattr__(self, name, value)


def _refuse_to_delete(self: Any, name: str) -> None:
    _check_open(self, name, "delete")
    object.__delattr__(self, name)


def _check_open(made: Any, name: str, verb: str) -> None:
    """A plain class that derives from a record may have attributes of its own besides the fields."""
    if _is_record(type(made)) or name in made.__match_args__:
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot {verb} field {name!r}")
