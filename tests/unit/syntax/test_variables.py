"""Scalars that are changed after they were bound are memory of one element."""

from __future__ import annotations

from textwrap import indent

import numpy as np
import pytest

import relaxlang
from relaxlang import interp
from relaxlang.base.diagnostics import DiagnosticError

HEAD = """@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32"), C: T.Buffer((2,), "int32"), n: T.int32):
"""


def module(body: str) -> relaxlang.IRModule:
    return relaxlang.parse(HEAD + indent(body, "    "))


SUMS = """
for i in T.parallel(4):
    acc = T.float32(0)
    for j in range(8):
        acc += A[i, j]
    B[i] = acc
"""
STEPS = """
k: T.int32 = n
steps: T.int32
steps = 0
while k > 1:
    if k % 2 == 0:
        k = k // 2
    else:
        k = 3 * k + 1
    steps = steps + 1
C[0] = steps
"""
ARRAY = """
squares: T.i32[8]
for i in range(8):
    squares[i] = i * i
C[1] = squares[7]
"""


@pytest.mark.parametrize("built", [False, True])
def test_they_change(built: bool) -> None:
    mod = module(SUMS + STEPS + ARRAY)
    assert relaxlang.structural_equal(relaxlang.parse(mod.script()), mod)
    a, b, c = np.arange(32, dtype="f4").reshape(4, 8), np.zeros(4, "f4"), np.zeros(2, "i4")
    if built:
        relaxlang.build(mod)["main"](a, b, c, 27)
    else:
        interp.run(mod, "main", a, b, c, 27)
    assert b.tolist() == a.sum(1).tolist() and c.tolist() == [111, 49]


def test_an_annotation_does_not_make_another() -> None:
    text = module("x: T.float32 = T.float32(0)\nif n > 3:\n    x: T.float32 = A[0, 0]\nB[0] = x").script()
    assert text.count("T.allocate") == 1 and "x[0] = A[0, 0]" in text


def test_arrays_take_no_value() -> None:
    with pytest.raises(DiagnosticError, match="an array is declared without a value"):
        module("x: T.f32[4] = 0\nB[0] = x[0]")


def test_what_is_bound_once_is_a_let() -> None:
    assert "x: T.float32 = A[0, 0]" in module("x = A[0, 0]\nB[0] = x").script()
    lets = module(
        "for i in range(4):\n    x = A[i, 0]\n    B[i] = x\nfor i in range(4):\n    x = A[i, 1]\n    B[i] = x"
    )
    assert "alloc" not in lets.script()


@pytest.mark.parametrize("body", ["while n > 0:\n    n = n - 1", "for i in range(4):\n    if n > 0:\n        i = i + 1",
                                  "n += 1"])  # fmt: skip
def test_parameters_and_loops_do_not(body: str) -> None:
    with pytest.raises(DiagnosticError) as failed:
        module(body)
    assert [d.code for d in failed.value.diagnostics] == ["RLX0316"]
