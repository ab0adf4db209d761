"""The formatter on damaged programs: it reports errors, or its result is stable and means the same."""

import pathlib
import random

import pytest

from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.base.source import Source
from relaxlang.syntax.format import format_source

ROOT = pathlib.Path(__file__).parents[2]
PROGRAMS = [path.read_text() for path in sorted([*ROOT.glob("stdlib/**/*.rlx"), *ROOT.glob("examples/*.rlx")])]
PIECES = [
    "#c", "# x\n", "\n", "    ", "(", ")", "[", "]", ",", "\\\n", '"""', '"', "'", "lambda x: ", "*", " if a else b",
    "not ", "-", "**", ":", ";", "\t", "\r\n", "elif x:\n", "else:\n", "@d\n", "# fmt: skip", "a, b", "(a)", "(a,)",
    "x[*i]", "\x0c", "é", "for i in y", '"a" "b"', "'q'",
]  # fmt: skip


def damaged(rng: random.Random) -> str:
    lines = rng.choice(PROGRAMS).split("\n")
    first = rng.randrange(len(lines))
    text = "\n".join(lines[first : first + rng.randrange(1, 25)])
    for _ in range(rng.randrange(4)):
        at = rng.randrange(len(text) + 1)
        text = text[:at] + rng.choice(PIECES) + text[at + rng.choice((0, 0, 0, 1, 3)) :]
    return text


@pytest.mark.parametrize("seed", range(10))
def test_damaged_programs(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(20):
        text, width = damaged(rng), rng.choice((40, 80, 120))
        try:
            made = format_source(Source("x.rlx", text), width)
        except DiagnosticError as error:
            assert not any(d.code.startswith("RLX9") for d in error.diagnostics), text
        else:
            assert format_source(Source("x.rlx", made), width) == made, text
