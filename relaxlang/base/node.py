"""`@node`: plain immutable records with slots, for the surface tree and the IR.

A dataclass would do, but its generated constructor is twice as slow, and its `__eq__`/`__hash__` overflow the stack on
deep trees. A node class lists its fields as annotations; the decorator generates

- a constructor (positional or by keyword, defaults allowed), with a trailing keyword `span`;
- `__slots__`, `__match_args__`, `FIELDS`, the tuple of field names without `span`, and `PARTS`, those of them that may
  hold nodes by their types;
- for classes with `HASHED = True`, a `_hash` computed once, at construction, from the fields;
- for classes with `DERIVED = {slot: expression}`, slots filled at construction from an expression over the fields.

Nodes compare by identity unless a class says otherwise. With `RELAXLANG_CHECK=1` in the environment assignment to a
field raises; type checkers refuse it always.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, dataclass_transform

from relaxlang.base.config import config
from relaxlang.base.constructors import constructor, declared_fields
from relaxlang.base.source import Span

_T = TypeVar("_T")
_FREEZE = config.check


def _keyword_only(*, default: Any, kw_only: bool = True) -> Any:
    """Tells type checkers that a field is passed by keyword only."""
    return default


@dataclass_transform(frozen_default=True, field_specifiers=(_keyword_only,))
def _root(cls: type[_T]) -> type[_T]:
    """Tells type checkers that every node class has the fields of `Node`."""
    return cls


@_root
class Node:
    """The base of all records made by `@node`."""

    __slots__ = ("span",)
    if TYPE_CHECKING:
        span: Span | None = _keyword_only(default=None, kw_only=True)
    FIELDS: ClassVar[tuple[str, ...]] = ()
    PARTS: ClassVar[tuple[str, ...]] = ()
    HASHED: ClassVar[bool] = False
    DERIVED: ClassVar[dict[str, str]] = {}
    if TYPE_CHECKING:
        ground: ClassVar[bool]  # whether it is known to be built of numbers alone, without variables
    else:
        ground = False

    def replace(self: _T, **changes: Any) -> _T:
        """A copy with some fields changed; the node itself when every given value is the one it has."""
        for name, value in changes.items():
            if getattr(self, name) is not value:
                break
        else:
            return self
        cls: Any = type(self)
        made: _T = cls(**{**dict(zip(cls._NAMES, cls._values(self))), **changes})
        return made

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{n}={_short(getattr(self, n))}' for n in self.FIELDS)})"


def _short(value: object) -> str:
    return f"<{type(value).__name__}>" if isinstance(value, Node) else repr(value)[:60]


@dataclass_transform(frozen_default=True, kw_only_default=False)
def node(cls: type[_T]) -> type[_T]:
    """Turn a class with annotated fields into a node class (see the module's text)."""
    inherited: dict[str, Any] = dict(getattr(cls, "_DEFAULTS", {}))
    fields, parts = list(getattr(cls, "FIELDS", ())), list(getattr(cls, "PARTS", ()))
    own = [name for name in declared_fields(cls) if name != "span"]
    body = {k: v for k, v in cls.__dict__.items() if k not in ("__dict__", "__weakref__")}
    for name in own:
        if name in body:
            inherited[name] = body.pop(name)
    fields += [n for n in own if n not in fields]
    parts += [n for n in own if n not in parts and not _is_plain(cls.__dict__["__annotations__"][n])]
    taken = {slot for base in cls.__mro__ for slot in getattr(base, "__slots__", ())}
    new_slots = tuple(n for n in (*own, *cls.DERIVED) if n not in taken)  # type: ignore[attr-defined]
    body.update(
        __slots__=new_slots,
        FIELDS=tuple(fields),
        PARTS=tuple(n for n in fields if n in parts),
        _NAMES=(*fields, "span"),
        _values=attrgetter(*fields, "span") if fields else lambda self: (self.span,),
        _DEFAULTS=inherited,
        __match_args__=tuple(fields),
        __qualname__=cls.__qualname__,
    )
    made: Any = type(cls)(cls.__name__, cls.__bases__, body)  # type: ignore[misc]
    made.__init__ = _constructor(made, fields, inherited)
    if _FREEZE:
        made.__setattr__ = _refuse
    return made  # type: ignore[no-any-return]


_PLAIN = frozenset({"str", "int", "float", "bool", "DType", "None"})


def _is_plain(annotation: object) -> bool:
    """Whether a field of this type holds no nodes."""
    return all(part.strip() in _PLAIN for part in str(annotation).split("|"))


def same_fields(a: Node, b: Node) -> bool:
    """Whether two nodes with `HASHED` are equal field by field, all the way down, without recursion.

    What is in the fields besides such nodes and tuples compares by `==`.
    """
    work: list[tuple[Any, Any]] = [(a, b)]
    while work:
        x, y = work.pop()
        if x is y:
            continue
        if isinstance(x, Node) and x.HASHED:
            if x.__class__ is not y.__class__ or x._hash != y._hash:  # type: ignore[attr-defined]
                return False
            work.extend((getattr(x, name), getattr(y, name)) for name in x.FIELDS)
        elif isinstance(x, tuple) and isinstance(y, tuple):
            if len(x) != len(y):
                return False
            work.extend(zip(x, y))
        elif x != y:
            return False
    return True


def _constructor(cls: Any, fields: list[str], defaults: dict[str, Any]) -> FunctionType:
    put = "object.__setattr__(self, {0!r}, {1})" if _FREEZE else "self.{0} = {1}"

    def body(names: Sequence[str]) -> list[str]:
        lines = [put.format(name, name) for name in (*names, "span")]
        lines += [put.format(slot, value) for slot, value in cls.DERIVED.items()]
        if cls.HASHED:
            lines.append(put.format("_hash", f"hash((self.__class__, {', '.join(names)},))"))
        return lines

    return constructor(cls, fields, defaults, body, keywords=("span",), shared=not cls.DERIVED)


def _refuse(self: object, name: str, value: object) -> None:
    raise AttributeError(f"{type(self).__name__} is immutable: cannot set {name!r}")
