"""Surface trees as plain JSON, so that the files of `stdlib/` are parsed once and the trees read after that.

A node is a list: the number of its class, start and end of its span (-1 without one), its fields. A tuple is a list
after -1, a span in a field its start and end after -2. What is read is only ever built of the classes of `syntax.tree`;
a damaged entry is no entry.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from relaxlang.base.node import Node
from relaxlang.base.resources import keep_made, read_made, resource_dir
from relaxlang.base.source import Source, Span
from relaxlang.syntax import actions, expr_actions, lalr, lexer, literals, tree

_TUPLE, _SPAN = -1, -2
_CLASSES: tuple[type[Node], ...] = tuple(
    c for c in vars(tree).values() if isinstance(c, type) and issubclass(c, Node) and c is not Node
)
_NUMBER = {cls: k for k, cls in enumerate(_CLASSES)}


def parsed(source: Source, path: Path, parse: Callable[[Source], tree.Module]) -> tree.Module:
    """The tree of the text of a shipped file: what was kept, or parsed and kept. `parse` raises for errors."""
    key = f"{_version()}\0{source.text}"
    stored = read_made(path, key)
    if stored is not None:
        try:
            made = _decode(json.loads(stored), source)
        except (ValueError, TypeError, IndexError, KeyError, RecursionError):
            made = None
        if isinstance(made, tree.Module):
            return made
    module = parse(source)
    keep_made(path, key, json.dumps(_encode(module), separators=(",", ":")).encode())
    return module


@lru_cache(maxsize=1)
def _version() -> str:
    """What a tree depends on besides the text: the grammar, and the code that makes trees."""
    files = [Path(str(m.__file__)) for m in (actions, expr_actions, lalr, lexer, literals, tree)]
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
