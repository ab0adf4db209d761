"""Products of an unknown number of rows have a version for one row and one for few, chosen when they are called."""

from __future__ import annotations

import numpy as np
import pytest

import relaxlang
from relaxlang.codegen import get_num_threads, set_num_threads
from relaxlang.ir.tir import PrimFunc
from relaxlang.schedule.rules import Processor, contraction
from tests.unit.schedule.kernels import MATMUL, module
from tests.unit.schedule.test_rules import PROCESSORS, agree, scheduled

ROWS = (0, 1, 2, 7, 8, 9, 31, 32, 33, 100)
TURNED = MATMUL.replace('B: T.Buffer((K, N), "float32")', 'B: T.Buffer((N, K), "float32")').replace(
    "[vk, vj]", "[vj, vk]"
)


@pytest.fixture
def small_panels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Factors of any size are worth copies of panels of them, so that the interpreter gets through soon."""
    for name in ("PACKED", "PACKED_RAGGED", "CACHED"):
        monkeypatch.setattr(contraction, name, 0)


@pytest.mark.usefixtures("small_panels")
@pytest.mark.parametrize(
    "text, n, k, processor",
    [
        (MATMUL, 48, 32, PROCESSORS[0]),
        (MATMUL, 19, 37, PROCESSORS[1]),
        (MATMUL, "n", 32, PROCESSORS[2]),
        (MATMUL, "n", "k", PROCESSORS[0]),
        (TURNED, 48, 32, PROCESSORS[1]),
        (TURNED, "n", "k", PROCESSORS[0]),
    ],
)
def test_each_version_computes_the_product(text: str, n: int | str, k: int | str, processor: Processor) -> None:
    mod = module(text, M="m", N=n, K=k)
    made = scheduled(mod, processor).script()
    assert made.count('T.block("one_row")') == made.count('T.block("many_rows")') == 1
    assert made.count('T.block("few_rows")') == (text is MATMUL)
    for m in (1, 9, 33):
        agree(mod, processor, m=m, n=21, k=70)


def test_only_where_a_panel_would_be_copied_for_rows_of_unknown_number() -> None:
    cases: tuple[dict[str, int | str], ...] = (
        {"M": "m", "N": 64, "K": 64},
        {"M": 40, "N": 768, "K": 768},
        {"M": 8, "N": "n", "K": 768},
    )
    for sizes in cases:
        assert "one_row" not in scheduled(module(MATMUL, **sizes)).script()
    assert "one_row" in scheduled(module(MATMUL, M="m", N=768, K=768)).script()


def test_a_constant_factor_is_laid_out_beforehand_for_all_rows() -> None:
    mod = module(MATMUL, M="m", N=768, K=768)
    func = mod["main"]
    assert isinstance(func, PrimFunc)
    weights = frozenset([func.buffer_map[func.params[1]]])
    assert "one_row" not in scheduled(mod, Processor(constants=weights)).script()


PRODUCT = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor({x}, "{dtype}"), w: R.Tensor((700, 640), "{dtype}"), d: R.Tensor((640,), "{dtype}")):
        with R.dataflow():
            c = {body}
            R.output(c)
        return c
"""


@pytest.mark.parametrize("x", ["(m, 700)", "(1, m, 700)"])
@pytest.mark.parametrize(
    "dtype, body",
    [
        ("float32", "R.add(R.nn.relu(R.add(R.matmul(x, w), d)), d)"),
        ("float64", "R.matmul(x, w)"),
        ("int32", "R.add(R.matmul(x, w), d)"),
    ],
)
def test_operators_on_one_and_two_threads(x: str, dtype: str, body: str) -> None:
    run = relaxlang.build(relaxlang.parse(PRODUCT.format(x=x, dtype=dtype, body=body)))["main"]
    rng = np.random.default_rng(0)
    w, d = rng.integers(-9, 9, (700, 640)).astype(dtype), rng.integers(-9, 9, 640).astype(dtype)
    before = get_num_threads()
    for m in ROWS:
        a = rng.integers(-9, 9, (m, 700) if x[1] == "m" else (1, m, 700)).astype(dtype)
        found = []
        try:
            for threads in (1, 2):
                set_num_threads(threads)
                found.append(np.asarray(run(a, w, d)))
        finally:
            set_num_threads(before)
        wanted = a @ w
        if "relu" in body:
            wanted = np.maximum(wanted + d, 0) + d
        elif "add" in body:
            wanted = wanted + d
        np.testing.assert_array_equal(found[0], wanted)
        np.testing.assert_array_equal(found[0], found[1])


def test_a_version_takes_memory_for_itself_alone() -> None:
    text = scheduled(module(MATMUL, M="m", N=768, K=768)).script()
    assert "alloc_buffer" not in text[: text.index('T.block("one_row")')]
    assert text.index('T.block("many_rows")') < text.index("B_local = T.alloc_buffer")
