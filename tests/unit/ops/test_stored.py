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


def read(source: Source, path: Path, parse: stored.Parse) -> tuple[tree.Stmt, ...]:
    return tuple(statement.tree for statement in stored.parsed(source, path, parse))


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
    first = read(source, path, parse)
    assert same(first, parse(source).body)
    assert same(first, read(source, path, refuse))


def test_what_statements_define_is_known_without_their_trees() -> None:
    text = 'def f(x):\n    return x\n\n@R.op("nn.g")\ndef g(x: R.Tensor(S, D)) -> R.Tensor(S, D):\n    return x\n\n'
    source = Source("one.rlx", f'{text}@R.grad("nn.g", "h")\ndef of_g(x):\n    return x\n')
    wanted = [("function", "f", ()), ("operator", "g", ("nn.g",)), ("gradient", "of_g", ("nn.g", "h"))]
    for parser in (parse, refuse):
        found = stored.parsed(source, Path("one.rlx"), parser)
        assert [(*s.defines[:2], tuple(s.defines.operators)) for s in found] == wanted
        assert found[0].tree is found[0].tree


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[0]",
        b"[[]]",
        b"[9999,1,2]",
        b"[0,0,1,5,6,7,8,9]",
        b"\xff",
        b"[" * 9000,
        b'[[["function","f",[]],"[0]"]]',
        b'[[["function","f",[]],"[9999,1,2]"]]',
        b'[[["function",1,[]],""]]',
    ],
)
def test_damaged_entries_are_parsed_again(content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, path, keys = Source("one.rlx", "def f(x):\n    return x + 1.5\n"), tmp_path / "one.rlx", []
    monkeypatch.setattr(stored, "read_made", lambda path, key: keys.append(key) or read_made(path, key))
    wanted = read(source, path, parse)
    (entry,) = (tmp_path / "kept").rglob("*.json")
    keep_made(path, keys[0], content)  # a whole entry of something else
    assert same(read(source, path, parse), wanted)
    entry.write_bytes(content)  # a torn one
    assert same(read(source, path, parse), wanted)
    assert same(read(source, path, refuse), wanted)


def test_another_text_replaces_the_entry(tmp_path: Path) -> None:
    sources = [Source("one.rlx", f"def f(x):\n    return {name}\n") for name in "xy"]
    for source in sources:
        read(source, tmp_path / "one.rlx", parse)
    assert len(list((tmp_path / "kept").rglob("*.json"))) == 1
    read(sources[1], tmp_path / "one.rlx", refuse)
    with pytest.raises(AssertionError, match="parsed again"):
        read(sources[0], tmp_path / "one.rlx", refuse)
