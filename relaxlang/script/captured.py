"""Values of the surrounding Python that a program mentions."""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping
from types import FrameType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from relaxlang.base.dtype import DType, dtype
from relaxlang.base.node import Node
from relaxlang.base.source import Span
from relaxlang.ir import prim, relax, tir
from relaxlang.ir.module import IRModule
from relaxlang.script.namespace import Anything
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import Evaluator, Value, error
from relaxlang.syntax.elaborate import namespaces
from relaxlang.syntax.elaborate.dims import TypeVariable

if TYPE_CHECKING:
    import numpy as np

_NAMESPACES = {f"relaxlang.script.{name}": getattr(namespaces, short) for name, short in
               (("ir", "I"), ("relax", "R"), ("tir", "T"))}  # fmt: skip
_FUNCTIONS = (tir.PrimFunc, relax.Function, relax.ExternFunc)
_NOTHING = object()
"""Stands for the value of a name that Python does not have, or that is no part of programs: a class."""


class Foreign(Value):
    """A value that programs can't use; whatever they try is an error that says why."""

    def __init__(self, name: str, value: object) -> None:
        self.name = name
        self.kind = f"Python `{type(value).__name__}`"

    def _refuse(self, span: Span | None) -> Any:
        raise error("RLX0117", f"`{self.name}` is a {self.kind}, which a program cannot use", span,
                    help="programs may use numbers, strings, tuples, lists, dicts, arrays, dtypes, and functions and "
                    "modules of relaxlang")  # fmt: skip

    def attribute(self, ev: Evaluator, name: str, span: Span | None) -> Any:
        return self._refuse(span)

    def item(self, ev: Evaluator, index: Any, span: Span | None) -> Any:
        return self._refuse(span)

    def call(self, ev: Evaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
        return self._refuse(node.span)

    def binary(self, ev: Evaluator, op: str, other: Any, reflected: bool, span: Span | None) -> Any:
        return self._refuse(span)

    def unary(self, ev: Evaluator, op: str, span: Span | None) -> Any:
        return self._refuse(span)


def captured(module: tree.Module, frame: FrameType, functions: Mapping[str, FunctionType]) -> dict[str, Any]:
    """The values of all names that a program mentions and the Python around it has.

    `frame` is where the decorator is applied; `functions` are those of the program, as Python made them: they know
    the variables of functions further out.
    """
    enclosed = dict(_cells(functions.values()))
    defined = {s.name for s in module.body if isinstance(s, (tree.FunctionDef, tree.ClassDef))}
    found: dict[str, Any] = {}
    bound = _bound(module)
    for name in sorted(_mentioned(module) - defined):
        value = enclosed.get(name, _NOTHING)
        for names in (frame.f_locals, frame.f_globals):
            value = names.get(name, _NOTHING) if value is _NOTHING else value
        if isinstance(value, (*_FUNCTIONS, IRModule, ModuleType)) and name in bound:
            continue  # a variable of the program that happens to have the name of a function or module outside
        plain = as_program_value(name, value)
        if plain is not _NOTHING:
            found[name] = plain
    return found


def _bound(module: tree.Module) -> set[str]:
    """All names that some part of a program gives a meaning of its own."""
    names: set[str] = set()
    for node in _nodes(module):
        if isinstance(node, (tree.Parameter, tree.FunctionDef)):
            names.add(node.name)
        targets: tuple[tree.Expr, ...] = ()
        if isinstance(node, tree.Assign):
            targets = node.targets
        elif isinstance(node, (tree.AnnAssign, tree.For, tree.Comprehension)):
            targets = (node.target,)
        elif isinstance(node, tree.WithItem) and node.target is not None:
            targets = (node.target,)
        names |= {n.id for target in targets for n in _nodes(target) if isinstance(n, tree.Name)}
    return names


def _mentioned(module: tree.Module) -> set[str]:
    """All names in a tree."""
    return {node.id for node in _nodes(module) if isinstance(node, tree.Name)}


def _nodes(root: Node) -> Iterator[Node]:
    """A node and all nodes below it."""
    pending: list[Any] = [root]
    while pending:
        node = pending.pop()
        if isinstance(node, Node):
            yield node
            pending += [getattr(node, field) for field in node.FIELDS]
        elif isinstance(node, tuple):
            pending += node


def _cells(functions: Any) -> Iterator[tuple[str, Any]]:
    """The variables of enclosing functions, as far as they have a value yet."""
    for function in functions:
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            try:
                yield name, cell.cell_contents
            except ValueError:  # not assigned yet, such as the name of the class that is being made
                continue


def as_program_value(name: str, value: Any) -> Any:
    """A value of Python as one of programs: itself, or what stands for it; `Foreign` when there is nothing like it."""
    import numpy as np

    from relaxlang.syntax.elaborate.macros import Macro

    if isinstance(value, ModuleType) and name not in namespaces.root_scope().all_names():
        return Foreign(name, value)
    if isinstance(value, (ModuleType, Anything)) or value is _NOTHING:
        return _NAMESPACES.get(getattr(value, "__name__", ""), _NOTHING)
    if value is None or isinstance(value, (bool, int, float, str, range, DType, Macro, IRModule, *_FUNCTIONS)):
        return value
    if isinstance(value, prim.PrimExpr):
        return value
    if isinstance(value, typing.TypeVar):
        return TypeVariable()
    if isinstance(value, np.ndarray):
        return _frozen(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return dtype(np.dtype(value).name)
    if isinstance(value, (tuple, list)):
        items = [_element(name, v) for v in value]
        return tuple(items) if isinstance(value, tuple) else items
    if isinstance(value, dict):
        return {k: _element(name, v) for k, v in value.items()}
    return _NOTHING if isinstance(value, type) else Foreign(name, value)


def _element(name: str, value: Any) -> Any:
    made = as_program_value(name, value)
    return Foreign(name, value) if made is _NOTHING else made


def _frozen(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy that nobody changes later."""
    made = value.copy()
    made.flags.writeable = False
    return made
