"""Colours for what a session shows."""

from __future__ import annotations

from collections.abc import Callable

from relaxlang.base.colors import paint
from relaxlang.syntax.coloring import colored

_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}
LONGEST = 400_000
"""Characters beyond which a program is printed without colours."""


def painted(text: str, language: str) -> str:
    """The text with colours for a terminal."""
    painter = _PAINTERS.get(language)
    return painter(text) if painter is not None and len(text) <= LONGEST else text


def _diff(text: str) -> str:
    return "\n".join(paint(line, _DIFF_STYLES.get(line[:1], "")) for line in text.split("\n"))


def _comments(mark: str) -> Callable[[str], str]:
    def painter(text: str) -> str:
        return "\n".join(paint(line, "dim" if line.lstrip().startswith(mark) else "") for line in text.split("\n"))

    return painter


_PAINTERS: dict[str, Callable[[str], str]] = {
    "rlx": colored, "diff": _diff, "llvm": _comments(";"), "asm": _comments("#"),
}  # fmt: skip
