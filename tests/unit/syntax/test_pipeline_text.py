"""Pipelines as text."""

from __future__ import annotations

import pytest

from relaxlang.base.diagnostics import Diagnostics
from relaxlang.base.source import Source
from relaxlang.syntax.pipeline_text import PassSpec, parse_pipeline


def parse(text: str) -> tuple[list[PassSpec], list[str]]:
    diagnostics = Diagnostics()
    specs = parse_pipeline(Source("pipeline", text), diagnostics)
    return specs, [f"{d.span} {d.code} {d.message}" for d in diagnostics.items]


def test_passes_and_options() -> None:
    specs, errors = parse(
        "legalize-ops{skip=matmul,x=[1,-2], y = 'a b'},\n fuse-ops{on, off=false, r=1e-3, t=x86-64-v3, n=none,}, n"
    )
    assert errors == []
    assert [(s.name, s.options) for s in specs] == [
        ("legalize-ops", {"skip": "matmul", "x": [1, -2], "y": "a b"}),
        ("fuse-ops", {"on": True, "off": False, "r": 1e-3, "t": "x86-64-v3", "n": None}),
        ("n", {}),
    ]
    assert specs[0].span.text == "legalize-ops{skip=matmul,x=[1,-2], y = 'a b'}"
    assert specs[0].option_spans["x"].text == "x=[1,-2]"


def test_an_empty_text_is_an_empty_pipeline() -> None:
    assert parse("") == parse(" ") == ([], [])


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a b", "pipeline:1:3 RLX0008 expected the end of the text, `,` or `{`, found `b`"),
        ("a{b=}", "pipeline:1:5 RLX0008 expected a word, a number, a string or `[`, found `}`"),
        ("a{b=1", "pipeline:1:2 RLX0004 `{` is never closed"),
        ("a{b=1}}", "pipeline:1:7 RLX0005 unmatched `}`"),
        ("a{b=1, b=2}", "pipeline:1:8 RLX0015 option `b` is given twice"),
        ("a;b", "pipeline:1:2 RLX0001 unexpected character `;`"),
    ],
)
def test_errors(text: str, error: str) -> None:
    assert parse(text)[1] == [error]
