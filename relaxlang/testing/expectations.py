"""What a test file says must hold, in its comments. Nothing here knows pytest or the compiler."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from relaxlang.base.diagnostics import Diagnostic

_MARK = re.compile(r"#\s*(error|warning)(?:@([+-]\d+))?\[(RLX\d{4})\](?::([^#\n]*))?")
_FIELD = re.compile(r"#\s?([a-z]+)(?:\[(RLX\d{4})\])?:\s*(.*)$")
_FIELDS = ("entry", "args", "expect", "raises", "rtol", "atol")


class ExpectedDiagnostic(NamedTuple):
    """A diagnostic that must be reported: where, what, and words that its message must contain."""

    line: int
    level: str
    code: str
    words: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.level}[{self.code}]" + (f": {self.words}" if self.words else "")


def expected_diagnostics(text: str) -> list[ExpectedDiagnostic]:
    """The marks `# error[RLX0203]: words` of a text, each meant for its own line.

    Several may share a line; `warning` does as well; `# error@+1[RLX0001]: …` stands for the next line and `@-2` for
    the one two above, where a line can't hold a comment of its own. Words are optional.
    """
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        for level, offset, code, words in _MARK.findall(line):
            found.append(ExpectedDiagnostic(number + int(offset or 0), level, code, words.strip()))
    return found


def differences(expected: Iterable[ExpectedDiagnostic], reported: Iterable[Diagnostic]) -> list[str]:
    """What keeps the two from matching one to one, in plain words; empty when they match. Notes are not compared."""
    left = [d for d in reported if d.level != "note"]
    wrong = []
    for want in sorted(expected, key=lambda e: len(e.words), reverse=True):  # the pickiest choose first
        same = [d for d in left if (_line(d), d.level, d.code) == want[:3]]
        fitting = [d for d in same if want.words in d.message]
        if fitting:
            left.remove(fitting[0])
        elif same:
            wrong.append(f"expected {want}; the message is: {same[0].message}")
            left.remove(same[0])
        else:
            wrong.append(f"expected {want}; not reported")
    return wrong + [f"not expected: line {_line(d)}: {d.level}[{d.code}]: {d.message}" for d in left]


def _line(diagnostic: Diagnostic) -> int:
    return diagnostic.span.line if diagnostic.span else 0


class Run(NamedTuple):
    """One call: Python expressions for its arguments and for the result, or the error that it must end in."""

    args: str
    expect: str | None
    raises: tuple[str, str] | None
    """The code ("" for any) and words of the message."""


class RunPlan(NamedTuple):
    """The calls that one built module is put through, in order, and how closely results must agree."""

    entry: str
    runs: tuple[Run, ...]
    rtol: float
    atol: float


def run_plan(text: str) -> RunPlan:
    """The plan in the comment lines that begin a file; ValueError when it makes no sense.

    ::

        # entry: main                          the function to call, `main` when absent
        # args: rand(4, 8), np.ones(8, "f4")   the arguments of a call, an expression over numpy
        # expect: np.maximum(x0 @ x1, 0)       its result, over the arguments x0, x1, …; a tuple for several
        # args: rand(4, 9), np.ones(8, "f4")   a further call of the same executable
        # raises[RLX6003]: dimension           it must fail, with that code (optional) and these words in its message
        # rtol: 1e-3                           closeness of floats, 1e-5 and atol 1e-6 when absent

    A comment line that is indented by three spaces or more continues the one before it.
    """
    entry, rtol, atol = "main", 1e-5, 1e-6
    runs: list[Run] = []
    for name, code, value in _fields(text):
        if name == "args":
            runs.append(Run(value, None, None))
        elif name == "entry":
            entry = value
        elif name == "rtol":
            rtol = float(value)
        elif name == "atol":
            atol = float(value)
        elif not runs or runs[-1].expect is not None or runs[-1].raises is not None:
            raise ValueError(f"`# {name}:` must follow an `# args:` of its own")
        elif name == "expect":
            runs[-1] = runs[-1]._replace(expect=value)
        else:
            runs[-1] = runs[-1]._replace(raises=(code, value))
    if not runs:
        raise ValueError("the file has no `# args:` line (write `# args:` alone for a call without arguments)")
    return RunPlan(entry, tuple(runs), rtol, atol)


def _fields(text: str) -> Sequence[tuple[str, str, str]]:
    fields: list[tuple[str, str, str]] = []
    for line in header(text).splitlines():
        match = _FIELD.match(line)
        if match and match[1] in _FIELDS:
            fields.append((match[1], match[2] or "", match[3].strip()))
        elif fields and line.startswith("#   "):
            name, code, value = fields[-1]
            fields[-1] = (name, code, f"{value} {line[1:].strip()}")
    return fields


def header(text: str) -> str:
    """The comment and blank lines that a text begins with, line breaks included."""
    lines = text.splitlines(keepends=True)
    count = 0
    while count < len(lines) and (not lines[count].strip() or lines[count].startswith("#")):
        count += 1
    return "".join(lines[:count])
