"""What happens when relaxlang itself is wrong: a report from which the fault can be repeated, and exit code 70."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from types import TracebackType

from relaxlang.base.diagnostics import RelaxlangError
from relaxlang.base.version import __version__

INTERNAL_ERROR = 70


class CrashGuard:
    """A context in which nothing unforeseen gets out: an exception that no code expects becomes a report.

    `text` is to be kept up to date with the program that is worked on. Afterwards `crashed` says whether it happened.
    RelaxlangErrors, interrupts and exits pass. `program` is who was called with these words, `suffix` says what the
    text is.
    """

    def __init__(self, words: Sequence[str], program: str = "relaxc", suffix: str = ".rlx") -> None:
        self.words = words
        self.program = program
        self.suffix = suffix
        self.text: str | None = None
        self.crashed = False

    def __enter__(self) -> CrashGuard:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(fault, Exception) or isinstance(fault, (RelaxlangError, BrokenPipeError)):
            return False
        import traceback  # this and what `_write` imports cost time, and are needed on bad days only

        from relaxlang.base.config import config

        self.crashed = True
        if config.traceback:
            traceback.print_exception(fault)
        reason = traceback.format_exception_only(fault)[-1].strip()
        place = self._write(fault)
        kept = f"a report to reproduce it is in {place}" if place else "RELAXLANG_TRACEBACK=1 shows where"
        sys.stderr.write(f"internal error[RLX9001]: {reason.splitlines()[0][:200]}; {kept}\n")
        return True

    def _write(self, fault: Exception) -> str:
        """Write the report to the current directory or, when that is impossible, the one for temporary files."""
        import hashlib
        import shlex
        import tempfile
        import traceback

        from relaxlang.base.files import write_atomically

        details = "".join(traceback.format_exception(fault))
        head = [
            f"# relaxlang {__version__} on Python {sys.version.split()[0]}, {sys.platform}: internal error",
            f"# RUN: {shlex.join([self.program, *self.words])}",
            *("# " + line for line in details.splitlines()),
        ]
        content = "\n".join(head) + "\n\n" + (self.text or "")
        digest = hashlib.sha256(content.encode(errors="replace")).hexdigest()[:8]
        for folder in (os.curdir, tempfile.gettempdir()):
            path = os.path.join(folder, f"{self.program}-crash-{digest}{self.suffix}")
            try:
                write_atomically(path, content.encode(errors="replace"))
            except RelaxlangError:
                continue
            return os.path.normpath(path)
        return ""
