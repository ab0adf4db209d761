"""The namespace `T`: `from relaxlang.script import tir as T`."""

from __future__ import annotations

from relaxlang.script.decorators import macro, prim_func
from relaxlang.script.namespace import Anything, lookup

__all__ = ["inline", "macro", "prim_func"]

inline = macro
"""The name of `macro` since TVM 0.25."""


def __getattr__(name: str) -> Anything:
    return lookup("T", name)
