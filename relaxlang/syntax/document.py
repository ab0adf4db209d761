"""Documents: text that knows where its lines may break, and which node each part of it stands for.

The algebra is Wadler's and Lindig's ("Strictly Pretty", 2000): text, `LINE`, `nest`, `group`, and `mark` for the source
map. Two choices keep it linear in Python: every document knows its flat width from construction, so whether a group
fits is one comparison and a bounded look ahead; and a short text stays a plain `str`. Nothing here recurses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

INDENT = 4
COMPACT = 40
"""A group whose flat text is not wider than this is never broken."""
DEEPEST = 50
"""At more steps of indentation nothing is broken: nobody reads it, and the margins would grow as a square."""


class Line:
    """A place to break: a line's end in a broken group, else the text `flat`; a hard one breaks always."""

    __slots__ = ("flat", "width")

    def __init__(self, flat: str) -> None:
        self.flat = flat
        self.width = len(flat)


LINE = Line(" ")
SOFT = Line("")


class IfBroken:
    """Text that stands only in a broken group: the comma after a last item."""

    __slots__ = ("text", "width")

    def __init__(self, text: str) -> None:
        self.text = text
        self.width = 0


TRAILING_COMMA = IfBroken(",")


class Concat:
    """Documents one after the other."""

    __slots__ = ("parts", "width")

    def __init__(self, parts: Sequence[Doc], width: int) -> None:
        self.parts = parts
        self.width = width


class Group(Concat):
    """Parts that are laid out on one line if they fit, else with all their own breaks as line ends."""

    __slots__ = ()


class Nest:
    """A document whose line ends are followed by one more step of indentation."""

    __slots__ = ("content", "width")

    def __init__(self, content: Doc) -> None:
        self.content = content
        self.width = width_of(content)


class Mark:
    """A document that stands for `node`."""

    __slots__ = ("node", "content", "width")

    def __init__(self, node: object, content: Doc) -> None:
        self.node = node
        self.content = content
        self.width = width_of(content)


Doc = str | Line | IfBroken | Concat | Nest | Mark


def width_of(doc: Doc) -> int:
    """The columns that a document takes on one line."""
    return len(doc) if doc.__class__ is str else doc.width  # type: ignore[union-attr]


def concat(*parts: Doc) -> Doc:
    """Documents one after the other; short texts become one text."""
    width, plain = 0, True
    for part in parts:
        if part.__class__ is str:
            width += len(part)
        else:
            width += part.width  # type: ignore[union-attr]
            plain = False
    if plain and width <= COMPACT:
        return "".join(parts)  # type: ignore[arg-type]
    return Concat(parts, width)


def bracket(
    opening: str, items: Sequence[Doc], closing: str, *, trailing: bool = True, lone_comma: bool = False
) -> Doc:
    """`opening item, item closing` as a group that breaks into one item a line.

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
    inner: list[Doc] = [SOFT]
    for at, item in enumerate(items):
        if at:
            inner += (",", LINE)
        inner.append(item)
    if trailing:
        inner.append(TRAILING_COMMA)
    content = Concat(inner, width - len(opening) - len(closing))
    return Group((opening, Nest(content), SOFT, closing), width)


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

    __slots__ = ("mark", "start")

    def __init__(self, mark: Mark, start: int) -> None:
        self.mark = mark
        self.start = start


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
    stack: list[tuple[int, bool, Doc | _End]] = [(indent, False, doc)]
    while stack:
        level, broken, top = stack.pop()
        if isinstance(top, str):
            text = top
        elif isinstance(top, Group):
            fits = top.width <= COMPACT or level > DEEPEST or column + top.width + _tail(stack, width) <= width
            stack.extend([(level, not fits, part) for part in reversed(top.parts)])
            continue
        elif isinstance(top, Concat):
            stack.extend([(level, broken, part) for part in reversed(top.parts)])
            continue
        elif isinstance(top, Nest):
            stack.append((level + 1, broken, top.content))
            continue
        elif isinstance(top, Mark):
            stack.append((level, broken, _End(top, offset)))
            stack.append((level, broken, top.content))
            continue
        elif isinstance(top, _End):
            places.append(Place(top.mark.node, top.start, offset))
            continue
        elif isinstance(top, IfBroken):
            text = top.text if broken else ""
        elif broken:
            text = "\n" + " " * (INDENT * level)
            out.append(text)
            offset += len(text)
            column = INDENT * level
            continue
        else:
            text = top.flat
        out.append(text)
        offset += len(text)
        column += len(text)
    return offset


def _tail(stack: list[tuple[int, bool, Doc | _End]], width: int) -> int:
    """The columns that what follows a group takes up to its next possible break; looks no further than `width`."""
    columns = 0
    work: list[tuple[bool, Doc | _End]] = []
    for _, outer_broken, outer in reversed(stack):
        work.append((outer_broken, outer))
        while work:
            broken, doc = work.pop()
            if isinstance(doc, str):
                columns += len(doc)
            elif isinstance(doc, Concat):
                inner = broken and not isinstance(doc, Group)
                work.extend([(inner, part) for part in reversed(doc.parts)])
            elif isinstance(doc, (Nest, Mark)):
                work.append((broken, doc.content))
            elif isinstance(doc, Line):
                if broken:
                    return columns
                columns += doc.width
            if columns > width:
                return columns
    return columns
