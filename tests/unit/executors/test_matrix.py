"""Every program gives the same values in every way to run it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matrix_paths import PATHS
from matrix_programs import PROGRAMS

import relaxlang
from relaxlang.base.diagnostics import DiagnosticError


def flat(value: Any) -> Iterator[np.ndarray[Any, Any]]:
    if isinstance(value, tuple):
        for part in value:
            yield from flat(part)
    else:
        yield np.asarray(value)


@pytest.fixture(scope="module")
def wanted() -> dict[str, Any]:
    """What each program gives: numpy's answer, or the interpreter's."""
    made = {}
    for name, program in PROGRAMS.items():
        args = program.arguments()
        made[name] = program.numpy(*args) if program.numpy else relaxlang.interpret(program.module(), "main", *args)
    return made


@pytest.mark.parametrize("way", PATHS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_same_answer(name: str, way: str, wanted: dict[str, Any], tmp_path: Path) -> None:
    program = PROGRAMS[name]
    if not PATHS[way].takes(program):
        with pytest.raises(DiagnosticError, match="RLX50"):
            PATHS[way].run(program, tmp_path)
        return
    given, expected = list(flat(PATHS[way].run(program, tmp_path))), list(flat(wanted[name]))
    assert len(given) == len(expected)
    for mine, theirs in zip(given, expected):
        assert mine.dtype == theirs.dtype and mine.shape == theirs.shape
        np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=1e-6)
