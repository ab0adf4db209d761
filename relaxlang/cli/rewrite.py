"""Commands that rewrite source files: `--fmt` lays them out, `--fix` makes the edits that diagnostics suggest.

Both show what they would do with `--diff` and write nothing then. `--fmt` prints its result unless `--in-place` is
given, `--fix` writes it; what comes from stdin goes to stdout. A file is replaced as a whole or not at all.
"""

from __future__ import annotations

import difflib
import sys
from typing import NamedTuple

from relaxlang.base.colors import ColorChoice, paint, wants_color
from relaxlang.base.diagnostics import Diagnostic, DiagnosticError, RelaxlangError, fail
from relaxlang.base.files import write_atomically
from relaxlang.base.fixes import apply_fixes
from relaxlang.base.source import Source
from relaxlang.cli.options import CommandLine, number
from relaxlang.cli.report import Reporter, write_out

DONE, CHANGES, USAGE = 0, 1, 2
MAX_ROUNDS = 20
"""A fix may bring further faults to light, which have fixes of their own; so many times at most."""

_OTHERS = ("--emit", "--output", "--run", "--pipeline", "--target")


class File(NamedTuple):
    """A file as it is: the text with plain line ends, and the line ends that it has."""

    name: str
    source: Source
    newline: str


def rewrite(line: CommandLine, reporter: Reporter) -> int:
    """Work on each file; the worst exit code: 1 for errors in a program, or changes that `--check` asks about."""
    try:
        _check_options(line)
        width = number(line, "--width", 40)
    except RelaxlangError as fault:
        reporter.error(fault, in_program=False)
        return USAGE
    status = DONE
    for name in line.files:
        try:
            file = _read(name)
            status = max(
                status, _fix(file, line, reporter) if line.has("--fix") else _format(file, line, width, reporter)
            )
        except RelaxlangError as fault:
            reporter.error(fault)
            status = CHANGES
    return status


def _check_options(line: CommandLine) -> None:
    command = "--fix" if line.has("--fix") else "--fmt"
    for other in _OTHERS:
        if line.typed(other):
            fail("RLX7003", f"`{command}` rewrites source files and does not go with `{other}`", line.span(other))
    if line.has("--fix") and line.has("--fmt"):
        fail("RLX7003", "`--fix` and `--fmt` are two steps", help="run `relaxc --fix`, then `relaxc --fmt`")
    if line.has("--fix") and line.has("--check"):
        fail("RLX7003", "`--check` writes nothing, and `--fix` does", help="`--fix --diff` shows what would be done")


def _read(name: str) -> File:
    from relaxlang.driver import read_file
    from relaxlang.syntax.decode import decode_source

    shown = "<stdin>" if name == "-" else name
    data = sys.stdin.buffer.read() if name == "-" else read_file(name)
    return File(name, decode_source(shown, data), "\r\n" if b"\r\n" in data else "\n")


# --- commands ---------------------------------------------------------------------------------------------------------
def _format(file: File, line: CommandLine, width: int | None, reporter: Reporter) -> int:
    from relaxlang.syntax.format import WIDTH, format_source

    made = format_source(file.source, width or WIDTH)
    changed = made != file.source.text
    if line.has("--diff"):
        _show_difference(file, made, line)
    if line.has("--check"):
        if changed and not line.has("--diff"):
            reporter.note(f"`{file.source.name}` is not formatted")
        return CHANGES if changed else DONE
    if line.has("--diff"):
        return DONE
    if line.has("--in-place") and file.name != "-":
        if changed:
            _write(file, made)
    else:
        write_out(made)
    return DONE


def _fix(file: File, line: CommandLine, reporter: Reporter) -> int:
    from relaxlang.cli.settings import definitions

    values = definitions(line, file.source.text)
    roots = [span.text for span in line.spans("--include")]
    source, total = file.source, 0
    seen = {source.text}
    left = _faults(source, values, roots)
    for _ in range(MAX_ROUNDS):
        text, changes = apply_fixes(source, left)
        if text in seen:
            break
        seen.add(text)
        source, total = Source(source.name, text), total + changes
        left = _faults(source, values, roots)
    if line.has("--diff"):
        _show_difference(file, source.text, line)
    elif file.name == "-":
        write_out(source.text)
    elif total:
        _write(file, source.text)
    if total:
        verb = "would make" if line.has("--diff") else "made"
        reporter.note(f"{verb} {total} {'change' if total == 1 else 'changes'} in `{source.name}`")
    if left:
        reporter.error(DiagnosticError(left))
    return CHANGES if left else DONE


def _faults(source: Source, values: dict[str, object], roots: list[str]) -> list[Diagnostic]:
    """What is wrong with a program."""
    from relaxlang.driver import parse_source

    try:
        parse_source(source, values=values, roots=roots)
    except DiagnosticError as error:
        return list(error.diagnostics)
    return []


# --- output -----------------------------------------------------------------------------------------------------------
def _write(file: File, text: str) -> None:
    write_atomically(file.name, text.replace("\n", file.newline))


def _show_difference(file: File, made: str, line: CommandLine) -> None:
    color = wants_color(sys.stdout, _color(line))
    name = file.source.name
    rows = difflib.unified_diff(file.source.text.splitlines(), made.splitlines(), name, name, lineterm="")
    for row in rows:
        style = {"+": "green", "-": "red", "@": "cyan"}.get(row[:1], "") if color else ""
        write_out(paint(row, style) + "\n")


def _color(line: CommandLine) -> ColorChoice:
    choices: dict[str, ColorChoice] = {"auto": "auto", "always": "always", "never": "never"}
    return choices[line.value("--color", "auto")]
