"""Places in a text as the protocol counts them: lines and columns from 0, columns in UTF-16 units."""

from __future__ import annotations

from lsprotocol import types as lsp

from relaxlang.base.source import Source, Span


def position(source: Source, offset: int) -> lsp.Position:
    """The protocol's position of an offset."""
    line, column = source.position(offset)
    return lsp.Position(line - 1, _units(source.line(line)[: column - 1]))


def offset(source: Source, place: lsp.Position) -> int:
    """The offset of a position; the end of the line, or of the text, for one beyond."""
    if place.line >= len(source.line_starts):
        return len(source.text)
    text = source.line(place.line + 1)
    units = 0
    for column, character in enumerate(text):
        if units >= place.character:
            return source.line_starts[place.line] + column
        units += _units(character)
    return source.line_starts[place.line] + len(text)


def range_of(span: Span) -> lsp.Range:
    """The protocol's range of a span."""
    return lsp.Range(position(span.source, span.start), position(span.source, span.end))


def whole(source: Source) -> lsp.Range:
    """The range of a whole text."""
    return lsp.Range(lsp.Position(0, 0), position(source, len(source.text)))


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2
