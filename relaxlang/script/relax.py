"""The namespace `R`: `from relaxlang.script import relax as R`."""

from __future__ import annotations

from relaxlang.script.decorators import function, macro
from relaxlang.script.namespace import Anything, lookup

__all__ = ["function", "macro"]


def __getattr__(name: str) -> Anything:
    return lookup("R", name)
