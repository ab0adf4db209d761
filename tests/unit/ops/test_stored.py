"""Trees in the cache: what comes back is what was parsed, and whatever else is there is no entry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from relaxlang.base import resources
from relaxlang.base.diagnostics import Diagnostics
from relaxlang.base.node import Node
from relaxlang.base.resources import cache_write, resource_dir
from relaxlang.base.source import Source, Span
from relaxlang.ops import stored
from relaxlang.syntax import tree
from relaxlang.syntax.parser import parse_surface

TEXTS = sorted(resource_dir("stdlib").rglob("*.rlx"))


def same(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, Span):
        return (a.source, a.start, a.end) == (b.source, b.start, b.end)
    if isinstance(a, Node):
        return same(a.span, b.span) and all(same(getattr(a, n), getattr(b, n)) for n in a.FIELDS)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def parse(source: Source) -> tree.Module:
    diagnostics = Diagnostics()
    module = parse_surface(source, diagnostics)
    diagnostics.check()
    return module


def refuse(source: Source) -> tree.Module:
    raise AssertionError("parsed again")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(resources, "cache_dir", lambda: tmp_path)
    return tmp_path


@pytest.mark.parametrize("path", TEXTS[::6], ids=lambda p: p.stem)
def test_trees_come_back(path: Path, cache: Path) -> None:
    source = Source(path.name, path.read_text(encoding="utf-8"))
    first = stored.parsed(source, parse)
    assert same(first, stored.parsed(source, refuse))


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[0]", b"[[]]", b"[9999,1,2]", b"[0,0,1,5,6,7,8,9]", b"\xff", b"[" * 9000]
)
def test_damaged_entries_are_parsed_again(content: bytes, cache: Path) -> None:
    source = Source("one.rlx", "def f(x):\n    return x + 1.5\n")
    wanted = stored.parsed(source, parse)
    (entry,) = cache.iterdir()
    cache_write(entry.name, content)  # a whole entry of something else
    assert same(stored.parsed(source, parse), wanted)
    entry.write_bytes(content)  # a torn one
    assert same(stored.parsed(source, parse), wanted)
    assert same(stored.parsed(source, refuse), wanted)


def test_another_text_is_another_entry(cache: Path) -> None:
    for text in ("def f(x):\n    return x\n", "def f(x):\n    return y\n"):
        stored.parsed(Source("one.rlx", text), parse)
    assert len(list(cache.iterdir())) == 2
