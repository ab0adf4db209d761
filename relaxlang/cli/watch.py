"""`--watch`: do the work again whenever a file changes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable

from relaxlang.base.diagnostics import fail
from relaxlang.cli.options import CommandLine
from relaxlang.cli.report import Reporter

INTERVAL = 0.25
"""Seconds between two looks at the files."""

Stamp = tuple[int, int, int]


def watch(
    line: CommandLine, reporter: Reporter, work: Callable[[], int], pause: Callable[[float], object] = time.sleep
) -> int:
    """Do the work, and again after each change of an input file, until `pause` raises: Ctrl-C, as a rule.

    A file that is missing is waited for: editors replace files by moving a new one to their place. RLX7003 when
    there is nothing that can be watched.
    """
    if "-" in line.files:
        fail("RLX7003", "`--watch` looks at files, and `-` is none")
    seen = stamps(line.files)
    status = _work(reporter, work)
    while True:
        names = ", ".join(f"`{name}`" for name in line.files)
        reporter.note(f"watching {names}; the last exit code is {status}, Ctrl-C ends")
        seen = _changed(line.files, seen, pause)
        status = _work(reporter, work)


def _work(reporter: Reporter, work: Callable[[], int]) -> int:
    try:
        return work()
    finally:
        reporter.finish()
        reporter.reported.clear()


def _changed(files: Iterable[str], seen: list[Stamp | None], pause: Callable[[float], object]) -> list[Stamp | None]:
    """Wait until a file is another one, and all are there."""
    while True:
        pause(INTERVAL)
        now = stamps(files)
        if now != seen and None not in now:
            return now


def stamps(files: Iterable[str]) -> list[Stamp | None]:
    """Of each file what changes with its content: identity, size and time; None where there is none."""
    found: list[Stamp | None] = []
    for name in files:
        try:
            about = os.stat(name)
        except OSError:
            found.append(None)
        else:
            found.append((about.st_ino, about.st_size, about.st_mtime_ns))
    return found
