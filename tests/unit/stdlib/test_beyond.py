"""Indices beyond a tensor: nothing outside of it is read or written, compiled or not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relaxlang.base.diagnostics import DiagnosticError
from tests.unit.stdlib.harness import OPERATORS, Dims, Inputs, run
from tests.unit.stdlib.native import check_compiled
from tests.unit.stdlib.table import Case

X = np.arange(6, dtype="float32").reshape(2, 3)
FAR = 1 << 40
ONES = np.ones((2, 3), "float32")
WANT: list[tuple[str, tuple[Any, ...], dict[str, Any], Any]] = [
    ("take", (X, np.array([FAR, -FAR])), {"axis": 1}, X[:, [2, 0]]),
    ("gather_elements", (X, np.array([[FAR, -FAR, 1]])), {"axis": 0}, [[3, 1, 5]]),
    ("gather_nd", (X, np.array([[FAR, 1], [-FAR, -1]])), {}, [4, 2]),
    ("index_tensor", (X, (np.array([-FAR, FAR]),)), {}, X),
    ("scatter_elements", (X, np.array([[FAR, -FAR, 1]]), ONES[:1]), {"axis": 0}, [[0, 1, 2], [3, 4, 1]]),
    ("scatter_elements", (X, np.array([[FAR, 0, 1]]), ONES[:1]), {"axis": 0, "reduction": "mean"},
     [[0, 1, 2], [3, 4, 3]]),
    ("scatter_nd", (X, np.array([[FAR], [1]]), ONES), {}, [[0, 1, 2], [1, 1, 1]]),
    ("index_put", (X, (np.array([FAR, -FAR]),), ONES), {}, X),
    ("grad.take_backward", (ONES[0], X[0], np.array([FAR, 1, -FAR])), {"axis": 0}, [1, 1, 1]),
    ("reverse_sequence", (X, np.array([FAR, 2])), {}, [[2, 1, 0], [4, 3, 5]]),
    ("nn.nll_loss", (X, np.array([FAR, -FAR])), {"reduction": "none"}, [-2, -3]),
    ("multinomial_from_uniform", (ONES / 3, ONES[:1, :1] / 2, np.array([[FAR]])), {}, [[1]]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args", "attrs", "want"), WANT, ids=[w[0] for w in WANT])
def test_values(name: str, args: tuple[Any, ...], attrs: dict[str, Any], want: Any) -> None:
    got = run(name, *args, **attrs)
    np.testing.assert_array_equal(got, np.asarray(want))
    known = ("static",) if name == "gather_nd" else ("static", "symbolic")
    check_compiled([(Case(name, args, attrs, got, 1e-6), dims) for dims in known])


EMPTY = np.zeros((0, 3), "float32")


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("take", (EMPTY, np.array([0]), 0)),
        ("gather_nd", (EMPTY, np.array([[0]]))),
        ("index_tensor", (EMPTY, (np.array([0]),))),
        ("gather_elements", (EMPTY, np.array([[0]]))),
    ],
)
def test_nothing_is_taken_from_nothing(name: str, args: tuple[Any, ...]) -> None:
    with pytest.raises(DiagnosticError, match=f"R.{name}.*an axis without elements"):
        OPERATORS.infer(Inputs(Dims("static")).call(name, args, {}))
