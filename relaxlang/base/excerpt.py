"""Source excerpts: numbered lines with marks and labels under the places that a diagnostic talks about.

Everything is laid out in terminal cells: tabs are expanded, wide characters take two cells, combining ones none, and
characters that could steer the terminal are shown as pictures. A long line is cut to a window around its marks.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from relaxlang.base.colors import paint
from relaxlang.base.source import Source, Span

TAB = 4
WINDOW = 120
"""The most characters of a source line that are shown at once."""
LEAD = 40
"""How many of them stand before the first mark when a line is cut."""


class Mark(NamedTuple):
    """A place to underline with `symbol`, the words for it, and the style of both."""

    span: Span
    text: str
    symbol: str
    style: str


class _Piece(NamedTuple):
    """The part of a mark on one line: offsets `start` to `end` in the line; `start == end` still gets one symbol."""

    start: int
    end: int
    mark: Mark
    text: str


def excerpt(source: Source, marks: Sequence[Mark], width: int, color: bool) -> list[str]:
    """The lines of `source` that hold `marks`, each under a gutter of `width` digits, with the marks below it.

    Gaps of one line are filled, longer ones become `...`. A mark over several lines is drawn on its first and last line
    and has its words on the last.
    """
    pieces: dict[int, list[_Piece]] = {}
    for mark in marks:
        for line, piece in _split(source, mark):
            pieces.setdefault(line, []).append(piece)
    gutter = _Gutter(width, color)
    rows = [gutter.blank()]
    previous = 0
    for line in sorted(pieces):
        if previous and line == previous + 2:
            rows += _annotated(source.line(previous + 1), previous + 1, [], gutter)
        elif previous and line > previous + 2:
            rows.append(paint("...", "bold blue" if color else ""))
        rows += _annotated(source.line(line), line, pieces[line], gutter)
        previous = line
    return rows


def numbered(lines: Sequence[tuple[str, int, int]], first: int, symbol: str, width: int, color: bool) -> list[str]:
    """Replacement lines, numbered from `first`; each comes with the range of characters to underline in green."""
    gutter = _Gutter(width, color)
    rows = [gutter.blank()]
    for number, (text, start, end) in enumerate(lines, first):
        mark = Mark(Span(Source("", text), start, end), "", symbol, "bold green")
        rows += _annotated(text, number, [_Piece(start, end, mark, "")] if start < end else [], gutter)
    return rows


def visible(text: str) -> str:
    """`text` with control characters, bidirectional overrides and lone surrogates made visible; line breaks stay."""
    return text if text.isascii() and text.isprintable() else "".join(c if c == "\n" else _shown(c) for c in text)


class _Gutter:
    def __init__(self, width: int, color: bool) -> None:
        self.width = width
        self.color = color

    def blank(self, text: str = "") -> str:
        return self._row("", text)

    def numbered(self, number: int, text: str) -> str:
        return self._row(str(number), text)

    def _row(self, number: str, text: str) -> str:
        head = paint(f" {number:>{self.width}} |", "bold blue" if self.color else "")
        return f"{head} {text}" if text else head


def _split(source: Source, mark: Mark) -> Iterator[tuple[int, _Piece]]:
    size = len(source.text)
    start = min(max(mark.span.start, 0), size)
    end = min(max(mark.span.end, start), size)
    line, column = source.position(start)
    # A span that ends just after a line break covers the break, not the next line.
    last, last_column = source.position(end - 1 if end > start and source.text[end - 1] == "\n" else end)
    if last == line:
        yield line, _Piece(column - 1, max(last_column, column) - 1, mark, mark.text)
        return
    text = source.line(line)
    yield line, _Piece(column - 1, max(len(text), column - 1), mark, "")
    text = source.line(last)
    indent = len(text) - len(text.lstrip())
    yield last, _Piece(min(indent, last_column - 1), last_column - 1, mark, mark.text)


def _annotated(text: str, number: int, pieces: Iterable[_Piece], gutter: _Gutter) -> Iterator[str]:
    """A line with its marks; when they don't fit one window, the line comes once for each window."""
    size = len(text)  # without the line break, which a mark may lie in
    kept = sorted((p._replace(start=min(p.start, size), end=min(p.end, size)) for p in pieces), key=lambda p: p[:2])
    for low, high, inside in _windows(size, kept):
        shown, cells = _cells(text, low, high)
        yield gutter.numbered(number, shown)
        for row in _mark_rows(inside, low, high, cells):
            yield gutter.blank(row.text(gutter.color))


def _windows(length: int, pieces: list[_Piece]) -> Iterator[tuple[int, int, list[_Piece]]]:
    if length <= WINDOW:
        yield 0, length, pieces
        return
    if not pieces:
        yield 0, WINDOW, []
    while pieces:
        low = max(0, min(pieces[0].start - LEAD, length - WINDOW))
        high = low + WINDOW
        inside = [p for p in pieces if p.start <= high]
        pieces = pieces[len(inside) :]
        yield low, high, inside


def _cells(text: str, low: int, high: int) -> tuple[str, list[int]]:
    """What `text[low:high]` looks like, and the cell at which each of its characters (and its end) begins."""
    shown, at, cells = [], 0, []
    if low > 0:
        shown, at = ["…"], 1
    for character in text[low:high]:
        cells.append(at)
        drawn = " " * (TAB - at % TAB) if character == "\t" else _shown(character)
        shown.append(drawn)
        at += _width(drawn)
    cells.append(at)
    if high < len(text):
        shown.append("…")
    return "".join(shown), cells


class _Row:
    """A row of styled cells that is written to in any order."""

    def __init__(self) -> None:
        self._cells: dict[int, tuple[str, str]] = {}
        self.end = 0

    def put(self, at: int, text: str, style: str) -> None:
        for character in text:
            width = _width(character)
            if width == 0 and at > 0:
                before = self._cells.get(at - 1, (" ", style))
                self._cells[at - 1] = (before[0] + character, style)
                continue
            self._cells[at] = (character, style)
            if width == 2:
                self._cells[at + 1] = ("", style)
            at += width
        self.end = max(self.end, at)

    def text(self, color: bool) -> str:
        if not color:
            return "".join(self._cells.get(i, (" ", ""))[0] for i in range(self.end))
        out, run, style = [], "", ""
        for i in range(self.end):
            character, wanted = self._cells.get(i, (" ", style))
            if wanted != style:
                out.append(paint(run, style))
                run, style = "", wanted
            run += character
        return "".join(out) + paint(run, style)


def _mark_rows(pieces: list[_Piece], low: int, high: int, cells: list[int]) -> Iterator[_Row]:
    """The underlines, with labels beside them where there is room and below them, on `|` lines, where there is none."""
    if not pieces:
        return
    first = _Row()
    placed = [(cells[p.start - low], max(cells[min(p.end, high) - low], cells[p.start - low] + 1), p) for p in pieces]
    # Short marks on top of long ones; of equal ones the primary mark on top.
    for start, end, piece in sorted(placed, key=lambda p: (p[0] - p[1], p[2].mark.symbol == "^")):
        first.put(start, piece.mark.symbol * (end - start), piece.mark.style)
    for start, end, piece in placed:  # a primary mark that short ones cover wholly still shows where it begins
        if piece.mark.symbol == "^" and "^" not in first.text(False)[start:end]:
            first.put(start, "^", piece.mark.style)
    hanging: list[tuple[int, _Piece, list[str]]] = []
    for index, (start, end, piece) in enumerate(placed):
        lines = visible(piece.text).split("\n") if piece.text else []
        following = min((other for other, _, _ in placed[index + 1 :]), default=None)
        covered = max((other for _, other, _ in placed[:index]), default=0)
        room = following is None or end + 2 + sum(map(_width, lines)) < following
        if len(lines) == 1 and room and covered <= end:
            first.put(end + 1, lines[0], piece.mark.style)
        elif lines:
            hanging.append((start, piece, lines))
    yield first
    yield from _hanging_rows(hanging)


def _hanging_rows(hanging: list[tuple[int, _Piece, list[str]]]) -> Iterator[_Row]:
    if hanging:
        yield _bars(hanging)
    while hanging:
        start, piece, lines = hanging.pop()
        for line in lines:
            row = _bars([item for item in hanging if item[0] < start])
            row.put(start, line, piece.mark.style)
            yield row


def _bars(hanging: list[tuple[int, _Piece, list[str]]]) -> _Row:
    row = _Row()
    for start, piece, _ in hanging:
        row.put(start, "|", piece.mark.style)
    return row


def _shown(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if 0x20 <= code < 0x7F or character.isprintable():
        return character
    # Format and separator characters, C1 controls, surrogates: joiners are harmless and part of some scripts' words.
    return character if character in "\u200c\u200d\u00a0\u3000" else "\ufffd"


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(_character_width(c) for c in text)


def _character_width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
