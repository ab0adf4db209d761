"""What may stand at the cursor: commands, their arguments, and the names of the language in scope."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relaxlang.repl.command import Choice
from relaxlang.repl.commands import COMMANDS, candidates
from relaxlang.repl.primitives import primitive_choices
from relaxlang.repl.scope import language_choices

if TYPE_CHECKING:
    from relaxlang.repl.session import Session


def choices(session: Session, text: str) -> list[Choice]:
    """The completions of the text before the cursor."""
    line = text.lstrip()
    if line.startswith("?"):
        return list(COMMANDS["info"].complete(session, line[1:]))
    if not line.startswith(":"):
        if session.state.scheduling is not None:
            return primitive_choices(session.state.scheduling.schedule, line)
        return list(language_choices(session, text))
    head, blank, rest = line[1:].partition(" ")
    if not blank:
        return [Choice(name, len(head), c.summary) for name, c in COMMANDS.items() if name.startswith(head)]
    meant = candidates(head) if head else []
    return list(COMMANDS[meant[0]].complete(session, rest.lstrip())) if len(meant) == 1 else []
