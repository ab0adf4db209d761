"""The prompt on a terminal that can only print lines: no keys, no colours, the same inputs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from relaxlang.cli.crash import CrashGuard
from relaxlang.repl.prompts import CONTINUATION, prompted
from relaxlang.repl.session import Session
from relaxlang.repl.transcript import said
from relaxlang.syntax.interactive import is_complete


def interact_plainly(session: Session, first: Sequence[str] = ()) -> int:
    """Read and run inputs until the end of the input or `:quit`; the exit code."""
    for command in first:
        sys.stdout.write(session.prompt + command + "\n")
        _execute(session, command)
    while True:
        try:
            text = _read(session.prompt)
            if text is None:
                sys.stdout.write("\n")
                return 0
            if text.strip() and _execute(session, text):
                return 0
        except KeyboardInterrupt:
            sys.stdout.write("\ninterrupted\n")


def _read(prompt: str) -> str | None:
    """An input of one or more lines; None at the end."""
    lines: list[str] = []
    while True:
        sys.stdout.write(CONTINUATION if lines else prompt)
        sys.stdout.flush()
        line = sys.stdin.readline()
        if not line:
            return "\n".join(lines) if lines else None
        lines.append(line.rstrip("\n"))
        text = "\n".join(lines)
        if submits(text):
            return text


def submits(text: str) -> bool:
    """Whether an input is finished when Enter is pressed at its end: a command, or what the grammar takes as whole; an
    error that more text cannot mend is shown when the text is one line, or the last one is empty."""
    if text.lstrip().startswith((":", "?")) or not text.strip():
        return True
    state = is_complete(text)
    if state == "invalid":
        return "\n" not in text or not text.rsplit("\n", 1)[1].strip()
    return state == "complete"


def _execute(session: Session, text: str) -> bool:
    """Run an input and print what it gives; whether it ends the session."""
    result = guarded_execute(session, text, lambda r: sys.stdout.write(said(r) + "\n" if said(r) else ""))
    sys.stdout.flush()
    return result


def guarded_execute(session: Session, text: str, show: Callable[..., object]) -> bool:
    """Run an input and `show` its result; whether it ends the session. What is an error of relaxlang itself becomes a
    report from which it can be repeated, and the session goes on as it was."""
    done = False
    with CrashGuard(["--keep-going", "FILE"], "relax-repl", ".session") as guard:
        guard.text = "\n".join(prompted(t) for t in (*session.state.inputs, text)) + "\n"
        result = session.execute(text)
        show(result)
        done = result.done
    return done
