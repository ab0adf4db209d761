"""Attention is computed a block of rows at a time: the same values, and no matrix of all scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relaxlang
from relaxlang.codegen import get_num_threads, set_num_threads
from relaxlang.ir.tir import Block, PrimFunc
from relaxlang.ir.visit import walk
from relaxlang.schedule.rules import Processor, schedule_function

HEADER = """
@I.ir_module
class M:
    @R.function
    def main(q: R.Tensor((B, N, 4, 16), "float32"), k: R.Tensor((B, M, G, 16), "float32"),
             v: R.Tensor((B, M, G, 9), "float32"), bias: R.Tensor((1, 4, N, M), "float32")):
        with R.dataflow():
            out = R.nn.attention(q, k, v, bias, OPTIONS)
            R.output(out)
        return out
"""
MASKS = (
    {},
    {"causal_mask": "TopLeft"},
    {"causal_mask": "BottomRight", "window_size": 7},
)


def source(b: Any, n: Any, m: Any, groups: int, options: dict[str, Any]) -> str:
    text = HEADER.replace("OPTIONS", ", ".join(f"{k}={v!r}" for k, v in options.items()))
    for name, value in (("B", b), ("N", n), ("M", m), ("G", groups)):
        text = (
            text.replace(f"({name},", f"({value},")
            .replace(f" {name},", f" {value},")
            .replace(f" {name})", f" {value})")
        )
    return text


def attention(q: Any, k: Any, v: Any, bias: Any, causal_mask: str | None = None, window_size: int = 1 << 30) -> Any:
    """The definition, in float64."""
    groups = q.shape[2] // k.shape[2]
    q, k, v = (t.astype(np.float64).transpose(0, 2, 1, 3) for t in (q, k.repeat(groups, 2), v.repeat(groups, 2)))
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1]) + bias
    rows, columns = scores.shape[-2:]
    row, column = np.arange(rows)[:, None], np.arange(columns)
    row = row + (columns - rows if causal_mask == "BottomRight" else 0)
    seen = (column > row - window_size) & ((column <= row) if causal_mask else True)
    scores = np.where(seen, scores, -np.inf)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return (powers / powers.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3)


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize(
    "b, n, m, groups, options", [(2, 129, 131, 4, MASKS[0]), (2, 257, 257, 1, MASKS[1]), (3, 67, 300, 2, MASKS[2])]
)
def test_values_at_odd_lengths(b: int, n: int, m: int, groups: int, options: dict[str, Any], symbolic: bool) -> None:
    text = source("b", "n", "m", groups, options) if symbolic else source(b, n, m, groups, options)
    run = relaxlang.build(relaxlang.parse(text))["main"]
    random = np.random.default_rng(1)
    shapes = [(b, n, 4, 16), (b, m, groups, 16), (b, m, groups, 9), (1, 4, n, m)]
    args = [random.standard_normal(s).astype(np.float32) for s in shapes]
    before = get_num_threads()
    found = []
    try:
        for threads in (1, 2, 3):
            set_num_threads(threads)
            found.append(np.asarray(run(*args)))
    finally:
        set_num_threads(before)
    np.testing.assert_allclose(found[0], attention(*args, **options), atol=1e-5)
    assert all(np.array_equal(found[0], one) for one in found[1:])


def scheduled(b: Any, n: Any, m: Any) -> PrimFunc:
    """The kernel of an attention as the rules leave it."""
    mod = relaxlang.parse(source(b, n, m, 4, {}))
    func = relaxlang.transform.LegalizeOps()(mod)
    kernel = next(f for _, f in func.prim_funcs())
    return schedule_function(kernel, Processor())


@pytest.mark.parametrize("lengths", [(2, 1024, 1024), (2, 1021, 1021), ("b", "n", "m")])
def test_no_matrix_of_all_scores(lengths: tuple[Any, ...]) -> None:
    func = scheduled(*lengths)
    blocks = [n for n in walk(func.body) if isinstance(n, Block)]
    root, inner = blocks[0], next(b for b in blocks if b.name_hint == "row_block")
    assert all(b.name.endswith("_lines") for b in root.alloc_buffers)  # copies of factors, in a better order
    assert max(b.ndim for b in inner.alloc_buffers) == 2
    assert "T.parallel(" in func.script()
    relaxlang.assert_structural_equal(relaxlang.parse(func.script())["main"], func, map_free_vars=True)


@pytest.mark.parametrize("lengths", [(1, 1, 64), (1, 16, 64), (1, 128, 128)])
def test_few_rows_stay_as_they_are(lengths: tuple[int, int, int]) -> None:
    names = {n.name_hint for n in walk(scheduled(*lengths).body) if isinstance(n, Block)}
    assert "row_block" not in names
