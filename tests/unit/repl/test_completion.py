"""What may stand at the cursor."""

from __future__ import annotations

import pytest

from relaxlang.repl.completion import choices
from relaxlang.repl.painting import painted
from relaxlang.repl.scope import signature
from relaxlang.repl.session import Session
from relaxlang.repl.status import status


@pytest.fixture(scope="module")
def session() -> Session:
    made = Session()
    for text in (":load examples/digits.rlx", "pixels = rand(2, 64)", ":apply legalize-ops"):
        assert made.execute(text).ok
    return made


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (":app", "apply"),
        (":apply legal", "legalize-ops"),
        (":apply normalize,leg", "legalize-ops"),
        (":apply legalize-ops{sk", "skip="),
        (":show t", "tir"),
        (":show asm ma", "matmul"),
        (":l", "load"),
        (":load exam", "examples/"),
        (":load examples/dig", "digits.rlx"),
        (":type pix", "pixels"),
        (":run ma", "main"),
        (":break main:h", "h1"),
        (":doc legal", "legalize-ops"),
        (":explain RLX710", "RLX7101"),
        (":help und", "undo"),
        ("?ma", "main"),
        ("R.nn.softm", "softmax"),
        ("R.nn", "nn."),
        ("y = R.matmul(pix", "pixels"),
        ("R.matmul(pixels, ra", "rand"),
        ("T.ex", "exp"),
        ("@R.f", "@R.function"),
    ],
)
def test_choices(session: Session, text: str, expected: str) -> None:
    assert expected in [c.text for c in choices(session, text)]


@pytest.mark.parametrize(
    "text", ["", ":", ": ", ":zzz ", ":load /nowhere/x", "R.zzz", ")", "'", ":break zz:", "pixels."]
)
def test_nothing_can_go_wrong(session: Session, text: str) -> None:
    for choice in choices(session, text):
        assert choice.typed <= len(text)


def test_signatures(session: Session) -> None:
    assert signature(session, "y = R.nn.softmax(pixels, ").startswith(
        "R.nn.softmax(data: R.Tensor(S, D), axis: int = -1)"
    )
    assert signature(session, "rand(2, (3").startswith("rand(")
    assert signature(session, "main(").startswith("main(images: ")
    assert signature(session, "nothing(") == "" and signature(session, "rand(2)") == ""


def test_the_status_line(session: Session) -> None:
    assert status(session).startswith("digits.rlx* step 2 · llvm")
    assert status(Session()) == "no module step 0 · llvm"


def test_colours() -> None:
    assert painted("def f(): # x", "rlx") == "\033[35mdef\033[0m f(): \033[2m# x\033[0m"
    assert painted("+a\n-b\n c", "diff") == "\033[32m+a\033[0m\n\033[31m-b\033[0m\n c"
    assert painted("def", "text") == "def"
