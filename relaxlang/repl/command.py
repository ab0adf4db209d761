"""What a command is, what it answers, and how it reads its arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from relaxlang.base.diagnostics import fail
from relaxlang.base.record import record
from relaxlang.base.source import Span
from relaxlang.base.suggest import did_you_mean

if TYPE_CHECKING:
    from relaxlang.repl.session import Session

_WORD = re.compile(r'"[^"]*"|\S+')
_FLAG = re.compile(r"\s*(--[A-Za-z][\w-]*|-[A-Za-z])(?:=(\S+))?(?=\s|\Z)\s*")


class Answer(NamedTuple):
    """What a command gives: text in a language (`text`, `rlx`, `diff`, `llvm`, `asm`), a value, whether it ends the
    session."""

    text: str = ""
    language: str = "text"
    value: Any = None
    done: bool = False


class Choice(NamedTuple):
    """Something that can stand at the cursor: the text, how much of what is typed it replaces, and a few words."""

    text: str
    typed: int
    meta: str = ""


def no_choices(session: Session, text: str) -> Iterable[Choice]:
    """The completion of commands without arguments."""
    return ()


@record
class Command:
    """A command: how it is called, what it does (the first line of `help` stands in lists), what can follow `text`."""

    name: str
    usage: str
    help: str
    run: Callable[[Session, Span], Answer]
    complete: Callable[[Session, str], Iterable[Choice]] = no_choices

    @property
    def summary(self) -> str:
        """The first line of the help."""
        return self.help.split("\n")[0]


# --- arguments --------------------------------------------------------------------------------------------------------
def words(span: Span) -> list[Span]:
    """The words of a text, as spans; quotes keep blanks inside one (and are no part of it)."""
    found = []
    for match in _WORD.finditer(span.text):
        quoted = match[0].startswith('"') and len(match[0]) > 1
        found.append(Span(span.source, span.start + match.start() + quoted, span.start + match.end() - quoted))
    return found


def flags(span: Span, known: Mapping[str, str]) -> tuple[dict[str, str], Span]:
    """The flags that a text begins with, by name with their values, and the rest; `known` says for each whether it
    takes a value (`N`) or not (empty). RLX7102 for others."""
    found: dict[str, str] = {}
    at = 0
    text = span.text
    while (match := _FLAG.match(text, at)) is not None:
        name, value = match[1], match[2]
        place = Span(span.source, span.start + match.start(1), span.start + match.end(1))
        if name not in known:
            near = did_you_mean(name, known)
            listed = "its flags: " + ", ".join(known) if known else "it takes none"
            fail("RLX7102", f"there is no flag `{name}`", place, help=f"did you mean `{near}`?" if near else listed)
        if bool(known[name]) != (value is not None):
            usage = f"{name}={known[name]}" if known[name] else name
            fail("RLX7102", f"the flag is written `{usage}`", place)
        found[name] = value or ""
        at = match.end()
    return found, Span(span.source, span.start + at, span.end)


def at_most(span: Span, count: int, usage: str) -> list[Span]:
    """The words of a text, no more than so many."""
    found = words(span)
    if len(found) > count:
        fail("RLX7102", "there is one argument too many", found[count], help=f"usage: `{usage}`")
    return found


def needed(span: Span, usage: str) -> NoReturn:
    """Say that an argument is missing."""
    fail("RLX7102", "an argument is missing", span, help=f"usage: `{usage}`")


def function_name(session: Session, word: Span) -> str:
    """The name of a function of the module. RLX7103 when there is none of that name."""
    name = word.text
    if name not in session.module:
        near = did_you_mean(name, session.module)
        listed = "there are " + ", ".join(f"`{n}`" for n in list(session.module)[:12]) if len(session.module) else ""
        help = f"did you mean `{near}`?" if near else listed or "`:load FILE` reads a module"
        fail("RLX7103", f"the module has no function `{name}`", word, help=help)
    return name


def require_module(session: Session) -> None:
    """RLX7103 when the module has no functions yet."""
    if not len(session.module):
        fail("RLX7103", "there is no module yet", help="`:load FILE` reads one; or type a definition")


def prefix_choices(text: str, names: Iterable[tuple[str, str]]) -> list[Choice]:
    """The names, with a few words each, that the last word of a text begins."""
    word = text[max(text.rfind(" "), text.rfind(","), text.rfind("(")) + 1 :]
    return [Choice(name, len(word), meta) for name, meta in names if name.startswith(word)]
