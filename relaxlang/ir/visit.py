"""Walking and rewriting the IR, both levels.

`Visitor` looks, `Rewriter` changes. A subclass states what it does with a class by a method under `@on(For, Block)`;
classes without one are walked through. A rewriter returns the same object when nothing below it changed, and keeps
spans. Leaves, returned as they are unless a method says otherwise: variables, buffers, global names, operators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, TypeVar, cast

from relaxlang.base.node import Node
from relaxlang.ir import prim, relax, tir
from relaxlang.ir import struct_info as si
from relaxlang.ir.attrs import Attrs
from relaxlang.ir.prim import PrimExpr

_F = TypeVar("_F", bound=Callable[..., Any])
_N = TypeVar("_N")

LEAVES: frozenset[type] = frozenset(
    {prim.Var, prim.SizeVar, prim.IntImm, prim.FloatImm, prim.StringImm, tir.Buffer, relax.Var, relax.DataflowVar,
     relax.GlobalVar, relax.Op, relax.UnknownOp, relax.Constant, relax.StringImm, relax.DataTypeImm}
)  # fmt: skip

GROUND: frozenset[type] = frozenset(
    {prim.IntImm, si.ObjectStructInfo, si.ShapeStructInfo, si.TensorStructInfo, si.TupleStructInfo}
)
"""The classes of which nodes may be ground, with all that is in them then."""


def on(*classes: type) -> Callable[[_F], _F]:
    """Mark a method of a `Visitor` or `Rewriter` as the one for these classes."""

    def mark(method: _F) -> _F:
        method._on = classes  # type: ignore[attr-defined]
        return method

    return mark


class _Dispatch:
    """Collects the `@on` methods of a class and of its bases into one table."""

    _table: ClassVar[dict[type, Callable[..., Any]]] = {}

    def __init_subclass__(cls) -> None:
        table: dict[type, Callable[..., Any]] = {}
        for base in reversed(cls.__mro__):
            for method in base.__dict__.values():
                for of in getattr(method, "_on", ()):
                    table[of] = method
        cls._table = table


class Visitor(_Dispatch):
    """Reads a tree: `visitor(node)`. A method that wants to go on below its node calls `self.below(node)`."""

    def __call__(self, node: Node) -> None:
        self.visit(node)

    def visit(self, node: Node) -> None:
        """What `visitor(node)` does. (A call of a method takes no C stack, one of an object does.)"""
        method = self._table.get(node.__class__)
        if method is not None:
            method(self, node)
        elif node.__class__ not in LEAVES:
            self.below(node)

    def below(self, node: Node) -> None:
        """Visit the children of a node, in field order."""
        for child in children(node):
            self.visit(child)


class Rewriter(_Dispatch):
    """Rebuilds a tree: `rewriter(node)`. A method that wants its node's children rewritten calls `self.below(node)`.

    What is built of numbers alone, as most struct info is, is only entered for a method of one of `GROUND`.
    """

    _enters_ground: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        looks_itself = cls.visit is not Rewriter.visit or cls.value is not Rewriter.value
        cls._enters_ground = looks_itself or not GROUND.isdisjoint(cls._table)

    def __call__(self, node: Any) -> Any:
        return self.visit(node)

    def visit(self, node: Any) -> Any:
        """What `rewriter(node)` does. (A call of a method takes no C stack, one of an object does.)"""
        method = self._table.get(node.__class__)
        if method is not None:
            return method(self, node)
        return node if node.__class__ in LEAVES else self.below(node)

    def below(self, node: _N) -> _N:
        """The node with its children rewritten; the same object when none changed."""
        changes: dict[str, Any] = {}
        for name in _parts(node.__class__):
            old = getattr(node, name)
            kind = _KINDS[old.__class__]
            if kind is _PLAIN or (kind is _NODE and old.ground and not self._enters_ground):
                continue
            new = self.visit(old) if kind is _NODE else self.value(old)
            if new is not old:
                changes[name] = new
        return cast(Any, node).replace(**changes) if changes else node

    def value(self, value: Any) -> Any:
        """A field's value, rewritten: a node, a tuple or mapping of nodes, or plain data (kept)."""
        kind = _KINDS[value.__class__]
        if kind is _NODE:
            return value if value.ground and not self._enters_ground else self.visit(value)
        if kind is _TUPLE:
            items = [self.value(v) for v in value]
            for old, new in zip(value, items):
                if old is not new:
                    return tuple(items)
            return value
        if kind is _PLAIN or not value:
            return value
        if isinstance(value, Attrs):
            pairs = {k: self.value(v) for k, v in value.items()}
            return value if all(pairs[k] is v for k, v in value.items()) else Attrs(pairs)
        mapped = {self.value(k): self.value(v) for k, v in value.items()}
        same = all(mapped.get(k) is v for k, v in value.items())
        return value if same else mapped


# --- the parts of a node ----------------------------------------------------------------------------------------------
_PLAIN, _NODE, _TUPLE, _MAPPING = "plain", "node", "tuple", "mapping"


class _Kinds(dict[type, str]):
    """What values of a class mean to a walk; looking it up is several times as fast as `isinstance`."""

    def __missing__(self, cls: type) -> str:
        kind = _NODE if issubclass(cls, Node) else _MAPPING if issubclass(cls, Mapping) else _PLAIN
        self[cls] = kind
        return kind


_KINDS = _Kinds({tuple: _TUPLE})


def _parts(cls: Any) -> tuple[str, ...]:
    """The names of the fields that may hold nodes."""
    try:
        parts: tuple[str, ...] = cls.PARTS
        return parts
    except AttributeError:
        text = f"the IR is walked through from one of its nodes, such as `mod['main']`, not from a `{cls.__name__}`"
        raise TypeError(text) from None


def children(node: Node) -> list[Node]:
    """The nodes in the fields of a node, in order; through tuples and mappings."""
    found: list[Node] = []
    for name in _parts(node.__class__):
        value = getattr(node, name)
        kind = _KINDS[value.__class__]
        if kind is _NODE:
            found.append(value)
        elif kind is not _PLAIN:
            _collect(value, found)
    return found


def _collect(value: Any, found: list[Node]) -> None:
    """Append the nodes in a field's value."""
    kind = _KINDS[value.__class__]
    if kind is _NODE:
        found.append(value)
    elif kind is _TUPLE:
        for item in value:
            _collect(item, found)
    elif kind is _MAPPING:
        for key, item in value.items():
            _collect(key, found)
            _collect(item, found)


def walk(root: Node) -> Iterator[Node]:
    """Every node below `root` and itself, parents first, in field order; without recursion. Leaves are not entered."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        if node.__class__ not in LEAVES:
            below = children(node)
            below.reverse()
            stack += below


def free_vars(root: Node | tuple[Any, ...]) -> list[prim.Var]:
    """The scalar variables that occur in an expression, a struct info or a tuple of such, each once, in order."""
    found: dict[prim.Var, None] = {}
    starts: list[Node] = []
    _collect(root, starts)
    for start in starts:
        for node in walk(start):
            if isinstance(node, prim.Var):
                found[node] = None
    return list(found)


class Substitute(Rewriter):
    """Replaces scalar variables, and (each once) the buffers whose shape, strides, offset or pointer mention one."""

    def __init__(self, mapping: Mapping[prim.Var, PrimExpr]) -> None:
        self.mapping = mapping
        self.buffers: dict[tir.Buffer, tir.Buffer] = {}

    @on(prim.Var, prim.SizeVar)
    def var(self, node: prim.Var) -> PrimExpr:
        """A variable's replacement, or itself."""
        return self.mapping.get(node, node)

    @on(tir.Buffer)
    def buffer(self, node: tir.Buffer) -> tir.Buffer:
        """A buffer in the new variables; one new buffer for each old one."""
        made = self.buffers.get(node)
        if made is None:
            made = self.buffers[node] = self.below(node)
        return made


def substitute(node: _N, mapping: Mapping[prim.Var, PrimExpr]) -> _N:
    """`node` (an expression, statement, struct info, or tuple of such) with scalar variables replaced."""
    return cast(_N, Substitute(mapping).value(node)) if mapping else node


def conjuncts(condition: PrimExpr) -> list[PrimExpr]:
    """The conditions that a conjunction consists of, in order: what `prim.all_of` joined."""
    parts, work = [], [condition]
    while work:
        one = work.pop()
        if isinstance(one, prim.And):
            work += [one.b, one.a]
        else:
            parts.append(one)
    return parts
