"""Indices that are certainly out of range, and those that only may be."""

from __future__ import annotations

from textwrap import indent

import pytest

from relaxlang import Schedule, lower, parse
from relaxlang.base.diagnostics import Diagnostic, DiagnosticError

HEAD = """
@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((n,), "float32"), C: T.Buffer((n, 4), "float32"), k: T.int32):
"""


def found(body: str) -> list[str]:
    """The messages of the warnings for a kernel. They are errors when it is lowered or scheduled."""
    warnings: list[Diagnostic] = []
    module = parse(HEAD + indent(body, "    "), warnings=warnings.append)
    if not warnings:
        return []
    assert all((d.code, d.level) == ("RLX0313", "warning") and d.span for d in warnings)
    messages = [d.message for d in warnings]
    for use in (lower, lambda mod: Schedule(mod).get_loops("root")):
        with pytest.raises(DiagnosticError) as refused:
            use(module)
        assert [d.message for d in refused.value.diagnostics] == messages
    return [m.removeprefix("index ") for m in messages]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("for i in range(8):\n    A[i] = A[i + 1]", "8 is out of range for `A`, whose dimension here is 8"),
        ("for i in range(8):\n    A[i - 1] = T.float32(0)", "-1 is out of range for `A`, whose dimension here is 8"),
        ("for i in range(4):\n    A[i * 3] = T.float32(0)", "9 is out of range for `A`, whose dimension here is 8"),
        ("for i in range(n):\n    B[i] = B[i + 1]", "n is out of range for `B`, whose dimension here is n"),
        ("for i in range(n):\n    B[i] = B[i + n]", "n is out of range for `B`, whose dimension here is n"),
        ("for i, j in T.grid(n, 5):\n    C[i, j] = T.float32(0)",
         "4 is out of range for `C`, whose dimension here is 4"),
        ("B[n] = T.float32(0)", "n is out of range for `B`, whose dimension here is n"),
        ("for i in range(9):\n    with T.block('b'):\n        v = T.axis.spatial(9, i)\n        A[v] = T.float32(0)",
         "8 is out of range for `A`, whose dimension here is 8"),
        ("for i in range(4):\n    for j in range(i, i + 8):\n        A[j] = T.float32(0)",
         "10 is out of range for `A`, whose dimension here is 8"),
    ],
)  # fmt: skip
def test_certain(body: str, message: str) -> None:
    assert found(body) == [message]


@pytest.mark.parametrize(
    "body",
    [
        "for i in range(8):\n    A[i] = T.float32(0)",
        "for i in range(8):\n    if i < 7:\n        A[i] = A[i + 1]",
        "for i in range(8):\n    A[i] = T.if_then_else(i < 7, A[i + 1], T.float32(0))",
        "for i in range(8):\n    if i == 7:\n        break\n    A[i] = A[i + 1]",
        "for i in range(0):\n    A[i + 8] = T.float32(0)",
        "for i in range(n - 1):\n    B[i] = B[i + 1]",
        "for i in range(k):\n    A[i] = T.float32(0)",
        "for i in range(4):\n    for j in range(i):\n        A[j + 5] = T.float32(0)",
        "assert n > 20, 'long'\nfor i in range(n):\n    B[i] = B[i + 1]",
        "for i in range(9):\n    with T.block('b'):\n        v = T.axis.spatial(9, i)\n        T.where(i < 8)\n"
        "        A[v] = T.float32(0)",
        "for i in range(64):\n    A[i % 8] = T.float32(0)",
    ],
)
def test_not_certain(body: str) -> None:
    assert found(body) == []
