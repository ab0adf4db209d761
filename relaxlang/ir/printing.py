"""The slot through which a node prints itself: `relaxlang/__init__` puts the printer of `syntax` here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_printer: list[Callable[..., str]] = []


def install_printer(printer: Callable[..., str]) -> None:
    """Make `printer(node, **options) -> str` the one that `str(node)` and `mod.script()` use."""
    _printer[:] = [printer]


class Printable:
    """What prints itself, as modules and functions do."""

    __slots__ = ()

    def script(self, **options: Any) -> str:
        """The text; see `relaxlang.syntax.printer` for the options."""
        return script(self, **options)

    def show(self, **options: Any) -> None:
        """Print the text."""
        print(self.script(**options))


def script(node: Any, **options: Any) -> str:
    """The text of a node: a module, a function, or any fragment. Without a printer, its `repr`."""
    return _printer[0](node, **options) if _printer else repr(node)
