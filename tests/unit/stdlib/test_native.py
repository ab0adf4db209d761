"""The tables' cases as compiled code: all of one operator's in one module, with known and with symbolic shapes."""

from __future__ import annotations

from collections import defaultdict

import pytest

from tests.unit.stdlib.cases import CASES
from tests.unit.stdlib.native import check_compiled
from tests.unit.stdlib.table import Case
from tests.unit.stdlib.test_values import depth_is_known

BY_NAME: dict[str, list[Case]] = defaultdict(list)
for _case in CASES:
    BY_NAME[_case.name].append(_case)


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_compiled_code_agrees(name: str) -> None:
    cases = BY_NAME[name]
    check_compiled([(c, "static") for c in cases] + [(c, "symbolic") for c in cases if depth_is_known(c)])
