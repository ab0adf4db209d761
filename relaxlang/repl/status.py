"""The line below the prompt: where the session stands."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from relaxlang.repl.values import headline

if TYPE_CHECKING:
    from relaxlang.repl.session import Session


def status(session: Session) -> str:
    """`digits.rlx* step 3/4 · pipeline minimum · _2: R.Tensor((3, 10), "float32")`; `*`: not saved."""
    state = session.state
    name = os.path.basename(state.path) or ("no module" if not len(session.module) else session.module.name)
    changed = "*" if state.history.at != state.saved else ""
    last = len(state.history.steps) - 1
    parts = [f"{name}{changed} step {state.history.at}" + (f"/{last}" if last != state.history.at else "")]
    parts.append(_target(session))
    if state.pipeline != "default":
        parts.append(f"pipeline {state.pipeline}")
    if state.scheduling is not None:
        count = len(state.scheduling.versions) - 1
        parts.append(f"scheduling {state.scheduling.function}, {count} line{'s' * (count != 1)}")
    if session.debugger is not None:
        parts.append("stopped" if not session.debugger.over else "ended")
    if state.results:
        parts.append(f"_{state.results[-1][0]}: {headline(state.results[-1][1])}")
    return " · ".join(parts)


def _target(session: Session) -> str:
    if session.state.target:
        return session.state.target
    cpu = session.known_processor
    return f"llvm {cpu}" if cpu else "llvm"
