"""Colours for programs on a terminal."""

from __future__ import annotations

from relaxlang.base.colors import paint
from relaxlang.syntax.interactive import TokenClass, tokens

TOKEN_STYLES: dict[TokenClass, str] = {
    "keyword": "magenta", "constant": "cyan", "number": "cyan", "string": "green", "comment": "dim", "error": "red",
}  # fmt: skip
"""The style of each class of token; what is not here has the terminal's own colour."""


def colored(text: str) -> str:
    """A program, well-formed or not, with its tokens in colours; without them it is the same text."""
    parts, at = [], 0
    for token in tokens(text):
        parts.append(text[at : token.start])
        parts.append(paint(text[token.start : token.end], TOKEN_STYLES.get(token.kind, "")))
        at = token.end
    return "".join(parts) + text[at:]
