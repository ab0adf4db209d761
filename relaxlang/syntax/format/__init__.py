"""The formatter: a file in canonical style, with its sugar, its names, its comments and its groups of lines.

In: a source text. Out: the same program, laid out as the printer would lay it out. It works on the surface tree and
not on the IR, so that everything a reader of the file sees stays: templates, macros, sugar, blank lines between groups.

Reading order: `expressions` and `lines` (tree to documents), `places` (comments, and lines that are kept as written),
this module (both together), `check` (the result means the same).

Rules that a user may meet: four columns an indentation; one blank line at most between statements, two around the
functions of a file, one around those of a class; double quotes where that changes nothing; parentheses around operands
stay. A line stays as it is written when it has a comment inside its brackets, a string of several lines, or
`# fmt: skip` at its end, and when it would become too wide. Comments begin with `# ` and stand two columns behind code.
"""

from __future__ import annotations

from relaxlang.base.diagnostics import Diagnostics
from relaxlang.base.recursion import deep_recursion
from relaxlang.base.source import Source, Span
from relaxlang.syntax.document import INDENT, render
from relaxlang.syntax.format.check import assert_same_program
from relaxlang.syntax.format.lines import Line, lines_of
from relaxlang.syntax.format.places import Places
from relaxlang.syntax.parser import parse_surface

__all__ = ["WIDTH", "format_source"]

WIDTH = 120


def format_source(source: Source, width: int = WIDTH) -> str:
    """The text of a file in canonical style; formatting it again changes nothing.

    Raises DiagnosticError for a text with syntax errors, and RLX9003 if the result did not mean the same as the source.
    """
    diagnostics = Diagnostics()
    with deep_recursion():
        module = parse_surface(source, diagnostics)
        diagnostics.check()
        made = _Writer(Places(source), width).write(lines_of(module, source))
        assert_same_program(source, module, made)
    return made


class _Writer:
    """Puts lines and comments together."""

    def __init__(self, places: Places, width: int) -> None:
        self.places = places
        self.width = width
        self.out: list[str] = []
        self.written = -1  # the number of the logical line that was kept as a whole
        self.previous: Line | None = None
        self.levels: list[tuple[int, bool]] = []  # of each open block: its column in the source; is its head a function

    def write(self, lines: list[Line]) -> str:
        """The text."""
        comments = list(reversed(self.places.own))
        for at, line in enumerate(lines):
            group: list[Span] = []
            while comments and comments[-1].start < line.start:
                group.append(comments.pop())
            self._line(line, self._comments(group, line), at, lines)
        if comments:
            self._comments(list(reversed(comments)), None)
        return "".join(self.out)

    # --- comments -----------------------------------------------------------------------------------------------------
    def _comments(self, group: list[Span], line: Line | None) -> list[Span]:
        """Write those comments that belong to the block that ends here; the others belong to `line`."""
        rest = list(group)
        if line is not None and self.previous is not None and line.indent > self.previous.indent:
            return rest
        while rest and (line is None or self._block_of(rest[0]) > line.indent):
            comment = rest.pop(0)
            self._blanks(min(self.places.blank_before(comment.start), _most(self._block_of(comment))))
            self.out.append(f"{' ' * (INDENT * self._block_of(comment))}{_comment_text(comment)}\n")
        return rest

    def _block_of(self, comment: Span) -> int:
        """The block that a comment at the end of blocks belongs to: the innermost that begins no further right."""
        column = self.places.column(comment.start)
        fitting = [level for level, (begin, _) in enumerate(self.levels) if begin <= column]
        return fitting[-1] if fitting else 0

    # --- lines --------------------------------------------------------------------------------------------------------
    def _line(self, line: Line, comments: list[Span], at: int, lines: list[Line]) -> None:
        number = self.places.index(line.start)
        logical = self.places.lines[number]
        if number == self.written:
            return
        first = comments[0].start if comments else line.start
        self._blanks(self._blank_lines(line, self.places.blank_before(first)))
        margin = " " * (INDENT * line.indent)
        for place, comment in enumerate(comments):
            if place:
                self._blanks(min(self.places.blank_before(comment.start), _most(line.indent)))
            self.out.append(f"{margin}{_comment_text(comment)}\n")
        if comments and line.kind != "header":
            self._blanks(min(self.places.blank_before(line.start), _most(line.indent)))
        is_function = line.kind == "function" or (line.kind == "header" and self._in_function_header(line))
        del self.levels[line.indent :]
        self.levels.append((self.places.column(line.start), is_function))
        text = render([(line.indent, line.doc)], self.width).text.rstrip("\n")
        kept = logical.kept or (self._too_wide(text) and not self._too_wide(self.places.moved(logical, 0)))
        if kept:
            text, self.written = margin + self.places.moved(logical, INDENT * line.indent), number
        last = at + 1 == len(lines) or self.places.index(lines[at + 1].start) != number
        trailing = self.places.trailing.get(number) if last or kept else None
        self.out.append(text + (f"  {_comment_text(trailing)}\n" if trailing is not None else "\n"))
        self.previous = line

    def _blank_lines(self, line: Line, wanted: int) -> int:
        """How many empty lines stand above a line: as many as the author wrote, within what is usual."""
        before = self.previous
        if before is None or line.indent > before.indent or line.kind == "header":
            return 0
        behind_function = line.indent < before.indent and self.levels[line.indent][1]
        most = _most(line.indent)
        return most if line.kind == "function" or behind_function else min(wanted, most)

    def _too_wide(self, text: str) -> bool:
        return any(len(row) > self.width for row in text.split("\n"))

    def _in_function_header(self, line: Line) -> bool:
        """Whether the line above is a decorator, so that this one goes on with the head of a function."""
        return self.previous is not None and self.previous.indent == line.indent and self.levels[line.indent][1]

    def _blanks(self, count: int) -> None:
        if self.out:
            self.out.append("\n" * count)


def _most(indent: int) -> int:
    """The most empty lines above a line."""
    return 1 if indent else 2


def _comment_text(comment: Span) -> str:
    """A comment with a blank behind its sign."""
    text = comment.text.rstrip()
    return f"# {text[1:]}" if text[1:2] not in ("", " ", "!", "#", ":", "\t") else text
