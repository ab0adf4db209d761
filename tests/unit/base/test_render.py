"""What a diagnostic looks like in each style, down to the column of every mark."""

import json
import subprocess
import sys
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaxlang.base.diagnostics import Diagnostic, DiagnosticError, Fix, Label
from relaxlang.base.excerpt import WINDOW
from relaxlang.base.render import render, summary
from relaxlang.base.source import Source, Span

PROGRAM = """\
@R.function
def main(x: R.Tensor((16, 784), "float32"), w: R.Tensor((700, 10), "float32")):
    # product

    # of both
    y = R.matmul(x, w)
    return y
"""


def at(source: Source, words: str, nth: int = 0) -> Span:
    start = -1
    for _ in range(nth + 1):
        start = source.text.index(words, start + 1)
    return Span(source, start, start + len(words))


@pytest.fixture
def matmul() -> Diagnostic:
    source = Source("mlp.rlx", PROGRAM)
    last_w = at(source, "w)")
    return Diagnostic(
        "RLX0203",
        "inner dimensions of `R.matmul` differ: 784 and 700",
        at(source, "R.matmul(x, w)"),
        label="cannot multiply (16, 784) by (700, 10)",
        labels=[Label(at(source, "784"), "`K` is 784 here"), Label(at(source, "700"), "but 700 here")],
        notes=["`R.matmul` is declared in stdlib", "two\nlines"],
        fixes=[Fix(Span(source, last_w.start, last_w.start + 1), "R.permute_dims(w)", "transpose the second operand")],
    )


def shown(text: str, start: int, end: int, label: str = "here", name: str = "t.rlx") -> list[str]:
    """The excerpt's lines, without the headline and the place."""
    diagnostic = Diagnostic("RLX0203", "m", Span(Source(name, text), start, end), label=label)
    return render([diagnostic]).split("\n")[2:]


def test_human(matmul: Diagnostic) -> None:
    assert render([matmul]) == textwrap.dedent("""\
        error[RLX0203]: inner dimensions of `R.matmul` differ: 784 and 700
          --> mlp.rlx:6:9
           |
         2 | def main(x: R.Tensor((16, 784), "float32"), w: R.Tensor((700, 10), "float32")):
           |                           --- `K` is 784 here            --- but 700 here
        ...
         6 |     y = R.matmul(x, w)
           |         ^^^^^^^^^^^^^^ cannot multiply (16, 784) by (700, 10)
           = note: `R.matmul` is declared in stdlib
           = note: two
                   lines
        help: transpose the second operand
           |
         6 |     y = R.matmul(x, R.permute_dims(w))
           |                     ~~~~~~~~~~~~~~~~~""")


def test_str_of_the_exception_shows_all_as_file_line_column(matmul: Diagnostic) -> None:
    other = Diagnostic("RLX0101", "`z` is not defined", at(matmul.span.source, "return y"))
    error = DiagnosticError([matmul, other])
    assert "--> mlp.rlx:6:9\n" in str(error) and "--> mlp.rlx:7:5\n" in str(error)
    assert (error.line, error.column) == (6, 9)


def test_labels_without_room_hang_below() -> None:
    source = Source("t.rlx", "y = f(x, w)\n")
    diagnostic = Diagnostic(
        "RLX0203", "m", at(source, "f(x, w)"), label="call",
        labels=[Label(at(source, "x, w"), "both"), Label(at(source, "w"), "second")],
    )  # fmt: skip
    assert render([diagnostic]).split("\n")[3:] == [
        " 1 | y = f(x, w)",
        "   |     ^^----^",
        "   |     | |  |",
        "   |     | |  second",
        "   |     | both",
        "   |     call",
    ]


def test_several_lines_show_first_and_last() -> None:
    text = "a = f(\n  1,\n  2,\n  3)\nb\n"
    assert shown(text, 4, text.index(")") + 1) == [
        "   |",
        " 1 | a = f(",
        "   |     ^^",
        "...",
        " 4 |   3)",
        "   |   ^^ here",
    ]
    assert shown("a = f(\n  1,\n  3)\n", 4, 16)[3] == " 2 |   1,"  # a gap of one line is filled


def test_a_span_up_to_the_line_break_stays_on_its_line() -> None:
    assert shown("abc\ndef\n", 0, 4) == ["   |", " 1 | abc", "   | ^^^ here"]


def test_end_of_file_empty_file_and_offsets_beyond_it() -> None:
    assert shown("ab", 2, 2) == ["   |", " 1 | ab", "   |   ^ here"]
    assert shown("ab\n", 3, 3) == ["   |", " 2 |", "   | ^ here"]
    assert shown("", 0, 0) == ["   |", " 1 |", "   | ^ here"]
    assert shown("", 7, 9) == ["   |", " 1 |", "   | ^ here"]
    assert shown("ab\r\n", 3, 4) == ["   |", " 1 | ab", "   |   ^ here"]


def test_tabs_and_wide_characters_keep_marks_aligned() -> None:
    assert shown("\tx = y", 5, 6) == ["   |", " 1 |     x = y", "   |         ^ here"]
    assert shown("s = '日本' + y", 11, 12) == ["   |", " 1 | s = '日本' + y", "   |              ^ here"]
    assert shown("é = e\u0301 + y", 9, 10)[2] == "   |         ^ here"


def test_characters_that_steer_the_terminal_are_shown() -> None:
    rows = shown("a\x1b[31m \u202e\ud800 b", 0, 1, label="\x1b]0;x")
    assert rows == ["   |", " 1 | a␛[31m \ufffd\ufffd b", "   | ^ ␛]0;x"]
    json.loads(render([Diagnostic("RLX0001", "\ud800", None)], style="json"))


def test_long_lines_are_cut_around_the_marks() -> None:
    text = "x" * 2_000_000 + "y" + "x" * 3_000_000
    line, marks = shown(text, 2_000_000, 2_000_001)[1:]
    assert len(line) == len(" 1 | ") + WINDOW + 2
    assert line[marks.index("^")] == "y" and line.startswith(" 1 | …x") and line.endswith("x…")
    source = Source("t.rlx", text)
    far = Diagnostic("RLX0203", "m", Span(source, 10, 11), labels=[Label(Span(source, 4_000_000, 4_000_010), "far")])
    assert [row[:6] for row in render([far]).split("\n")[3:]] == [" 1 | x", "   |  ", " 1 | …", "   |  "]


def test_wider_numbers_widen_the_gutter() -> None:
    text = "a\n" * 99 + "b\n"
    assert shown(text, 198, 199) == ["     |", " 100 | b", "     | ^ here"]


def test_places_in_two_files_and_none() -> None:
    one, two = Source("one.rlx", "a\n"), Source("two.rlx", "b\n")
    both = render([Diagnostic("RLX0203", "m", at(one, "a"), labels=[Label(at(two, "b"), "declared here")])])
    assert both.split("\n")[1] == "  --> one.rlx:1:1" and "  ::: two.rlx:1:1" in both
    assert render([Diagnostic("RLX5001", "no such target", help="use `llvm`")]) == (
        "error[RLX5001]: no such target\n   = help: use `llvm`"
    )


def test_fix_that_inserts_and_fix_over_lines() -> None:
    source = Source("t.rlx", "f(1\ng(\n2)\n")
    insert = Fix(Span(source, 3, 3), ")", "close it")
    join = Fix(Span(source, 6, 9), "2, 3)\nh()", "")
    text = render([Diagnostic("RLX0001", "m", help="mend it", fixes=[insert, join])])
    assert "help: close it\n  --> t.rlx:1:4\n   |\n 1 | f(1)\n   |    +" in text
    assert " 2 | g(2, 3)\n   |   ~~~~~\n 3 | h()\n   | ~~~" in text


def test_color_only_adds_escapes(matmul: Diagnostic) -> None:
    import re

    colored = render([matmul], color=True)
    assert "\033[1;31m^^^^^^^^^^^^^^ cannot" in colored and "\033[1;34m---" in colored
    assert re.sub(r"\033\[[0-9;]*m", "", colored) == render([matmul])


def test_short_and_github(matmul: Diagnostic) -> None:
    warning = Diagnostic("RLX0101", "100%: a,\nb", level="warning")
    assert render([matmul, warning], style="short").split("\n") == [
        "mlp.rlx:6:9: error[RLX0203]: inner dimensions of `R.matmul` differ: 784 and 700",
        "warning[RLX0101]: 100%: a, b",
    ]
    first, second = render([matmul, warning], style="github").split("\n")
    assert first.startswith("::error file=mlp.rlx,line=6,endLine=6,col=9,endColumn=23,title=RLX0203::inner dimensions")
    assert second == "::warning title=RLX0101::100%25: a,%0Ab"


def test_json(matmul: Diagnostic) -> None:
    first, second = (json.loads(row) for row in render([matmul, Diagnostic("RLX5001", "m")], style="json").split("\n"))
    assert first["span"]["start"] == {"line": 6, "col": 9, "offset": matmul.span.start}
    assert first["labels"][1] == {
        "file": "mlp.rlx",
        "span": {"start": {"line": 2, "col": 58, "offset": 69}, "end": {"line": 2, "col": 61, "offset": 72}},
        "text": "but 700 here",
    }
    assert first["fixes"][0]["replacement"] == "R.permute_dims(w)" and first["rendered"] == render([matmul])
    assert second["file"] is None and second["span"] is None


def test_summary(matmul: Diagnostic) -> None:
    warning = Diagnostic("RLX0101", "m", level="warning")
    assert summary([warning]) == ""
    assert summary([warning, matmul]) == "error: 1 error in 1 file; `relaxc --explain RLX0203` tells more"
    assert summary([matmul, matmul]) == "error: 2 errors in 1 file; `relaxc --explain RLX0203` tells more"


def test_a_process_that_dies_of_it_shows_the_text() -> None:
    script = "from relaxlang.base.diagnostics import fail\nfrom relaxlang.base.source import *\n"
    script += "fail('RLX0203', 'they differ', Span(Source('a.rlx', 'x'), 0, 1))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "error[RLX0203]: they differ\n  --> a.rlx:1:1" in done.stderr


TEXTS = st.text(st.sampled_from("ab \t\n\r日é\u0301\x1b\ud800\U0001f600"), max_size=40)
OFFSETS = st.integers(-2, 45)


@given(TEXTS, st.lists(st.tuples(OFFSETS, OFFSETS, TEXTS), min_size=1, max_size=4), st.booleans())
def test_nothing_breaks_a_rendering(text: str, places: list[tuple[int, int, str]], with_fix: bool) -> None:
    source = Source("t.rlx", text)
    spans = [Span(source, min(a, b), max(a, b)) for a, b, _ in places]
    labels = [Label(span, words) for span, (_, _, words) in zip(spans[1:], places[1:])]
    fixes = [Fix(spans[0], places[0][2], text)] if with_fix else []
    diagnostic = Diagnostic("RLX0001", text, spans[0], label=places[0][2], labels=labels, notes=[text], fixes=fixes)
    human = render([diagnostic])
    assert all(c == "\n" or (c >= " " and not "\x7f" <= c < "\xa0") for c in human)
    human.encode()
    assert f"--> t.rlx:{spans[0].line}:" in human and "^" in human
    assert len(render([diagnostic], style="short").splitlines()) == 1
    assert json.loads(render([diagnostic], style="json"))["rendered"] == human
    assert len(render([diagnostic], style="github").splitlines()) == 1
