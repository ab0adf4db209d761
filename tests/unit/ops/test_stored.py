"""Trees that are kept: what comes back is what was parsed, and whatever else is there is no tree."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from relaxlang.base.diagnostics import Diagnostics
from relaxlang.base.node import Node
from relaxlang.base.resources import keep_made, read_made, resource_dir
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


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "kept"))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)


@pytest.mark.parametrize("path", TEXTS[::6], ids=lambda p: p.stem)
def test_trees_come_back(path: Path) -> None:
    source = Source(path.name, path.read_text(encoding="utf-8"))
    first = stored.parsed(source, path, parse)
    assert same(first, stored.parsed(source, path, refuse))


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[0]", b"[[]]", b"[9999,1,2]", b"[0,0,1,5,6,7,8,9]", b"\xff", b"[" * 9000]
)
def test_damaged_entries_are_parsed_again(content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, path, keys = Source("one.rlx", "def f(x):\n    return x + 1.5\n"), tmp_path / "one.rlx", []
    monkeypatch.setattr(stored, "read_made", lambda path, key: keys.append(key) or read_made(path, key))
    wanted = stored.parsed(source, path, parse)
    (entry,) = (tmp_path / "kept").rglob("*.json")
    keep_made(path, keys[0], content)  # a whole entry of something else
    assert same(stored.parsed(source, path, parse), wanted)
    entry.write_bytes(content)  # a torn one
    assert same(stored.parsed(source, path, parse), wanted)
    assert same(stored.parsed(source, path, refuse), wanted)


def test_another_text_replaces_the_entry(tmp_path: Path) -> None:
    sources = [Source("one.rlx", f"def f(x):\n    return {name}\n") for name in "xy"]
    for source in sources:
        stored.parsed(source, tmp_path / "one.rlx", parse)
    assert len(list((tmp_path / "kept").rglob("*.json"))) == 1
    stored.parsed(sources[1], tmp_path / "one.rlx", refuse)
    with pytest.raises(AssertionError, match="parsed again"):
        stored.parsed(sources[0], tmp_path / "one.rlx", refuse)
