"""What is being done, on the last line of a terminal: long work shows that it goes on.

The line is written to stderr, only when that is a terminal that can take it back, and gone before anything else is
said.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Sequence
from typing import TextIO

from relaxlang.base.config import config

DELAY = 0.3
"""Seconds in which nothing is shown: most work is done by then."""
LONG = ("import", "code", "llvm", "run", "repeat", "interpret", "check passes", "reduce")
"""Phases that are shown at once, since nothing is told of before they end."""
_ERASE = "\r\x1b[2K"


class StatusLine:
    """The line. It is a listener of a `Clock`."""

    def __init__(self, stream: TextIO, now: Callable[[], float] = time.perf_counter) -> None:
        self.stream = stream
        self.now = now
        self.shown = False
        self._start = now()

    def __call__(self, phases: Sequence[str]) -> None:
        """Show what is being done: nothing between the steps of a file, where results are written."""
        if len(phases) < 2:
            self.clear()
        elif phases[-1] in LONG or self.now() - self._start >= DELAY:
            width = shutil.get_terminal_size().columns - 1
            self.stream.write(_ERASE + ": ".join(phases)[:width])
            self.stream.flush()
            self.shown = True

    def clear(self) -> None:
        """Take the line back."""
        if self.shown:
            self.stream.write(_ERASE)
            self.stream.flush()
            self.shown = False


def status_line() -> StatusLine | None:
    """The line of this process; None when stderr is no terminal, or one that can only add lines."""
    return StatusLine(sys.stderr) if sys.stderr.isatty() and not config.dumb_terminal else None
