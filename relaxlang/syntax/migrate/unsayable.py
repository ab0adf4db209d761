"""What a printed text says that the release of TVM it is meant for does not know."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from relaxlang.base.diagnostics import Diagnostic, Diagnostics
from relaxlang.base.node import Node
from relaxlang.base.source import Source, Span
from relaxlang.syntax import tree
from relaxlang.syntax.document import Rendered
from relaxlang.syntax.elaborate.decorators import decorator_name, dotted
from relaxlang.syntax.expr_actions import place
from relaxlang.syntax.migrate.comments import definitions
from relaxlang.syntax.migrate.releases import KEYWORDS, LIVES, Life
from relaxlang.syntax.parser import parse_surface


class _Construct(NamedTuple):
    """A name or word that the release does not know: how it is written, the entry of the table, where it stands."""

    name: str
    entry: str
    life: Life
    span: Span
    function: str


def unsayable(rendered: Rendered, module: tree.Module, source: Source, dialect: str) -> list[Diagnostic]:
    """An error for each construct of a printed text that the release lacks, at its place in the source, whose tree
    `module` is.

    The printed text is looked at and not the source: it is what the release would have to read, and it has renamed what
    can be renamed.
    """
    text = Source(f"<{dialect}>", rendered.text)
    functions = {d.name: place(d) for d in definitions(module)}
    found: list[Diagnostic] = []
    told: set[tuple[str, int]] = set()
    for item in sorted(_constructs(parse_surface(text, Diagnostics()), dialect), key=lambda c: c.span.start):
        in_function = functions.get(item.function)
        whole = item.entry == "R" and in_function is not None  # all of Relax: once for each function is enough
        at = in_function if whole else _origin(rendered, item.span, source) or in_function or item.span
        assert at is not None
        key = (item.entry, at.start)
        if key not in told:
            told.add(key)
            release = "TVM " + dialect.removeprefix("tvm-")
            message = f"{release} cannot say this: {item.life.text(item.name)}"
            found.append(Diagnostic("RLX0160", message, _first_line(at), help=item.life.instead))
    return found


def _first_line(span: Span) -> Span:
    """A place, without what stands on further lines."""
    stop = span.source.text.find("\n", span.start, span.end)
    return span if stop < 0 else Span(span.source, span.start, stop)


def _constructs(module: tree.Module, dialect: str) -> Iterator[_Construct]:
    """The names and words in a text that the release does not know."""
    pending: list[tuple[Any, str, bool]] = [(module, "", False)]
    while pending:
        node, function, in_kernel = pending.pop()
        if isinstance(node, tuple):
            pending += [(part, function, in_kernel) for part in node]
            continue
        if not isinstance(node, Node):
            continue
        if isinstance(node, tree.FunctionDef):
            function, in_kernel = node.name, any(decorator_name(d) == "T.prim_func" for d in node.decorators)
        for name, entry, life in _lives(node, in_kernel):
            if not life.covers(dialect) and node.span is not None:
                yield _Construct(name, entry, life, node.span, function)
        if not isinstance(node, tree.Attribute):
            pending += [(getattr(node, field), function, in_kernel) for field in node.FIELDS]
        elif not dotted(node):
            pending.append((node.value, function, in_kernel))


def _lives(node: Node, in_kernel: bool) -> Iterator[tuple[str, str, Life]]:
    """What a node writes, the entry for it, and its life."""
    if isinstance(node, tree.Call):
        for keyword in node.keywords:
            life = KEYWORDS.get((dotted(node.func), keyword.name or ""))
            if life is not None:
                yield f"{keyword.name}=", f"{keyword.name}=", life
    for name in _names(node, in_kernel):
        entry = name
        while entry and entry not in LIVES:
            entry = entry.rpartition(".")[0]
        if entry:
            yield name, entry, LIVES[entry]


def _names(node: Node, in_kernel: bool) -> list[str]:
    if isinstance(node, tree.Attribute):
        return [dotted(node)]
    if isinstance(node, tree.Break):
        return ["break"]
    if isinstance(node, tree.Continue):
        return ["continue"]
    return ["return"] if in_kernel and isinstance(node, tree.Return) else []


def _origin(rendered: Rendered, span: Span, source: Source) -> Span | None:
    """Where in the source the smallest node stands that covers a place in the text."""
    best: tuple[int, Span] | None = None
    for where in rendered.places:
        origin = getattr(where.node, "span", None)
        if where.start <= span.start and span.end <= where.end and origin is not None and origin.source is source:
            if best is None or where.end - where.start < best[0]:
                best = (where.end - where.start, origin)
    return best[1] if best is not None else None
