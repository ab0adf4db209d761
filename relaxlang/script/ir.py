"""The namespace `I`: `from relaxlang.script import ir as I`."""

from __future__ import annotations

from relaxlang.script.decorators import ir_module
from relaxlang.script.namespace import Anything, lookup

__all__ = ["ir_module", "pyfunc"]


def pyfunc(func: object) -> object:
    """`@I.pyfunc`: a method that is Python and stays it. The module keeps its text."""
    return func


def __getattr__(name: str) -> Anything:
    return lookup("I", name)
