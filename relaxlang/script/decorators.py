"""The decorators: from a Python class or function to a module or function of relaxlang."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from itertools import takewhile
from types import FrameType, FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

from relaxlang.base.diagnostics import Diagnostics, fail
from relaxlang.base.recursion import deep_recursion
from relaxlang.script.source import Part, part_at

if TYPE_CHECKING:
    from relaxlang.ir.module import IRModule
    from relaxlang.ir.relax import Function
    from relaxlang.ir.tir import PrimFunc
    from relaxlang.syntax.elaborate.macros import Macro

_T = TypeVar("_T")


def decorator(make: Callable[[Any, FrameType], _T]) -> Callable[..., Any]:
    """A decorator that is used with or without options, `@name` or `@name(private=True)`; options are read from the
    text. `make` gets what is decorated and the frame that does it."""

    def apply(target: Any = None, **options: Any) -> Any:
        caller = sys._getframe(1)
        if target is None:
            return lambda later: make(later, sys._getframe(1))
        return make(target, caller)

    apply.__doc__, apply.__name__ = make.__doc__, make.__name__
    return apply


@decorator
def ir_module(cls: Any, frame: FrameType) -> IRModule:
    """The module that a class states: `@I.ir_module class Module: …`."""
    if not isinstance(cls, type):
        fail("RLX0018", f"`I.ir_module` is for classes, not for {type(cls).__name__} `{cls!r}`")
    functions = {name: f for name, f in vars(cls).items() if isinstance(f, FunctionType)}
    part = _part(frame, cls.__name__)
    return _read(part, frame, functions)


@decorator
def function(func: Any, frame: FrameType) -> Function | Any:
    """The Relax function that a `def` states. In a class it waits for `@I.ir_module`, which reads them all."""
    return _single(func, frame)


@decorator
def prim_func(func: Any, frame: FrameType) -> PrimFunc | Any:
    """The TensorIR function that a `def` states. In a class it waits for `@I.ir_module`, which reads them all."""
    return _single(func, frame)


@decorator
def macro(func: Any, frame: FrameType) -> Macro | Any:
    """A macro, for the programs that are stated below it."""
    from relaxlang.script.captured import captured
    from relaxlang.syntax import tree
    from relaxlang.syntax.comptime import Evaluator, Scope
    from relaxlang.syntax.elaborate.macros import define_macro
    from relaxlang.syntax.elaborate.namespaces import root_scope

    if _in_class(frame):
        return func
    module = _surface(_part(frame, func.__name__))
    node = module.body[0]
    assert isinstance(node, tree.FunctionDef)
    scope = Scope(captured(module, frame, {func.__name__: func}), root_scope())
    return define_macro(Evaluator(), node, scope)


def from_source(text: str, values: dict[str, Any] | None = None) -> IRModule:
    """The module that a text states, as `relaxlang.parse` gives it; `values` are names that it may use."""
    from relaxlang.driver import parse

    return parse(text, values=values)


def _single(func: Any, frame: FrameType) -> Any:
    if not isinstance(func, FunctionType):
        fail("RLX0018", f"this decorator is for functions, not for {type(func).__name__} `{func!r}`")
    if _in_class(frame):
        return func
    module = _read(_part(frame, func.__name__), frame, {func.__name__: func})
    return next(iter(module.functions.values()))


def _in_class(frame: FrameType) -> bool:
    """Whether a decorator is applied in the body of a class that becomes a module; any other class is a mere folder."""
    if "__qualname__" not in frame.f_locals or frame.f_locals is frame.f_globals:
        return False
    lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)[frame.f_code.co_firstlineno - 1 :]
    head = takewhile(lambda line: not line.lstrip().startswith("class "), lines)
    return any("ir_module" in line for line in head)


def _part(frame: FrameType, name: str) -> Part:
    """What is decorated: while a decorator is called, its own line is the current one."""
    return part_at(frame.f_code.co_filename, frame.f_lineno, frame, name)


def _surface(part: Part) -> Any:
    from relaxlang.syntax.parser import parse_surface

    diagnostics = Diagnostics()
    with deep_recursion():
        module = parse_surface(part.source, diagnostics, (part.start, part.end))
    diagnostics.check()
    return module


def _read(part: Part, frame: FrameType, functions: dict[str, FunctionType]) -> IRModule:
    from relaxlang.driver import parse_source
    from relaxlang.script.captured import captured

    values = captured(_surface(part), frame, functions)
    return parse_source(part.source, values=values, part=(part.start, part.end))
