"""What stands before an input, at a terminal and in a transcript."""

from __future__ import annotations

PROMPT = "relax> "
SCHEDULE_PROMPT = "schedule> "
"""While a kernel is scheduled, its primitives can be typed."""
PROMPTS = (PROMPT, SCHEDULE_PROMPT)
CONTINUATION = "  ...> "


def prompted(text: str, prompt: str = PROMPT) -> str:
    """An input with its prompts."""
    first, *rest = text.split("\n")
    return "\n".join([prompt + first, *((CONTINUATION + line).rstrip() for line in rest)]).rstrip()
