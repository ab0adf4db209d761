"""What a session knows, as immutable values: taking a step back is taking an old value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from relaxlang.base.diagnostics import fail
from relaxlang.base.record import fresh, record
from relaxlang.ir.module import IRModule
from relaxlang.repl.debugger import Breakpoint

if TYPE_CHECKING:
    from relaxlang.repl.scheduling import Scheduling

StepKind = Literal["start", "load", "define", "apply", "schedule"]
RESULTS = 32
"""How many results `_1`, `_2`, … are kept."""


class Step(NamedTuple):
    """A module and what made it of the module of step `parent`: the path, the names, or the pipeline in `detail`."""

    number: int
    module: IRModule
    kind: StepKind
    detail: str
    parent: int

    @property
    def made_by(self) -> str:
        """What made the module, for people."""
        return f"{self.kind} {self.detail}".strip()


@record
class History:
    """All modules of a session, a tree of steps: going back and on in another way loses nothing. `at` is the current
    step's number."""

    steps: tuple[Step, ...]
    at: int = 0

    @property
    def current(self) -> Step:
        """The step that the session stands at."""
        return self.steps[self.at]

    def add(self, module: IRModule, kind: StepKind, detail: str) -> History:
        """The history with one more step, made from the current one."""
        step = Step(len(self.steps), module, kind, detail, self.at)
        return History((*self.steps, step), step.number)

    def undo(self) -> History | None:
        """The history one step back; None at its beginning."""
        return History(self.steps, self.current.parent) if self.at else None

    def redo(self) -> History | None:
        """The history one step on, to the newest one that was made from the current; None when there is none."""
        following = [s.number for s in self.steps if s.parent == self.at and s.number != self.at]
        return History(self.steps, following[-1]) if following else None

    def path(self) -> list[Step]:
        """The steps from the beginning to the current one."""
        steps = [self.current]
        while steps[-1].number != 0:
            steps.append(self.steps[steps[-1].parent])
        return steps[::-1]


def empty_history() -> History:
    """The history of a session that has just begun: an empty module."""
    return History((Step(0, IRModule({}), "start", "", 0),))


@record
class State:
    """Everything that a session's commands can change.

    `variables` are those that were assigned; `results` the latest ones with their numbers; `path` the file that the
    module came from, `written` the one that the session wrote, `saved` the step that stands in it; `scheduling` is the
    kernel that is being scheduled; `draws` counts random tensors, so that each is another one; `inputs` are the texts
    that made this state.
    """

    history: History = fresh(factory=empty_history)
    variables: Mapping[str, Any] = fresh(factory=dict)
    results: tuple[tuple[int, Any], ...] = ()
    path: str = ""
    written: str = ""
    saved: int = 0
    pipeline: str = "default"
    target: str = ""
    snapshots: Mapping[str, int] = fresh(factory=dict)
    breakpoints: tuple[Breakpoint, ...] = ()
    scheduling: Scheduling | None = None
    draws: int = 0
    inputs: tuple[str, ...] = ()

    @property
    def names(self) -> dict[str, Any]:
        """The variables, and the results as `_`, `_1`, `_2`, …"""
        latest = {"_": self.results[-1][1]} if self.results else {}
        return {**{f"_{number}": value for number, value in self.results}, **latest, **self.variables}

    def step(self, text: str) -> Step:
        """The step that a number or the name of a snapshot means. RLX7103 when there is none."""
        steps = self.history.steps
        if text in self.snapshots:
            return steps[self.snapshots[text]]
        if text.isascii() and text.isdecimal() and int(text) < len(steps):
            return steps[int(text)]
        known = f"steps go from 0 to {len(steps) - 1}"
        if self.snapshots:
            known += "; snapshots: " + ", ".join(f"`{name}`" for name in self.snapshots)
        fail("RLX7103", f"there is no step `{text}`", help=known)
