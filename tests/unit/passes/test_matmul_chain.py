"""Products with a softmax between them become one kernel where that saves the matrix of all scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from checking import module

import relaxlang
from relaxlang.ir.module import IRModule
from relaxlang.ir.tir import PrimFunc
from relaxlang.passes.pipelines import OPTIMIZATION
from relaxlang.passes.relax import fuse_matmul_chain
from relaxlang.schedule.rules import row_blocks

FUSED = ",".join(OPTIMIZATION[: OPTIMIZATION.index("fuse-matmul-chain") + 1])


def attention(n: Any, m: Any, between: str) -> IRModule:
    return module(
        f"""
        @R.function
        def main(q: R.Tensor((2, {n}, 4, 8), "float32"), k: R.Tensor((2, {m}, 4, 8), "float32"),
                 v: R.Tensor((2, {m}, 4, 8), "float32"), mask: R.Tensor(({n}, {m}), "float32")):
            with R.dataflow():
                s = R.matmul(R.permute_dims(q, (0, 2, 1, 3)), R.permute_dims(k, (0, 2, 3, 1)))
                p = {between}
                y = R.permute_dims(R.matmul(p, R.permute_dims(v, (0, 2, 1, 3))), (0, 2, 1, 3))
                R.output(y)
            return y
        """
    )


MASKED = 'R.nn.softmax(R.add(R.multiply(s, R.const(0.3, "float32")), mask))'


def kernels(mod: IRModule) -> int:
    """How many kernels have more than one matrix product."""
    script = [f.script() for _, f in relaxlang.lower(mod, FUSED).prim_funcs()]
    return sum(text.count("T.init()") > 3 for text in script)


@pytest.mark.parametrize(
    "n, m, between, joined",
    [
        (40, 600, MASKED, 1),
        ("n", "m", MASKED, 1),
        (40, 40, MASKED, 0),
        (40, 600, "R.nn.log_softmax(s)", 0),
        (40, 600, "R.nn.relu(s)", 0),
    ],
)
def test_what_is_joined(n: Any, m: Any, between: str, joined: int) -> None:
    assert kernels(attention(n, m, between)) == joined


@pytest.mark.parametrize("n, m", [(40, 600), ("n", "m")])
def test_values(n: Any, m: Any) -> None:
    run = relaxlang.build(attention(n, m, MASKED))["main"]
    random = np.random.default_rng(0)
    for rows, columns in [(40, 600)] if n == 40 else [(1, 1), (3, 130), (130, 515), (0, 4)]:
        shapes = ((2, rows, 4, 8), (2, columns, 4, 8), (2, columns, 4, 8), (rows, columns))
        q, k, v, mask = (random.standard_normal(s).astype("float32") for s in shapes)
        if rows > 2:
            mask[1, :] = -np.inf
            mask[2, : columns // 2] = -np.inf
        a, b, c = (t.astype("float64").transpose(0, 2, 1, 3) for t in (q, k, v))
        with np.errstate(invalid="ignore"):
            scores = np.float32(0.3) * (a @ b.transpose(0, 1, 3, 2)) + mask
            powers = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
            wanted = (powers / powers.sum(-1, keepdims=True) @ c).transpose(0, 2, 1, 3)
        np.testing.assert_allclose(np.asarray(run(q, k, v, mask)), wanted, atol=1e-5)


def test_scores_that_are_used_again_stay() -> None:
    mod = module(
        """
        @R.function
        def main(q: R.Tensor((8, 64, 8), "float32"), k: R.Tensor((8, 8, 600), "float32"),
                 v: R.Tensor((8, 600, 8), "float32")):
            with R.dataflow():
                p = R.nn.softmax(R.matmul(q, k))
                y = R.matmul(p, v)
                R.output(p, y)
            return (p, y)
        """
    )
    assert kernels(mod) == 0


def layers(length: int) -> IRModule:
    """Two layers of the same kernels."""
    return module(
        f"""
        @R.function
        def main(q: R.Tensor((8, 40, 8), "float32"), k: R.Tensor((8, 8, {length}), "float32"),
                 v: R.Tensor((8, {length}, 8), "float32")):
            with R.dataflow():
                p = R.matmul(R.nn.softmax(R.matmul(q, k)), v)
                y = R.matmul(R.nn.softmax(R.matmul(p, k)), v)
                R.output(y)
            return y
        """
    )


@pytest.mark.parametrize("length, questions, joined", [(600, 1, 1), (40, 0, 0)])
def test_layers_that_are_alike_are_asked_about_once(
    length: int, questions: int, joined: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[PrimFunc] = []

    def takes_pieces(func: PrimFunc) -> bool:
        asked.append(func)
        return row_blocks.takes_pieces(func)

    monkeypatch.setattr(fuse_matmul_chain, "takes_pieces", takes_pieces)
    assert kernels(layers(length)) == joined
    assert len(asked) == questions
