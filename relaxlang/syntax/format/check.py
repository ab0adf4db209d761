"""Whether a formatted text is the same program: the same surface tree, whose comments come in the same order."""

from __future__ import annotations

from typing import Any

from relaxlang.base.diagnostics import Diagnostics, fail
from relaxlang.base.node import Node
from relaxlang.base.source import Source
from relaxlang.syntax import tree
from relaxlang.syntax.parser import parse_surface

_PLACES = frozenset({"name_span", "comments"})


def assert_same_program(source: Source, before: tree.Module, text: str) -> None:
    """RLX9003 unless `text` reads as `before`, which was read from `source`: the formatter's own fault."""
    diagnostics = Diagnostics()
    after = parse_surface(Source(source.name, text), diagnostics)
    comments = [_bare(c.text) for c in before.comments], [_bare(c.text) for c in after.comments]
    if diagnostics.has_errors() or comments[0] != comments[1] or not same_tree(before, after):
        fail("RLX9003", f"formatting `{source.name}` would change what it means; nothing is written")


def same_tree(a: Node, b: Node) -> bool:
    """Whether two surface trees say the same: all fields alike but for places and how literals are written.

    This is finer than comparing the modules that they state: it tells apart what elaboration makes equal.
    """
    pending: list[tuple[Any, Any]] = [(a, b)]
    while pending:
        x, y = pending.pop()
        if x.__class__ is not y.__class__:
            return False
        if isinstance(x, tree.Constant):
            if x.value.__class__ is not y.value.__class__ or x.value != y.value:
                return False
        elif isinstance(x, tree.Import):
            if _words(x.text) != _words(y.text):
                return False
        elif isinstance(x, Node):
            pending += [(getattr(x, f), getattr(y, f)) for f in x.FIELDS if f not in _PLACES]
        elif isinstance(x, tuple):
            if len(x) != len(y):
                return False
            pending += zip(x, y)
        elif x != y:
            return False
    return True


def _words(text: str) -> list[str]:
    return text.replace("\\\n", " ").split()


def _bare(comment: str) -> str:
    return comment[1:].strip()
