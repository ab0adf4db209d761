"""`.session` files as tests: every input must give the output that stands below it.

A file is run in the directory that holds the checkout's or package's `pyproject.toml` (else its own), so that it can
name the same files as a person who follows it. How outputs are compared says `relaxlang.repl.transcript`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from relaxlang.base.files import write_atomically
from relaxlang.testing.kinds import Mismatch, diff


def is_session(path: Path) -> bool:
    """Whether a file is a session that is meant as a test: `…/repl/….session`, or `…/walkthroughs/….session`."""
    return path.suffix == ".session" and not {"repl", "walkthroughs"}.isdisjoint(path.parts[:-1])


def check_session(path: Path, bless: bool) -> None:
    """The inputs of the file give the outputs that it states."""
    from relaxlang.repl.prompts import prompted
    from relaxlang.repl.session import Session
    from relaxlang.repl.transcript import blessed, matches, read_script, said

    script = read_script(path.read_bytes().decode())
    with _directory(_root(path)):
        if bless:
            write_atomically(path, blessed(script))
            return
        session = Session()
        for entry in script.entries:
            actual = said(session.execute(entry.text))
            if not matches(entry.output or "", actual):
                shown = diff(entry.output or "", actual)
                raise Mismatch(f"another output (`--bless` accepts it) of\n{prompted(entry.text)}\n{shown}")


def _root(path: Path) -> Path:
    return next((p for p in path.parents if (p / "pyproject.toml").is_file()), path.parent)


@contextmanager
def _directory(folder: Path) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
