"""What stands before an input, at a terminal and in a transcript."""

from __future__ import annotations

PROMPT = "relax> "
CONTINUATION = "  ...> "


def prompted(text: str) -> str:
    """An input with its prompts."""
    first, *rest = text.split("\n")
    return "\n".join([PROMPT + first, *((CONTINUATION + line).rstrip() for line in rest)]).rstrip()
