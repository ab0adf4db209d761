"""Reshapes are told from permutations without a proof where the indices are the axes themselves."""

from __future__ import annotations

import pytest

import relaxlang
from relaxlang.analysis.reshape_pattern import has_reshape_pattern
from relaxlang.arith import Analyzer
from relaxlang.ir.tir import PrimFunc


def kernel(call: str, shape: str) -> PrimFunc:
    text = f'@R.function\ndef main(x: R.Tensor({shape}, "float32")):\n    y = {call}\n    return y\n'
    lowered = relaxlang.transform.LegalizeOps()(relaxlang.parse(f"@I.ir_module\nclass Module:\n{_indented(text)}"))
    return next(func for _, func in lowered.prim_funcs())


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


@pytest.mark.parametrize(
    ("call", "shape", "is_reshape"),
    [
        ("R.permute_dims(x, (1, 0))", "(3, 4)", False),
        ("R.permute_dims(x, (1, 0, 2))", "(1, 4, 5)", True),
        ("R.permute_dims(x, (0, 2, 1))", "(2, 1, 5)", True),
        ("R.permute_dims(x, (2, 0, 1))", "(2, 1, 5)", False),
        ("R.expand_dims(x, 1)", "(3, 4)", True),
        ("R.squeeze(x, [1])", "(3, 1, 4)", True),
        ("R.strided_slice(x, [0], [0], [2])", "(3, 4)", False),
        ("R.broadcast_to(x, (3, 4))", "(3, 1)", False),
    ],
)
def test_known_dimensions(call: str, shape: str, is_reshape: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    func = kernel(call, shape)
    assert has_reshape_pattern(func) is is_reshape
    if "strided" not in call and "broadcast" not in call:
        monkeypatch.setattr(Analyzer, "can_prove_equal", None)
        assert has_reshape_pattern(func) is is_reshape


def test_symbolic_dimensions_are_proved() -> None:
    assert has_reshape_pattern(kernel("R.expand_dims(x, 1)", "(n, 4)"))
    assert not has_reshape_pattern(kernel("R.permute_dims(x, (1, 0))", "(n, 4)"))
    assert has_reshape_pattern(kernel("R.reshape(x, (6, 4))", "(2, 3, 4)"))
