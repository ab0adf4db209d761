"""Help, and the end."""

from __future__ import annotations

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
        return Answer(f"{command.usage}\n{command.help}")
    width = max(len(name) for name in COMMANDS) + 3
    parts = [_INTRODUCTION]
    for title, commands in GROUPS.items():
        parts.append("\n".join([title, *(f"  {':' + c.name:{width}}{c.summary}" for c in commands)]))
    return Answer("\n\n".join([*parts, _HINTS + ", ".join(f"`{name}`" for name in SUMMARIES)]))


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
