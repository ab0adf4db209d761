"""Images, regions, suppression, gradients: compiled code, with symbolic shapes, does what the interpreter does."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from tests.unit.stdlib.calls import CALLS, Call
from tests.unit.stdlib.harness import run
from tests.unit.stdlib.native import check_compiled
from tests.unit.stdlib.table import Case

BY_NAME: dict[str, list[Call]] = defaultdict(list)
for _call in CALLS:
    BY_NAME[_call[0]].append(_call)


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_compiled_code_agrees_with_the_interpreter(name: str) -> None:
    cases = []
    for _, args, attrs in BY_NAME[name]:
        expected = run(name, *args, **attrs)
        exact = tuple(np.asarray(e) for e in expected) if isinstance(expected, tuple) else np.asarray(expected)
        cases.append((Case(name, args, attrs, exact, 1e-4), "symbolic"))
    check_compiled(cases)
