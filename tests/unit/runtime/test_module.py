"""Runtime modules, and files that hold them."""

import shutil
import subprocess

import numpy as np
import programs
import pytest

from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.runtime import module
from relaxlang.runtime.device import cpu
from relaxlang.runtime.exec_builder import ExecBuilder
from relaxlang.runtime.executable import ObjectCode
from relaxlang.runtime.module import load_module, runtime_module
from relaxlang.runtime.vm import VirtualMachine


@pytest.fixture
def rt_mod():
    return runtime_module(programs.adder(), programs.kernels())


@pytest.fixture(autouse=True)
def clean_slots(monkeypatch):
    monkeypatch.setattr(module, "_linkers", [])
    monkeypatch.setattr(module, "_adopters", [])
    monkeypatch.setattr(module, "_exporters", {})


def a34():
    return np.arange(12, dtype="float32").reshape(3, 4)


def test_executors(rt_mod):
    for name in ("create_executor", "default"):
        vm = rt_mod[name](cpu())
        assert isinstance(vm, VirtualMachine)
        np.testing.assert_array_equal(vm["main"](a34(), a34()), 2 * a34())
    first, second = rt_mod["create_executor"](), rt_mod["create_executor"]()
    first.set_input("main", a34(), a34())
    with pytest.raises(DiagnosticError, match="has no inputs"):
        second.invoke_stateful("main")
    np.testing.assert_array_equal(VirtualMachine(rt_mod, cpu())["main"](a34(), a34()), 2 * a34())
    np.testing.assert_array_equal(VirtualMachine(rt_mod.executable, mod=rt_mod)["main"](a34(), a34()), 2 * a34())


def test_functions(rt_mod):
    out = np.zeros((3, 4), "float32")
    rt_mod["add"](a34(), a34(), out)
    np.testing.assert_array_equal(out, 2 * a34())
    np.testing.assert_array_equal(rt_mod["main"](a34(), a34()), 2 * a34())
    assert "main" in rt_mod and "default" in rt_mod and "sub" not in rt_mod
    with pytest.raises(KeyError, match="did you mean `add`"):
        rt_mod["addd"]


def test_a_module_of_kernels_has_no_executor():
    b = ExecBuilder()
    b.declare_kernel(programs.ADD)
    rt_mod = runtime_module(b.get(), programs.kernels())
    for name in ("create_executor", "default"):
        with pytest.raises(KeyError) as caught:
            rt_mod[name]
        assert caught.value.diagnostics[0].code == "RLX6008" and name not in rt_mod
    with pytest.raises(DiagnosticError):
        rt_mod.create_executor()


def test_rlxe_is_linked_by_the_installed_linker(tmp_path):
    ex = programs.adder().with_objects((ObjectCode(b"code", "triple", "cpu", "+x"),))
    path = tmp_path / "m.rlxe"
    runtime_module(ex, programs.kernels()).export_library(path)
    with pytest.raises(DiagnosticError, match="no linker"):
        load_module(path)
    given = []

    def link(executable):
        given.append(executable.objects[0].code)
        return programs.kernels()

    module.set_linker(link)
    loaded = load_module(path)
    assert given == [b"code"] and loaded.executable == ex
    np.testing.assert_array_equal(loaded["main"](a34(), a34()), 2 * a34())


def test_export_suffixes(rt_mod, tmp_path):
    with pytest.raises(DiagnosticError, match="unknown suffix"):
        rt_mod.export_library(tmp_path / "m.xyz")
    written = []
    module.set_exporter(".so", lambda mod, path: written.append((mod, path)))
    rt_mod.export_library(tmp_path / "m.so")
    assert written == [(rt_mod, str(tmp_path / "m.so"))]


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_shared_library(tmp_path):
    blob = programs.adder().to_bytes()
    source = tmp_path / "m.c"
    source.write_text(
        "#include <stdint.h>\n"
        f"const unsigned char relaxlang_executable[] = {{{', '.join(map(str, blob))}}};\n"
        f"const uint64_t relaxlang_executable_size = {len(blob)};\n"
        "int32_t rlx_add(float *a, float *b, float *c, int64_t n) {\n"
        "  for (int64_t i = 0; i < n * 4; ++i) c[i] = a[i] + b[i];\n  return 0;\n}\n"
        "int32_t rlx_shape_func(int64_t *heap) { heap[1] = heap[0] * 16; return 0; }\n"
    )
    path = tmp_path / "m.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", path, source], check=True)
    loaded = load_module(path)
    assert loaded.executable == programs.adder()
    np.testing.assert_array_equal(VirtualMachine(loaded)["main"](a34(), a34()), 2 * a34())


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"text"])
def test_files_that_are_no_modules(tmp_path, content):
    for name, code in (("m.so", "RLX6019"), ("m.rlxe", "RLX6011")):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(DiagnosticError) as caught:
            load_module(path)
        assert caught.value.diagnostics[0].code == code
    with pytest.raises(DiagnosticError):
        load_module(tmp_path)
    with pytest.raises(DiagnosticError):
        load_module(tmp_path / "missing.so")
