"""The debugger's commands: stopping before bindings, looking at variables, going on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from relaxlang.base.diagnostics import DiagnosticError, RelaxlangError, fail
from relaxlang.base.record import replace
from relaxlang.base.source import Source, Span
from relaxlang.base.suggest import did_you_mean
from relaxlang.ir import relax
from relaxlang.ir.visit import walk
from relaxlang.repl.command import Answer, Choice, Command, at_most, function_name, needed
from relaxlang.repl.commands.look import function_choices
from relaxlang.repl.debugger import Breakpoint, Debugger, Order, Place, Stop, post_mortem
from relaxlang.repl.invocation import Invocation, invocation
from relaxlang.repl.scope import language_choices
from relaxlang.repl.values import headline, shown

if TYPE_CHECKING:
    from relaxlang.repl.session import Session


LINE = 100
"""Characters of a binding that are shown where a program stops."""


# --- breakpoints ------------------------------------------------------------------------------------------------------
def set_break(session: Session, argument: Span) -> Answer:
    """Set or list breakpoints."""
    if not argument.text:
        rows = [f"{number}  {point}" for number, point in enumerate(session.state.breakpoints, 1)]
        return Answer("\n".join(rows) or "no breakpoints")
    point = _breakpoint(session, argument)
    session.state = replace(session.state, breakpoints=(*session.state.breakpoints, point))
    return Answer(f"breakpoint {len(session.state.breakpoints)} at {point}; `:run` stops there")


def _breakpoint(session: Session, argument: Span) -> Breakpoint:
    place, _, condition = argument.text.partition(" if ")
    name, colon, where = place.strip().partition(":")
    start = argument.start
    function = function_name(session, Span(argument.source, start, start + len(name)))
    found = session.module.functions[function]
    if not isinstance(found, relax.Function):
        fail("RLX7102", f"`{function}` is compiled as a whole: a program stops in Relax functions", argument)
    bindings = [n for n in walk(found) if isinstance(n, relax.Binding)]
    if not colon:
        return Breakpoint(function, condition=condition.strip())
    if where.isdecimal():
        lines = sorted({b.span.line for b in bindings if b.span is not None})
        if int(where) not in lines:
            known = ", ".join(map(str, lines[:12])) or "none"
            fail("RLX7103", f"no binding of `{function}` begins at line {where}", argument, help=f"lines: {known}")
        return Breakpoint(function, line=int(where), condition=condition.strip())
    names = [b.var.name for b in bindings]
    if where not in names:
        near = did_you_mean(where, names)
        fail(
            "RLX7103",
            f"`{function}` binds no variable `{where}`",
            argument,
            help=f"did you mean `{near}`?" if near else "",
        )
    return Breakpoint(function, where, condition=condition.strip())


def delete(session: Session, argument: Span) -> Answer:
    """Delete breakpoints."""
    given = at_most(argument, 1, ":delete [N]")
    points = session.state.breakpoints
    if not given:
        session.state = replace(session.state, breakpoints=())
        return Answer(f"{len(points)} breakpoint{'s' * (len(points) != 1)} deleted")
    text = given[0].text
    if not text.isdecimal() or not 1 <= int(text) <= len(points):
        fail("RLX7103", f"there is no breakpoint `{text}`", given[0])
    session.state = replace(session.state, breakpoints=(*points[: int(text) - 1], *points[int(text) :]))
    return Answer(f"breakpoint {text} deleted")


# --- running ----------------------------------------------------------------------------------------------------------
def debug(session: Session, argument: Span) -> Answer:
    """Run a function up to its first binding."""
    call = invocation(session, argument, session.module)
    if call.outputs:
        fail("RLX7102", f"`{call.function}` is compiled as a whole: a program stops in Relax functions", argument)
    return launch(session, call, "step")


def launch(session: Session, call: Invocation, order: Order) -> Answer:
    """Start a call under the debugger: without optimisations, so that every binding is there."""
    _end(session)
    stages = session.stages(call.function, pipeline="minimum")

    def holds(condition: str, values: dict[str, Any]) -> bool:
        return bool(_evaluate(session, condition, values))

    debugger = Debugger(stages.runnable, stages.lines, call.function, call.args, session.state.breakpoints, holds)
    session.debugger = debugger
    return _stopped(session, debugger.start(order), call.notes)


def _end(session: Session) -> None:
    if session.debugger is not None and not session.debugger.over:
        session.debugger.abandon()
    session.debugger = None
    session.places = ()


def _stopped(session: Session, stop: Stop, notes: Iterable[str] = ()) -> Answer:
    """What to say about a stop; a program that is done gives its result, one that failed its error."""
    session.places = stop.frames
    if stop.reason == "done":
        session.debugger = None
        return session.result(stop.value, "\n".join(notes))
    if stop.error is not None:
        _note_frames(stop.error, stop.frames)
        session.debugger = None
        raise stop.error
    return Answer("\n".join([*notes, _line(stop.frames[-1])]))


def _line(place: Place) -> str:
    if place.line is None:
        return f"{place.function}: its end, or what optimisation made of it"
    span = place.line.binding.span
    where = f"   {span}" if span is not None else ""
    text = " ".join(str(place.line.binding).split())
    return f"{place.function}: {text if len(text) <= LINE else text[: LINE - 1] + '…'}{where}"


def failed(session: Session, function: str, error: RelaxlangError) -> None:
    """Keep where a call of a function failed, for `:bt`, `:locals` and `:print`."""
    stages = session.stages(function)
    session.places = post_mortem(error, stages.lines, stages.program.executable)
    _note_frames(error, session.places)


def _note_frames(error: RelaxlangError, places: tuple[Place, ...]) -> None:
    if places and isinstance(error, DiagnosticError):
        error.add_note(f"in {_line(places[-1])}")
        error.add_note("`:bt`, `:locals` and `:print` look at the program as it was")


def _resume(order: Order, usage: str) -> Any:
    def run(session: Session, argument: Span) -> Answer:
        at_most(argument, 0, usage)
        if session.debugger is None or session.debugger.over:
            fail("RLX7103", "no program has stopped", help="`:debug main(…)` starts one, or `:break main` and `:run`")
        session.debugger.breakpoints = session.state.breakpoints  # as they are now: some came or went while it stood
        return _stopped(session, session.debugger.resume(order))

    return run


def abandon(session: Session, argument: Span) -> Answer:
    """End the program."""
    at_most(argument, 0, ":abandon")
    if session.state.scheduling is not None:
        name = session.state.scheduling.function
        session.state = replace(session.state, scheduling=None)
        return Answer(f"{name} stays as it is")
    if session.debugger is None:
        fail("RLX7103", "no program has stopped")
    _end(session)
    return Answer("ended")


# --- looking ----------------------------------------------------------------------------------------------------------
def _places(session: Session) -> tuple[Place, ...]:
    if not session.places:
        fail(
            "RLX7103",
            "no program has stopped or failed",
            help="`:debug main(…)` starts one, or `:break main` and `:run`",
        )
    return session.places


def backtrace(session: Session, argument: Span) -> Answer:
    """The frames, innermost first."""
    at_most(argument, 0, ":bt")
    places = _places(session)
    return Answer("\n".join(f"#{i}  {_line(p)}" for i, p in enumerate(reversed(places))))


def show_locals(session: Session, argument: Span) -> Answer:
    """The variables of a frame."""
    given = at_most(argument, 1, ":locals [FRAME]")
    places = _places(session)[::-1]
    text = given[0].text if given else "0"
    if not text.isdecimal() or int(text) >= len(places):
        fail("RLX7103", f"there is no frame `{text}`", argument, help=f"frames go from 0 to {len(places) - 1}")
    values = places[int(text)].values
    width = max((len(n) for n in values), default=0)
    return Answer("\n".join(f"{n:{width}}  {headline(v)}{_few(v)}" for n, v in values.items()) or "no variables")


def _few(value: Any) -> str:
    """A few numbers of a tensor, on the same line."""
    if not isinstance(value, np.ndarray):
        return f" = {shown(value)}"
    if value.size == 0:
        return "  (no elements)"
    flat = np.asarray(value).reshape(-1)[:4]
    with np.printoptions(precision=4):
        return f"  {' '.join(str(v) for v in np.array2string(flat)[1:-1].split())}" + (" …" if value.size > 4 else "")


def print_value(session: Session, argument: Span) -> Answer:
    """Evaluate an expression where the program stands."""
    if not argument.text:
        needed(argument, ":print EXPR")
    value = _evaluate(session, argument.text, _places(session)[-1].values, argument)
    return Answer(f"{headline(value)}\n{shown(value)}", value=value)


def _evaluate(session: Session, text: str, values: dict[str, Any], span: Span | None = None) -> Any:
    """The value of an expression over a program's variables, and the session's."""
    span = Span(Source("<condition>", text), 0, len(text)) if span is None else span
    calculator = session.calculator(values)
    return calculator.concrete(calculator.read(span), span)


def break_choices(session: Session, text: str) -> Iterable[Choice]:
    """Functions, and behind a colon their variables."""
    name, colon, start = text.partition(":")
    if not colon:
        return function_choices(session, text)
    function = session.module.functions.get(name)
    if not isinstance(function, relax.Function):
        return ()
    bound = {n.var.name: n.var.struct_info for n in walk(function) if isinstance(n, relax.Binding)}
    return [Choice(n, len(start), str(info)) for n, info in bound.items() if n.startswith(start)]


COMMANDS: tuple[Command, ...] = (
    Command(
        "break",
        ":break [FN[:VARIABLE|:LINE] [if EXPR]]",
        "stop before a binding (when a condition holds); alone, list breakpoints\n"
        "`:break main:h2 if n > 100`. While there are breakpoints, `:run` runs under the debugger.",
        set_break,
        break_choices,
    ),
    Command("delete", ":delete [N]", "delete a breakpoint, or all", delete),
    Command("debug", ":debug [FN(ARGS)]", "run a function and stop at its first binding", debug, language_choices),
    Command("step", ":step", "go on to the next binding, into calls", _resume("step", ":step")),
    Command("next", ":next", "go on to the next binding of this function", _resume("next", ":next")),
    Command("finish", ":finish", "go on to the caller", _resume("finish", ":finish")),
    Command("continue", ":continue", "go on to the next breakpoint, or the end", _resume("continue", ":continue")),
    Command("abandon", ":abandon", "end the program that has stopped, or leave a schedule", abandon),
    Command("bt", ":bt", "the calls that lead to where the program stopped or failed, innermost first", backtrace),
    Command("locals", ":locals [FRAME]", "the variables there, or those of frame #N of `:bt`", show_locals),
    Command("print", ":print EXPR", "the value of an expression over these variables", print_value, language_choices),
)
