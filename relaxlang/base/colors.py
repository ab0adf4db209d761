"""A tiny ANSI palette, and the one decision whether a stream gets colours."""

from __future__ import annotations

import os
from typing import Literal, TextIO

ColorChoice = Literal["auto", "always", "never"]

_CODES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
}


def paint(text: str, style: str) -> str:
    """`text` in a style such as `"bold red"` (names from `STYLES`, by spaces); unchanged when either is empty."""
    if not text or not style:
        return text
    return f"\033[{';'.join(_CODES[name] for name in style.split())}m{text}\033[0m"


STYLES = tuple(_CODES)


def wants_color(stream: TextIO, choice: ColorChoice = "auto") -> bool:
    """Whether output to `stream` should be coloured.

    `choice` is the user's word on the command line. With `auto`, NO_COLOR (https://no-color.org) wins over FORCE_COLOR,
    both over TERM=dumb; without any of them a terminal gets colours and a pipe or file does not.
    """
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return os.environ.get("TERM") != "dumb" and stream.isatty()
