"""Nonsense at the prompt: always an answer or a diagnostic, and a failed input changes nothing."""

from __future__ import annotations

import random

import pytest

from relaxlang.repl.commands import COMMANDS
from relaxlang.repl.completion import choices
from relaxlang.repl.plain import submits
from relaxlang.repl.scope import signature
from relaxlang.repl.session import Session
from relaxlang.repl.transcript import said

TEXT = """
main x y a axpy _ _1 __ R R. T. I. ( ) [ ] { } , = == + - * ** @ : ? 3 0 -1 1e400 99999999999999999999 'a "b" rand(2,3)
ones(3) array([1]) shape(2) load('x') R.nn.relu(x) R.const(1) R.shape([2]) T.float32(1) range(3) x.shape x[0] x[ [i
main( x.astype('int8') R.Tensor((2,),'float32') --side --all {skip= legalize-ops normalize minimum vm tir asm llvm rlx
main(x **x *x lambda for if in class @R.function ''' # \\ é None True float32
"""
WORDS = [*TEXT.split(), "def f():", "\n", "\n    ", "\t"]
EFFECTS = {"save", "edit", "quit", "load", "export"}
NAMES = [name for name in COMMANDS if name not in EFFECTS | {"time", "profile"}]


def prepared() -> Session:
    session = Session()
    for text in (":load examples/own_kernel.rlx", "x = rand(3)", "a = rand(1)", "y = rand(3)"):
        assert session.execute(text).ok
    return session


@pytest.mark.parametrize("seed", range(4))
def test_nonsense(seed: int) -> None:
    rng = random.Random(seed)
    session = prepared()
    for _ in range(150):
        body = "".join(rng.choice(WORDS) + rng.choice(["", " "]) for _ in range(rng.randrange(7)))
        text = f":{rng.choice(NAMES)} {body}" if rng.random() < 0.65 else body
        before = session.state
        choices(session, text)
        signature(session, text)
        submits(text)
        result = session.execute(text)
        said(result, color=True)
        assert result.ok or session.state is before
    if session.debugger is not None:
        session.debugger.abandon()
