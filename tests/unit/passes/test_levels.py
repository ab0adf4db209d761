"""The pipelines `O0` to `O3` give the same values; the last one knows more about operators."""

import numpy as np
import pytest
from checking import assert_same, module

import relaxlang
from relaxlang.passes.pipelines import LEVELS, PIPELINES

PROGRAM = """
@R.function
def main(
    x: R.Tensor((n, 3, 8, 8), "float32"), w: R.Tensor((4, 3, 3, 3), "float32"), g: R.Tensor((4,), "float32"),
    a: R.Tensor((64, 4), "float32"), b: R.Tensor((4, 64), "float32"), y: R.Tensor((n, 64), "float32"),
):
    cls = Module
    c = R.nn.conv2d(x, w, padding=1)
    t = R.nn.batch_norm(c, g, g, g, g, axis=1, training=False)
    r = cls.positive(t[0])
    q = R.matmul(y, R.matmul(a, b))
    s = R.reshape(R.reshape(q, (n, 8, 8)), (n, 64))
    return (r, s)

@R.function(private=True)
def positive(x: R.Tensor((k, 4, 8, 8), "float32")):
    return R.nn.relu(x)
"""


def arguments() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = [(2, 3, 8, 8), (4, 3, 3, 3), (4,), (64, 4), (4, 64), (2, 64)]
    return [rng.random(shape, np.float32) for shape in shapes]


@pytest.mark.parametrize("level", LEVELS)
def test_values(level: str) -> None:
    mod, args = module(PROGRAM), arguments()
    run = relaxlang.VirtualMachine(relaxlang.build(mod, pipeline=level), relaxlang.cpu())["main"]
    assert_same(run(*args), relaxlang.interpret(mod, "main", *args), rtol=1e-4, atol=1e-5)


def test_what_each_level_knows() -> None:
    mod = module(PROGRAM)
    first, second, third = (relaxlang.lower(mod, level) for level in LEVELS[1:])
    assert "batch_norm" in first.functions and "fused_conv2d_batch_norm" in second.functions
    assert "positive" not in third.functions and "reshape" not in third.functions
    assert any(name.startswith("fused_conv2d_add") for name in third.functions)  # the normalisation went into weights
    assert PIPELINES["O0"] == PIPELINES["minimum"] and PIPELINES["O2"] == PIPELINES["default"]
