"""After every pass the module's text is the module: `parse(script)` is structurally equal, checks included."""

from __future__ import annotations

from pathlib import Path

import pytest

import relaxlang
from relaxlang.ir.module import IRModule
from relaxlang.passes.base import Pass, PassContext, PassInstrument
from tests.unit.passes.shape_programs import PROGRAMS, Program
from tests.unit.stdlib.native import function
from tests.unit.stdlib.test_native import BY_NAME
from tests.unit.stdlib.test_values import depth_is_known

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.rlx"))


class RoundTrip(PassInstrument):
    """Prints and parses what each pass makes."""

    def after(self, mod: IRModule, step: Pass) -> None:
        relaxlang.assert_structural_equal(relaxlang.parse(mod.script(), f"after {step}"), mod)


def lower(mod: IRModule) -> None:
    """Both pipelines, each pass watched."""
    for pipeline in ("default", "minimum"):
        relaxlang.lower(mod, pipeline, context=PassContext(instruments=(RoundTrip(),)))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_examples(path: Path) -> None:
    lower(relaxlang.load(path))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_programs(program: Program) -> None:
    lower(program.module)


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_operators(name: str) -> None:
    """Every operator's calls of the table, with known and with symbolic shapes."""
    functions = {}
    for k, case in enumerate(BY_NAME[name]):
        for dims in ("static", "symbolic"):
            if dims == "static" or depth_is_known(case):
                functions[f"{dims}{k}"], _ = function(case, dims, f"{dims}{k}")
    lower(IRModule(functions))
