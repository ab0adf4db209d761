"""The text of a decorated class or function: the whole file, and the lines in it."""

from __future__ import annotations

import inspect
import linecache
from types import FrameType
from typing import NamedTuple

from relaxlang.base.diagnostics import fail
from relaxlang.base.source import Source


class Part(NamedTuple):
    """Some lines of a file: offsets from the start of the first to the end of the last."""

    source: Source
    start: int
    end: int


def part_at(filename: str, line: int, frame: FrameType, name: str) -> Part:
    """The statement that begins at a line of a file; RLX0018 when Python knows no text of it."""
    lines = linecache.getlines(filename, frame.f_globals)
    if not 1 <= line <= len(lines):
        fail("RLX0018", f"the text of `{name}` is not known", notes=[f"Python names `{filename}` as its file"],
             help="write the program into a file, or give its text to `relaxlang.parse`")  # fmt: skip
    block = inspect.getblock(lines[line - 1 :])
    text = "".join(lines)
    start = sum(map(len, lines[: line - 1]))
    return Part(Source(filename, text), start, start + sum(map(len, block)))
