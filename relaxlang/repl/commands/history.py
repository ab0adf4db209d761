"""Time travel: steps back and on, and the names they are given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from relaxlang.base.diagnostics import fail
from relaxlang.base.record import replace
from relaxlang.base.source import Span
from relaxlang.ir.module import IRModule
from relaxlang.repl.command import Answer, Choice, Command, at_most, needed, prefix_choices, words
from relaxlang.repl.commands.schedule import undo_primitives
from relaxlang.repl.difference import diff_text, side_by_side, summary
from relaxlang.repl.state import History, Step

if TYPE_CHECKING:
    from relaxlang.repl.session import Session


def _count(argument: Span, usage: str) -> int:
    given = at_most(argument, 1, usage)
    if not given:
        return 1
    text = given[0].text
    if not (text.isascii() and text.isdecimal() and 0 < int(text) < 1_000_000):
        fail("RLX7102", f"`{text}` is no number of steps", given[0], help=f"usage: `{usage}`")
    return int(text)


def _go(session: Session, history: History) -> Answer:
    session.state = replace(session.state, history=history)
    return Answer(_where(history.current))


def _where(step: Step) -> str:
    return f"step {step.number}: {step.made_by}"


def undo(session: Session, argument: Span) -> Answer:
    """Go back."""
    count = _count(argument, ":undo [N]")
    if session.state.scheduling is not None:
        return undo_primitives(session, count)
    history = session.state.history
    for _ in range(count):
        earlier = history.undo()
        if earlier is None:
            fail("RLX7103", "there is nothing to undo")
        history = earlier
    return _go(session, history)


def redo(session: Session, argument: Span) -> Answer:
    """Go on again."""
    history = session.state.history
    for _ in range(_count(argument, ":redo [N]")):
        later = history.redo()
        if later is None:
            fail("RLX7103", "there is nothing to redo")
        history = later
    return _go(session, history)


def history(session: Session, argument: Span) -> Answer:
    """List the steps."""
    at_most(argument, 0, ":history")
    at = session.state.history.at
    names: dict[int, str] = {}
    for name, number in session.state.snapshots.items():
        names[number] = f"{names[number]}, {name}" if number in names else name
    lines = []
    for step in session.state.history.steps:
        mark = "*" if step.number == at else " "
        origin = "" if step.parent in (step.number - 1, step.number) else f"   from step {step.parent}"
        name = f"   [{names[step.number]}]" if step.number in names else ""
        lines.append(f"{mark} {step.number:3}  {step.made_by}{origin}{name}")
    return Answer("\n".join(lines))


def checkout(session: Session, argument: Span) -> Answer:
    """Go to any step."""
    given = at_most(argument, 1, ":checkout STEP")
    if not given:
        needed(argument, ":checkout STEP")
    step = session.state.step(given[0].text)
    return _go(session, History(session.state.history.steps, step.number))


def snapshot(session: Session, argument: Span) -> Answer:
    """Give the current step a name."""
    given = at_most(argument, 1, ":snapshot NAME")
    if not given:
        needed(argument, ":snapshot NAME")
    name = given[0].text
    if not name.isidentifier():
        fail("RLX7102", f"`{name}` is no name", given[0], help="names are letters, digits and `_`")
    number = session.state.history.at
    session.state = replace(session.state, snapshots={**session.state.snapshots, name: number})
    return Answer(f"{name} is step {number}")


def diff(session: Session, argument: Span) -> Answer:
    """The difference of two steps."""
    flags = ("--side", "--all")
    given = words(argument)
    named = [w for w in given if w.text not in flags]
    for word in named:
        if word.text.startswith("-"):
            fail("RLX7102", f"there is no flag `{word.text}`", word, help="its flags: --side, --all")
    if len(named) > 2:
        fail("RLX7102", "two steps are compared", named[2], help="usage: `:diff [A [B]] [--side] [--all]`")
    old, new = _pair(session, [w.text for w in named])
    whole = any(w.text == "--all" for w in given)
    if any(w.text == "--side" for w in given):
        return Answer(side_by_side(old, new, whole, session.width) or "no difference", "rlx")
    text = diff_text(old, new, whole)
    return Answer(f"{summary(old, new)}\n{text}" if text else "no difference", "diff")


def _pair(session: Session, named: list[str]) -> tuple[IRModule, IRModule]:
    state = session.state
    current = state.history.current
    if not named:
        return state.history.steps[current.parent].module, current.module
    first = state.step(named[0]).module
    return first, state.step(named[1]).module if len(named) == 2 else current.module


def step_choices(session: Session, text: str) -> Iterable[Choice]:
    """Steps by number and name."""
    steps = session.state.history.steps
    named = [(name, _where(steps[n])) for name, n in session.state.snapshots.items()]
    return prefix_choices(text, [*named, *((str(s.number), s.made_by) for s in steps[-20:])])


COMMANDS: tuple[Command, ...] = (
    Command("undo", ":undo [N]", "go back one step, or N; while a kernel is scheduled, one primitive, or N", undo),
    Command("redo", ":redo [N]", "go on to the step that was undone", redo),
    Command("history", ":history", "list the steps: what made each module", history),
    Command(
        "checkout", ":checkout STEP", "go to a step by its number or the name of a snapshot", checkout, step_choices
    ),
    Command("snapshot", ":snapshot NAME", "give the current step a name", snapshot),
    Command(
        "diff",
        ":diff [A [B]] [--side] [--all]",
        "what the last step changed, or what differs between two steps\n"
        "A alone is compared with the current module. --side puts the two next to each other, --all\n"
        "prints functions that were added or removed, too.",
        diff,
        step_choices,
    ),
)
