"""Transcripts: inputs and what they gave, as text. A `.session` file is a script and a test in one.

    relax> x = arange(3)
    x: R.Tensor((3,), "int64")
    relax> x + 1
    _1: R.Tensor((3,), "int64")   (…)
    [1 2 3]

An input begins with `relax> ` (`schedule> ` while a kernel is scheduled) and goes on with `  ...> `; what follows is
its output. Lines before the first input are a heading; from a line that begins with `## ` to the next input is prose.
In a file without any prompt every line is input. When outputs are compared, times count as equal, `…` stands for
anything within a line, and a line `…` alone for any lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from relaxlang.base.render import render
from relaxlang.repl.prompts import CONTINUATION, PROMPTS, prompted
from relaxlang.repl.session import Result, Session
from relaxlang.syntax.interactive import is_complete

PROSE = "## "
"""How a line begins with which prose begins."""
_TIME = re.compile(r"(?<![\w.])\d[\d.]*(?:e[+-]?\d+)? (?:ns|µs|ms|s)\b")


class Entry(NamedTuple):
    """An input and the output that is expected of it, None when nothing is said; the prose before it, as it stands."""

    text: str
    output: str | None
    prose: str = ""


class Script(NamedTuple):
    """The inputs of a script, its heading, and the prose behind its last output."""

    heading: str
    entries: tuple[Entry, ...]
    ending: str = ""


def read_script(text: str) -> Script:
    """The inputs of a `.session` file, or of a plain list of inputs."""
    lines = text.split("\n")
    if not any(_input(line) is not None for line in lines):
        return Script("", tuple(Entry(chunk, None) for chunk in chunks(line + "\n" for line in lines)))
    heading: list[str] = []
    found: list[tuple[list[str], list[str], list[str]]] = []
    prose: list[str] | None = None
    for line in lines:
        asked = _input(line)
        if asked is not None:
            found.append(([asked], [], prose or []))
            prose = None
        elif not found:
            heading.append(line)
        elif prose is not None or line.startswith(PROSE):
            prose = [*(prose or []), line]
        elif line.startswith(CONTINUATION.rstrip()) and not found[-1][1]:
            found[-1][0].append(line[len(CONTINUATION) :])
        else:
            found[-1][1].append(line)
    entries = tuple(Entry("\n".join(a), "\n".join(said).rstrip("\n"), "\n".join(p)) for a, said, p in found)
    return Script("\n".join(heading), entries, "\n".join(prose or []).rstrip("\n"))


def _input(line: str) -> str | None:
    """What is typed in a line behind a prompt; None for a line without one."""
    for prompt in PROMPTS:
        if line.startswith(prompt) or line == prompt.rstrip():
            return line[len(prompt) :]
    return None


def chunks(lines: Iterable[str]) -> Iterator[str]:
    """Lines, line ends included, put together to inputs: commands are one line; a statement is as long as the grammar
    says, and a block lasts until a line that is not indented."""
    pending: list[str] = []
    for line in lines:
        indented = line[:1].isspace() or line[:1] in (")", "]", "}")
        if pending and not indented and _whole(pending):
            yield "".join(pending).rstrip("\n")
            pending = []
        if pending or line.strip():
            pending.append(line)
        if len(pending) == 1 and not _opens_block(line) and _whole(pending):
            yield pending.pop().rstrip("\n")
    if pending:
        yield "".join(pending).rstrip("\n")


def _opens_block(line: str) -> bool:
    return line.rstrip().endswith(":") and not line.startswith(":")


def _whole(lines: Sequence[str]) -> bool:
    if lines[0].startswith((":", "?")):
        return True
    return is_complete("".join(lines) + "\n") != "incomplete"


def said(result: Result, *, color: bool = False) -> str:
    """What a result shows, errors included."""
    parts = [result.text] if result.text else []
    if result.diagnostics:
        parts.append(render(result.diagnostics, color=color))
    return "\n".join(parts)


def run_script(script: Script, write: Callable[[str], object], session: Session | None = None) -> bool:
    """Run all inputs in one session and write the transcript; whether the outputs were those expected."""
    session = session or Session()
    same = True
    if script.heading:
        write(script.heading + "\n")
    for entry in script.entries:
        if entry.prose:
            write(f"\n{entry.prose}\n")
        write(prompted(entry.text, session.prompt) + "\n")
        result = session.execute(entry.text)
        output = said(result)
        write(output + "\n" if output else "")
        same = same and (entry.output is None or matches(entry.output, output))
        if result.done:
            break
    if script.ending:
        write(f"\n{script.ending}\n")
    return same


def matches(expected: str, actual: str) -> bool:
    """Whether an output is the expected one, apart from times and what `…` stands for."""
    if expected == actual:
        return True
    pattern = "".join(_pattern(line) for line in expected.split("\n"))
    return re.fullmatch(pattern, _settled(actual) + "\n") is not None


def _pattern(line: str) -> str:
    if line.strip() == "…":
        return r"(?:.*\n)*?"
    return ".*".join(re.escape(part) for part in _settled(line).split("…")) + r"\n"


def _settled(text: str) -> str:
    """The text with all times alike, and without blanks at line ends."""
    settled = _TIME.sub("0 s", text).replace(", compiled in 0 s)", ")")
    return "\n".join(line.rstrip() for line in settled.split("\n"))


def blessed(script: Script) -> str:
    """The file with outputs as they are now; those that still match stay as they are written, with their `…`."""
    session = Session()
    parts = [script.heading] if script.heading else []
    for entry in script.entries:
        parts += ["", entry.prose] if entry.prose else []
        parts.append(prompted(entry.text, session.prompt))
        output = said(session.execute(entry.text))
        if entry.output is not None and matches(entry.output, output):
            output = entry.output
        parts += [output] if output else []
    parts += ["", script.ending] if script.ending else []
    return "\n".join(parts) + "\n"
