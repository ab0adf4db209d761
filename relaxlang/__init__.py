"""Relax as a language you can type."""

from typing import Any

from relaxlang.ir.printing import install_printer

__version__ = "0.1.0"


def _script(node: Any, **options: Any) -> str:
    """The printer, imported when something is first printed."""
    from relaxlang.syntax.printer import script

    return script(node, **options)


install_printer(_script)
