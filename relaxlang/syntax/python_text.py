"""Functions of Python inside a module, under `@I.pyfunc`: where they end, and what they are called.

They are carried as text and never run, so nothing of Python is understood here but its lines: strings, comments,
brackets and indentation.
"""

from __future__ import annotations

import re

from relaxlang.syntax import tree

_DECORATOR = re.compile(r"@[ \t]*(?:\w+[ \t]*\.[ \t]*)+pyfunc\b")
_HEAD = re.compile(r"^(?:async[ \t]+)?def[ \t]+(\w+)", re.MULTILINE)
_HEADERS = ("@", "def ", "class ", "async ")
# What can hide a line end, and line ends with the indentation of the line that follows.
_PIECE = re.compile(
    r'"""(?:[^"\\]++|\\[\s\S]|"(?!""))*+"""|\'\'\'(?:[^\'\\]++|\\[\s\S]|\'(?!\'\'))*+\'\'\''
    r'|"(?:[^"\\\n]++|\\[\s\S])*+"|\'(?:[^\'\\\n]++|\\[\s\S])*+\'|\#[^\n]*|\\\n|[()\[\]{}]|\n(?P<margin>[ \t\f]*)'
)


def begins_python(text: str, at: int, end: int) -> bool:
    """Whether the `@` at an offset begins the decorator `@I.pyfunc`."""
    return _DECORATOR.match(text, at, end) is not None


def end_of_python(text: str, at: int, end: int) -> int:
    """Where the function ends whose first decorator begins at `at`: behind the last line that is indented more than the
    decorator, its `def` and further decorators aside."""
    own = _width(text[text.rfind("\n", 0, at) + 1 : at])
    depth, in_head = 0, True
    stop = end
    for piece in _PIECE.finditer(text, at, end):
        word = piece[0]
        if word in "([{":
            depth += 1
        elif word in ")]}":
            depth = max(depth - 1, 0)
        elif piece["margin"] is not None and depth:
            if _width(piece["margin"]) <= own and text.startswith(_HEADERS, piece.end()):
                stop = piece.start()  # a bracket is never closed
                break
        elif piece["margin"] is not None:
            begin = piece.end()
            if begin >= end or text[begin] in "\r\n#":
                continue
            if _width(piece["margin"]) > own:
                continue
            if not (in_head and text.startswith(("@", "def ", "def\t", "async "), begin)):
                stop = piece.start()
                break
            in_head = text[begin] == "@"
    return at + len(_without_comments_behind(text[at:stop], own))


def _without_comments_behind(text: str, own: int) -> str:
    """A function's text without the blank lines, and the comments for what follows, that stand behind it."""
    lines = text.split("\n")
    while len(lines) > 1:
        last = lines[-1].lstrip(" \t\f\r")
        if last and not (last.startswith("#") and _width(lines[-1][: len(lines[-1]) - len(last)]) <= own):
            break
        lines.pop()
    return "\n".join(lines).rstrip()


def _width(margin: str) -> int:
    return len(margin.expandtabs(8))


def moved(text: str, shift: int) -> str:
    """The lines of a function `shift` columns further right; the first one and the insides of strings stay."""
    inside: set[int] = set()
    line = 0
    for piece in _PIECE.finditer(text):
        breaks = piece[0].count("\n")
        if piece[0][0] in "\"'":
            inside.update(range(line + 1, line + 1 + breaks))
        line += breaks
    margin = re.compile(rf"[ \t]{{0,{max(-shift, 0)}}}")
    lines = text.split("\n")
    for at in range(1, len(lines)):
        if at not in inside:
            lines[at] = " " * max(shift, 0) + margin.sub("", lines[at], count=1) if lines[at].strip() else ""
    return "\n".join(lines)


def python_def(text: str, column: int) -> tree.PythonDef:
    """The definition with its lines moved to the margin from `column` (from 0); its name is empty when there is no
    `def`."""
    at_margin = moved(text, -column)
    head = _HEAD.search(at_margin)
    return tree.PythonDef(head[1] if head else "", at_margin)
