"""Surface trees as plain JSON, so that the files of `stdlib/` are parsed once and the trees read after that.

Programs use few of a file's operators, so that each statement is a text of its own, beside what it defines, and is read
when it is needed. A node is a list: the number of its class, start and end of its span (-1 without one), its fields. A
tuple is a list after -1, a span in a field its start and end after -2. What is read is only ever built of the classes
of `syntax.tree`; a damaged entry is no entry.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

from relaxlang.base.node import Node
from relaxlang.base.resources import keep_made, read_made, resource_dir
from relaxlang.base.source import Source, Span
from relaxlang.ops import definition
from relaxlang.ops.definition import Defines, defines
from relaxlang.syntax import actions, expr_actions, lalr, lexer, literals, tree

_TUPLE, _SPAN = -1, -2
_CLASSES: tuple[type[Node], ...] = tuple(
    c for c in vars(tree).values() if isinstance(c, type) and issubclass(c, Node) and c is not Node
)
_NUMBER = {cls: k for k, cls in enumerate(_CLASSES)}

Parse = Callable[[Source], tree.Module]


class Statement:
    """A statement of a file: what it defines, and its `tree`, made when it is first looked at."""

    def __init__(self, defines: Defines, make: Callable[[], tree.Stmt]) -> None:
        self.defines = defines
        self._make = make

    @cached_property
    def tree(self) -> tree.Stmt:
        """The tree; always the same."""
        return self._make()


def parsed(source: Source, path: Path, parse: Parse) -> list[Statement]:
    """The statements of the text of a shipped file: what was kept, or parsed and kept. `parse` raises for errors."""
    key = f"{_version()}\0{source.text}"
    stored = read_made(path, key)
    if stored is not None:
        try:
            entries: list[tuple[Defines, str]] = json.loads(stored)
            if not entries or not isinstance(entries, list):
                raise TypeError("no entries of statements")
            return [_kept(entry, source, partial(_again, source, parse, at)) for at, entry in enumerate(entries)]
        except (ValueError, TypeError, RecursionError):
            pass  # of another form: made again below
    body = parse(source).body
    made = [Statement(defines(stmt), partial(body.__getitem__, at)) for at, stmt in enumerate(body)]
    entries = [(s.defines, json.dumps(_encode(s.tree), separators=(",", ":"))) for s in made]
    keep_made(path, key, json.dumps(entries, separators=(",", ":")).encode())
    return made


def _kept(entry: tuple[Defines, str], source: Source, again: Callable[[], tree.Stmt]) -> Statement:
    """The statement of an entry; `again` makes the tree when the entry turns out to be none of a tree."""

    def read() -> tree.Stmt:
        try:
            made = _decode(json.loads(text), source)
        except (ValueError, TypeError, IndexError, KeyError, RecursionError):
            made = None
        return made if isinstance(made, tree.Stmt) else again()

    (kind, name, operators), text = entry
    if not all(isinstance(part, str) for part in (kind, name, text, *operators)):
        raise TypeError("no entry of a statement")
    return Statement(Defines(kind, name, operators), read)


def _again(source: Source, parse: Parse, at: int) -> tree.Stmt:
    return parse(source).body[at]


@lru_cache(maxsize=1)
def _version() -> str:
    """What a tree depends on besides the text: the grammar, and the code that makes trees."""
    files = [Path(str(m.__file__)) for m in (actions, definition, expr_actions, lalr, lexer, literals, tree)]
    files += sorted(resource_dir("grammar").glob("*.lark"))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in (*files, Path(__file__)))).hexdigest()


def _encode(value: Any) -> Any:
    if isinstance(value, Node):
        start, end = (value.span.start, value.span.end) if value.span is not None else (-1, -1)
        return [_NUMBER[type(value)], start, end, *(_encode(getattr(value, name)) for name in value.FIELDS)]
    if isinstance(value, tuple):
        return [_TUPLE, *(_encode(v) for v in value)]
    if isinstance(value, Span):
        return [_SPAN, value.start, value.end]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"a {type(value).__name__} has no place in a stored tree")


def _decode(value: Any, source: Source) -> Any:
    if value.__class__ is not list:
        return value
    kind = value[0]
    if kind == _TUPLE:
        return tuple([_decode(v, source) if v.__class__ is list else v for v in value[1:]])
    if kind == _SPAN:
        return Span(source, value[1], value[2])
    cls, start = _CLASSES[kind], value[1]
    fields = [_decode(v, source) if v.__class__ is list else v for v in value[3:]]
    made: Any = cls
    return made(*fields, span=None if start < 0 else Span(source, start, value[2]))
