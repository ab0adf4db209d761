"""Attention over long sequences takes the columns in pieces: the same values, and no line of scores as a whole."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from test_row_blocks import attention, source

import relaxlang
from relaxlang.ir.prim import IntImm
from relaxlang.ir.tir import Block
from relaxlang.ir.visit import walk
from relaxlang.schedule.rules import Processor, schedule_function

CAUSAL = {"causal_mask": "BottomRight"}
WINDOW = {"causal_mask": "TopLeft", "window_size": 5}


def inputs(b: int, n: int, m: int, groups: int, dtype: Any = np.float32) -> list[Any]:
    random = np.random.default_rng(1)
    shapes = [(b, n, 4, 16), (b, m, groups, 16), (b, m, groups, 9), (1, 4, n, m)]
    return [random.standard_normal(s).astype(dtype) for s in shapes]


def run(args: list[Any], options: dict[str, Any], symbolic: bool = False, dtype: str = "float32") -> Any:
    (b, n), (m, groups) = args[0].shape[:2], args[1].shape[1:3]
    text = source("b", "n", "m", groups, options) if symbolic else source(b, n, m, groups, options)
    return np.asarray(relaxlang.build(relaxlang.parse(text.replace("float32", dtype)))["main"](*args))


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize(
    "b, n, m, groups, options", [(2, 131, 769, 2, {}), (2, 33, 515, 4, CAUSAL), (2, 700, 700, 1, WINDOW)]
)
def test_values(b: int, n: int, m: int, groups: int, options: dict[str, Any], symbolic: bool) -> None:
    args = inputs(b, n, m, groups)
    np.testing.assert_allclose(run(args, options, symbolic), attention(*args, **options), atol=1e-5)


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
def test_other_types(dtype: str) -> None:
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    args = inputs(2, 40, 600, 4, kind)
    near = {"float64": 1e-12, "float16": 2e-3, "bfloat16": 2e-2}[dtype]
    np.testing.assert_allclose(run(args, {}, dtype=dtype).astype("float64"), attention(*args), atol=near)


@pytest.mark.parametrize("symbolic", [False, True])
def test_lines_without_a_number(symbolic: bool) -> None:
    q, k, v, bias = inputs(2, 35, 600, 4)
    bias[0, 0, 3] = -np.inf  # nothing to see: NaN
    bias[0, 1, 4, :520] = -np.inf  # nothing to see in the first piece
    bias[0, 1, 5, 512:] = -np.inf
    bias[0, 2, 6, 511] = np.inf
    bias[0, 2, 7, 511] = np.nan
    v[0, 512, 3, 2] = np.nan
    v[1, 599, 3, 2] = np.inf
    with np.errstate(invalid="ignore"):
        wanted = attention(q, k, v, bias)
    assert np.isnan(wanted[:, 3, 0]).all() and not np.isnan(wanted[:, 4, 1]).any()
    np.testing.assert_allclose(run([q, k, v, bias], {}, symbolic), wanted, atol=1e-5)


def test_large_scores_do_not_overflow() -> None:
    q, k, v, bias = inputs(2, 35, 600, 4)
    bias[..., :512] -= 3e4
    bias[..., 550:] += 3e4
    np.testing.assert_allclose(run([q, k, v, bias], {}), attention(q, k, v, bias), atol=2e-3)


@pytest.mark.parametrize("n, m", [(1024, 1024), (1021, 1021), ("n", "n")])
def test_no_line_of_scores_as_a_whole(n: Any, m: Any) -> None:
    func = next(f for _, f in relaxlang.transform.LegalizeOps()(relaxlang.parse(source(2, n, m, 4, {}))).prim_funcs())
    made = schedule_function(func, Processor())
    found = [n for n in walk(made.body) if isinstance(n, Block)]
    many = next((n for n in found if n.name_hint == "many"), found[0])  # few columns of an unknown number are apart
    root, *blocks = [n for n in walk(many) if isinstance(n, Block)]
    assert {b.name for b in root.alloc_buffers} == {"key_lines", "value_lines"}  # copies in a better order
    dims = [d for n in blocks for b in n.alloc_buffers for d in b.shape]
    assert dims and all(d.value <= 512 for d in dims if isinstance(d, IntImm))
    relaxlang.assert_structural_equal(relaxlang.parse(made.script())["main"], made, map_free_vars=True)


def test_what_needs_a_whole_line_is_computed_at_once() -> None:
    mod = relaxlang.parse("""
@I.ir_module
class M:
    @R.function
    def main(q: R.Tensor((8, 64, 16), "float32"), k: R.Tensor((8, 16, 600), "float32"),
             v: R.Tensor((8, 600, 16), "float32")):
        with R.dataflow():
            out = R.matmul(R.nn.log_softmax(R.matmul(q, k)), v)
            R.output(out)
        return out
""")
    random = np.random.default_rng(2)
    q, k, v = (random.standard_normal(s).astype("float32") for s in ((8, 64, 16), (8, 16, 600), (8, 600, 16)))
    scores = (q @ k).astype("float64")
    scores -= scores.max(-1, keepdims=True)
    wanted = (scores - np.log(np.exp(scores).sum(-1, keepdims=True))) @ v
    np.testing.assert_allclose(np.asarray(relaxlang.build(mod)["main"](q, k, v)), wanted, rtol=1e-3, atol=1e-2)
