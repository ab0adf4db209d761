"""Products of bytes, four at a time: exact for all signs, sizes, layouts and processors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relaxlang
from relaxlang.codegen import build_kernels, load_kernels
from relaxlang.codegen.kernel import llvm_text
from relaxlang.interp import Interpreter
from relaxlang.ir.configuration.target import Target
from relaxlang.ir.module import IRModule
from relaxlang.ir.tir import PrimFunc
from relaxlang.passes.relax.bind_params import bind_params
from relaxlang.schedule.rules import Processor, schedule_function

DOTS = Processor(64, 32, dots=True)
SIGNS = [("int8", "int8"), ("uint8", "uint8"), ("uint8", "int8"), ("int8", "uint8")]
EAGER = (
    "legalize-ops,fold-constant,convert-to-dataflow,annotate-tir-op-pattern,fuse-ops,fuse-tir,schedule-cpu{least=0},"
    "split-layout-rewrite-preproc,fold-constant,dead-code-elimination,minimum"
)
PRODUCT = """
@T.prim_func
def main(A: T.Buffer((B, M, K), "{a}"), W: T.Buffer(({w}), "{b}"), C: T.Buffer((B, M, N), "int32")):
    for b, i, j, k in T.grid(B, M, N, K):
        with T.block("C"):
            vb, vi, vj, vk = T.axis.remap("SSSR", [b, i, j, k])
            with T.init():
                C[vb, vi, vj] = 0
            C[vb, vi, vj] = C[vb, vi, vj] + T.Cast("int32", A[vb, vi, vk]) * T.Cast("int32", W[{at}])
"""
LAYOUTS = {"plain": ("K, N", "vk, vj"), "transposed": ("N, K", "vj, vk"), "batched": ("B, K, N", "vb, vk, vj")}


def product(a: str, b: str, sizes: tuple[int, int, int, int], layout: str = "plain") -> IRModule:
    """A module with one product of bytes: batch, rows, terms, columns."""
    shape, at = LAYOUTS[layout]
    text = PRODUCT.format(a=a, b=b, w=shape, at=at)
    mod: IRModule = relaxlang.parse(text, values=dict(zip("BMKN", sizes)))
    return mod


def data(of: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray[Any, Any]:
    """Bytes, many of them the least or the greatest."""
    limits, rng = np.iinfo(of), np.random.default_rng(seed)
    values = rng.integers(limits.min, limits.max + 1, shape).astype(of)
    extreme = rng.choice(np.array([limits.min, limits.max], of), shape)
    return np.where(rng.random(shape) < 0.5, extreme, values).astype(of)


def scheduled(mod: IRModule, processor: Processor = DOTS) -> IRModule:
    func = mod["main"]
    assert isinstance(func, PrimFunc)
    return mod.with_function("main", schedule_function(func, processor))


def check(mod: IRModule, a: Any, w: Any, wanted: Any, *, interpreted: bool = True, target: Any = None) -> None:
    """Compiled code and the interpreter give exactly what is wanted."""
    runs: list[Any] = [load_kernels(build_kernels(dict(mod.prim_funcs()), target))["main"]]
    runs += [lambda *args: Interpreter(mod).run("main", *args)] if interpreted else []
    for run in runs:
        got = np.full(wanted.shape, 77, "int32")
        run(a, w, got)
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("a, b, sizes, layout", [
    *((a, b, (1, 9, 17, 18), "plain") for a, b in SIGNS), ("int8", "int8", (1, 10, 18, 33), "transposed"),
    ("uint8", "uint8", (2, 9, 16, 17), "batched"), ("int8", "uint8", (1, 17, 19, 1), "plain"),
])  # fmt: skip
def test_signs_and_layouts(a: str, b: str, sizes: tuple[int, int, int, int], layout: str) -> None:
    mod = product(a, b, sizes, layout)
    made = scheduled(mod)
    shape = {"plain": sizes[2:], "transposed": sizes[:1:-1], "batched": (sizes[0], *sizes[2:])}[layout]
    x, w = data(a, sizes[:3]), data(b, shape, 1)
    wide = w.astype("int32")
    check(made, x, w, x.astype("int32") @ (wide.T if layout == "transposed" else wide))
    assert "T.dp4a" in made.script()
    relaxlang.assert_structural_equal(relaxlang.parse(made.script()), made)


@pytest.mark.parametrize("sizes", [(1, 0, 17, 3), (1, 13, 20, 0), (1, 13, 0, 5), (1, 3, 1, 1), (1, 31, 127, 65)])
def test_sizes_for_compiled_code(sizes: tuple[int, int, int, int]) -> None:
    for a, b in SIGNS:
        x, w = data(a, sizes[:3]), data(b, sizes[2:], 1)
        check(scheduled(product(a, b, sizes)), x, w, x.astype("int32") @ w.astype("int32"), interpreted=False)


@pytest.mark.parametrize("cpu, a, b", [
    ("x86-64", "int8", "int8"), ("x86-64-v3", "uint8", "int8"), ("x86-64-v4", "uint8", "uint8"),
])  # fmt: skip
def test_processors_without_the_instruction(cpu: str, a: str, b: str) -> None:
    mod = product(a, b, (1, 9, 33, 35))
    x, w = data(a, (1, 9, 33)), data(b, (33, 35), 1)
    target = Target({"kind": "llvm", "mcpu": cpu})
    if cpu == "x86-64-v4" and "+avx512f" not in Target().mattr:
        pytest.skip("this machine has no AVX-512")
    check(scheduled(mod), x, w, x.astype("int32") @ w.astype("int32"), interpreted=False, target=target)


def test_the_instruction_is_taken() -> None:
    made = scheduled(product("int8", "int8", (1, 32, 64, 64)))["main"]
    assert isinstance(made, PrimFunc)
    assert "vpdpbusd" in llvm_text(made, Target({"kind": "llvm", "mtriple": "x86_64-linux-gnu", "mcpu": "znver4"}))
    for spec in ({"mcpu": "x86-64-v4"}, {"mcpu": "znver4", "mattr": "-avx512vnni"}):
        target = Target({"kind": "llvm", "mtriple": "x86_64-linux-gnu", **spec})
        assert "vpdpbusd" not in llvm_text(made, target)


def test_few_rows_and_short_sums_are_left_as_they_are() -> None:
    for sizes in ((1, 2, 64, 64), (1, 64, 15, 64)):
        assert "T.dp4a" not in scheduled(product("int8", "int8", sizes)).script()
    assert "T.dp4a" not in scheduled(product("int8", "int8", (1, 32, 64, 64)), Processor(64, 32)).script()


@pytest.mark.parametrize("layout", ["plain", "transposed"])
def test_large_factors_are_read_in_panels_of_words(layout: str) -> None:
    mod = scheduled(product("int8", "int8", (1, 40, 700, 2600), layout))
    text = mod.script()
    assert 'scope="local"' in text and text.count("T.unroll(") > 3
    x, w = data("int8", (1, 40, 700)), data("int8", (700, 2600) if layout == "plain" else (2600, 700), 1)
    wide = w.astype("float64")
    wanted = (x.astype("float64") @ (wide if layout == "plain" else wide.T)).astype("int32")
    check(mod, x, w, wanted, interpreted=False)


@pytest.mark.parametrize("rows, of", [("1", "int8"), ("33", "uint8"), ("m", "int8"), ("1", "uint8")])
def test_words_of_constant_weights_are_made_beforehand(rows: str, of: str) -> None:
    text = f"""
@R.function
def main(x: R.Tensor(({repr(rows) if rows == "m" else rows}, 67), "{of}"), w: R.Tensor((67, 130), "{of}")):
    with R.dataflow():
        y = R.matmul(x, w, out_dtype="int32")
        z = R.add(R.multiply(R.astype(y, "float32"), R.const(0.5, "float32")), R.const(3.0, "float32"))
        R.output(z)
    return z
"""
    x, w = data(of, (33 if rows == "m" else int(rows), 67)), data(of, (67, 130), 1)
    mod = bind_params(relaxlang.parse(text), "main", {"w": w})
    got = relaxlang.build(mod, pipeline=EAGER)["main"](x)
    wanted = (x.astype("int32") @ w.astype("int32")).astype("float32") * np.float32(0.5) + np.float32(3)
    np.testing.assert_array_equal(np.asarray(got), wanted)


def test_symbolic_sizes() -> None:
    text = """
@R.function
def main(x: R.Tensor(("m", "k"), "int8"), w: R.Tensor(("k", "n"), "int8")) -> R.Tensor(("m", "n"), "int32"):
    with R.dataflow():
        y = R.matmul(x, w, out_dtype="int32")
        R.output(y)
    return y
"""
    run = relaxlang.build(relaxlang.parse(text), pipeline=EAGER)["main"]
    for m, k, n in ((1, 1, 1), (3, 17, 63), (65, 127, 5), (4, 0, 3)):
        x, w = data("int8", (m, k)), data("int8", (k, n), 1)
        np.testing.assert_array_equal(np.asarray(run(x, w)), x.astype("int32") @ w.astype("int32"))


DOT = """
@T.prim_func
def main(A: T.Buffer((8,), "int8"), B: T.Buffer((8,), "uint8"), W: T.Buffer((2,), "int32"), C: T.Buffer((2,), "int32")):
    for i in range(2):
        with T.block("C"):
            vi = T.axis.spatial(2, i)
            C[vi] = {value}
"""


@pytest.mark.parametrize("value, bytes_", [
    ("T.dp4a(A[T.ramp(vi * 4, 1, 4)], B[T.ramp(vi * 4, 1, 4)], 5)", True),
    ("T.dp4a(W[vi], T.reinterpret(\"uint32\", W[vi]), W[vi])", False),
    ("W[vi] + T.dp4a(W[vi], W[vi], 0)", False),
])  # fmt: skip
def test_the_intrinsic(value: str, bytes_: bool) -> None:
    mod = relaxlang.parse(DOT.format(value=value))
    relaxlang.assert_structural_equal(relaxlang.parse(mod.script()), mod)
    a, b = data("int8", (8,)), data("uint8", (8,), 1)
    w = np.array([-0x7F807F01, 0x7FFFFF80], "int32")
    signed, unsigned = w.view("int8").astype("int64").reshape(2, 4), w.view("uint8").astype("int64").reshape(2, 4)
    if bytes_:
        wanted = (a.astype("int64") * b).reshape(2, 4).sum(1) + 5
    else:
        wanted = (signed * (unsigned if "reinterpret" in value else signed)).sum(1) + w
    runs: list[Any] = [
        lambda *args: Interpreter(mod).run("main", *args), load_kernels(build_kernels(dict(mod.prim_funcs())))["main"]
    ]  # fmt: skip
    for run in runs:
        got = np.zeros(2, "int32")
        run(a, b, w, got)
        np.testing.assert_array_equal(got, wanted.astype("int32"))


def test_the_intrinsic_takes_four_bytes_for_each_result() -> None:
    mod = relaxlang.parse(DOT.format(value="T.dp4a(A[vi], B[vi], 0)"))
    with pytest.raises(relaxlang.DiagnosticError, match="RLX5016"):
        build_kernels(dict(mod.prim_funcs()))
