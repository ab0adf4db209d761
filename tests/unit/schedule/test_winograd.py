"""Convolutions by Winograd's algorithm: the same values as the sum, whatever the sizes; NaN and infinity too."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import relaxlang
from relaxlang.codegen import build_kernels, get_num_threads, load_kernels, set_num_threads
from relaxlang.interp import Interpreter
from relaxlang.ir.module import IRModule
from relaxlang.ir.tir import For, PrimFunc
from relaxlang.passes.pipelines import DEFAULT, pipeline
from relaxlang.passes.relax.bind_params import bind_params
from relaxlang.schedule.rules import Processor, schedule_function, winograd
from relaxlang.schedule.rules.winograd_algebra import PAIRS
from relaxlang.schedule.stmts import walk_stmts

Array = np.ndarray[Any, Any]

CONVOLUTION = """
@T.prim_func
def main(X: T.Buffer((N, C, HP, WP), "DTYPE"), W: T.Buffer((K, C, R, R), "DTYPE"),
         A: T.Buffer((N, K, H, V), "DTYPE"), Z: T.Buffer((N, K, H, V), "DTYPE")):
    Y = T.alloc_buffer((N, K, H, V), "DTYPE")
    for n, k, h, w, c, r, s in T.grid(N, K, H, V, C, R, R):
        with T.block("conv"):
            vn, vk, vh, vw, vc, vr, vs = T.axis.remap("SSSSRRR", [n, k, h, w, c, r, s])
            with T.init():
                Y[vn, vk, vh, vw] = T.DTYPE(0)
            Y[vn, vk, vh, vw] = Y[vn, vk, vh, vw] + X[vn, vc, vh * D + vr, vw + vs] * W[vk, vc, vr, vs]
    for n, k, h, w in T.grid(N, K, H, V):
        with T.block("add"):
            vn, vk, vh, vw = T.axis.remap("SSSS", [n, k, h, w])
            Z[vn, vk, vh, vw] = T.max(Y[vn, vk, vh, vw] + A[vn, vk, vh, vw], T.DTYPE(0))
"""
SIZES = [(1, 16, 16, 17, 17), (2, 17, 33, 13, 7), (1, 3, 5, 1, 31), (3, 40, 80, 7, 7), (1, 16, 16, 3, 7)]


def module(sizes: tuple[Any, ...], of: str = "float32", window: int = 3, stride: int = 1) -> IRModule:
    """A convolution, and a sum and `relu` after it. `sizes`: batch, channels, filters, height and width of the
    result."""
    n, c, k, h, w = sizes
    values = {"N": n, "C": c, "K": k, "H": h, "V": w, "HP": f"(({h} - 1) * {stride} + {window})",
              "WP": f"({w} + {window - 1})", "R": window, "D": stride}  # fmt: skip
    names = "|".join(sorted(values, key=len, reverse=True))
    text = re.sub(rf"\b({names})\b", lambda m: str(values[m[0]]), CONVOLUTION)
    return relaxlang.parse(text.replace("DTYPE", of))


def scheduled(mod: IRModule, processor: Processor, winograd: bool = True, constant: bool = True) -> IRModule:
    """The kernel, scheduled; its weights are constants, or not."""
    func = mod["main"]
    assert isinstance(func, PrimFunc)
    constants = frozenset({func.buffer_map[func.params[1]]} if constant else ())
    chosen = Processor(processor.vector_bytes, processor.registers, constants)
    return mod.with_function("main", schedule_function(func, chosen, winograd=winograd))


def arguments(sizes: tuple[int, ...], of: str = "float32") -> list[Array]:
    n, c, k, h, w = sizes
    random = np.random.default_rng(0)
    shapes = [(n, c, h + 2, w + 2), (k, c, 3, 3), (n, k, h, w)]
    return [*(random.standard_normal(shape).astype(of) for shape in shapes), np.empty((n, k, h, w), of)]


def run(mod: IRModule, args: list[Array]) -> Array:
    load_kernels(build_kernels(dict(mod.prim_funcs())))["main"](*args)
    return args[-1]


def expected(args: list[Array]) -> Array:
    """The result in double precision."""
    x, w, a = (one.astype("float64") for one in args[:3])
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    return np.maximum(np.einsum("nchwrs,kcrs->nkhw", windows, w) + a, 0)


@pytest.fixture(params=sorted(PAIRS))
def always(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Every convolution is decomposed, into tiles of one size."""
    monkeypatch.setattr(winograd, "GAIN", float("inf"))
    monkeypatch.setattr(winograd, "PAIRS", {request.param: PAIRS[request.param]})
    return int(request.param)


@pytest.mark.parametrize("sizes, of", [*((sizes, "float32") for sizes in SIZES), (SIZES[1], "float64")])
def test_values(sizes: tuple[int, ...], of: str, always: int) -> None:
    mod = scheduled(module(sizes, of), Processor())
    assert "data_transform" in mod.script()
    args = arguments(sizes, of)
    wanted = expected(args)
    error = np.abs(run(mod, args) - wanted).max() / np.abs(wanted).max()
    assert error < (16 if always == 4 else 8) * np.finfo(of).eps


def test_weights_that_are_not_constant(always: int) -> None:
    sizes = (2, 17, 33, 13, 7)
    mod = scheduled(module(sizes), Processor(), constant=False)
    assert "data_transform" in mod.script() and "layout_rewrite_preproc" not in mod.script()
    args = arguments(sizes)
    np.testing.assert_allclose(run(mod, args), expected(args), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("processor", [Processor(32, 16), Processor(16, 16)])
def test_narrow_vectors(processor: Processor, always: int) -> None:
    sizes = (1, 9, 13, 6, 19)
    args = arguments(sizes)
    wanted = expected(args)
    np.testing.assert_allclose(run(scheduled(module(sizes), processor), args), wanted, rtol=1e-4, atol=1e-4)


def test_the_schedule_is_text_and_is_interpreted(always: int) -> None:
    mod = scheduled(module((1, 4, 4, 5, 3)), Processor(16, 16))
    relaxlang.assert_structural_equal(relaxlang.parse(mod.script()), mod)
    args = arguments((1, 4, 4, 5, 3))
    Interpreter(mod).run("main", *args)
    np.testing.assert_allclose(args[-1], expected(args), rtol=1e-4, atol=1e-4)


def test_symbolic_sizes(always: int) -> None:
    mod = scheduled(module(("n", 16, 17, "h", "w")), Processor())
    for n, h, w in [(1, 1, 1), (2, 17, 9), (1, 65, 33), (0, 3, 3)]:
        args = arguments((n, 16, 17, h, w))
        np.testing.assert_allclose(run(mod, args), expected(args), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38])
@pytest.mark.parametrize("place", [0, 1])
def test_what_is_not_finite_stays_where_it_belongs(value: float, place: int, always: int) -> None:
    sizes = (1, 16, 17, 13, 9)
    args = arguments(sizes)
    args[place][0, 3, 1 if place else 5, 2] = value
    args[place][0, 4, 1 if place else 9, 1] = 0
    plain = run(scheduled(module(sizes), Processor(), winograd=False), [*args[:3], args[3].copy()])
    found = run(scheduled(module(sizes), Processor()), args)
    assert np.isfinite(plain).any()
    np.testing.assert_array_equal(np.isnan(found), np.isnan(plain))
    np.testing.assert_allclose(found, plain, rtol=1e-4, atol=1e-3 * min(1.0, abs(value) if value == 3e38 else 1.0))


def test_threads_do_not_change_results(always: int) -> None:
    sizes = (2, 32, 48, 33, 21)
    mod, before = scheduled(module(sizes), Processor()), get_num_threads()
    results = []
    for threads in (1, 3):
        set_num_threads(threads)
        results.append(run(mod, arguments(sizes)))
    set_num_threads(before)
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize(
    "sizes, changes",
    [
        ((1, 64, 64, 16, 16), {"stride": 2}),
        ((1, 64, 64, 16, 16), {"window": 5}),
        ((1, 3, 64, 64, 64), {}),  # the transforms would cost more than they save
        ((1, 256, 256, 1, 1), {}),  # most of a tile would be unused
        ((1, 512, 512, 7, 7), {}),  # the transformed weights would take too much memory
    ],
)
def test_what_is_summed_up_as_it_is_written(sizes: tuple[int, ...], changes: dict[str, int]) -> None:
    assert "data_transform" not in scheduled(module(sizes, **changes), Processor()).script()


def test_larger_tiles_where_they_pay() -> None:
    """Few tiles with many weights are bound by memory, of which smaller tiles take less."""
    large = scheduled(module((1, 64, 64, 56, 56)), Processor()).script()
    small = scheduled(module((1, 256, 256, 7, 7)), Processor()).script()
    assert "weight_transform = T.alloc_buffer((T.int64(36)," in large
    assert "weight_transform = T.alloc_buffer((T.int64(16)," in small


GRAPH = """
@R.function
def main(x: R.Tensor((1, 16, 24, 24), "float32"), w: R.Tensor((32, 16, 3, 3), "float32")):
    with R.dataflow():
        y = R.nn.conv2d(x, w, padding=1)
        z = R.nn.relu(y)
        R.output(z)
    return z
"""


def test_constant_weights_are_transformed_while_compiling() -> None:
    random = np.random.default_rng(0)
    x, w = random.standard_normal((1, 16, 24, 24), np.float32), random.standard_normal((32, 16, 3, 3), np.float32)
    mod = bind_params(relaxlang.parse(GRAPH), "main", {"w": w})
    lowered = pipeline("default")(mod)
    assert not any("layout" in name for name, _ in lowered.prim_funcs())
    plain = relaxlang.build(mod, pipeline=", ".join(DEFAULT).replace("schedule-cpu", "schedule-cpu{winograd=false}"))
    np.testing.assert_allclose(relaxlang.build(mod)["main"](x), plain["main"](x), rtol=1e-4, atol=1e-4)


def test_products_of_equal_sizes_are_scheduled_once() -> None:
    winograd._known_product.cache_clear()
    sizes = (1, 64, 64, 14, 14)
    one, other = (scheduled(module(sizes), Processor())["main"] for _ in range(2))
    assert isinstance(one, PrimFunc) and isinstance(other, PrimFunc)
    assert winograd._known_product.cache_info().misses == winograd._known_product.cache_info().hits == 1
    assert one.script() == other.script()
    loops = [{s.loop_var for s in walk_stmts(f.body) if isinstance(s, For)} for f in (one, other)]
    assert loops[0] and loops[0].isdisjoint(loops[1])
