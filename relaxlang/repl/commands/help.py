"""Help, and the end."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING

from relaxlang.base.diagnostics import fail
from relaxlang.base.source import Source, Span
from relaxlang.repl.command import Answer, Choice, Command, at_most, prefix_choices
from relaxlang.repl.values import SUMMARIES

if TYPE_CHECKING:
    from relaxlang.repl.session import Session

_INTRODUCTION = """\
Type definitions (`@R.function …`), assignments (`x = rand(2, 3)`) and expressions (`R.nn.softmax(x)`), or a command:"""

_HINTS = """\
Beginnings of names do: `:a` is `:apply`. `:help COMMAND` says more, `?NAME` explains a name, `_` is the last result.
Tensors: """


def help(session: Session, argument: Span) -> Answer:
    """Say what can be typed."""
    from relaxlang.repl.commands import COMMANDS, GROUPS, find_command

    given = at_most(argument, 1, ":help [COMMAND]")
    if given:
        word = given[0].text.removeprefix(":")
        command, _ = find_command(Source(argument.source.name, ":" + word))
        first, *more = command.help.split("\n")
        return Answer(_wrapped("\n".join([command.usage, first, *_paragraphs(more)]), session.width, 2))
    width = max(len(name) for name in COMMANDS) + 3
    parts = [_INTRODUCTION]
    for title, commands in GROUPS.items():
        parts.append("\n".join([title, *(f"  {':' + c.name:{width}}{c.summary}" for c in commands)]))
    text = "\n\n".join([*parts, _HINTS + ", ".join(f"`{name}`" for name in SUMMARIES)])
    return Answer(_wrapped(text, session.width, width + 2))


def _paragraphs(lines: Iterable[str]) -> list[str]:
    """Lines that go on with each other as one; those that are indented stand for themselves."""
    made: list[str] = []
    for line in lines:
        if made and not line.startswith(" ") and not made[-1].startswith(" "):
            made[-1] += " " + line
        else:
            made.append(line)
    return made


def _wrapped(text: str, width: int, indent: int) -> str:
    """The text in lines of at most `width` characters; the rest of an indented line stands `indent` farther in."""
    lines: list[str] = []
    for line in text.split("\n"):
        margin = " " * (len(line) - len(line.lstrip()))
        rest = margin if len(margin) != 2 else " " * indent
        lines += textwrap.wrap(line, width, subsequent_indent=rest, break_long_words=False) or [""]
    return "\n".join(lines)


def quit(session: Session, argument: Span) -> Answer:
    """End the session."""
    if argument.text:
        fail("RLX7102", "there is one argument too many", argument, help="usage: `:quit`")
    return Answer(done=True)


def command_choices(session: Session, text: str) -> Iterable[Choice]:
    """Commands."""
    from relaxlang.repl.commands import COMMANDS

    return prefix_choices(text, [(name, c.summary) for name, c in COMMANDS.items()])


COMMANDS: tuple[Command, ...] = (
    Command("help", ":help [COMMAND]", "what can be typed, or how a command is used", help, command_choices),
    Command("quit", ":quit", "end the session (so does Ctrl-D)", quit),
)
