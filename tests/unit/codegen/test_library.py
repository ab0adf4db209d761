"""Programs written to files, loaded by a process that did not build them, and run there."""

import ctypes
import subprocess
import sys

import numpy as np
import pytest

import relaxlang
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.codegen import library
from relaxlang.runtime.module import runtime_module

PROGRAM = """
@I.ir_module
class Module:
    @T.prim_func
    def exp(x: T.Buffer((n, 4), "float32"), y: T.Buffer((n, 4), "float32")):
        for i in T.parallel(n):
            for j in range(4):
                with T.block("double"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    y[vi, vj] = x[vi, vj] * T.float32(2)

    @R.function
    def main(x: R.Tensor((n, 4), "float32"), w: R.Tensor((4, 3), "float32")) -> R.Tensor((n, 3), "float32"):
        cls = Module
        y = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((n, 4), "float32"))
        z = R.matmul(y, w)
        return R.add(z, R.const(1, "float32"))
"""

FRESH = """
import sys, numpy as np, relaxlang
mod = relaxlang.load_module(sys.argv[1])
vm = relaxlang.VirtualMachine(mod, relaxlang.cpu())
x = np.arange({n} * 4, dtype="float32").reshape({n}, 4)
print(vm["main"](x, np.ones((4, 3), "float32")).tolist())
"""


@pytest.fixture(scope="module")
def built():
    return relaxlang.build(relaxlang.parse(PROGRAM))


def expected(n):
    x = np.arange(n * 4, dtype="float32").reshape(n, 4)
    return (2 * x @ np.ones((4, 3), "float32") + 1).tolist()


@pytest.mark.parametrize("suffix", [".rlxe", ".so"])
def test_a_fresh_process_runs_it(built, tmp_path, suffix):
    path = tmp_path / f"program{suffix}"
    built.export_library(path)
    for n in (1, 3000):  # with so many rows the parallel loop goes to the pool
        run = [sys.executable, "-c", FRESH.format(n=n), str(path)]
        done = subprocess.run(run, capture_output=True, text=True, check=True)
        assert eval(done.stdout) == expected(n)


@pytest.mark.parametrize("suffix", [".rlxe", ".so"])
def test_this_process_runs_it(built, tmp_path, suffix):
    path = tmp_path / f"program{suffix}"
    built.export_library(path)
    loaded = relaxlang.load_module(path)
    assert loaded.executable == built.executable
    x, y = np.ones((2, 4), "float32"), np.zeros((2, 4), "float32")
    loaded["exp"](x, y)
    np.testing.assert_array_equal(y, 2 * x)


def test_a_library_without_relaxlang(built, tmp_path):
    path = tmp_path / "program.so"
    built.export_library(path)
    kernel = ctypes.CDLL(str(path)).rlx_exp
    x, y = np.ones((5000, 4), "float32"), np.zeros((5000, 4), "float32")
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in (x, y)]
    assert kernel(*pointers, ctypes.c_int64(5000)) == 0
    np.testing.assert_array_equal(y, 2 * x)


def test_code_for_another_machine_is_refused(built, tmp_path):
    code = built.executable.objects[0]
    foreign = type(code)(code.code, code.triple, "wonder", code.features + ",+teleportation")
    executable = built.executable.with_objects((foreign, *built.executable.objects[1:]))
    for suffix in (".rlxe", ".so"):
        path = tmp_path / f"foreign{suffix}"
        runtime_module(executable, built.kernels).export_library(path)
        with pytest.raises(DiagnosticError, match="lacks teleportation") as caught:
            relaxlang.load_module(path)
        assert caught.value.diagnostics[0].code == "RLX5018"


def test_without_a_linker(built, tmp_path, monkeypatch):
    monkeypatch.setattr(library, "_COMPILERS", ("no-such-compiler",))
    monkeypatch.setattr(library, "find_spec", lambda name: None)
    path = tmp_path / "program.so"
    with pytest.raises(DiagnosticError, match="no linker") as caught:
        built.export_library(path)
    assert caught.value.diagnostics[0].code == "RLX5030" and not path.exists()


def test_a_linker_that_fails(built, tmp_path, monkeypatch):
    monkeypatch.setattr(
        library, "_linker", lambda triple: [sys.executable, "-c", "import sys; sys.exit('out of luck')"]
    )
    path = tmp_path / "program.so"
    with pytest.raises(DiagnosticError, match="out of luck"):
        built.export_library(path)
    assert not path.exists()


@pytest.mark.parametrize("size", [0, 50, 1000, -100])
def test_a_library_that_was_cut_off(built, tmp_path, size):
    whole, cut = tmp_path / "whole.so", tmp_path / "cut.so"
    built.export_library(whole)
    cut.write_bytes(whole.read_bytes()[:size])
    with pytest.raises(DiagnosticError, match="RLX6019"):
        relaxlang.load_module(cut)


def test_a_library_for_another_processor(built, tmp_path):
    path = tmp_path / "program.so"
    built.export_library(path)
    content = bytearray(path.read_bytes())
    content[18:20] = (243).to_bytes(2, "little")
    path.write_bytes(content)
    with pytest.raises(DiagnosticError, match=r"RLX5018.*it is for riscv64"):
        relaxlang.load_module(path)


def test_files_for_c_programs(built, tmp_path):
    path = tmp_path / "program.tar"
    with pytest.raises(DiagnosticError, match='executor="aot"'):
        built.export_library(path)
    path.write_bytes(b"")
    with pytest.raises(DiagnosticError, match="is for C programs"):
        relaxlang.load_module(path)


def test_a_program_for_another_processor_does_not_run():
    module = relaxlang.parse(PROGRAM)
    x, w = np.zeros((1, 4), "float32"), np.zeros((4, 3), "float32")
    foreign = relaxlang.build(module, target="llvm -mtriple=riscv64-linux-gnu -mattr=+m,+f,+d")
    with pytest.raises(DiagnosticError, match="RLX5018"):
        foreign["main"](x, w)
