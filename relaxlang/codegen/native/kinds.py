"""Kinds of values in native code: how a register's value is held in LLVM values, and which references it owns."""

from __future__ import annotations

from typing import TypeAlias

from relaxlang.base.record import record


@record
class Nothing:
    """No value: Python's None."""


@record
class Object:
    """A Python object. A `borrowed` one is an argument: the caller keeps it alive, and it may be a plain numpy array
    where results must be NDArrays."""

    borrowed: bool = False


@record
class Int:
    """An integer of 64 bits."""


@record
class Bool:
    """A truth value."""


@record
class Shape:
    """A shape of so many dimensions."""

    ndim: int


@record
class Block:
    """A block of the allocator (`support`) and the bytes asked for."""


@record
class Tensor:
    """A contiguous tensor: its data, what keeps them alive (a block or an array), its dimensions.

    `dtype` is None when it is not known. `exact` says that the array is this tensor itself, and not a part of it or it
    under another shape. `borrowed` as for `Object`.
    """

    dtype: str | None
    ndim: int
    on_block: bool
    exact: bool = False
    borrowed: bool = False


@record
class Heap:
    """The shape heap of this call: so many int64 on the stack."""

    size: int


@record
class Tuple:
    """A tuple whose elements are held one by one."""

    fields: tuple[Kind, ...]


@record
class Bound:
    """A closure: the Relax function at a place of the function table, and the values it captured, one by one."""

    function: int
    fields: tuple[Kind, ...]


Kind: TypeAlias = "Nothing | Object | Int | Bool | Shape | Block | Tensor | Heap | Tuple | Bound"

NOTHING, OBJECT, BORROWED, INT, BOOL, BLOCK = Nothing(), Object(), Object(borrowed=True), Int(), Bool(), Block()


@record
class Value:
    """A value of a kind: the LLVM operands that hold it, of the types `parts_of(kind)`.

    Tensor: data, owner, dimensions. Block: data, bytes. Shape: dimensions. Tuple, Bound: the parts of all elements.
    """

    kind: Kind
    parts: tuple[str, ...] = ()

    @property
    def dims(self) -> tuple[str, ...]:
        """The dimensions of a tensor or a shape."""
        return self.parts[2:] if isinstance(self.kind, Tensor) else self.parts

    def fields(self) -> list[Value]:
        """The elements of a tuple, the captured values of a closure."""
        assert isinstance(self.kind, (Tuple, Bound))
        found, at = [], 0
        for kind in self.kind.fields:
            count = len(parts_of(kind))
            found.append(Value(kind, self.parts[at : at + count]))
            at += count
        return found


def parts_of(kind: Kind) -> list[str]:
    """The LLVM types of the parts of a kind's values."""
    if isinstance(kind, (Object, Heap)):
        return ["ptr"]
    if isinstance(kind, Int):
        return ["i64"]
    if isinstance(kind, Bool):
        return ["i1"]
    if isinstance(kind, Shape):
        return ["i64"] * kind.ndim
    if isinstance(kind, Block):
        return ["ptr", "i64"]
    if isinstance(kind, Tensor):
        return ["ptr", "ptr", *["i64"] * kind.ndim]
    return [part for field in kind.fields for part in parts_of(field)] if isinstance(kind, (Tuple, Bound)) else []


@record
class Reference:
    """A reference that a value owns, to a Python object or to a block."""

    pointer: str
    to_block: bool


def references(value: Value) -> list[Reference]:
    """The references that a value owns."""
    kind = value.kind
    if isinstance(kind, Object):
        return [] if kind.borrowed else [Reference(value.parts[0], False)]
    if isinstance(kind, Block):
        return [Reference(value.parts[0], True)]
    if isinstance(kind, Tensor):
        return [] if kind.borrowed else [Reference(value.parts[1], kind.on_block)]
    return [ref for field in value.fields() for ref in references(field)] if isinstance(kind, (Tuple, Bound)) else []


def join(kinds: list[Kind]) -> Kind:
    """The kind that values of these kinds have where control flow meets."""
    return kinds[0] if all(k == kinds[0] for k in kinds[1:]) else OBJECT
