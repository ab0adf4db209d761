"""Diagnostics on stderr, and what else is said there."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from relaxlang.base.colors import ColorChoice, wants_color
from relaxlang.base.diagnostics import Diagnostic, DiagnosticError, RelaxlangError

if TYPE_CHECKING:
    from relaxlang.base.render import Style
    from relaxlang.cli.progress import StatusLine


class Reporter:
    """Writes diagnostics in the style that `--diagnostics` asks for; `reported` are those that the last line counts,
    `status` is the line that makes room for what is said."""

    def __init__(self, style: str = "human", color: str = "auto") -> None:
        self.style = cast("Style", style)
        self.color = style == "human" and wants_color(sys.stderr, cast(ColorChoice, color))
        self.reported: list[Diagnostic] = []
        self.status: StatusLine | None = None
        self._errors = False

    def say(self, text: str) -> None:
        """Write text as it is."""
        if self.status is not None:
            self.status.clear()
        sys.stderr.write(text)

    def note(self, message: str) -> None:
        """Tell the user something that is no fault."""
        self._write([Diagnostic("", message, level="note")])

    def warn(self, found: Sequence[Diagnostic]) -> None:
        """Tell the user what may be wrong in a program that goes on."""
        self._write(found)

    def error(self, fault: RelaxlangError, *, in_program: bool = True) -> None:
        """Report what a `RelaxlangError` says; the closing line counts what is wrong in a program."""
        if isinstance(fault, DiagnosticError):
            found = list(fault.diagnostics)
            found[-1] = with_notes(found[-1], getattr(fault, "__notes__", []))
        else:
            found = [Diagnostic("", str(fault))]
        self._write(found)
        if in_program:
            self.reported += found

    def finish(self) -> None:
        """Write the closing line when errors were reported, for people only."""
        if self.reported and self.style == "human":
            from relaxlang.base.render import summary

            last = summary([d for d in self.reported if d.code], color=self.color)
            self.say(f"\n{last}\n" if last else "")

    def _write(self, found: Sequence[Diagnostic]) -> None:
        from relaxlang.base.render import render

        gap = "\n" if self._errors and self.style == "human" else ""
        self.say(gap + render(found, style=self.style, color=self.color) + "\n")
        self._errors = found[-1].level == "error"


def write_out(content: str | bytes) -> None:
    """Write results to stdout; `RelaxlangError` when that is impossible (a pipe that closed is BrokenPipeError)."""
    try:
        if isinstance(content, bytes):
            sys.stdout.flush()
            sys.stdout.buffer.write(content)
        else:
            sys.stdout.write(content)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise output_failed(error) from error


def output_failed(error: OSError) -> RelaxlangError:
    """The user's error for a failure to write to stdout."""
    return RelaxlangError(f"cannot write the output: {(error.strerror or str(error)).lower()}")


def with_notes(diagnostic: Diagnostic, notes: Sequence[str]) -> Diagnostic:
    """The diagnostic with the notes that were added to the exception on its way."""
    if not notes:
        return diagnostic
    return Diagnostic(
        diagnostic.code,
        diagnostic.message,
        diagnostic.span,
        level=diagnostic.level,
        label=diagnostic.label,
        labels=diagnostic.labels,
        notes=(*diagnostic.notes, *notes),
        help=diagnostic.help,
        fixes=diagnostic.fixes,
        node=diagnostic.node,
    )
