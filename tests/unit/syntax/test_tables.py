"""The grammar's tables, and where they are kept."""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from relaxlang.base import resources
from relaxlang.base.resources import grammar_text, keep_made, read_made, resource_dir
from relaxlang.syntax import tables
from relaxlang.syntax.tables import PIPELINE, load_tables, shipped_tables


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "kept"))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setenv("RELAXLANG_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "kept"


def test_tables_are_kept_and_damage_is_mended(kept: Path) -> None:
    fresh = load_tables.__wrapped__(*PIPELINE)
    (file,) = kept.rglob("*.json")
    good = file.read_bytes()
    assert load_tables.__wrapped__(*PIPELINE) == fresh
    for bad in (b"", good[:-1], b"x" * len(good)):
        file.write_bytes(bad)
        assert load_tables.__wrapped__(*PIPELINE).words == fresh.words
        assert file.read_bytes() != bad


def test_without_bytecode_it_goes_to_the_cache(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    origin = resource_dir("grammar") / "pipeline.lark"
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    keep_made(origin, "key", b"data")
    assert not kept.exists() and read_made(origin, "key") == b"data" and read_made(origin, "other") is None
    monkeypatch.setenv("RELAXLANG_CACHE_DIR", "")
    assert read_made(origin, "key") is None
    keep_made(origin, "key", b"data")
    assert read_made(origin, "key") is None


def test_places_that_cannot_be_written_are_no_error(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.write_text("in the way")
    assert load_tables.__wrapped__(*PIPELINE).words["{"] == "LBRACE"
    assert len(list((kept.parent / "cache").iterdir())) == 1
    monkeypatch.setenv("RELAXLANG_CACHE_DIR", str(kept))
    assert load_tables.__wrapped__(*PIPELINE).words["{"] == "LBRACE"


def test_tables_that_a_wheel_has_are_taken_while_they_fit(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = kept.parent / "grammar"
    shutil.copytree(resource_dir("grammar"), installed)
    for name, content in shipped_tables().items():
        (installed / name).write_bytes(content)
    monkeypatch.setattr(tables, "resource_dir", lambda name: installed)
    monkeypatch.setattr(resources, "resource_dir", lambda name: installed)
    made = load_tables.__wrapped__(*PIPELINE)
    assert made.words["{"] == "LBRACE" and not kept.exists()
    grammar = installed / "pipeline.lark"
    grammar.write_text(grammar.read_text().replace('"{"', '"<"'))
    assert "<" in load_tables.__wrapped__(*PIPELINE).words and len([*kept.rglob("*.json")]) == 1


def test_a_warm_start_does_not_import_lark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path))
    monkeypatch.setenv("RELAXLANG_CACHE_DIR", "")
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
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
