"""Documents: text that knows where its lines may break, and which node each part of it stands for.

After Wadler's and Lindig's printers ("Strictly Pretty", 2000), with one kind of group: a bracket, laid out on one line
if it fits, else with an item a line. Two choices keep it linear in Python: every document knows its flat width from
construction, so whether a bracket fits is one comparison and a bounded look ahead; and what cannot break is one plain
`str`. Nothing here recurses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

INDENT = 4
COMPACT = 40
"""A bracket whose flat text is not wider than this is never broken."""
DEEPEST = 50
"""At more steps of indentation nothing is broken: nobody reads it, and the margins would grow as a square."""
_JOINED = 200  # texts are joined up to this length; without a limit a long chain would be copied again and again


class Concat:
    """Documents one after the other."""

    __slots__ = ("parts", "width")

    def __init__(self, parts: Sequence[Doc], width: int) -> None:
        self.parts = parts
        self.width = width


class Bracket:
    """`opening item, item closing`; `trailing`: when broken, a comma follows the last item."""

    __slots__ = ("opening", "items", "closing", "trailing", "width")

    def __init__(self, opening: str, items: Sequence[Doc], closing: str, trailing: bool, width: int) -> None:
        self.opening = opening
        self.items = items
        self.closing = closing
        self.trailing = trailing
        self.width = width


class Mark:
    """A document that stands for `node`."""

    __slots__ = ("node", "content", "width")

    def __init__(self, node: object, content: Doc) -> None:
        self.node = node
        self.content = content
        self.width = _width(content)


Doc = str | Concat | Bracket | Mark


def _width(doc: Doc) -> int:
    """The columns that a document takes on one line."""
    return len(doc) if doc.__class__ is str else doc.width  # type: ignore[union-attr]


def concat(*parts: Doc) -> Doc:
    """Documents one after the other."""
    width, plain = 0, True
    for part in parts:
        if part.__class__ is str:
            width += len(part)
        else:
            width += part.width  # type: ignore[union-attr]
            plain = False
    if plain and width <= _JOINED:
        return "".join(parts)  # type: ignore[arg-type]
    return Concat(parts, width)


def bracket(
    opening: str, items: Sequence[Doc], closing: str, *, trailing: bool = True, lone_comma: bool = False
) -> Doc:
    """`opening item, item closing`, on one line or with one item a line.

    `trailing`: whether a comma may follow the last item; `lone_comma`: whether one must when the item is alone, as in
    one-element tuples.
    """
    if not items:
        return opening + closing
    if lone_comma and len(items) == 1:
        closing, trailing = "," + closing, False
    width, plain = len(opening) + len(closing) + 2 * len(items) - 2, True
    for item in items:
        if item.__class__ is str:
            width += len(item)
        else:
            width += item.width  # type: ignore[union-attr]
            plain = False
    if plain and width <= COMPACT:
        return f"{opening}{', '.join(items)}{closing}"  # type: ignore[arg-type]
    return Bracket(opening, items, closing, trailing, width)


# --- layout -----------------------------------------------------------------------------------------------------------
class Place(NamedTuple):
    """Where a node stands in a text: the offsets of its first character and behind its last."""

    node: object
    start: int
    end: int


class Rendered(NamedTuple):
    """A laid-out text with its source map: `places` in order of their ends, inner nodes before outer ones."""

    text: str
    places: list[Place]

    def find(self, node: object) -> Place | None:
        """The first place of a node, by identity."""
        return next((place for place in self.places if place.node is node), None)

    def line_column(self, offset: int) -> tuple[int, int]:
        """The line and the column, both from 1, of an offset."""
        return self.text.count("\n", 0, offset) + 1, offset - (self.text.rfind("\n", 0, offset) + 1) + 1

    def underlined(self, place: Place, context: int | None = None) -> str:
        """The text with `^^^^` under (the first line of) a place; `context`: only so many lines around it."""
        line, column = self.line_column(place.start)
        lines = self.text.splitlines()
        length = min(place.end - place.start, len(lines[line - 1]) - column + 1)
        lines.insert(line, " " * (column - 1) + "^" * max(length, 1))
        if context is None:
            return "\n".join(lines)
        first, last = max(line - 1 - context, 0), min(line + 1 + context, len(lines))
        above, below = ["..."] if first else [], ["..."] if last < len(lines) else []
        return "\n".join([*above, *lines[first:last], *below])


class _End:
    """On the renderer's stack: here the text of a mark ends."""

    __slots__ = ("mark", "start", "width")

    def __init__(self, mark: Mark, start: int) -> None:
        self.mark = mark
        self.start = start
        self.width = 0


class _NewLine:
    """On the renderer's stack: a line ends here."""

    __slots__ = ("width",)


_NEW_LINE = _NewLine()
_Stack = list[tuple[int, Doc | _End | _NewLine]]


def render(lines: Iterable[tuple[int, Doc]], width: int = 120) -> Rendered:
    """Lay out logical lines, each an indentation in steps and a document, in `width` columns where that is possible."""
    out: list[str] = []
    places: list[Place] = []
    offset = 0
    for indent, doc in lines:
        margin = " " * (INDENT * indent)
        if doc.__class__ is str:
            text = f"{margin}{doc}\n" if doc else "\n"
            out.append(text)
            offset += len(text)
            continue
        out.append(margin)
        offset = _lay_out(doc, indent, width, out, offset + len(margin), places)
        out.append("\n")
        offset += 1
    return Rendered("".join(out), places)


def _lay_out(doc: Doc, indent: int, width: int, out: list[str], offset: int, places: list[Place]) -> int:
    """Append one logical line to `out`; the offset behind it."""
    column = INDENT * indent
    stack: _Stack = [(indent, doc)]
    while stack:
        level, top = stack.pop()
        if isinstance(top, Bracket):
            fits = top.width <= COMPACT or level > DEEPEST or column + top.width + _tail(stack, width) <= width
            _open(stack, level, top, fits)
            text = top.opening
        elif isinstance(top, Concat):
            stack.extend([(level, part) for part in reversed(top.parts)])
            continue
        elif isinstance(top, Mark):
            stack.append((level, _End(top, offset)))
            stack.append((level, top.content))
            continue
        elif isinstance(top, _End):
            places.append(Place(top.mark.node, top.start, offset))
            continue
        elif isinstance(top, _NewLine):
            text = "\n" + " " * (INDENT * level)
            column = -1  # the line end itself takes no column
        else:
            text = top
        out.append(text)
        offset += len(text)
        column += len(text)
    return offset


def _open(stack: _Stack, level: int, of: Bracket, fits: bool) -> None:
    """Put what follows the opening of a bracket on the stack, the last part first."""
    stack.append((level, of.closing))
    if fits:
        for at in range(len(of.items) - 1, -1, -1):
            stack.append((level, of.items[at]))
            if at:
                stack.append((level, ", "))
        return
    stack.append((level, _NEW_LINE))
    if of.trailing:
        stack.append((level, ","))
    for at in range(len(of.items) - 1, -1, -1):
        stack += [(level + 1, of.items[at]), (level + 1, _NEW_LINE)]
        if at:
            stack.append((level + 1, ","))


def _tail(stack: _Stack, width: int) -> int:
    """The columns up to the next line end of what follows a bracket; looks no further than `width`."""
    columns = 0
    for _, item in reversed(stack):
        if item.__class__ is str:
            columns += len(item)
        elif item is _NEW_LINE:
            break
        else:
            columns += item.width  # type: ignore[union-attr]
        if columns > width:
            break
    return columns
