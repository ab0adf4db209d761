"""Places for errors in programs that no file holds: what a pass made is printed, and the error points into it."""

from __future__ import annotations

from typing import Any

from relaxlang.base.diagnostics import Diagnostic, DiagnosticError
from relaxlang.base.source import Source, Span
from relaxlang.ir.module import IRModule
from relaxlang.syntax.printer import render_node, script

MOST_LINES = 5
"""So much is shown of a node that stands in no module."""


def locate(node: Any, module: IRModule, name: str = "<module>", **options: Any) -> Span | None:
    """Where a node stands in the printed module; None when it is not part of it (by identity). `name` is the text's."""
    rendered = render_node(module, positions=True, **options)
    place = rendered.find(node)
    return Span(Source(name, rendered.text), place.start, place.end) if place is not None else None


def show_nodes(fault: DiagnosticError, module: IRModule, name: str) -> None:
    """Give errors about a node without a place one in the text of `module`, which is called `name`."""
    fault.diagnostics = tuple(_with_place(d, module, name) for d in fault.diagnostics)


def _with_place(diagnostic: Diagnostic, module: IRModule, name: str) -> Diagnostic:
    if diagnostic.span is not None or diagnostic.node is None:
        return diagnostic
    span = locate(diagnostic.node, module, name)
    notes = diagnostic.notes
    if span is None:  # made by the pass that failed, so that no text has it
        lines = script(diagnostic.node).split("\n")
        notes = (*notes, "\n".join(["this is about", *lines[:MOST_LINES], *(["…"] if len(lines) > MOST_LINES else [])]))
    return Diagnostic(
        diagnostic.code,
        diagnostic.message,
        span,
        level=diagnostic.level,
        label=diagnostic.label,
        labels=diagnostic.labels,
        notes=notes,
        help=diagnostic.help,
        fixes=diagnostic.fixes,
    )
