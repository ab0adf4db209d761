"""The `aot` executor: libraries in C and machine code, in C programs without Python."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_programs import PLATFORMS, available, command, flat, run_in_c
from matrix_programs import PROGRAMS

import relaxlang
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.codegen.aot.library import AotExecutorFactory

C_STYLE = {"unpacked-api": True, "interface-api": "c"}


def built(name: str = "mlp", target: str = "llvm", runtime: Any = "c", **options: Any) -> AotExecutorFactory:
    made = relaxlang.build(
        PROGRAMS[name].module(), target, executor=relaxlang.Executor("aot", options), runtime=runtime, mod_name="net"
    )
    assert isinstance(made, AotExecutorFactory)
    return made


def expected(name: str) -> list[np.ndarray[Any, Any]]:
    program = PROGRAMS[name]
    return list(flat(relaxlang.interpret(program.module(), "main", *program.arguments())))


def assert_same(made: tuple[np.ndarray[Any, Any], ...], wanted: list[np.ndarray[Any, Any]]) -> None:
    assert [m.dtype for m in made] == [w.dtype for w in wanted]
    for one, other in zip(made, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("source", [True, False], ids=["source", "object"])
@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_network_in_a_c_program(tmp_path: Path, platform: str, source: bool) -> None:
    where = available(platform)
    for k, name in enumerate(("cnn", "dtypes")):
        folder = tmp_path / str(k)
        folder.mkdir()
        made = built(name, "c" if source else where.target, **C_STYLE)
        assert_same(run_in_c(made, PROGRAMS[name].arguments(), folder, where, source=source), expected(name))


@pytest.mark.parametrize("source", [True, False], ids=["source", "object"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"unpacked-api": True},
        {"link-params": False},
        {**C_STYLE, "link-params": False, "workspace-byte-alignment": 64, "constant-byte-alignment": 32},
    ],
    ids=str,
)
def test_interfaces(tmp_path: Path, options: dict[str, Any], source: bool) -> None:
    made = built("constants", "c" if source else "llvm", **options)
    args = PROGRAMS["constants"].arguments()
    assert_same(run_in_c(made, args, tmp_path, available("host"), source=source), expected("constants"))
    header = made.get_header()
    assert ("DLTensor" in header) == (options.get("interface-api") != "c")
    assert ("net_matmul" in header or "net_fused_matmul_add(" in header) == (not options.get("unpacked-api"))
    linked = options.get("link-params", True)
    assert ("= {\n  1.0f" in made.get_source()) == linked
    assert ("aligned(32)" in made.get_source() or "RL_ALIGN(32)" in made.get_source()) == (
        linked and options.get("constant-byte-alignment") == 32
    )


def test_a_tensor_that_does_not_fit_is_refused_by_the_packed_entry(tmp_path: Path) -> None:
    made = built("constants", "c")
    made.export_library(tmp_path / "net.c")
    (tmp_path / "main.c").write_text("""\
#include <stdio.h>
#include "net.h"
int main(void) {
  float data[6];
  int64_t shape[2] = {2, 4}, good[2] = {2, 3}, strides[2] = {1, 2};
  DLTensor x = {data, {1, 0}, 2, {2, 32, 1}, shape, 0, 0}, *args[] = {&x, &x, &x, &x};
  printf("%s\\n", net_message(net_run(args, 3)));
  printf("%s\\n", net_message(net_run(args, 4)));
  x.shape = good;
  x.strides = strides;
  printf("%s\\n", net_message(net_run(args, 4)));
  x.strides = 0;
  x.dtype.bits = 64;
  printf("%s\\n", net_message(net_run(args, 4)));
  return 0;
}
""")
    command(["gcc", "-std=c99", "-Wall", "main.c", "net.c", "-o", "program", "-lm"], tmp_path)
    first, *rest = command(["./program"], tmp_path).splitlines()
    assert first == "net_run takes 4 tensors"
    assert rest == ["argument 0 is not `x`, float32 (2, 3), contiguous"] * 3


@pytest.mark.parametrize("suffix", [".c", ".o"])
def test_a_kernel_is_found_by_name(tmp_path: Path, suffix: str) -> None:
    runtime = relaxlang.Runtime("c", {"system-lib": True})
    made = built("functions", "c" if suffix == ".c" else "llvm", runtime, **C_STYLE)
    made.export_library(tmp_path / f"net{suffix}")
    (tmp_path / "main.c").write_text("""\
#include <stdio.h>
#include "net.h"
int main(void) {
  float x[16] = {1, 2, 3}, y[16] = {0};
  void *args[] = {x, y};
  if (net_find("single")) return 1;
  if (!net_find("double") || net_find("double")(args, 3) == 0 || net_find("double")(args, 2)) return 2;
  printf("%g %g %g", y[0], y[1], y[2]);
  return 0;
}
""")
    command(["gcc", "-std=c99", "-Wall", "-Werror", "main.c", f"net{suffix}", "-o", "program", "-lm"], tmp_path)
    assert command(["./program"], tmp_path) == "2 4 6"


def test_two_libraries_in_one_program(tmp_path: Path) -> None:
    text = PROGRAMS["mlp"]
    for name in ("first", "second"):
        made = relaxlang.build(text.module(), executor=relaxlang.Executor("aot", C_STYLE), runtime="c", mod_name=name)
        made.export_library(tmp_path / f"{name}.a")
    args = text.arguments()
    sizes = [a.size for a in args]
    (tmp_path / "in.bin").write_bytes(b"".join(a.tobytes() for a in args))
    (tmp_path / "main.c").write_text(f"""\
#include <stdio.h>
#include "first.h"
#include "second.h"
static float x[{sizes[0]}], w[{sizes[1]}], v[{sizes[2]}], y[40], z[40];
int main(void) {{
  FILE *in = fopen("in.bin", "rb");
  if (fread(x, 4, {sizes[0]}, in) + fread(w, 4, {sizes[1]}, in) + fread(v, 4, {sizes[2]}, in) != {sum(sizes)}) return 2;
  struct first_inputs a = {{x, w, v}};
  struct second_inputs b = {{x, w, v}};
  struct first_outputs c = {{y}};
  struct second_outputs d = {{z}};
  if (first_run(&a, &c) || second_run(&b, &d)) return 1;
  for (int i = 0; i < 40; ++i) if (y[i] != z[i]) return 3;
  printf("%.9g", y[7]);
  return 0;
}}
""")
    command(["gcc", "-std=c99", "main.c", "first.a", "second.a", "-o", "program", "-lm"], tmp_path)
    np.testing.assert_allclose(float(command(["./program"], tmp_path)), expected("mlp")[0].reshape(-1)[7], rtol=1e-5)


@pytest.mark.parametrize("suffix", [".c", ".o", ".a", ".tar", ".so", ".rlxe"])
def test_exported_files_are_the_same_each_time(tmp_path: Path, suffix: str) -> None:
    contents = []
    for k in range(2):
        path = tmp_path / f"{k}{suffix}"
        built().export_library(path)
        contents.append(path.read_bytes())
    assert contents[0] == contents[1]


def test_model_library_format(tmp_path: Path) -> None:
    built("cnn", "c", **C_STYLE).export_library(tmp_path / "net.tar")
    with tarfile.open(tmp_path / "net.tar") as archive:
        names = archive.getnames()
        memory = archive.extractfile("memory.json")
        assert memory is not None and b'"workspace_bytes"' in memory.read()
    assert {"codegen/host/include/net.h", "codegen/host/src/net.c", "metadata.json"} <= set(names)


def test_the_workspace_is_used_again_and_reported() -> None:
    text = """
@R.function
def main(x: R.Tensor((1024,), "float32")):
    a = R.exp(x)
    b = R.cumsum(a)
    c = R.cumsum(b)
    d = R.cumsum(c)
    return d
"""
    made = relaxlang.build(relaxlang.parse(text), executor="aot", mod_name="chain")
    assert isinstance(made, AotExecutorFactory)
    assert made.library.report["chain"]["workspace_bytes"] == 3 * 4096  # a or c, b, and the kernel's own
    assert f"#define CHAIN_WORKSPACE_SIZE {made.library.report['chain']['workspace_bytes']}\n" in made.get_header()


KEYWORDS = """
@R.function
def main(
    x: R.Tensor((1, 1, 49, 10), "float32"), w0: R.Tensor((64, 1, 10, 4), "float32"), b0: R.Tensor((64,), "float32"),
    d1: R.Tensor((64, 1, 3, 3), "float32"), p1: R.Tensor((64, 64, 1, 1), "float32"), b1: R.Tensor((64,), "float32"),
    d2: R.Tensor((64, 1, 3, 3), "float32"), p2: R.Tensor((64, 64, 1, 1), "float32"), b2: R.Tensor((64,), "float32"),
    w3: R.Tensor((64, 12), "float32"), b3: R.Tensor((12,), "float32"),
) -> R.Tensor((1, 12), "float32"):
    with R.dataflow():
        h0 = R.nn.conv2d(x, w0, strides=(2, 2), padding=(4, 1, 5, 1))
        a0 = R.nn.relu(h0 + R.reshape(b0, (1, 64, 1, 1)))
        h1 = R.nn.conv2d(R.nn.conv2d(a0, d1, padding=(1, 1), groups=64), p1)
        a1 = R.nn.relu(h1 + R.reshape(b1, (1, 64, 1, 1)))
        h2 = R.nn.conv2d(R.nn.conv2d(a1, d2, padding=(1, 1), groups=64), p2)
        a2 = R.nn.relu(h2 + R.reshape(b2, (1, 64, 1, 1)))
        scores = R.nn.softmax(R.mean(a2, axis=[2, 3]) @ w3 + b3)
        R.output(scores)
    return scores
"""


def test_a_keyword_spotter_fits_a_small_device(tmp_path: Path) -> None:
    mod = relaxlang.parse(KEYWORDS)
    rng = np.random.default_rng(0)
    shapes = {p.name: tuple(d.value for d in p.struct_info.dims) for p in mod["main"].params}
    arrays = {name: rng.normal(0, 0.1, shape).astype(np.float32) for name, shape in shapes.items()}
    x = arrays.pop("x")
    made = relaxlang.build(
        mod, "c", executor=relaxlang.Executor("aot", C_STYLE), runtime="c", params=arrays, mod_name="net"
    )
    assert isinstance(made, AotExecutorFactory)
    host = available("host")
    (answer,) = run_in_c(made, (x,), tmp_path, host, source=True)
    np.testing.assert_allclose(answer, relaxlang.build(mod, params=arrays)["main"](x), rtol=1e-4, atol=1e-6)
    command([*host.compiler, "-std=c99", "-Os", "-c", "net.c", "-o", "net.o"], tmp_path)
    text, data, bss = (int(n) for n in command(["size", "net.o"], tmp_path).splitlines()[1].split()[:3])
    assert text + data + bss <= 256 << 10


@pytest.mark.parametrize("program", ["shapes", "branches", "packed"])
def test_what_a_library_cannot_say_is_refused(program: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        built(program)
    assert caught.value.diagnostics[0].code == "RLX5029"


def test_settings_that_do_not_go_together() -> None:
    with pytest.raises(DiagnosticError) as caught:
        built("mlp", **{"interface-api": "c"})
    assert caught.value.diagnostics[0].code == "RLX5028"


def test_c_source_does_not_run_here(tmp_path):
    module = relaxlang.parse('@R.function\ndef main(x: R.Tensor((4,), "float32")):\n    return R.exp(x)')
    built = relaxlang.build(module, target="c", executor="aot", runtime="c")
    with pytest.raises(DiagnosticError, match="does not run in this process"):
        built["main"](np.zeros(4, "float32"))
    for suffix in ("so", "rlxe", "o"):
        with pytest.raises(DiagnosticError, match="RLX5028"):
            built.export_library(tmp_path / f"made.{suffix}")


@pytest.mark.parametrize("value", [0, 3, 1 << 20])
@pytest.mark.parametrize("name", ["workspace-byte-alignment", "constant-byte-alignment"])
def test_alignments_that_no_object_has(name, value):
    module = relaxlang.parse('@R.function\ndef main(x: R.Tensor((4,), "float32")):\n    return R.exp(x)')
    with pytest.raises(DiagnosticError, match=f"RLX5024.*{name}.*power of two"):
        relaxlang.build(module, executor={"kind": "aot", name: value})
