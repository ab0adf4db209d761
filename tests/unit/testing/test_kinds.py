"""The kinds of test files, with a stand-in for the language: a program is words, its canonical print one a line."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import relaxlang
from relaxlang.base.diagnostics import Diagnostic, DiagnosticError
from relaxlang.base.source import Source, Span
from relaxlang.testing import kinds


class Words:
    def __init__(self, words: list[str]) -> None:
        self.words = words

    def script(self) -> str:
        return "".join(f"{w}\n" for w in self.words)


def parse(text: str, filename: str, warnings: object = None) -> Words:
    source = Source(filename, text)
    lines = [line.partition("#")[0] for line in text.split("\n")]
    wrong = [i for i, line in enumerate(lines) if "bad" in line]
    if wrong:
        spans = [Span(source, source.line_starts[i], source.line_starts[i] + 3) for i in wrong]
        raise DiagnosticError(Diagnostic("RLX0001", "a `bad` word", span) for span in spans)
    return Words(" ".join(lines).split())


def assert_structural_equal(a: Words, b: Words) -> None:
    assert a.words == b.words


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(relaxlang, "parse", parse, raising=False)
    monkeypatch.setattr(relaxlang, "assert_structural_equal", assert_structural_equal, raising=False)
    yield


def test_errors(tmp_path: Path) -> None:
    path = tmp_path / "a.rlx"
    path.write_text("good\nbad  # error[RLX0001]: `bad` word\n")
    kinds.check_errors(path, bless=False)
    path.write_text("good  # error[RLX0001]\nbad\n")
    with pytest.raises(kinds.Mismatch) as caught:
        kinds.check_errors(path, bless=False)
    assert str(caught.value).split("\n")[:4] == [
        "expected line 1: error[RLX0001]; not reported",
        "not expected: line 2: error[RLX0001]: a `bad` word",
        "",
        "error[RLX0001]: a `bad` word",
    ]
    path.write_text("good\n")
    with pytest.raises(kinds.Mismatch, match="announces no diagnostic"):
        kinds.check_errors(path, bless=False)


def test_print_keeps_the_comments_at_the_head(tmp_path: Path) -> None:
    path = tmp_path / "a.rlx"
    path.write_text("# Why this file.\n\none\ntwo\n")
    kinds.check_print(path, bless=False)
    path.write_text("# Why this file.\n\none two\n")
    with pytest.raises(kinds.Mismatch, match=r"-one two\n\+one\n\+two"):
        kinds.check_print(path, bless=False)
    kinds.check_print(path, bless=True)
    assert path.read_text() == "# Why this file.\n\none\ntwo\n"
    kinds.check_parse(path, bless=False)


def test_parse_wants_a_stable_print(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.rlx"
    path.write_text("one")
    prints = iter(["one\n", "one \n"])
    monkeypatch.setattr(Words, "script", lambda self: next(prints))
    with pytest.raises(kinds.Mismatch, match="second print"):
        kinds.check_parse(path, bless=False)
