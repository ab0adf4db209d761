"""Attributes: immutable, ordered mappings of plain values."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping
from typing import Any


class Attrs(Mapping[str, Any]):
    """An immutable mapping from names to values.

    Values are None, bool, int, float, str, DType, PrimExpr, numpy arrays, and tuples and Attrs of such; lists become
    tuples and dicts become Attrs. Two are equal when they hold the same, whatever the order.
    """

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, Any] | None = None) -> None:
        self._items = {k: freeze(v) for k, v in (items or {}).items()}

    def __getitem__(self, key: str) -> Any:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, key: object) -> bool:
        return key in self._items

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key, or `default` where there is none."""
        return self._items.get(key, default)

    def items(self) -> ItemsView[str, Any]:
        """All keys with their values."""
        return self._items.items()

    def __hash__(self) -> int:
        return hash(frozenset(self._items))

    def __repr__(self) -> str:
        return f"Attrs({self._items!r})"

    def with_(self, **items: Any) -> Attrs:
        """A copy with items added or changed."""
        return Attrs({**self._items, **items})

    def set(self, key: str, value: Any) -> Attrs:
        """A copy with one item added or changed (for keys that are no Python names)."""
        return Attrs({**self._items, key: value})

    def without(self, *keys: str) -> Attrs:
        """A copy without some keys."""
        return Attrs({k: v for k, v in self._items.items() if k not in keys})


def freeze(value: Any) -> Any:
    """Lists as tuples and mappings as Attrs, all the way down."""
    if isinstance(value, (list, tuple)):
        return tuple(freeze(v) for v in value)
    if isinstance(value, Mapping) and not isinstance(value, Attrs):
        return Attrs(value)
    return value


EMPTY = Attrs()
