"""Scheduling a kernel by hand: a prompt in which primitives are typed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from relaxlang.base.diagnostics import fail
from relaxlang.base.record import replace
from relaxlang.base.source import Span
from relaxlang.ir.tir import PrimFunc
from relaxlang.passes.tir.schedule_cpu import SCHEDULE
from relaxlang.repl.command import (
    Answer,
    Choice,
    Command,
    at_most,
    flags,
    function_name,
    prefix_choices,
    require_module,
    words,
)
from relaxlang.repl.commands.look import dim_text
from relaxlang.repl.invocation import sizes_of
from relaxlang.repl.primitives import PRIMITIVES, is_python, loop_names, summary, usage
from relaxlang.repl.scheduling import Scheduling, advanced, begin, resized

if TYPE_CHECKING:
    from relaxlang.repl.session import Session

_USAGE = ":schedule [FN] [N=SIZE …]"


def schedule(session: Session, argument: Span) -> Answer:
    """Begin to schedule a kernel, or show how it stands."""
    given = words(argument)
    named = [w for w in given if "=" not in w.text]
    if len(named) > 1:
        fail("RLX7102", "one function is scheduled at a time", named[1], help=f"usage: `{_USAGE}`")
    now = session.state.scheduling
    dims = sizes_of([w for w in given if "=" in w.text])
    if now is not None:
        if named:
            fail("RLX7103", f"`{now.function}` is being scheduled", named[0], help="`:done` or `:abandon` ends that")
        now = resized(session, now, dims) if dims else now
        session.state = replace(session.state, scheduling=now)
        return _standing(now)
    require_module(session)
    name = function_name(session, named[0]) if named else _only(session, argument)
    function = session.module.functions[name]
    if not isinstance(function, PrimFunc):
        fail("RLX7102", f"`{name}` is no TensorIR function: schedules are for kernels", named[0] if named else argument,
             help="`:apply legalize-ops` makes kernels of operators; `:list` shows them")  # fmt: skip
    made = begin(session, name, function, dims)
    session.state = replace(session.state, scheduling=made)
    return _standing(made)


def _only(session: Session, argument: Span) -> str:
    names = [name for name, _ in session.module.prim_funcs()]
    if len(names) != 1:
        listed = f"there are {', '.join(f'`{n}`' for n in names[:12])}" if names else ""
        help = listed or "`:apply legalize-ops` makes kernels"
        fail("RLX7102", "it is not clear which kernel is meant", argument, help=help)
    return names[0]


def _standing(now: Scheduling) -> Answer:
    """The program, its loops and its time."""
    sch = now.schedule
    loops = ", ".join(f"{name} ({dim_text(sch.state.loops[var].extent)})" for var, name in loop_names(sch).items())
    blocks = ", ".join(name for name in sch.state.blocks if name != "root")
    lines = [now.text, f"blocks: {blocks}; loops: {loops}", *now.call.notes, f"time: {now.speed(now.versions[-1])}"]
    return Answer("\n".join(lines), "rlx")


def primitive(session: Session, line: Span) -> Answer:
    """Do what is typed at the prompt of a schedule."""
    now = session.state.scheduling
    assert now is not None  # the session asks only then
    said = []
    for one in [line] if is_python(line) else _lines(line):
        now, text = advanced(session, now, one)
        said.append(text)
    session.state = replace(session.state, scheduling=now)
    return Answer("\n".join(said), "diff")


def _lines(text: Span) -> Iterator[Span]:
    """The lines of a text that are not empty, without blanks around them."""
    at = text.start
    for line in text.text.split("\n"):
        start = at + len(line) - len(line.lstrip())
        if line.strip():
            yield Span(text.source, start, start + len(line.strip()))
        at += len(line) + 1


def _current(session: Session) -> Scheduling:
    now = session.state.scheduling
    if now is None:
        fail("RLX7103", "no kernel is being scheduled", help="`:schedule FN` begins")
    return now


def undo_primitives(session: Session, count: int) -> Answer:
    """Take lines back."""
    now = _current(session).undone(count)
    session.state = replace(session.state, scheduling=now)
    return Answer(f"{now.text}\ntime: {now.speed(now.versions[-1])}", "rlx")


def trace(session: Session, argument: Span) -> Answer:
    """The schedule as text."""
    given = at_most(argument, 1, ":trace [rlx|python]")
    now = _current(session)
    form = given[0].text if given else ""
    if form not in ("", "rlx", "python"):
        fail("RLX7102", f"there is no form `{form}`", given[0], help="usage: `:trace [rlx|python]`")
    if form == "rlx":
        return Answer(_attribute(now), "rlx")
    head = ["sch = relaxlang.Schedule(mod)", f'sch.work_on("{now.function}")'] if form == "python" else []
    tail = ["mod = sch.mod"] if form == "python" else []
    return Answer("\n".join([*head, *now.lines, *tail]) or "no primitive yet", "rlx")


def _attribute(now: Scheduling) -> str:
    """The statement of the function that holds the schedule."""
    quoted = [f"    {_quoted(line)}," for line in now.lines]
    return "\n".join([f'T.func_attr({{"{SCHEDULE}": [', *quoted, "]})"])


def _quoted(line: str) -> str:
    return '"' + line.replace("\\", "\\\\").replace('"', '\\"') + '"'


def done(session: Session, argument: Span) -> Answer:
    """Put the scheduled function into the module."""
    found, rest = flags(argument, {"--attribute": ""})
    at_most(rest, 0, ":done [--attribute]")
    now = _current(session)
    name = now.function
    if session.module.functions.get(name) is not now.original:
        fail("RLX7103", f"`{name}` has changed since its schedule began", help="`:trace` prints it; `:abandon` ends it")
    session.state = replace(session.state, scheduling=None)
    if len(now.versions) == 1:
        return Answer(f"{name} stays as it is")
    function = now.schedule.mod.functions[name]
    if found:
        function = now.original.replace(attrs=now.original.attrs.with_(**{SCHEDULE: now.lines}))
    session.step(session.module.with_function(name, function), "schedule", name)
    first, last = now.versions[0], now.versions[-1]
    return Answer(f"{name} is scheduled: {now.speed(last)}; before {now.speed(first)}")


def schedule_choices(session: Session, text: str) -> Iterable[Choice]:
    """Kernels of the module."""
    return prefix_choices(text, [(name, "tir") for name, _ in session.module.prim_funcs()])


_HELP = (
    "schedule a kernel by hand, at a prompt in which primitives are typed\n"
    "Each line shows what it changes, and the time of the kernel on random data (N=SIZE: of these sizes); its\n"
    "result is compared with that of the unscheduled kernel. `:undo` takes a line back, `:trace` prints the\n"
    "schedule as text, `:done` puts the kernel into the module, `:abandon` leaves it as it was; `:schedule` alone\n"
    "shows how it stands.\nLoops and blocks go by their names; `BLOCK.LOOP` where a name alone is not enough.\n"
)

COMMANDS: tuple[Command, ...] = (
    Command(
        "schedule",
        _USAGE,
        _HELP + "\n".join(f"  {usage(m)}\n      {summary(m)}" for m in PRIMITIVES),
        schedule,
        schedule_choices,
    ),
    Command(
        "trace",
        ":trace [rlx|python]",
        "the schedule so far as text\nIts lines are what the attribute `schedule` of a function holds, and what Python "
        "runs; rlx and python print\nall that is needed there.",
        trace,
        lambda session, text: prefix_choices(text, [("rlx", "the attribute"), ("python", "a script")]),
    ),
    Command(
        "done",
        ":done [--attribute]",
        "put the scheduled kernel into the module\n--attribute keeps its loops as they are and gives it the attribute "
        "`schedule` instead.",
        done,
    ),
)  # fmt: skip
