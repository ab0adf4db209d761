"""Costs before a run: graphs, arithmetic, memory; and stages side by side."""

from __future__ import annotations

import pytest

from relaxlang.repl.session import Session

ATTENTION = """@R.function
def main(x: R.Tensor((n, 64), "float32"), w: R.Tensor((64, 64), "float32")):
    with R.dataflow():
        a = R.nn.relu(x)
        q = R.matmul(a, w)
        k = R.matmul(a, w)
        s = R.matmul(q, R.permute_dims(k))
        r = R.matmul(s, a)
        R.output(r)
    return r
"""


@pytest.fixture(scope="module")
def session() -> Session:
    made = Session()
    assert made.execute(ATTENTION).ok
    return made


def say(session: Session, text: str) -> str:
    result = session.execute(text)
    assert result.ok, [d.message for d in result.diagnostics]
    return result.text


def test_the_graph_has_rails_for_values_and_words_for_what_is_given(session: Session) -> None:
    assert say(session, ":graph").splitlines() == [
        "from outside: x n×64, w 64×64",
        "● a = nn.relu   n×64   with x",
        "├─╮",
        "│ ● q = matmul   n×64   with w",
        "├─│─╮",
        "│ │ ● k = matmul   n×64   with w",
        "│ │ ● lv = permute_dims   64×n",
        "│ ├─╯",
        "│ ● s = matmul   n×n",
        "├─╯",
        "● r = matmul   n×64",
        "● result",
    ]
    assert "v0 -> v2" in say(session, ":show dot main")


def test_no_line_is_wider_than_the_terminal() -> None:
    session = Session()
    session.width = 40
    session.execute(":load examples/digits_conv.rlx")
    for text in (":graph", ":show rlx tir", ":apply legalize-ops", ":diff --side", ":help show"):
        shown = say(session, text)
        assert text.startswith(":apply") or max(map(len, shown.splitlines())) <= 40


def test_many_values_at_once_go_by_their_names() -> None:
    lines = [f"    a{i} = R.exp(x)" for i in range(20)]
    program = '@R.function\ndef main(x: R.Tensor((4,), "float32")):\n' + "\n".join(lines)
    program += "\n    r = (" + ", ".join(f"a{i}" for i in range(20)) + ")\n    return r\n"
    session = Session()
    session.execute(program)
    assert say(session, ":graph").splitlines()[-3:] == [
        "├─┴─┴─┴─┴─┴─┴─┴─┴─┴─┴─╯",
        "● r = tuple   with a12, a13, a14, a15, a16, a17, a18, a19",
        "● result",
    ]


def test_flops(session: Session) -> None:
    table = say(session, ":flops main n=10").splitlines()
    total = table[-1].split()
    # A product of (10, 64) and (64, 64), since `q` and `k` are the same, and two with (10, 10); 640 maxima.
    assert total[:2] == ["total", f"{2 * (10 * 64 * 64 + 2 * 10 * 10 * 64) + 640:,}"]
    assert "n" in say(session, ":flops").splitlines()[-1]
    assert [d.code for d in session.execute(":flops main m=1").diagnostics] == ["RLX7005"]
    assert [d.code for d in session.execute(":flops nothing").diagnostics] == ["RLX7103"]


def test_memory(session: Session) -> None:
    said = say(session, ":mem main n=8")
    assert "2,048" in said and "with" not in said.splitlines()[-1]
    assert say(session, ":mem").endswith("with n = 16") and say(session, ":show memory") == say(session, ":mem")
    assert [d.code for d in session.execute(":mem main m=1").diagnostics] == ["RLX7005"]


def test_c_and_two_stages(session: Session) -> None:
    assert "int32_t rlx_" in say(session, ":show c")
    assert " │ " in say(session, ":show rlx c")
    assert [d.code for d in session.execute(":show rlx tir c").diagnostics] == ["RLX7102"]
