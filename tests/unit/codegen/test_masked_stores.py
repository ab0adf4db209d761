"""Stores of a part of a vector leave the neighbours alone, whatever LLVM joins them with."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import relaxlang

SOURCE = """
@I.ir_module
class M:
    @T.prim_func
    def main(A: T.Buffer((5, 2, 17), "FROM"), B: T.Buffer((5, 2, 17), "TO")):
        for n in range(2):
            for i in range(5):
                for j0 in T.unroll(2):
                    for j1 in T.vectorized(16):
                        if j0 * 16 + j1 < 17:
                            B[i, n, j0 * 16 + j1] = T.Cast("TO", A[i, n, j0 * 16 + j1])
"""


@pytest.mark.parametrize("wide, narrow", [
    ("int32", "int8"), ("int32", "uint8"), ("int16", "int8"), ("int32", "int16"), ("int64", "int32"),
    ("float32", "float16"), ("float32", "bfloat16"), ("float32", "float8_e4m3fn"), ("float32", "int8"),
])  # fmt: skip
def test_a_single_lane_of_a_narrower_type(wide: str, narrow: str) -> None:
    made = np.dtype(getattr(ml_dtypes, narrow, narrow))
    a = (np.arange(170) % 100 + 1).reshape(5, 2, 17).astype(wide)
    b = np.zeros(a.shape, made)
    text = SOURCE.replace("FROM", wide).replace("TO", narrow)
    relaxlang.build(relaxlang.parse(text), pipeline="minimum")["main"](a, b)
    np.testing.assert_array_equal(b, a.astype(made))
