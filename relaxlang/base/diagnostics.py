"""Diagnostics as data: what is wrong, where, and what would mend it. Rendering is `base.render`'s business."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Literal, NoReturn

from relaxlang.base.source import Span

Level = Literal["error", "warning", "note"]

_LONG_TEXT = 1000
_LONGEST_TEXT = 20_000
_LONG_WORD = 160
_WORD = re.compile(rf"[^\s`]{{{_LONG_WORD},}}")


def shortened(text: str) -> str:
    """A text for people: when it is very long, its longest words (a name of a megabyte, a number of 10,000 digits) are
    cut in their middle, and whatever is still too long at its end."""
    if len(text) <= _LONG_TEXT:
        return text
    text = _WORD.sub(lambda word: f"{word[0][:100]}…{word[0][-40:]}", text)
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"


class Label:
    """A place and the few words that stand under it."""

    __slots__ = ("span", "text")

    def __init__(self, span: Span, text: str) -> None:
        self.span = span
        self.text = shortened(text)


class Fix:
    """A replacement of the text at `span` that would mend the fault; `message` says what it does."""

    __slots__ = ("span", "replacement", "message")

    def __init__(self, span: Span, replacement: str, message: str) -> None:
        self.span = span
        self.replacement = replacement
        self.message = message


class Diagnostic:
    """One finding.

    `code` is a key of `base.codes.CODES`; `span` the primary place (None when there is no source text) and `label` the
    words under it; `labels` are secondary places; `notes` lines of context; `help` what to do; `fixes` edits; `node`
    the node of the IR that it is about, for one that no text holds: whoever knows its module can print it then.
    """

    __slots__ = ("level", "code", "message", "span", "label", "labels", "notes", "help", "fixes", "node")

    def __init__(
        self,
        code: str,
        message: str,
        span: Span | None = None,
        *,
        level: Level = "error",
        label: str = "",
        labels: Iterable[Label] = (),
        notes: Iterable[str] = (),
        help: str = "",
        fixes: Iterable[Fix] = (),
        node: object = None,
    ) -> None:
        self.level: Level = level
        self.code = code
        self.message = shortened(message)
        self.span = span
        self.label = shortened(label)
        self.labels = tuple(labels)
        self.notes = tuple(map(shortened, notes))
        self.help = shortened(help)
        self.fixes = tuple(fixes)
        self.node = node

    def replace(self, **changes: Any) -> Diagnostic:
        """The same finding with other values for some fields."""
        return Diagnostic(**{**{name: getattr(self, name) for name in self.__slots__}, **changes})

    def __repr__(self) -> str:
        return f"Diagnostic({self.code}, {self.message!r}, {self.span})"


class RelaxlangError(Exception):
    """The base of every error that a user can cause."""


class DiagnosticError(RelaxlangError):
    """One or more diagnostics, sorted by place; `str()` shows them all.

    `line` and `column` are those of the first diagnostic that has a span, else 0.
    """

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__(self.diagnostics)

    @property
    def line(self) -> int:
        """The line of the first located diagnostic, from 1; 0 when none is located."""
        return next((d.span.line for d in self.diagnostics if d.span), 0)

    @property
    def column(self) -> int:
        """The column of the first located diagnostic, from 1; 0 when none is located."""
        return next((d.span.column for d in self.diagnostics if d.span), 0)

    def __str__(self) -> str:
        from relaxlang.base.render import render

        return render(self.diagnostics)


class Diagnostics:
    """A collector: the phases of one compilation report here and go on; `check` raises when there was an error."""

    def __init__(self) -> None:
        self.items: list[Diagnostic] = []

    def report(self, diagnostic: Diagnostic) -> None:
        """Keep a finding."""
        self.items.append(diagnostic)

    def has_errors(self) -> bool:
        """Whether an error (not a warning) was reported."""
        return any(d.level == "error" for d in self.items)

    def check(self) -> None:
        """Raise `DiagnosticError` with all findings, sorted by place, when there is an error among them."""
        if self.has_errors():
            raise DiagnosticError(sorted(self.items, key=_place))

    def warn(self, sink: WarningSink | None) -> None:
        """Raise as `check` does, else hand the warnings over: each finding once, sorted by place."""
        self.check()
        if sink is not None:
            known = {(*_place(d), d.code, d.message): d for d in reversed(self.items)}
            for diagnostic in sorted(known.values(), key=_place):
                sink(diagnostic)


WarningSink = Callable[[Diagnostic], None]
"""Who is told of warnings. They travel one way: what reads a program (`parse`, `load`) takes a sink and hands it each
warning, sorted by place, when the program has no error; with errors, `DiagnosticError` carries them along."""


def _place(diagnostic: Diagnostic) -> tuple[str, int]:
    span = diagnostic.span
    return (span.source.name, span.start) if span else ("", 0)


def fail(
    code: str,
    message: str,
    span: Span | None = None,
    *,
    label: str = "",
    notes: Iterable[str] = (),
    help: str = "",
    fixes: Iterable[Fix] = (),
    node: object = None,
) -> NoReturn:
    """Raise a `DiagnosticError` that holds one error."""
    one = Diagnostic(code, message, span, label=label, notes=notes, help=help, fixes=fixes, node=node)
    raise DiagnosticError([one])
