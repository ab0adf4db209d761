"""What an editor asks while text is typed."""

from __future__ import annotations

import pytest

from relaxlang.syntax.interactive import accepts, is_complete, tokens


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("", "complete"),
        ("# note", "complete"),
        ("x = 1", "complete"),
        ("x = (1,", "incomplete"),
        ("x = '''a", "incomplete"),
        ("x = 1 + \\", "incomplete"),
        ("x = 1 + \\\n", "incomplete"),
        ("if x:", "incomplete"),
        ("@R.function", "incomplete"),
        ("if x:\n    y = 1", "incomplete"),
        ("if x:\n    y = 1\n", "complete"),
        ("def f(x):\n    return (x", "incomplete"),
        ("x = ", "invalid"),
        ("x = 'a", "invalid"),
        ("x = 1)", "invalid"),
        ("f(a b", "invalid"),
        ("f(x) = 1", "invalid"),
        ("try:", "invalid"),
    ],
)
def test_enter_submits_what_is_complete(text: str, answer: str) -> None:
    assert is_complete(text) == answer


def test_tokens_of_good_and_bad_text() -> None:
    text = "@T.f\ndef f(x=0x1f): # why\n  return None + 'a' $ \"open\n  try: '''to the end\n"
    assert [(kind, text[start:end]) for kind, start, end in tokens(text)] == [
        ("operator", "@"), ("name", "T"), ("operator", "."), ("name", "f"),
        ("keyword", "def"), ("name", "f"), ("bracket", "("), ("name", "x"), ("operator", "="), ("number", "0x1f"),
        ("bracket", ")"), ("operator", ":"), ("comment", "# why"),
        ("keyword", "return"), ("constant", "None"), ("operator", "+"), ("string", "'a'"), ("error", "$"),
        ("string", '"open'), ("error", "try"), ("operator", ":"), ("string", "'''to the end\n"),
    ]  # fmt: skip


def test_what_may_come_next() -> None:
    assert accepts("def ") == {"NAME"}
    assert accepts("def f(x) ") == {"->", ":"}
    assert {"return", "NAME", "if"} <= accepts("") and "else" not in accepts("")
    assert {"else", "elif", "return"} <= accepts("if x:\n    y\n")
    assert accepts("x y ") == frozenset()
