"""Colours for what a session shows."""

from __future__ import annotations

from collections.abc import Callable

from relaxlang.base.colors import paint
from relaxlang.syntax.interactive import TokenClass, tokens

TOKEN_STYLES: dict[TokenClass, str] = {
    "keyword": "magenta", "constant": "cyan", "number": "cyan", "string": "green", "comment": "dim", "error": "red",
}  # fmt: skip
"""The style of each class of token; what is not here has the terminal's own colour."""

_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}
LONGEST = 400_000
"""Characters beyond which a program is printed without colours."""


def painted(text: str, language: str) -> str:
    """The text with colours for a terminal."""
    painter = _PAINTERS.get(language)
    return painter(text) if painter is not None and len(text) <= LONGEST else text


def _program(text: str) -> str:
    parts, at = [], 0
    for token in tokens(text):
        parts.append(text[at : token.start])
        parts.append(paint(text[token.start : token.end], TOKEN_STYLES.get(token.kind, "")))
        at = token.end
    return "".join(parts) + text[at:]


def _diff(text: str) -> str:
    return "\n".join(paint(line, _DIFF_STYLES.get(line[:1], "")) for line in text.split("\n"))


def _comments(mark: str) -> Callable[[str], str]:
    def painter(text: str) -> str:
        return "\n".join(paint(line, "dim" if line.lstrip().startswith(mark) else "") for line in text.split("\n"))

    return painter


_PAINTERS: dict[str, Callable[[str], str]] = {
    "rlx": _program, "diff": _diff, "llvm": _comments(";"), "asm": _comments("#"),
}  # fmt: skip
