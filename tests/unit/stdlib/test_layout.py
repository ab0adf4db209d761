"""Layouts by index maps: divisible and padded, known and symbolic shapes."""

import numpy as np
import pytest

import relaxlang

TEXT = """
@I.ir_module
class Module:
    @R.function
    def padded(x: R.Tensor((2, 14, 3), "float32")):
        y = R.layout_transform(x, index_map=T.index_map(lambda n, c, w: (n, c // 4, w, c % 4)), pad_value=9)
        return y

    @R.function
    def symbolic(x: R.Tensor((n, 16), "int32")):
        y = R.layout_transform(x, index_map=lambda i, j: (j // 4, i, j % 4))
        return y
"""


def padded(x: np.ndarray) -> np.ndarray:
    wide = np.pad(x, ((0, 0), (0, 2), (0, 0)), constant_values=9)
    return wide.reshape(2, 4, 4, 3).transpose(0, 1, 3, 2)


def test_values_and_round_trip() -> None:
    mod = relaxlang.parse(TEXT)
    relaxlang.assert_structural_equal(mod, relaxlang.parse(mod.script()))
    vm = relaxlang.VirtualMachine(relaxlang.build(mod), relaxlang.cpu())
    x = np.arange(84, dtype="float32").reshape(2, 14, 3)
    assert np.array_equal(vm["padded"](x), padded(x))
    assert np.array_equal(relaxlang.interpret(mod, "padded", x), padded(x))
    for n in (0, 1, 5):
        y = np.arange(n * 16, dtype="int32").reshape(n, 16)
        assert np.array_equal(vm["symbolic"](y), y.reshape(n, 4, 4).transpose(1, 0, 2))


def test_a_map_without_an_inverse_is_refused() -> None:
    mod = relaxlang.parse(TEXT.replace("(j // 4, i, j % 4)", "(j // 4, i)"))
    with pytest.raises(relaxlang.DiagnosticError, match="inverse"):
        relaxlang.build(mod)
