"""Diagnostics as text: for people (`human`), editors (`short`), tools (`json`) and GitHub's logs (`github`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from relaxlang.base.colors import paint
from relaxlang.base.diagnostics import Diagnostic, Fix
from relaxlang.base.excerpt import Mark, excerpt, numbered, visible
from relaxlang.base.source import Source, Span

Style = Literal["human", "short", "json", "github"]

_LEVEL_STYLE = {"error": "bold red", "warning": "bold yellow", "note": "bold cyan"}


def render(diagnostics: Iterable[Diagnostic], *, style: Style = "human", color: bool = False) -> str:
    """All `diagnostics`, in the given order, without a line break at the end.

    `human`: message, place, excerpt, notes and help, with a blank line between two diagnostics; `short`: one line
    `file:line:column: error[CODE]: message` each; `json`: one object on one line each; `github`: workflow commands.
    Lines and columns count from 1, columns in code points; offsets count from 0. `color` matters to `human` only.
    """
    if style == "human":
        return "\n\n".join(_human(d, color) for d in diagnostics)
    one: Callable[[Diagnostic], str] = {"short": _short, "json": _json, "github": _github}[style]
    return "\n".join(one(d) for d in diagnostics)


def summary(diagnostics: Sequence[Diagnostic], *, color: bool = False) -> str:
    """The closing line of a run (`error: 2 errors in 1 file; …`), or "" when none is an error."""
    errors = [d for d in diagnostics if d.level == "error"]
    if not errors:
        return ""
    text = _count(len(errors), "error")
    files = {d.span.source.name for d in errors if d.span}
    if files:
        text += f" in {_count(len(files), 'file')}"
    head = paint("error", "bold red" if color else "")
    return f"{head}: {text}; `relaxc --explain {errors[0].code}` tells more"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _human(diagnostic: Diagnostic, color: bool) -> str:
    level = _LEVEL_STYLE[diagnostic.level]
    head = paint(_title(diagnostic), level if color else "")
    rows = [f"{head}{paint(': ' + visible(diagnostic.message), 'bold' if color else '')}"]
    width = _gutter_width(diagnostic)
    for index, (source, marks) in enumerate(_marks_by_source(diagnostic, level)):
        rows.append(_arrow(":::" if index else "-->", marks[0].span, width, color))
        rows += excerpt(source, marks, width, color)
    hints = [("note", note) for note in diagnostic.notes]
    fixes = list(diagnostic.fixes)
    if diagnostic.help and not (fixes and fixes[0].message in ("", diagnostic.help)):
        hints.append(("help", diagnostic.help))
    for kind, text in hints:
        sign = paint("=", "bold blue" if color else "")
        rows.append(f"{' ' * width}  {sign} {paint(kind, 'bold' if color else '')}: {_indented(text, width + 10)}")
    for fix in fixes:
        rows.append(f"{paint('help', 'bold cyan' if color else '')}: {visible(fix.message or diagnostic.help)}")
        if diagnostic.span is None or fix.span.source is not diagnostic.span.source:
            rows.append(_arrow("-->", fix.span, width, color))
        rows += _mended(fix, width, color)
    return "\n".join(rows)


def _arrow(arrow: str, place: Span, width: int, color: bool) -> str:
    return f"{' ' * width} {paint(arrow, 'bold blue' if color else '')} {visible(str(place))}"


def _title(diagnostic: Diagnostic) -> str:
    return f"{diagnostic.level}[{diagnostic.code}]" if diagnostic.code else diagnostic.level


def _indented(text: str, indent: int) -> str:
    return visible(text).replace("\n", "\n" + " " * indent)


def _gutter_width(diagnostic: Diagnostic) -> int:
    spans = [diagnostic.span, *(label.span for label in diagnostic.labels), *(fix.span for fix in diagnostic.fixes)]
    return max((len(str(span.end_line)) for span in spans if span), default=1)


def _marks_by_source(diagnostic: Diagnostic, level: str) -> list[tuple[Source, list[Mark]]]:
    """The marks of each source, the primary one's first; in each list the mark that names the place comes first."""
    marks = [Mark(label.span, label.text, "-", "bold blue") for label in diagnostic.labels]
    if diagnostic.span:
        marks.insert(0, Mark(diagnostic.span, diagnostic.label, "^", level))
    groups: dict[int, tuple[Source, list[Mark]]] = {}
    for mark in marks:
        groups.setdefault(id(mark.span.source), (mark.span.source, []))[1].append(mark)
    return list(groups.values())


def _mended(fix: Fix, width: int, color: bool) -> list[str]:
    """The lines that `fix` touches, as they would be after it."""
    source, line, last = fix.span.source, fix.span.line, fix.span.end_line
    before = source.line(line)[: fix.span.column - 1]
    after = source.line(last)[fix.span.end_column - 1 :]
    mended = (before + fix.replacement + after).split("\n")
    start, end = len(before), len(before) + len(fix.replacement)
    lines = []
    for text in mended:
        lines.append((text, max(start, 0), min(end, len(text))))
        start, end = start - len(text) - 1, end - len(text) - 1
    symbol = "~" if fix.span.start < fix.span.end else "+"
    return numbered(lines, line, symbol, width, color)


def _short(diagnostic: Diagnostic) -> str:
    place = f"{visible(str(diagnostic.span))}: " if diagnostic.span else ""
    return f"{place}{_title(diagnostic)}: {_one_line(diagnostic.message)}"


def _one_line(text: str) -> str:
    return " ".join(visible(text).split("\n"))


def _json(diagnostic: Diagnostic) -> str:
    return json.dumps(as_json(diagnostic))


def as_json(diagnostic: Diagnostic) -> dict[str, Any]:
    """The diagnostic as plain data, as the `json` style prints it; `file` and `span` are None when it has no place."""
    span = diagnostic.span
    return {
        "level": diagnostic.level,
        "code": diagnostic.code,
        "message": diagnostic.message,
        "file": span.source.name if span else None,
        "span": _json_span(span) if span else None,
        "label": diagnostic.label,
        "labels": [{**_json_place(label.span), "text": label.text} for label in diagnostic.labels],
        "notes": list(diagnostic.notes),
        "help": diagnostic.help,
        "fixes": [
            {**_json_place(fix.span), "replacement": fix.replacement, "message": fix.message}
            for fix in diagnostic.fixes
        ],
        "rendered": _human(diagnostic, color=False),
    }


def _json_place(span: Span) -> dict[str, Any]:
    return {"file": span.source.name, "span": _json_span(span)}


def _json_span(span: Span) -> dict[str, dict[str, int]]:
    return {
        "start": {"line": span.line, "col": span.column, "offset": span.start},
        "end": {"line": span.end_line, "col": span.end_column, "offset": span.end},
    }


def _github(diagnostic: Diagnostic) -> str:
    """A workflow command, https://docs.github.com/actions/reference/workflow-commands-for-github-actions."""
    command = {"error": "error", "warning": "warning", "note": "notice"}[diagnostic.level]
    fields: dict[str, object] = {}
    if span := diagnostic.span:
        fields.update(file=span.source.name, line=span.line, endLine=span.end_line, col=span.column)
        if span.line == span.end_line:  # GitHub takes an end column within one line only
            fields.update(endColumn=span.end_column)
    fields["title"] = diagnostic.code or diagnostic.level
    body = [diagnostic.message, *diagnostic.notes, *([f"help: {diagnostic.help}"] if diagnostic.help else [])]
    shown = ",".join(f"{key}={_escaped(str(value), property=True)}" for key, value in fields.items())
    return f"::{command} {shown}::{_escaped(visible(chr(10).join(body)), property=False)}"


def _escaped(text: str, property: bool) -> str:
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if property else text
