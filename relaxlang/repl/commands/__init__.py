"""The commands of the prompt: one file for each group, `COMMANDS` has them all.

In: the session and the text behind the command's name, as a span. Out: an `Answer`. A command looks at and changes the
session by its public methods alone, and prints nothing.
"""

from __future__ import annotations

from relaxlang.base.diagnostics import fail
from relaxlang.base.source import Source, Span
from relaxlang.base.suggest import did_you_mean
from relaxlang.repl.command import Command
from relaxlang.repl.commands import debug, files, help, history, inspect, look, measure, passes, run, schedule, why

GROUPS: dict[str, tuple[Command, ...]] = {
    "Module": files.COMMANDS,
    "Passes": passes.COMMANDS,
    "History": history.COMMANDS,
    "Look": (*look.COMMANDS, *inspect.COMMANDS, *measure.COMMANDS, *why.COMMANDS),
    "Run": run.COMMANDS,
    "Schedule": schedule.COMMANDS,
    "Debug": debug.COMMANDS,
    "Session": help.COMMANDS,
}
"""The commands by what they are about, in the order in which `:help` lists them."""

COMMANDS: dict[str, Command] = {c.name: c for group in GROUPS.values() for c in group}

# Beginnings that several commands have, and which of them they mean: the one that is typed most often.
_SHORT = {
    "a": "apply", "b": "break", "c": "continue", "co": "compare", "d": "diff", "h": "help", "l": "list", "n": "next",
    "p": "passes", "q": "quit", "r": "run", "s": "show", "st": "step", "t": "type", "u": "undo",
}  # fmt: skip


def candidates(word: str) -> list[str]:
    """The commands that a word can mean: one of that name, else those that begin so."""
    if word in COMMANDS:
        return [word]
    if word in _SHORT:
        return [_SHORT[word]]
    return [name for name in COMMANDS if name.startswith(word)]


def find_command(source: Source) -> tuple[Command, Span]:
    """The command that a line begins with, and the text behind its name. RLX7101 when there is none."""
    text = source.text
    start = text.index(":") + 1
    end = start
    while end < len(text) and not text[end].isspace():
        end += 1
    word = text[start:end]
    found = candidates(word) if word else []
    if len(found) != 1:
        span = Span(source, start - 1, end)
        near = did_you_mean(word, COMMANDS)
        help = f"did you mean `:{near}`?" if near else "`:help` lists the commands"
        if found:
            help = "it may mean " + ", ".join(f"`:{name}`" for name in found)
        fail("RLX7101", f"there is no command `:{word}`" if not found else f"`:{word}` is ambiguous", span, help=help)
    rest = text[end:]
    at = end + len(rest) - len(rest.lstrip())
    return COMMANDS[found[0]], Span(source, at, max(at, len(text.rstrip())))
