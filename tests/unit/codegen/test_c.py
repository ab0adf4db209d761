"""C source: the same numbers as machine code, without a warning of gcc, and readable."""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from c_kernels import HAS_COMPILER, c_kernels, c_text
from compiled import prim_func

import relaxlang
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.codegen.c.intrinsics import _TABLE
from relaxlang.codegen.intrinsics import NO_CODE
from relaxlang.interp import Interpreter
from relaxlang.ir.intrinsics import INTRINSICS
from relaxlang.ir.module import IRModule
from relaxlang.runtime.kernel import Kernel

needs_gcc = pytest.mark.skipif(not HAS_COMPILER, reason="there is no gcc")
RNG = np.random.default_rng(5)
INTEGERS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
NARROW = (
    "float16 bfloat16 float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 "
    "float8_e5m2fnuz float8_e8m0fnu float6_e2m3fn float6_e3m2fn float4_e2m1fn"
).split()
FLOATS = ("float32", "float64")
ON_INTEGERS = {
    "floordiv": "A[i] // B[i]", "floormod": "A[i] % B[i]", "truncmod": "T.truncmod(A[i], B[i])",
    "truncdiv": "T.truncdiv(A[i], B[i])", "wrap": "A[i] * B[i] - A[i] + B[i]", "max": "T.max(A[i], B[i])",
    "min": "T.min(A[i], B[i])", "left": "T.shift_left(A[i], B[i])", "right": "T.shift_right(A[i], B[i])",
    "bits": "A[i] & B[i] | ~A[i] ^ B[i]", "by7": "A[i] // 7", "mod16": "A[i] % 16", "abs": "T.abs(A[i])",
    "count": 'T.cast(T.popcount(A[i]) + T.clz(B[i]), "{of}")', "power": 'T.pow(A[i], T.cast(B[i] % 5, "{of}"))',
    "choose": "T.Select(A[i] < B[i], A[i] - B[i], B[i] - A[i])", "logic": 'T.cast(A[i] < 3 and not B[i] < 3, "{of}")',
}  # fmt: skip
ON_FLOATS = {
    "sum": "(A[i] + B[i]) * A[i] - B[i] / A[i]", "fmax": "T.max(A[i], B[i])", "fmin": "T.min(A[i], B[i])",
    "ffloordiv": "T.floordiv(A[i], B[i])", "ffloormod": "T.floormod(A[i], B[i])", "ffmod": "T.fmod(A[i], B[i])",
    "parts": "T.floor(A[i]) + T.ceil(B[i]) + T.trunc(A[i]) + T.round(B[i])", "sign": "T.copysign(A[i], B[i])",
    "fabs": "T.abs(A[i])", "isnan": "T.if_then_else(T.isnan(A[i]), T.cast(1, A.dtype), T.cast(T.isinf(B[i]), A.dtype))",
}  # fmt: skip
ONE_ARGUMENT = (
    "exp exp2 exp10 erf tanh sigmoid log log2 log10 log1p tan cos cosh sin sinh asin acos atan sqrt rsqrt".split()
)


def numpy_of(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name, name))


def module(functions: dict[str, str]) -> IRModule:
    made: dict[str, Any] = {}
    for name, text in functions.items():
        (made[name],) = (f for _, f in relaxlang.parse(text).prim_funcs())
    return IRModule(made)


def text(of: str, expression: str, result: str | None = None) -> str:
    params = f'A: T.Buffer((n,), "{of}"), B: T.Buffer((n,), "{of}"), C: T.Buffer((n,), "{result or of}")'
    expression = expression.replace("{of}", of).replace("A.dtype", f'"{of}"')
    return f"@T.prim_func\ndef f({params}):\n    for i in range(n):\n        C[i] = {expression}\n"


def functions() -> dict[str, tuple[str, str, str]]:
    """Each function by name: its text, the type of its operands, of its result."""
    made = {}
    for of in INTEGERS:
        for name, expression in ON_INTEGERS.items():
            made[f"{name}_{of}"] = (text(of, expression), of, of)
    for of in (*FLOATS, "float16", "bfloat16"):
        for name, expression in ON_FLOATS.items():
            made[f"{name}_{of}"] = (text(of, expression), of, of)
        for to in INTEGERS:
            made[f"to_{to}_{of}"] = (text(of, f'T.cast(A[i], "{to}")', to), of, to)
    for of in NARROW:
        made[f"widen_{of}"] = (text(of, 'T.cast(A[i], "float32")', "float32"), of, "float32")
        made[f"narrow_{of}"] = (text("float32", f'T.cast(A[i] * B[i], "{of}")', of), "float32", of)
        if of != "float8_e8m0fnu":  # of which ml_dtypes rounds a double twice
            made[f"narrow64_{of}"] = (text("float64", f'T.cast(A[i] * B[i], "{of}")', of), "float64", of)
    for of in FLOATS:
        for name in ONE_ARGUMENT:
            made[f"{name}_{of}"] = (text(of, f"T.{name}(A[i])"), of, of)
    return made


@functools.lru_cache(maxsize=1)
def both() -> tuple[dict[str, Kernel], Interpreter]:
    mod = module({name: program for name, (program, _, _) in functions().items()})
    return c_kernels(mod), Interpreter(mod)


def operands(of: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    if of in INTEGERS:
        limits = np.iinfo(of)
        some = np.array(
            [0, 1, 2, 3, 7, limits.max, limits.min, limits.max - 1, *([-1, -2, -7] if limits.min else [])], of
        )
        grid = np.array(np.meshgrid(some, some)).reshape(2, -1)
        random = RNG.integers(limits.min, limits.max, (2, 100), dtype=of)
        a, b = np.concatenate([grid, random], 1)
        return a.copy(), b.copy()
    special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 2.5, -3.5, 3e38, 1e-40, 300.7, -2147483650.0, 1e10]
    grid = np.array(np.meshgrid(special, special)).reshape(2, -1)
    a, b = np.concatenate([grid, RNG.normal(0, 3, (2, 200))], 1)
    return a.astype(numpy_of(of)), b.astype(numpy_of(of))


@needs_gcc
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", functions())
def test_c_computes_what_the_interpreter_computes(name: str) -> None:
    _, of, result = functions()[name]
    a, b = operands(of)
    made, wanted = np.zeros(a.shape, numpy_of(result)), np.zeros(a.shape, numpy_of(result))
    kernels, interpreter = both()
    kernels[name](a, b, made)
    interpreter.run(name, a, b, wanted)
    if result in FLOATS and name.split("_")[0] in (*ONE_ARGUMENT, "sum"):
        np.testing.assert_allclose(made, wanted, rtol=1e-6 if result == "float32" else 1e-14, atol=1e-38)
    else:
        # What numpy makes of NaN and of numbers beyond uint32 depends on its vector code.
        kept = np.abs(np.nan_to_num(a.astype("float64"), nan=1e300)) < 2**31 if name.startswith("to_uint32") else ...
        np.testing.assert_array_equal(made[kept].astype("float64"), wanted[kept].astype("float64"))


@needs_gcc
def test_statements() -> None:
    mod = relaxlang.parse("""
@T.prim_func
def f(A: T.Buffer((n,), "float32"), B: T.Buffer((n,), "float32"), k: T.int32):
    T.func_attr({"global_symbol": "f"})
    assert k > 0, "k is positive"
    work = T.allocate([n], "float32", "global")
    W = T.decl_buffer((n,), "float32", data=work)
    for i in range(n):
        W[i] = A[i] * T.float32(2)
    for i in range(n):
        if i % 3 == 2:
            continue
        if i > 20:
            break
        t = W[i] + T.float32(1)
        B[i] = t * t
    unused: T.int32 = k + 1
    B[0:8] = W[0:8] + B[1:9]
""")
    kernel = c_kernels(mod)["f"]
    a = np.arange(32, dtype=np.float32)
    made = np.zeros(32, np.float32)
    kernel(a, made, 1)
    wanted = np.where((np.arange(32) % 3 == 2) | (np.arange(32) > 20), 0, (2 * a + 1) ** 2).astype(np.float32)
    wanted[0:8] = 2 * a[0:8] + wanted[1:9]
    np.testing.assert_array_equal(made, wanted)
    with pytest.raises(DiagnosticError, match="k is positive"):
        kernel(a, made, 0)


@needs_gcc
def test_long_sums_keep_their_digits() -> None:
    source = """
@T.prim_func
def f(A: T.Buffer((n,), "float32"), B: T.Buffer((1,), "float32")):
    B[0] = T.float32(0)
    for k in range(n):
        B[0] = B[0] + A[k]
"""
    kernel = c_kernels(module({"f": source}))["f"]
    for count in (0, 1, 2047, 2049, 1 << 22):
        total = np.zeros(1, "float32")
        kernel(np.full(count, 0.1, "float32"), total)
        np.testing.assert_allclose(total, count * float(np.float32(0.1)), rtol=3e-5)


def test_text_is_readable() -> None:
    source = c_text(
        relaxlang.parse("""
@T.prim_func
def scale(A: T.Buffer((n, 8), "float32"), B: T.Buffer((n, 8), "float32"), s: T.float32):
    for i, j in T.grid(n, T.int64(8)):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj // 2 * 2] * s
""")
    )
    assert source.endswith("""\
int32_t rlx_scale(const float *restrict A, float *restrict B, int64_t n, float s) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < 8; ++j) {
      B[i * 8 + j] = A[i * 8 + j / 2 * 2] * s;
    }
  }
  return 0;
}
""")


def test_every_intrinsic_has_c_or_a_reason() -> None:
    without = {"vscale", "ret", "tvm_tuple"}
    missing = set(INTRINSICS) - set(_TABLE) - set(NO_CODE) - without
    assert not {m for m in missing if compiles_to_machine_code(m)}


def compiles_to_machine_code(name: str) -> bool:
    from relaxlang.codegen import intrinsics

    return name in intrinsics._TABLE


@pytest.mark.parametrize(
    "body, code",
    [
        ('A[0] = T.call_llvm_pure_intrin("float32", "llvm.nonsense", A[1])', "RLX5013"),
        ("for i in T.parallel(8):\n    if A[i] > 3:\n        break", "RLX5012"),
        ('A[0] = T.call_extern("float32", "a-b", A[1])', "RLX5013"),
    ],
)
def test_what_has_no_c_is_a_diagnostic(body: str, code: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        c_text(prim_func('A: T.Buffer((8,), "float32")', body))
    assert caught.value.diagnostics[0].code == code
