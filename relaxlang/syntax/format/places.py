"""Where the words of a file stand: its logical lines, its comments, and what must stay as it is written."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from relaxlang.base.diagnostics import Diagnostics
from relaxlang.base.source import Source, Span
from relaxlang.syntax.lexer import Lexer
from relaxlang.syntax.parser import language

KEEP = "# fmt: skip"
"""At the end of a line it says that the line stays as it is."""


class LogicalLine(NamedTuple):
    """One logical line: the offsets of its first word and behind its last, and whether it is kept as it is written."""

    start: int
    end: int
    kept: bool


class Places:
    """The logical lines and the comments of a file."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.lines: list[LogicalLine] = []
        self.strings: list[tuple[int, int]] = []
        self.own: list[Span] = []
        self.trailing: dict[int, Span] = {}
        lexer = Lexer(language()[1], source, Diagnostics().report)
        ends = self._scan(lexer)
        starts = [start for start, _, _ in ends]
        inside: set[int] = set()
        for comment in lexer.comments:
            at = bisect_right(starts, comment.start) - 1
            if at >= 0 and comment.start < ends[at][1]:
                inside.add(at)
            elif lexer.first_on_line(comment.start):
                self.own.append(comment)
            else:
                self.trailing[at] = comment
        for at, (start, end, long_string) in enumerate(ends):
            last = self.trailing.get(at)
            skip = last is not None and last.text.replace(" ", "") == KEEP.replace(" ", "")
            self.lines.append(LogicalLine(start, end, at in inside or long_string or skip))
        self._starts = starts

    def _scan(self, lexer: Lexer) -> list[tuple[int, int, bool]]:
        """The ends of each logical line, and whether it has a string of several lines beside other words."""
        found: list[tuple[int, int, bool]] = []
        start, end, words, long_string = -1, -1, 0, False
        for token in lexer.tokens():
            if token.type in ("_INDENT", "_DEDENT"):
                continue
            if token.type in ("_NEWLINE", "$END"):
                if start >= 0:
                    found.append((start, end, long_string and words > 1))
                start, words, long_string = -1, 0, False
                continue
            start = token.start if start < 0 else start
            end, words = token.end, words + 1
            if token.type == "PYTHON":
                words, long_string = 2, True  # it stays as it is written
            if token.type == "STRING" and "\n" in token.text:
                long_string = True
                self.strings.append((token.start, token.end))
        return found

    def index(self, offset: int) -> int:
        """The number of the logical line that an offset belongs to."""
        return bisect_right(self._starts, offset) - 1

    def column(self, offset: int) -> int:
        """The column, from 0, of an offset."""
        return self.source.position(offset)[1] - 1

    def blank_before(self, offset: int) -> int:
        """How many empty lines stand above the line of an offset."""
        number, count = self.source.position(offset)[0] - 1, 0
        while number - count >= 1 and not self.source.line(number - count).strip():
            count += 1
        return count

    def moved(self, line: LogicalLine, indent: int) -> str:
        """A kept line as it is written, with its first word in the column `indent`; insides of strings do not move."""
        text = self.source.text[line.start : line.end]
        shift = indent - self.column(line.start)
        rows = text.split("\n")
        at = line.start + len(rows[0]) + 1
        moved = [rows[0]]
        for row in rows[1:]:
            inside = any(start < at <= end for start, end in self.strings)
            words = row.lstrip()
            moved.append(row if inside else " " * max(len(row) - len(words) + shift, 0) + words if words else "")
            at += len(rows[len(moved) - 1]) + 1
        return "\n".join(moved)
