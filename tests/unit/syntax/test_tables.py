"""The grammar's tables and their cache."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from relaxlang.base.resources import cache_read, cache_write, grammar_text, resource_dir
from relaxlang.syntax.tables import load_tables

PIPELINE = (("pipeline",), ("pipeline",))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RELAXLANG_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_tables_come_from_the_cache_and_damage_is_mended(cache: Path) -> None:
    fresh = load_tables.__wrapped__(*PIPELINE)
    (file,) = cache.iterdir()
    good = file.read_bytes()
    assert load_tables.__wrapped__(*PIPELINE) == fresh
    for bad in (b"", good[:-1], b"x" * len(good)):
        file.write_bytes(bad)
        assert load_tables.__wrapped__(*PIPELINE).words == fresh.words
        assert file.read_bytes() != bad


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("RELAXLANG_CACHE_DIR", str(tmp_path / "file"))
    assert load_tables.__wrapped__(*PIPELINE).words["{"] == "LBRACE"
    monkeypatch.setenv("RELAXLANG_CACHE_DIR", "")
    cache_write("name", b"data")
    assert cache_read("name") is None


def test_a_warm_start_does_not_import_lark(cache: Path) -> None:
    script = "import sys; from relaxlang.syntax.parser import language; language(); print('lark' in sys.modules)"
    runs = [subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True) for _ in "12"]
    assert [run.stdout.strip() for run in runs] == ["True", "False"]


@pytest.mark.parametrize(("files", "starts"), [(("rlx", "expr", "lexical"), ("module", "expression")), PIPELINE])
def test_the_grammar_has_no_conflicts(
    files: tuple[str, ...], starts: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    from lark import Lark, logger

    logger.addHandler(caplog.handler)
    with caplog.at_level(logging.DEBUG, logger=logger.name):
        Lark("\n".join(map(grammar_text, files)), parser="lalr", lexer="basic", start=list(starts), debug=True)
    logger.removeHandler(caplog.handler)
    assert [r.getMessage() for r in caplog.records if "onflict" in r.getMessage()] == []


def test_resources_are_found() -> None:
    assert (resource_dir("grammar") / "rlx.lark").is_file() and resource_dir("stdlib").is_dir()
