"""Every operator of the tables agrees with its reference, whatever is known of the shapes while compiling."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.stdlib.cases import CASES
from tests.unit.stdlib.harness import run
from tests.unit.stdlib.table import Case


def depth_is_known(case: Case) -> bool:
    """The last dimension of the indices of these operators says how many coordinates there are: no symbol."""
    return case.name not in ("gather_nd", "scatter_nd") or case.args[1].shape[-1] == 1


def check(got: Any, want: Any, rtol: float) -> None:
    if isinstance(want, tuple):
        assert isinstance(got, tuple) and len(got) == len(want)
        for one, other in zip(got, want):
            check(one, other, rtol)
        return
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype and got.shape == want.shape
    if want.dtype.kind in "biu":
        np.testing.assert_array_equal(got, want)
    else:
        np.testing.assert_allclose(got.astype("float64"), want.astype("float64"), rtol=rtol, atol=1e-6)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_all_dimensions_known(case: Case) -> None:
    check(run(case.name, *case.args, **case.attrs), case.expected, case.rtol)


@pytest.mark.parametrize("case", [c for c in CASES if depth_is_known(c)], ids=str)
def test_symbolic_dimensions(case: Case) -> None:
    check(run(case.name, *case.args, dims="symbolic", **case.attrs), case.expected, case.rtol)
