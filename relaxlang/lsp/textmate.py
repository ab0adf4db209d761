"""The TextMate grammar of the language, made of the lexer's tables: for VS Code, Sublime Text, GitHub and others.

`python -m relaxlang.lsp.textmate` writes it to stdout; `rlx.tmLanguage.json` beside this file is its output.
"""

from __future__ import annotations

import json
from typing import Any

from relaxlang.lsp.names import NAMESPACES
from relaxlang.syntax.parser import language

_CONSTANTS = ("True", "False", "None")
_OPERATORS = ("and", "or", "not", "in", "is")


def grammar() -> dict[str, Any]:
    """The grammar as JSON data. TextMate matches within a line; strings with three quotes have a begin and an end."""
    tables, vocabulary = language()
    words = [word for word in vocabulary.names if word not in (*_CONSTANTS, *_OPERATORS)]
    patterns = dict(tables.patterns)
    numbers = "|".join(f"(?:{_portable(patterns[name])})" for name in ("FLOAT", "INT"))
    marks = "|".join(_escaped(m) for m in sorted(vocabulary.marks, key=len, reverse=True) if m not in "()[]{},.:@")
    return {
        "$schema": "https://raw.githubusercontent.com/martinring/tmlanguage/master/tmlanguage.json",
        "name": "Relax",
        "scopeName": "source.rlx",
        "fileTypes": ["rlx"],
        "patterns": [
            {"name": "comment.line.number-sign.rlx", "match": "#.*$"},
            *(_long_string(quote) for quote in ('"', "'")),
            *(_string(quote) for quote in ('"', "'")),
            {"name": "entity.name.function.decorator.rlx", "match": r"^\s*@[\w.]+"},
            {
                "match": r"\b(def)\s+(\w+)",
                "captures": {"1": {"name": "keyword.control.rlx"}, "2": {"name": "entity.name.function.rlx"}},
            },
            {
                "match": r"\b(class)\s+(\w+)",
                "captures": {"1": {"name": "keyword.control.rlx"}, "2": {"name": "entity.name.type.rlx"}},
            },
            {"name": "constant.language.rlx", "match": _word(_CONSTANTS)},
            {"name": "keyword.operator.word.rlx", "match": _word(_OPERATORS)},
            {"name": "keyword.control.rlx", "match": _word(sorted(words))},
            {
                "match": rf"\b({'|'.join(NAMESPACES)})\.([\w.]+)",
                "captures": {"1": {"name": "support.module.rlx"}, "2": {"name": "support.function.rlx"}},
            },
            {"name": "constant.numeric.rlx", "match": rf"(?<![\w.])(?:{numbers})"},
            {"name": "keyword.operator.rlx", "match": marks},
        ],
    }


def _word(words: Any) -> str:
    return rf"\b(?:{'|'.join(words)})\b"


def _escaped(mark: str) -> str:
    return "".join("\\" + c if not c.isalnum() else c for c in mark)


def _portable(pattern: str) -> str:
    """Possessive repetitions are greedy ones there: they match the same here."""
    return pattern.replace("++", "+").replace("*+", "*")


def _string(quote: str) -> dict[str, Any]:
    return {
        "name": "string.quoted.rlx",
        "match": rf"(?:[rRuU])?{quote}(?:[^{quote}\\]|\\.)*{quote}",
    }


def _long_string(quote: str) -> dict[str, Any]:
    return {"name": "string.quoted.triple.rlx", "begin": f"(?:[rRuU])?{quote * 3}", "end": quote * 3}


def text() -> str:
    """The grammar's file."""
    return json.dumps(grammar(), indent=1) + "\n"


if __name__ == "__main__":
    print(text(), end="")
