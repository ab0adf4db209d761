"""Operators of two tensors on scalars of Relax (`R.Prim`): one operand, or both."""

from __future__ import annotations

import numpy as np
import pytest

import relaxlang

TEXT = """
@R.function
def main(x: R.Prim("float32"), i: R.Prim("int64"), t: R.Tensor((3,), "float32")):
    return (t * x, R.power(x, t), x + 1.5, i * 2 + 1, R.divide(i, R.prim_value(-2)), x < 2.0, R.equal(i, i))
"""
T = np.arange(3, dtype="float32")
WANT = (T * np.float32(1.5), np.float32(1.5) ** T, 3.0, 15, -3, True, True)


def check(got: tuple) -> None:
    for value, want in zip(got, WANT, strict=True):
        np.testing.assert_allclose(value, want, rtol=1e-6)
        assert isinstance(value, np.ndarray) == isinstance(want, np.ndarray)


def test_values() -> None:
    mod = relaxlang.parse(TEXT)
    check(relaxlang.interpret(mod, "main", 1.5, 7, T))
    for pipeline in ("default", "minimum"):
        vm = relaxlang.VirtualMachine(relaxlang.build(mod, pipeline=pipeline), relaxlang.cpu())
        check(vm["main"](1.5, 7, T))


def test_struct_info_and_text() -> None:
    mod = relaxlang.parse(TEXT)
    result = str(mod["main"].ret_struct_info)
    assert result.count('R.Tensor((3,), "float32")') == 2 and result.count('R.Prim("bool")') == 2
    again = relaxlang.parse(mod.script())
    relaxlang.assert_structural_equal(again, mod)


@pytest.mark.parametrize(
    ("body", "code"),
    [("R.matmul(x, t)", "RLX0206"), ("R.exp(x)", "RLX0206"), ("x + i", "RLX0204"), ("i + 1.5", "RLX0128")],
)
def test_faults(body: str, code: str) -> None:
    with pytest.raises(relaxlang.DiagnosticError) as caught:
        relaxlang.parse(TEXT.split("    return")[0] + f"    return {body}\n")
    assert [d.code for d in caught.value.diagnostics] == [code]
