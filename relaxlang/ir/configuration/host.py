"""The slot through which targets look at this machine: `relaxlang/__init__` puts code generation's probe here."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Host(NamedTuple):
    """This machine, in LLVM's words: the name of its processor, all its features, its triple."""

    cpu: str
    features: str
    triple: str


_probe: list[Callable[[], Host]] = []


def install_host(probe: Callable[[], Host]) -> None:
    """Make `probe` what looks at this machine."""
    _probe[:] = [probe]


def this_machine() -> Host:
    """This machine."""
    return _probe[0]()
