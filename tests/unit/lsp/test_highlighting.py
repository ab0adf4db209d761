"""Colours for other programs: Pygments and TextMate, from the language's own lexer."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import relaxlang
from relaxlang.lsp import textmate
from relaxlang.syntax.interactive import tokens

TEXT = '''\
@R.function
def main(x: R.Tensor((n, 4), "float32")):  # a comment
    """Long
    text."""
    y = R.add(x, R.const(1.5e-3)) if True else x
    return y
'''


@pytest.mark.extra("pygments")
def test_pygments() -> None:
    pygments = pytest.importorskip("pygments")
    from pygments.lexers import find_lexer_class_by_name
    from pygments.token import Comment, Keyword, Name, Number, String

    from relaxlang.lsp.pygments_lexer import RelaxLexer

    found = list(RelaxLexer().get_tokens(TEXT))
    assert "".join(text for _, text in found) == TEXT
    wanted = [(Keyword, "def"), (Name.Function, "main"), (Name.Namespace, "R"), (Comment.Single, "# a comment"),
              (Number, "1.5e-3"), (Keyword.Constant, "True"), (String, '"float32"')]  # fmt: skip
    assert not [w for w in wanted if w not in found]
    assert find_lexer_class_by_name("rlx").name == "Relax" and pygments is not None


def test_the_textmate_grammar_is_that_of_the_lexer() -> None:
    stored = Path(relaxlang.__file__).parent / "lsp" / "rlx.tmLanguage.json"
    assert stored.read_text() == textmate.text(), "run `python -m relaxlang.lsp.textmate`"
    for pattern in json.loads(stored.read_text())["patterns"]:
        re.compile(pattern.get("match") or pattern["begin"])


def test_textmate_finds_what_the_lexer_finds() -> None:
    scopes = {
        p["name"].split(".")[0]: p["match"] for p in textmate.grammar()["patterns"] if "match" in p and "name" in p
    }
    keywords = re.compile(
        next(p["match"] for p in textmate.grammar()["patterns"] if p.get("name") == "keyword.control.rlx")
    )
    for token in tokens(TEXT):
        word = TEXT[token.start : token.end]
        if token.kind == "keyword" and word not in ("and", "or", "not", "in", "is"):
            assert keywords.fullmatch(word)
        if token.kind == "comment":
            assert re.fullmatch(scopes["comment"], word)
