"""C functions of shared libraries: signatures, calls from programs, and programs that carry their declarations."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relaxlang
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.runtime.c_signature import FixedParam, NumberParam, SizeParam, TensorParam, parse_signature
from relaxlang.runtime.executable import FORMAT_VERSION, Executable

GEMM = (
    "void(int 101, int 111, int 111, int M, int N, int K, f32 1, f32[M, K] A, int K, f32[K, N] B, int N, f32 0, "
    "out f32[M, N] C, int N)"
)
TEXT = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((m, k), "float32"), w: R.Tensor((k, n), "float32")) -> R.Tensor((m, n), "float32"):
        y = R.call_dps_packed("test.sgemm", (x, w), out_sinfo=R.Tensor((m, n), "float32"))
        return y

    @R.function
    def swapped(x: R.Tensor((m, k), "float32"), w: R.Tensor((k, n), "float32")) -> R.Tensor((m, n), "float32"):
        y = R.call_dps_packed("test.sgemm", (w, x), out_sinfo=R.Tensor((m, n), "float32"))
        return y
"""
MODES = ("native", "bytecode", "interpreter")
X, W = np.arange(6, dtype="float32").reshape(2, 3), np.arange(12, dtype="float32").reshape(3, 4)


@pytest.fixture(scope="module")
def module() -> relaxlang.IRModule:
    relaxlang.register_c_function("test.sgemm", "blas", "cblas_sgemm", GEMM, override=True)
    return relaxlang.parse(TEXT)


def run(mod: relaxlang.IRModule, mode: str, name: str, *args: Any) -> Any:
    if mode == "interpreter":
        return relaxlang.interpret(mod, name, *args)
    return relaxlang.VirtualMachine(relaxlang.build(mod), exec_mode=mode)[name](*args)


def failure(*args: Any) -> str:
    with pytest.raises(DiagnosticError) as caught:
        relaxlang.register_c_function(*args)
    return str(caught.value)


def test_signatures() -> None:
    made = parse_signature("status( i32 7 , f32 -0.5, f64 alpha, i64 2*N*M - 1, f32[N, 3] x, out u8[M] y )")
    assert made.result == "status" and made.params == (
        FixedParam(7, "i32"),
        FixedParam(-0.5, "f32"),
        NumberParam("alpha", "f64"),
        SizeParam(((2, ("N", "M")), (-1, ())), "i64", "2*N*M - 1"),
        TensorParam("x", "float32", ("N", 3), False),
        TensorParam("y", "uint8", ("M",), True),
    )
    assert [p.name for p in parse_signature("void(out f32[N] y, f32[N] x)").call_params()] == ["x", "y"]
    assert parse_signature("f64()").params == ()


@pytest.mark.parametrize(
    "text, words",
    [
        ("void", "parentheses"),
        ("f16(f32 x)", "the result is one of"),
        ("void(f65 x)", "no type `f65`"),
        ("void(f65[N] x)", "no element type `f65`"),
        ("void(f32[N] 3)", "no name of a tensor"),
        ("void(f32[N+1] x)", "neither a name nor a number"),
        ("void(f32[N] x, f32 N)", "passed as an integer"),
        ("void(f32[N] x, i32 N*Q)", "neither a number nor a dimension"),
        ("void(i32 1.5)", "no whole number"),
        ("void(f32[N] x, f64 x)", "two things"),
        ("void(out i32 n)", "only tensors are written to"),
        ("void(i32 1, )", "is no parameter"),
    ],
)
def test_malformed_signatures(text: str, words: str) -> None:
    said = failure("test.malformed", "blas", "cblas_sgemm", text)
    assert "RLX6037" in said and words in said


def test_what_is_missing_is_said_at_once() -> None:
    assert "needs the library `no_such_library`" in failure("test.a", "no_such_library", "f", "void()")
    assert "needs the symbol `no_such_symbol`" in failure("test.a", "blas", "no_such_symbol", "void()")
    assert "RLX0454" in failure("test.a", "blas", None, "void()")


@pytest.mark.parametrize("mode", MODES)
def test_programs_call_them(module: relaxlang.IRModule, mode: str) -> None:
    np.testing.assert_array_equal(run(module, mode, "main", X, W), X @ W)
    np.testing.assert_array_equal(run(module, mode, "main", X[:0], W), X[:0] @ W)
    with pytest.raises(DiagnosticError, match=r"parameter `B` of the C function.*dimension 0 is 2, expected `K` = 4"):
        run(module, mode, "swapped", X, W)


def test_numbers_results_and_failures() -> None:
    fma = relaxlang.register_c_function("test.fma", "m", "fma", "f64(f64 a, f64 b, f64 c)", override=True)
    assert fma(2, 3.0, 4) == 10.0
    with pytest.raises(DiagnosticError, match="RLX6002"):
        fma("2", 3.0, 4)
    with pytest.raises(DiagnosticError, match="RLX6001"):
        fma(2.0)
    same = relaxlang.register_c_function("test.abs", "c", "abs", "status(i32 n)", override=True)
    assert same(0) is None
    with pytest.raises(DiagnosticError, match=r"RLX6039.*returned 3"):
        same(-3)
    with pytest.raises(DiagnosticError, match=r"RLX6018.*does not fit"):
        same(1 << 40)


def test_arrays_of_other_kinds() -> None:
    copy = relaxlang.register_c_function(
        "test.scopy", "blas", "cblas_scopy", "void(int N, f32[N] x, int 1, out f32[N] y, int 1)", override=True
    )
    target = np.zeros((4, 2), "float32")
    copy(np.arange(8, dtype="float32")[::2], target[:, 1])
    np.testing.assert_array_equal(target, [[0, 0], [0, 2], [0, 4], [0, 6]])
    for wrong, code in (("x", "RLX6002"), (np.zeros(4), "RLX6003"), (np.zeros((4, 1), "float32"), "RLX6004")):
        with pytest.raises(DiagnosticError, match=code):
            copy(wrong, target[:, 1])
    target.flags.writeable = False
    with pytest.raises(DiagnosticError, match="RLX6015"):
        copy(np.zeros(4, "float32"), target[:, 1])


def test_files_carry_declarations(module: relaxlang.IRModule, tmp_path: Path) -> None:
    built = relaxlang.build(module)
    assert "C function test.sgemm: `cblas_sgemm` of the library `blas`" in built.stats()
    again = Executable.from_bytes(built.executable.to_bytes())
    assert again == built.executable == Executable.parse_text(built.as_text())
    assert built.executable.to_bytes()[8] == FORMAT_VERSION
    path = tmp_path / "gemm.rlxe"
    built.export_library(path)
    code = (
        "import numpy as np, relaxlang, sys\n"
        "x, w = np.ones((2, 3), 'float32'), np.ones((3, 4), 'float32')\n"
        "print(relaxlang.load_module(sys.argv[1])['main'](x, w).tolist())\n"
    )
    for environ, words in (({}, "[[3.0, 3.0"), ({"RELAXLANG_BLAS": "/no/such.so"}, "RLX6038")):
        done = subprocess.run(
            [sys.executable, "-c", code, str(path)], capture_output=True, text=True, env={**os.environ, **environ}
        )
        assert words in done.stdout + done.stderr
