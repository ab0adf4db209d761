"""Kernels along rows and windows on odd sizes, dtypes and inputs give what they give before they are scheduled."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

import relaxlang
from relaxlang.codegen import build_kernels, load_kernels
from relaxlang.interp import Interpreter
from relaxlang.ir.module import IRModule
from relaxlang.ir.tir import BufferStore, PrimFunc
from relaxlang.ir.visit import walk
from relaxlang.passes.pipelines import pipeline
from relaxlang.passes.tir.lowering import lower
from relaxlang.runtime.kernel import Kernel
from relaxlang.schedule import Schedule
from relaxlang.schedule.rules import Processor, schedule_function

RNG = np.random.default_rng(5)
PROCESSORS = [Processor(64, 32), Processor(32, 16), Processor(16, 16)]
ROWS = ["R.nn.softmax(x)", "R.nn.log_softmax(x)", "R.sum(x, axis=1)", "R.max(x, axis=1)", "R.min(x, axis=1)",
        "R.prod(x, axis=1)", "R.mean(x, axis=1)", "R.sum(x)", "R.nn.relu(x)"]  # fmt: skip
SIZES = [(1, 1), (3, 17), (2, 63), (3, 65), (5, 64), (1, 257), (7, 131)]


def kernels(call: str, shape: tuple[int | str, ...], dtype: str = "float32") -> IRModule:
    """The kernel `main` of one operator."""
    dims = "".join(f"{d}, " for d in shape)
    text = f"""
@I.ir_module
class M:
    @R.function
    def run(x: R.Tensor(({dims}), "{dtype}")):
        with R.dataflow():
            y = {call}
            R.output(y)
        return y
"""
    legal = pipeline("legalize-ops,fuse-ops,fuse-tir")(relaxlang.parse(text))
    (func,) = (f for _, f in legal.prim_funcs())
    return IRModule({"main": func})


def scheduled(mod: IRModule, processor: Processor = PROCESSORS[0]) -> IRModule:
    func = mod["main"]
    assert isinstance(func, PrimFunc)
    made = mod.with_function("main", schedule_function(func, processor))
    relaxlang.assert_structural_equal(relaxlang.parse(made.script()), made)
    return made


def compiled(mod: IRModule) -> Kernel:
    return load_kernels(build_kernels(dict(mod.prim_funcs())))["main"]


def like(call: str, x: np.ndarray) -> np.ndarray:
    """An array for the result."""
    if "axis=1" in call:
        return np.zeros(x.shape[0], x.dtype)
    return np.zeros((), x.dtype) if call == "R.sum(x)" else np.zeros_like(x)


def same(call: str, mod: IRModule, made: IRModule, x: np.ndarray, rtol: float) -> None:
    wanted, found = like(call, x), like(call, x)
    Interpreter(mod).run("main", x, wanted)
    compiled(made)(x, found)
    wide = np.float64
    np.testing.assert_allclose(found.astype(wide), wanted.astype(wide), rtol=rtol, atol=rtol)


@pytest.mark.parametrize("call", ROWS)
def test_rows_of_odd_and_unknown_sizes(call: str) -> None:
    unknown = kernels(call, ("n", "m"))
    scheduled_unknown = scheduled(unknown)
    for k, shape in enumerate(SIZES):
        x = RNG.normal(0, 1, shape).astype("float32")
        fixed = kernels(call, shape)
        same(call, fixed, scheduled(fixed, PROCESSORS[k % 3]), x, 1e-5)
        same(call, unknown, scheduled_unknown, x, 1e-5)


@pytest.mark.parametrize("call", ["R.sum(x, axis=1)", "R.nn.relu(x)", "R.nn.softmax(x)"])
def test_rows_that_are_not_there(call: str) -> None:
    run = compiled(scheduled(kernels(call, ("n", "m"))))
    for shape in ((0, 5), (3, 0)):
        out = like(call, np.zeros(shape, "float32"))
        out[...] = 7
        run(np.zeros(shape, "float32"), out)
        assert (out == 0).all() if "sum" in call else out.size == 0


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int32"])
@pytest.mark.parametrize("call", ["R.nn.softmax(x)", "R.sum(x, axis=1)", "R.max(x, axis=1)"])
def test_rows_of_other_types(call: str, dtype: str) -> None:
    if dtype == "int32" and "softmax" in call:
        return
    of = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    x = RNG.integers(-9, 9, (3, 147)).astype(of)
    mod = kernels(call, x.shape, dtype)
    same(call, mod, scheduled(mod), x, {"float64": 1e-12, "float16": 2e-3, "bfloat16": 1e-2}.get(dtype, 0))


@pytest.mark.parametrize("call", ["R.nn.softmax(x)", "R.max(x, axis=1)", "R.min(x, axis=1)", "R.sum(x, axis=1)"])
def test_nan_and_infinity_in_any_lane(call: str) -> None:
    run = compiled(scheduled(kernels(call, ("n", "m"))))
    reference = {
        "soft": _softmax,
        "R.max": lambda a: a.max(1),
        "R.min": lambda a: a.min(1),
        "R.sum": lambda a: a.sum(1),
    }
    exact = next(f for name, f in reference.items() if name in call)
    for place, value in itertools.product((0, 1, 15, 16, 63, 64, 100, 130), (np.nan, np.inf, -np.inf)):
        x = RNG.normal(0, 1, (2, 131)).astype("float32")
        x[1, place] = value
        found = like(call, x)
        run(x, found)
        with np.errstate(invalid="ignore"):
            np.testing.assert_allclose(found, exact(x.astype("float64")), rtol=2e-5, atol=1e-5)


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(1, keepdims=True))
    return np.asarray(e / e.sum(1, keepdims=True))


def test_memory_that_begins_anywhere() -> None:
    run = compiled(scheduled(kernels("R.nn.softmax(x)", ("n", "m"))))
    memory, out = RNG.normal(0, 1, 900).astype("float32"), np.zeros(900, "float32")
    for first in (0, 1, 3, 5):
        x, y = (a[first : first + 5 * 147].reshape(5, 147) for a in (memory, out))
        run(x, y)
        np.testing.assert_allclose(y, _softmax(x), rtol=1e-5)


def test_long_sums_keep_their_digits() -> None:
    x = np.full((1, 1 << 23), 0.1, "float32")
    for shape in (("n", "m"), x.shape):
        out = np.zeros(1, "float32")
        compiled(scheduled(kernels("R.sum(x, axis=1)", shape)))(x, out)
        assert abs(out[0] / x.astype("float64").sum() - 1) < 1e-6


def test_results_stay_in_registers_and_lines_are_vectors() -> None:
    text = scheduled(kernels("R.nn.softmax(x)", (8, 1000))).script()
    assert text.count('scope="local"') == 2 and text.count("T.vectorized(") >= 6


WINDOWS = [("max_pool2d", "padding=[1, 1]"), ("max_pool2d", "padding=[0, 0]"), ("avg_pool2d", "padding=[1, 1]")]


@pytest.mark.parametrize("name, padding", WINDOWS)
@pytest.mark.parametrize("size", [(9, 17), (12, 33), (5, 64), (7, 131)])
def test_windows_that_move_by_two(name: str, padding: str, size: tuple[int, int]) -> None:
    call = f"R.nn.{name}(x, pool_size=[3, 3], strides=[2, 2], {padding})"
    x = RNG.normal(0, 1, (1, 2, *size)).astype("float32")
    x[0, 0, 2, -1], x[0, 1, 0, 4] = np.nan, -np.inf
    edge = 2 if "1" in padding else 0
    shape = (1, 2, *((n + edge - 3) // 2 + 1 for n in size))
    wanted = np.zeros(shape, "float32")
    Interpreter(kernels(call, x.shape)).run("main", x, wanted)
    for dims, processor in itertools.product((x.shape, (1, 2, "n", "m")), PROCESSORS):
        found = np.zeros(shape, "float32")
        made = scheduled(kernels(call, dims), processor)
        compiled(made)(x, found)
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_conditions_of_which_a_part_is_the_same_in_a_row_are_asked_in_each_step() -> None:
    call = "R.nn.max_pool2d(x, pool_size=[2, 3], strides=[2, 2], padding=[1, 1], dilation=[2, 1])"
    x = RNG.normal(0, 1, (1, 2, 64, 112)).astype("float32")
    wanted, found = np.zeros((1, 2, 32, 56), "float32"), np.zeros((1, 2, 32, 56), "float32")
    made = kernels(call, x.shape)
    Interpreter(made).run("main", x, wanted)
    compiled(scheduled(made, PROCESSORS[1]))(x, found)
    np.testing.assert_array_equal(found, wanted)


def test_partial_results_of_a_row_are_combined_before_the_next_one() -> None:
    text = scheduled(kernels("R.sum(x, axis=1)", (4, 1000))).script()
    assert text.count("T.parallel(") == 1 and text.count('scope="local"') == 1
    assert "for i0 in range" not in text


def test_a_block_that_moves_keeps_its_condition() -> None:
    sch = Schedule(kernels("R.sum(x, axis=1)", (2, 67)))
    _, line = sch.get_loops("total")
    partial = sch.rfactor(sch.split(line, [None, 16])[1], 1)
    sch.compute_at(partial, sch.get_loops("total")[0])
    x, found = RNG.normal(0, 1, (2, 67)).astype("float32"), np.zeros(2, "float32")
    for run in (compiled(sch.mod), lambda *args: Interpreter(sch.mod).run("main", *args)):
        run(x, found)
        np.testing.assert_allclose(found, x.sum(1), rtol=1e-5)


def test_squares_of_unknown_size() -> None:
    made = scheduled(kernels("R.sum(x, axis=0)", ("n", "n")))
    run = compiled(made)
    for n in (1, 7, 33, 64, 130, 4100):
        x, found = RNG.normal(0, 1, (n, n)).astype("float32"), np.zeros(n, "float32")
        run(x, found)
        np.testing.assert_allclose(found, x.sum(0, dtype="float64"), rtol=1e-4, atol=1e-4)
    vectors = [s for s in walk(lower(made["main"]).body) if isinstance(s, BufferStore) and s.value.dtype.lanes > 1]
    assert sum(s.predicate is None for s in vectors) >= 2  # full tiles have no conditions
