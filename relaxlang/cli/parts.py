"""Parts of a file (`--split-input`), and what is announced to be wrong with them (`--verify-diagnostics`)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from relaxlang.base.diagnostics import Diagnostic, DiagnosticError
from relaxlang.base.source import Source

SEPARATOR = "# -----\n"
_SEPARATORS = re.compile(r"^(?://|#) ?-----[ \t]*$\n?", re.MULTILINE)


class Part(NamedTuple):
    """A module of a file: its number from 1, and the offsets of its text."""

    number: int
    start: int
    end: int


def split_input(source: Source) -> list[Part]:
    """The parts between lines `// -----` or `# -----`, without those that hold nothing; the whole when all are so."""
    ends = [(m.start(), m.end()) for m in _SEPARATORS.finditer(source.text)]
    starts = [0, *(end for _, end in ends)]
    stops = [*(start for start, _ in ends), len(source.text)]
    places = [(a, b) for a, b in zip(starts, stops) if source.text[a:b].strip()]
    return [Part(k, a, b) for k, (a, b) in enumerate(places or [(0, len(source.text))], 1)]


def unexpected(source: Source, part: Part | None, reported: Sequence[Diagnostic]) -> DiagnosticError | None:
    """What keeps the diagnostics of a part (None: of the whole file) from being those that its comments announce."""
    from relaxlang.testing.expectations import differences, expected_diagnostics

    announced = expected_diagnostics(source.text)
    if part is not None:
        first, last = (source.position(at)[0] for at in (part.start, max(part.start, part.end - 1)))
        announced = [one for one in announced if first <= one.line <= last]
    wrong = differences(announced, reported)
    found = [Diagnostic("RLX7009", f"`{source.name}`, {text}") for text in wrong]
    return DiagnosticError(found) if found else None
