"""Walking and rewriting the IR, both levels.

`Visitor` looks, `Rewriter` changes. A subclass states what it does with a class by a method under `@on(For, Block)`;
classes without one are walked through. A rewriter returns the same object when nothing below it changed, and keeps
spans. Leaves, returned as they are unless a method says otherwise: variables, buffers, global names, operators. What
can hold nothing that a walker has a method for is not entered: expressions, when it has methods for statements alone,
and what is built of numbers alone, as most struct info is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

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
WITHOUT_STATEMENTS = (
    PrimExpr, prim.CommReducer, tir.Buffer, tir.Range, tir.BufferRegion, tir.MatchBufferRegion, tir.IterVar,
    tir.BufferStore, tir.Evaluate,
)  # fmt: skip
"""The classes of TensorIR below which there is no statement."""


def on(*classes: type) -> Callable[[_F], _F]:
    """Mark a method of a `Visitor` or `Rewriter` as the one for these classes."""

    def mark(method: _F) -> _F:
        method._on = classes  # type: ignore[attr-defined]
        return method

    return mark


# --- the parts of a node ----------------------------------------------------------------------------------------------
_PLAIN, _NODE, _TUPLE, _MAPPING = "plain", "node", "tuple", "mapping"


class _Kinds(dict[type, str]):
    """What values of a class mean to a walk; looking it up is several times as fast as `isinstance`."""

    def __missing__(self, cls: type) -> str:
        kind = _NODE if issubclass(cls, Node) else _MAPPING if issubclass(cls, Mapping) else _PLAIN
        self[cls] = kind
        return kind


_KINDS = _Kinds({tuple: _TUPLE})
_Getter = Callable[[Any], tuple[Any, ...]]


class _Getters(dict[type, _Getter]):
    """For each class what gets the values of its `FIELDS`, or of its `PARTS`, the fields that may hold nodes."""

    def __init__(self, which: str) -> None:
        super().__init__()
        self._which = which

    def __missing__(self, cls: type) -> _Getter:
        names: tuple[str, ...] | None = getattr(cls, self._which, None)
        if names is None:
            text = f"the IR is walked through from one of its nodes, such as `mod['main']`, not from a `{cls.__name__}`"
            raise TypeError(text)
        getter = self[cls] = attrgetter(*names) if len(names) > 1 else _short(names)
        return getter


def _short(names: tuple[str, ...]) -> _Getter:
    """As `attrgetter`, which gives a tuple for two and more names only."""
    return lambda node: tuple([getattr(node, name) for name in names])


_FIELDS, _PARTS = _Getters("FIELDS"), _Getters("PARTS")


# --- walkers ----------------------------------------------------------------------------------------------------------
class _Dispatch:
    """Collects the `@on` methods of a class and of its bases into one table."""

    _table: ClassVar[dict[type, Callable[..., Any]]] = {}
    _steps: ClassVar[_Steps]
    if TYPE_CHECKING:
        below: Callable[..., Any]

    def __init_subclass__(cls) -> None:
        table: dict[type, Callable[..., Any]] = {}
        for base in reversed(cls.__mro__):
            for method in base.__dict__.values():
                for of in getattr(method, "_on", ()):
                    table[of] = method
        cls._table = table
        cls._steps = _Steps(cls)

    def _unless_ground(self, node: Any) -> Any:
        return node if node.ground else self.below(node)


class _Steps(dict[type, "Callable[..., Any] | None"]):
    """What a walker does with a value that it finds in a field, by the value's class; None: it leaves the value."""

    def __init__(self, walker: Any) -> None:
        super().__init__({tuple: walker._tuple})
        self._walker = walker
        # The last three are `Visitor` or `Rewriter`, `_Dispatch` and `object`.
        self._looks_itself = any("visit" in base.__dict__ for base in walker.__mro__[:-3])
        self._for_statements = bool(walker._table) and all(issubclass(cls, tir.Stmt) for cls in walker._table)

    def __missing__(self, cls: type) -> Callable[..., Any] | None:
        step: Callable[..., Any] | None = self._step(cls)
        self[cls] = step
        return step

    def _step(self, cls: type) -> Any:
        walker = self._walker
        if not issubclass(cls, Node):
            return walker._mapping if issubclass(cls, Mapping) else None
        if self._looks_itself:
            return walker.visit
        if cls in walker._table:
            return walker._table[cls]
        if cls in LEAVES or (self._for_statements and issubclass(cls, WITHOUT_STATEMENTS)):
            return None
        return walker._unless_ground if cls in GROUND and GROUND.isdisjoint(walker._table) else walker.below


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
        self._tuple(_PARTS[node.__class__](node))

    def _tuple(self, values: tuple[Any, ...]) -> None:
        steps = self._steps
        for value in values:
            step = steps[value.__class__]
            if step is not None:
                step(self, value)

    def _mapping(self, mapping: Mapping[Any, Any]) -> None:
        for pair in mapping.items():
            self._tuple(pair)


class Rewriter(_Dispatch):
    """Rebuilds a tree: `rewriter(node)`. A method that wants its node's children rewritten calls `self.below(node)`."""

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
        this: Any = node
        old = _FIELDS[this.__class__](this)
        new = self._tuple(old)
        made: _N = node if new is old else this.__class__(*new, span=this.span)
        return made

    def value(self, value: Any) -> Any:
        """A field's value, rewritten: a node, a tuple or mapping of nodes, or plain data (kept)."""
        step = self._steps[value.__class__]
        return value if step is None else step(self, value)

    def _tuple(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        steps = self._steps
        made: list[Any] | None = None
        for at, old in enumerate(values):
            step = steps[old.__class__]
            if step is not None:
                new = step(self, old)
                if new is not old:
                    if made is None:
                        made = list(values)
                    made[at] = new
        return values if made is None else tuple(made)

    def _mapping(self, mapping: Mapping[Any, Any]) -> Mapping[Any, Any]:
        if not mapping:
            return mapping
        if isinstance(mapping, Attrs):
            pairs = {k: self.value(v) for k, v in mapping.items()}
            return mapping if all(pairs[k] is v for k, v in mapping.items()) else Attrs(pairs)
        mapped = {self.value(k): self.value(v) for k, v in mapping.items()}
        same = all(mapped.get(k) is v for k, v in mapping.items())
        return mapping if same else mapped


# --- walks ------------------------------------------------------------------------------------------------------------
def children(node: Node) -> list[Node]:
    """The nodes in the fields of a node, in order; through tuples and mappings."""
    found: list[Node] = []
    _collect(_PARTS[node.__class__](node), found)
    return found


def _collect(values: Iterable[Any], found: list[Node]) -> None:
    """Append the nodes in fields' values."""
    for value in values:
        kind = _KINDS[value.__class__]
        if kind is _NODE:
            found.append(value)
        elif kind is _TUPLE:
            _collect(value, found)
        elif kind is _MAPPING:
            for pair in value.items():
                _collect(pair, found)


def walk(root: Node) -> Iterator[Node]:
    """Every node below `root` and itself, parents first, in field order; without recursion. Leaves are not entered."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        if node.__class__ not in LEAVES:
            _push(node, stack)


def _push(node: Node, stack: list[Node]) -> None:
    """Put the children of a node on a stack, the first on top."""
    for value in reversed(_PARTS[node.__class__](node)):
        kind = _KINDS[value.__class__]
        if kind is _NODE:
            stack.append(value)
        elif kind is not _PLAIN:
            found: list[Node] = []
            _collect((value,), found)
            stack += reversed(found)


def free_vars(root: Node | tuple[Any, ...]) -> list[prim.Var]:
    """The scalar variables that occur in an expression, a struct info or a tuple of such, each once, in order."""
    found: dict[prim.Var, None] = {}
    stack: list[Node] = []
    _collect((root,), stack)
    stack.reverse()
    while stack:
        node = stack.pop()
        if isinstance(node, prim.Var):
            found[node] = None
        elif node.__class__ not in LEAVES:
            _push(node, stack)
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
