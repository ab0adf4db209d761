"""Packed functions: Python callables that programs reach by name (`R.call_packed("name", …)`)."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar, overload

from relaxlang.base.diagnostics import fail
from relaxlang.runtime.errors import unknown_function

PackedFunc = Callable[..., Any]
_F = TypeVar("_F", bound=PackedFunc)

_FUNCTIONS: dict[str, PackedFunc] = {}
# How the names of functions begin that relaxlang brings, and the modules that register them when one is asked for.
_HOMES = {"relaxlang.blas.": "blas", "relaxlang.onnx_runtime.": "onnx_runtime"}


class LinkedFunction:
    """A packed function that stands on a library. `link` finds it before a program that calls the function runs. Its
    errors are its own, and it returns what programs take."""

    def link(self) -> None:
        """Find the library, unless that is done; RLX6038 when it is not there."""
        raise TypeError(f"{type(self).__name__} does not say what it stands on")

    def __call__(self, *args: Any) -> Any:
        """Call it."""
        raise TypeError(f"{type(self).__name__} does not say what it does")


@overload
def register_func(name: str, f: None = None, override: bool = False) -> Callable[[_F], _F]: ...
@overload
def register_func(name: str, f: _F, override: bool = False) -> _F: ...
def register_func(name: str, f: Any = None, override: bool = False) -> Any:
    """Make a Python callable known to programs as `name`; without `f` a decorator.

    It receives NDArray, ShapeTuple, int, float, bool, str, tuple, None and callables, and returns the like (numpy
    arrays and DLPack objects are taken too). Raises RLX6017 when the name is taken and `override` is not set.
    """
    if f is None:
        return lambda function: register_func(name, function, override)
    if not isinstance(name, str) or not name:
        fail("RLX6017", f"a packed function needs a name, not `{name!r}`", help='write `@register_func("my.name")`')
    if not callable(f):
        fail("RLX6017", f"`{name}` must be a callable, not `{type(f).__name__}`")
    if name in _FUNCTIONS and not override:
        fail("RLX6017", f"a packed function `{name}` exists already", help="pass `override=True` to replace it")
    _FUNCTIONS[name] = f
    return f


def find_func(name: str) -> PackedFunc | None:
    """The packed function of that name, or None."""
    found = _FUNCTIONS.get(name)
    if found is None:
        for prefix, module in _HOMES.items():
            if name.startswith(prefix):
                import_module(f"relaxlang.runtime.{module}")
        found = _FUNCTIONS.get(name)
    return found


@overload
def get_global_func(name: str) -> PackedFunc: ...
@overload
def get_global_func(name: str, allow_missing: bool) -> PackedFunc | None: ...
def get_global_func(name: str, allow_missing: bool = False) -> PackedFunc | None:
    """The packed function of that name. When there is none: None with `allow_missing`, else RLX6008."""
    if not isinstance(name, str):
        fail("RLX6008", f"a packed function is found by its name, not by a `{type(name).__name__}`")
    found = find_func(name)
    if found is None and not allow_missing:
        unknown_function(name, "there is no packed function", _FUNCTIONS)
    return found


def list_global_func_names() -> list[str]:
    """The names of all packed functions, sorted."""
    return sorted(_FUNCTIONS)
