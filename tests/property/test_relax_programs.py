"""Random Relax programs mean the same interpreted, compiled by both pipelines, and after every pass.

`python -m tests.property.test_relax_programs FIRST LAST` tries many more.
"""

from __future__ import annotations

import sys

import pytest

import relaxlang
from relaxlang.debug.check_passes import check_passes, difference, leaves
from relaxlang.passes.pipelines import pipeline
from tests.property.relax_programs import Program


def fault(seed: int) -> str:
    """What is wrong with the handling of one program; "" when nothing is."""
    program = Program(seed)
    mod = relaxlang.parse(program.text)
    if relaxlang.parse(mod.script()).script() != mod.script():
        return "the text does not read back"
    want = leaves(relaxlang.interpret(mod, "main", *program.args))
    for name in ("minimum", "default"):
        got = relaxlang.build(mod, pipeline=name)["main"](*program.args)
        found = difference(want, leaves(got))
        if found:
            return f"compiled by `{name}`: {found}"
    finding = check_passes(mod, pipeline("default").passes, "main", program.args)
    return "" if finding is None else f"{finding.step} {finding.message}"


@pytest.mark.parametrize("seed", range(10))
def test_program(seed: int) -> None:
    assert fault(seed) == ""


if __name__ == "__main__":
    for number in range(int(sys.argv[1]), int(sys.argv[2])):
        said = fault(number)
        if said:
            print(f"seed {number}: {said}\n{Program(number).text}")
