"""Schedules for processors: the rules choose by what a kernel does, and no result changes beyond rounding."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import relaxlang
from relaxlang.codegen import build_kernels, get_num_threads, load_kernels, set_num_threads
from relaxlang.interp import Interpreter
from relaxlang.ir.module import IRModule
from relaxlang.ir.tir import PrimFunc
from relaxlang.passes.relax.bind_params import bind_params
from relaxlang.passes.tir.schedule_cpu import ScheduleCPU
from relaxlang.schedule.rules import Processor, schedule_function
from relaxlang.schedule.rules.factors import tile
from tests.unit.schedule.kernels import CHAIN, MATMUL, SUM, arguments, module

PROCESSORS = [Processor(64, 32), Processor(32, 16), Processor(16, 16)]


def scheduled(mod: IRModule, processor: Processor = PROCESSORS[0]) -> IRModule:
    func = mod["main"]
    assert isinstance(func, PrimFunc)
    return mod.with_function("main", schedule_function(func, processor))


def agree(mod: IRModule, processor: Processor = PROCESSORS[0], rtol: float = 1e-5, **values: int) -> IRModule:
    """The scheduled kernel, interpreted and compiled, against the original one interpreted; the scheduled one."""
    made = scheduled(mod, processor)
    args = arguments(mod, values)
    runs: list[Any] = [
        lambda *a: Interpreter(mod).run("main", *a),
        lambda *a: Interpreter(made).run("main", *a),
        load_kernels(build_kernels(dict(made.prim_funcs())))["main"],
    ]
    results = []
    for run in runs:
        copies = [a.copy() for a in args]
        run(*copies)
        results.append(copies)
    for found in results[1:]:
        for mine, wanted in zip(found, results[0]):
            np.testing.assert_allclose(mine, wanted, rtol=rtol, atol=rtol)
    relaxlang.assert_structural_equal(relaxlang.parse(made.script()), made)
    return made


@pytest.mark.parametrize("m, n, k", [(1, 1, 1), (3, 17, 5), (17, 65, 3), (7, 128, 9), (13, 31, 2), (12, 67, 1)])
def test_matmul_of_odd_sizes(m: int, n: int, k: int) -> None:
    text = agree(module(MATMUL, M=m, N=n, K=k)).script()
    assert n == 1 or ('scope="local"' in text and "T.vectorized(" in text)


@pytest.mark.parametrize(
    "m, n, k", [(1, 430, 35), (2, 400, 48), (3, 163, 64), (8, 130, 67), (8, 130, 80), (5, 163, 77), (32, 65, 96)]
)
def test_few_rows_read_the_other_factor_once(m: int, n: int, k: int) -> None:
    text = agree(module(MATMUL, M=m, N=n, K=k)).script()
    assert ("_rf" in text) == (k != 67)  # no sweeps over a prime number of rows


@pytest.mark.parametrize("processor", PROCESSORS[1:])
@pytest.mark.parametrize("m, n", [(2, 192), (4, 384), (5, 192), (3, 131)])
def test_few_rows_without_masks(m: int, n: int, processor: Processor) -> None:
    text = agree(module(MATMUL, M=m, N=n, K=96), processor).script()
    assert ("_rf" in text) == (n != 131)


@pytest.mark.parametrize("m, n", [(1, 300), (2, 170), (8, 17)])
def test_few_rows_of_few_columns_stay_in_registers(m: int, n: int) -> None:
    text = agree(module(MATMUL, M=m, N=n, K=40)).script()
    assert "_rf" not in text and text.count("for k in range(") == 1


def test_few_rows_of_symbolic_width_and_depth() -> None:
    mod = module(MATMUL, M=3, N="n", K="k")
    for n, k in [(1, 1), (17, 5), (130, 65), (0, 3), (5, 0)]:
        agree(mod, n=n, k=k)


@pytest.mark.parametrize("processor", PROCESSORS)
def test_matmul_of_symbolic_size(processor: Processor) -> None:
    mod = module(MATMUL, M="m", N="n", K="k")
    for m, n, k in [(1, 1, 1), (5, 3, 2), (6, 64, 4), (13, 70, 3), (0, 5, 2), (4, 4, 0)]:
        agree(mod, processor, m=m, n=n, k=k)


@pytest.mark.parametrize("m, n, k", [(1, 5, 33), (4, 19, 7), (20, 33, 17), (20, 64, 32), (9, 65, 48)])
def test_transposed_factor(m: int, n: int, k: int) -> None:
    text = MATMUL.replace('B: T.Buffer((K, N), "float32")', 'B: T.Buffer((N, K), "float32")').replace(
        "B[vk, vj]", "B[vj, vk]"
    )
    agree(module(text, M=m, N=n, K=k))


def test_a_large_factor_is_copied_in_panels() -> None:
    text = scheduled(module(MATMUL, M=1024, N=1024, K=1024)).script()
    assert 'T.block("B_local")' in text


def test_names_and_loop_order_do_not_matter() -> None:
    plain = scheduled(module(MATMUL, M=64, N=64, K=64))
    renamed = MATMUL.replace('"mm"', '"anything"').replace("A[", "left[").replace("A:", "left:")
    assert (
        scheduled(module(renamed, M=64, N=64, K=64)).script().replace("left", "A").replace("anything", "mm")
        == plain.script()
    )


@pytest.mark.parametrize("m, n", [(33, 65), (1, 430), (16, 64)])
def test_functions_of_a_tile_take_no_registers_from_its_sums(m: int, n: int) -> None:
    text = f"""
@R.function
def main(x: R.Tensor(({m}, 70), "float32"), w: R.Tensor((70, {n}), "float32")) -> R.Tensor(({m}, {n}), "float32"):
    with R.dataflow():
        y = R.sin(R.matmul(x, w))
        R.output(y)
    return y
"""
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(s).astype("float32") for s in ((m, 70), (70, n)))
    lowered = relaxlang.lower(relaxlang.parse(text), EAGER)
    assert m == 1 or "pragma_compute_scope" in lowered.script()
    got = relaxlang.build(lowered, pipeline="minimum")["main"](x, w)
    np.testing.assert_allclose(got, np.sin(x @ w), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("m, n", [(1, 1), (3, 17), (8, 64), (5, 257)])
def test_what_is_inlined_is_one_pass(m: int, n: int) -> None:
    made = agree(module(CHAIN, M=m, N=n), rtol=1e-4)
    assert "alloc_buffer" not in made.script()


@pytest.mark.parametrize("m, n", [(1, 1), (3, 17), (2, 300)])
def test_row_sums(m: int, n: int) -> None:
    agree(module(SUM, M=m, N=n))


@pytest.mark.parametrize("m, n", [(1, 1), (3, 17), (40, 70), (17, 1030)])
def test_column_sums(m: int, n: int) -> None:
    text = SUM.replace('A: T.Buffer((M, N), "float32")', 'A: T.Buffer((N, M), "float32")').replace(
        "A[vi, vk]", "A[vk, vi]"
    )
    agree(module(text, M=n, N=m))


def test_the_sum_of_everything_is_shared() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((M, N), "float32"), B: T.Buffer((), "float32")):
    for i, k in T.grid(M, N):
        with T.block("sum"):
            vi, vk = T.axis.remap("RR", [i, k])
            with T.init():
                B[()] = T.float32(0)
            B[()] = B[()] + A[vi, vk]
"""
    made = agree(module(text, M=400, N=401))
    assert "T.parallel(" in made.script()


@pytest.mark.parametrize("call, shape", [
    ("R.nn.softmax(x)", (5, 37)),
    ("R.nn.softmax(x)", (2, 3, 65)),
    ("R.nn.log_softmax(x)", (3, 33)),
    ("R.permute_dims(x)", (33, 17)),
    ("R.sum(x, axis=[0])", (9, 33)),
    ("R.mean(x, axis=[1])", (9, 33)),
    ("R.variance(x, axis=[0])", (9, 33)),
    ("R.nn.max_pool2d(x, pool_size=[3, 3], strides=[2, 2], padding=[1, 1])", (1, 3, 9, 11)),
    ("R.cumsum(x, axis=1)", (4, 33)),
    ("R.nn.gelu(x)", (3, 65)),
])  # fmt: skip
def test_operators(call: str, shape: tuple[int, ...]) -> None:
    mod = relaxlang.parse(
        f'@R.function\ndef main(x: R.Tensor({shape}, "float32")):\n    with R.dataflow():\n        y = {call}\n'
        "        R.output(y)\n    return y\n"
    )
    lowered = relaxlang.lower(mod, "legalize-ops")
    made = ScheduleCPU()(lowered)
    data = np.random.default_rng(1).standard_normal(shape).astype("float32")
    wanted = Interpreter(mod).run("main", data)
    found = Interpreter(made).run("main", data)
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-5, atol=1e-5)
    built = relaxlang.VirtualMachine(relaxlang.build(made), relaxlang.cpu())["main"](data)
    np.testing.assert_allclose(np.asarray(built), np.asarray(wanted), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size, kernel, stride, groups", [(9, 3, 1, 1), (11, 3, 2, 1), (8, 1, 1, 1), (9, 3, 1, 4)])
def test_convolutions(size: int, kernel: int, stride: int, groups: int) -> None:
    mod = relaxlang.parse(
        f'@R.function\ndef main(x: R.Tensor((1, 4, {size}, {size}), "float32"), '
        f'w: R.Tensor((8, {4 // groups}, {kernel}, {kernel}), "float32")):\n    with R.dataflow():\n'
        f"        y = R.nn.conv2d(x, w, strides=[{stride}, {stride}], padding=[1, 1], groups={groups})\n"
        "        R.output(y)\n    return y\n"
    )
    made = ScheduleCPU()(relaxlang.lower(mod, "legalize-ops"))
    rng = np.random.default_rng(2)
    x = rng.standard_normal((1, 4, size, size)).astype("float32")
    w = rng.standard_normal((8, 4 // groups, kernel, kernel)).astype("float32")
    wanted = np.asarray(Interpreter(mod).run("main", x, w))
    built = relaxlang.VirtualMachine(relaxlang.build(made), relaxlang.cpu())["main"](x, w)
    np.testing.assert_allclose(np.asarray(built), wanted, rtol=1e-4, atol=1e-4)


def test_a_convolution_of_one_filter_with_what_follows_it() -> None:
    mod = relaxlang.parse(
        """
@R.function
def main(
    x: R.Tensor((2, 20, 3, 5), "float32"), w: R.Tensor((1, 5, 7, 1), "float32"), b: R.Tensor((1, 1, 1, 1), "float32")
):
    with R.dataflow():
        y = R.nn.conv2d(x, w, strides=[2, 1], padding=[1, 0, 3, 2], data_layout="NHWC")
        z = R.add(y, b)
        R.output(z)
    return z
"""
    )
    args = [
        np.random.default_rng(3).standard_normal(s).astype("float32")
        for s in ((2, 20, 3, 5), (1, 5, 7, 1), (1, 1, 1, 1))
    ]
    wanted = np.asarray(Interpreter(mod).run("main", *args))
    built = relaxlang.VirtualMachine(relaxlang.build(mod), relaxlang.cpu())["main"](*args)
    np.testing.assert_allclose(np.asarray(built), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("m, n", [(None, None), (128, 128), (129, 129), (8, 3072), (1, 3072), (1000, 777)])
def test_tiles_fit_the_registers(m: int | None, n: int | None) -> None:
    for processor in PROCESSORS:
        rows, vectors = tile(m, n, processor.lanes(4), processor)
        assert rows * vectors + vectors + 1 <= processor.registers
        assert m is None or rows <= m


def test_a_schedule_that_stands_in_the_text_is_used() -> None:
    text = MATMUL.replace(
        "    for i, j, k",
        '    T.func_attr({"schedule": ["i, j, k = sch.get_loops(\\"mm\\")", "sch.reorder(k, i, j)"]})\n    for i, j, k',
    )
    made = ScheduleCPU()(module(text, M=4, N=8, K=6))
    assert "for k, i, j in T.grid(6, 4, 8)" in made.script() and "schedule" not in made.script()


def test_what_is_scheduled_stays() -> None:
    text = MATMUL.replace(
        "for i, j, k in T.grid(M, N, K):", "for i in T.parallel(M):\n        for j, k in T.grid(N, K):"
    )
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if "for j, k" in line)
    nested = "\n".join([*lines[: at + 1], *("    " + line for line in lines[at + 1 :])])
    mod = module(
        nested.replace("T.parallel(M)", "T.parallel(4)").replace("T.grid(N, K)", "T.grid(8, 6)"), M=4, N=8, K=6
    )
    assert ScheduleCPU()(mod) is mod


@pytest.mark.parametrize("m", [1, 5, 33])
def test_constant_factors_are_packed_while_compiling(m: int) -> None:
    text = f"""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(({m}, 65), "float32"), w: R.Tensor((65, 100), "float32")) -> R.Tensor(({m}, 100), "float32"):
        with R.dataflow():
            y = R.nn.relu(R.matmul(x, w))
            R.output(y)
        return y
"""
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-8, 8, s).astype("float32") for s in ((m, 65), (65, 100)))
    lowered = relaxlang.lower(bound(text, w=w), EAGER)
    assert "_layout" not in lowered.script()
    got = relaxlang.build(bound(text, w=w), pipeline=EAGER + ",minimum")["main"](x)
    np.testing.assert_array_equal(got, np.maximum(x @ w, 0))


@pytest.mark.parametrize("size, stride, ci, co", [(7, 1, 8, 40), (9, 2, 16, 17), (1, 1, 64, 64), (17, 2, 7, 65)])
def test_convolutions_with_constant_weights(size: int, stride: int, ci: int, co: int) -> None:
    text = f"""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, {ci}, {size}, {size}), "float32"), w: R.Tensor(({co}, {ci}, 3, 3), "float32")):
        with R.dataflow():
            y = R.nn.relu(R.nn.conv2d(x, w, strides={stride}, padding=1))
            R.output(y)
        return y
"""
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-8, 8, s).astype("float32") for s in ((2, ci, size, size), (co, ci, 3, 3)))
    wanted = relaxlang.build(bound(text, w=w), pipeline="minimum")["main"](x)
    got = relaxlang.build(bound(text, w=w), pipeline=EAGER + ",minimum")["main"](x)
    np.testing.assert_array_equal(got, wanted)


EAGER = (
    "legalize-ops,fold-constant,convert-to-dataflow,annotate-tir-op-pattern,fuse-ops,fuse-tir,schedule-cpu{least=0},"
    "split-layout-rewrite-preproc,fold-constant,dead-code-elimination"
)


def bound(text: str, **params: Any) -> IRModule:
    return bind_params(relaxlang.parse(text), "main", params)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int8", "bool"])
@pytest.mark.parametrize("m, n", [(64, 64), (17, 65), (128, 16), (3, 200)])
def test_transposed_tiles(m: int, n: int, dtype: str) -> None:
    text = f"""
@T.prim_func
def main(A: T.Buffer(({m}, {n}), "{dtype}"), B: T.Buffer(({n}, {m}), "{dtype}")):
    for i, j in T.grid({n}, {m}):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vj, vi]
"""
    kernel = load_kernels(build_kernels(dict(scheduled(module(text)).prim_funcs())))["main"]
    a = np.random.default_rng(0).integers(0, 100, (m, n)).astype(dtype)
    b = np.empty((n, m), dtype)
    kernel(a, b)
    np.testing.assert_array_equal(b, a.T)


@pytest.mark.parametrize(
    "body, shapes",
    [
        ("R.matmul(x, w)", [(65, 130), (130, 63)]),
        ("R.matmul(x, w)", [(3, 300), (300, 700)]),
        ("R.nn.softmax(R.add(x, w))", [(33, 257), (33, 257)]),
        ("R.sum(R.multiply(x, w))", [(700, 301), (700, 301)]),
        ("R.nn.conv2d(x, w, padding=1)", [(1, 5, 17, 17), (9, 5, 3, 3)]),
    ],
)
def test_results_do_not_depend_on_the_number_of_threads(body: str, shapes: list[tuple[int, ...]]) -> None:
    rng = np.random.default_rng(0)
    args = [rng.standard_normal(s).astype("float32") for s in shapes]
    params = ", ".join(f'{n}: R.Tensor({s}, "float32")' for n, s in zip("xw", shapes))
    text = f"@R.function\ndef main({params}):\n    y = {body}\n    return y\n"
    main = relaxlang.build(relaxlang.parse(text), pipeline=EAGER + ",minimum")["main"]
    before, found = get_num_threads(), []
    try:
        for count in (1, 2, 3):
            set_num_threads(count)
            found.append(np.asarray(main(*args)))
    finally:
        set_num_threads(before)
    assert all(np.array_equal(found[0], other) for other in found[1:])


@pytest.mark.parametrize("m, k, n", [(1, 3, 17), (3, 1, 1), (17, 65, 63), (63, 131, 65), (33, 0, 20), (0, 5, 3)])
@pytest.mark.parametrize("dtype, result", [
    ("int8", "int32"), ("uint8", "int32"), ("int32", "int32"), ("int64", "int64"), ("float64", "float64"),
    ("float16", "float32"), ("bfloat16", "float32"),
])  # fmt: skip
def test_products_of_other_types(dtype: str, result: str, m: int, k: int, n: int) -> None:
    text = f"""
@R.function
def main(x: R.Tensor(({m}, {k}), "{dtype}"), w: R.Tensor(({k}, {n}), "{dtype}")) -> R.Tensor(({m}, {n}), "{result}"):
    with R.dataflow():
        y = R.matmul(x, w, out_dtype="{result}")
        R.output(y)
    return y
"""
    rng = np.random.default_rng(0)
    low, high = {"int8": (-128, 128), "uint8": (0, 256)}.get(dtype, (-9, 10))
    of = np.dtype(getattr(ml_dtypes, dtype, dtype))
    x, w = (rng.integers(low, high, s).astype(of) for s in ((m, k), (k, n)))
    got = relaxlang.build(relaxlang.parse(text), pipeline=EAGER + ",minimum")["main"](x, w)
    np.testing.assert_array_equal(got, x.astype(result) @ w.astype(result))


def test_products_with_nan_and_infinity() -> None:
    a = np.arange(15, dtype="float32").reshape(3, 5)
    b = np.ones((5, 17), "float32")
    a[0, 1], a[1, 2], b[3, 16] = np.nan, np.inf, -np.inf
    kernel = load_kernels(build_kernels(dict(scheduled(module(MATMUL, M=3, N=17, K=5)).prim_funcs())))["main"]
    c = np.empty((3, 17), "float32")
    kernel(a, b, c)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(c, a @ b)
