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
    line: CommandLine,
    reporter: Reporter,
    work: Callable[[], tuple[int, Iterable[str]]],
    pause: Callable[[float], object] = time.sleep,
) -> int:
    """Do the work, and again after each change of a file, until `pause` raises: Ctrl-C, as a rule.

    The files are those of the command line and those that the work came by, such as included ones: `work` gives its
    exit code and their names. A file that is missing is waited for: editors replace files by moving a new one to their
    place. RLX7003 when there is nothing that can be watched.
    """
    if "-" in line.files:
        fail("RLX7003", "`--watch` looks at files, and `-` is none")
    names = list(line.files)
    while True:
        seen = stamps(names)
        try:
            status, found = work()
        finally:
            reporter.finish()
            reporter.reported.clear()
        known = {os.path.realpath(name) for name in line.files}
        more = sorted({name for name in found if os.path.isfile(name) and os.path.realpath(name) not in known})
        seen = [*seen[: len(line.files)], *stamps(more)]
        names = [*line.files, *more]
        listed = ", ".join(f"`{name}`" for name in names)
        reporter.note(f"watching {listed}; the last exit code is {status}, Ctrl-C ends")
        _wait(names, seen, pause)


def _wait(names: Iterable[str], seen: list[Stamp | None], pause: Callable[[float], object]) -> None:
    """Wait until a file is another one, and all are there."""
    while True:
        pause(INTERVAL)
        now = stamps(names)
        if now != seen and None not in now:
            return


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
