"""After every pass the module's text is the module: `parse(script)` is structurally equal, checks included."""

from __future__ import annotations

from pathlib import Path

import pytest

import relaxlang
from relaxlang.ir.module import IRModule
from relaxlang.passes.base import Pass, PassContext, PassInstrument, Sequential
from tests.unit.passes.shape_programs import PROGRAMS, Program
from tests.unit.stdlib.native import function
from tests.unit.stdlib.test_native import BY_NAME
from tests.unit.stdlib.test_values import depth_is_known

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.rlx"))


class RoundTrip(PassInstrument):
    """Prints and parses what each pass makes, unless it is what the pass was given."""

    def __init__(self) -> None:
        self.given: list[IRModule] = []

    def before(self, mod: IRModule, step: Pass) -> None:
        self.given.append(mod)

    def after(self, mod: IRModule, step: Pass) -> None:
        if self.given.pop() is not mod and not isinstance(step, Sequential):
            relaxlang.assert_structural_equal(relaxlang.parse(mod.script(), f"after {step}"), mod)


def lower(mod: IRModule, *pipelines: str) -> None:
    """Run pipelines, each pass watched."""
    for pipeline in pipelines:
        relaxlang.lower(mod, pipeline, context=PassContext(instruments=(RoundTrip(),)))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_examples(path: Path) -> None:
    lower(relaxlang.load(path), "default", "minimum")


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_programs(program: Program) -> None:
    lower(program.module, "default", "minimum")


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_operators(name: str) -> None:
    """A call of every operator, with symbolic shapes where they say enough."""
    case = BY_NAME[name][0]
    made, _ = function(case, "symbolic" if depth_is_known(case) else "static", "main")
    lower(IRModule({"main": made}), "default")
