"""Applying the edits that diagnostics carry."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from relaxlang.base.diagnostics import Diagnostic, Fix
from relaxlang.base.source import Source


class Fixed(NamedTuple):
    """A text after edits, and how many of them were made."""

    text: str
    changes: int


def apply_fixes(source: Source, diagnostics: Iterable[Diagnostic]) -> Fixed:
    """The source's text with the first fix of each diagnostic made, as far as it lies in this source.

    Of fixes that overlap, the one that begins first is made; two equal ones are one.
    """
    found = [d.fixes[0] for d in diagnostics if d.fixes and d.fixes[0].span.source is source]
    chosen: list[Fix] = []
    for fix in sorted(found, key=lambda f: (f.span.start, f.span.end)):
        if not chosen or _follows(fix, chosen[-1]):
            chosen.append(fix)
    parts, at = [], 0
    for fix in chosen:
        parts += [source.text[at : fix.span.start], fix.replacement]
        at = fix.span.end
    return Fixed("".join([*parts, source.text[at:]]), len(chosen))


def _follows(fix: Fix, before: Fix) -> bool:
    """Whether a fix touches only what stands behind another one; two insertions at one place do not both apply."""
    return fix.span.start >= before.span.end and fix.span.start > before.span.start
