"""C programs around a library that the `aot` executor made: written, compiled for a platform, run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from relaxlang.base.dtype import dtype
from relaxlang.codegen.aot.entry import Port, Program
from relaxlang.codegen.aot.library import AotExecutorFactory, AotLibrary
from relaxlang.codegen.c.types import identifier, memory_type

STRICT = ("-std=c99", "-Os", "-Wall", "-Werror")
_NODE = """\
import { readFileSync } from 'node:fs';
import { WASI } from 'node:wasi';
const args = ['program', 'in.bin', 'out.bin'];
const wasi = new WASI({ version: 'preview1', args, preopens: { '.': process.cwd() } });
const { instance } = await WebAssembly.instantiate(readFileSync(process.argv[2]), wasi.getImportObject());
process.exit(wasi.start(instance));
"""


class Platform(NamedTuple):
    """Where programs run: the C compiler, what starts them, and LLVM's target."""

    compiler: tuple[str, ...]
    runner: tuple[str, ...]
    target: str

    @property
    def missing(self) -> str:
        """The first tool that is not there; empty when all are."""
        for tool in (self.compiler[0], *self.runner[:1]):
            if shutil.which(tool) is None:
                return tool
        return "" if "ziglang" not in self.compiler or find_spec("ziglang") else "ziglang"


PLATFORMS = {
    "host": Platform(("gcc",), (), "llvm"),
    "aarch64": Platform(
        ("aarch64-linux-gnu-gcc", "-static"), ("qemu-aarch64",), "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72"
    ),
    "riscv64": Platform(
        ("riscv64-linux-gnu-gcc", "-static"),
        ("qemu-riscv64",),
        "llvm -mtriple=riscv64-linux-gnu -mattr=+m,+a,+f,+d,+c -mabi=lp64d",
    ),
    "wasm32": Platform(
        (sys.executable, "-m", "ziglang", "cc", "-target", "wasm32-wasi"),
        ("node", "--no-warnings", "node.mjs"),
        "llvm -mtriple=wasm32-wasi",
    ),
}


def available(name: str) -> Platform:
    """A platform whose tools are all there; the test is skipped otherwise, but not where `RELAXLANG_ALL_PLATFORMS` says
    that they must be."""
    platform = PLATFORMS[name]
    if platform.missing:
        if os.environ.get("RELAXLANG_ALL_PLATFORMS"):
            pytest.fail(f"`{platform.missing}` is not installed")
        pytest.skip(f"`{platform.missing}` is not installed")
    return platform


def flat(value: Any) -> Iterator[np.ndarray[Any, Any]]:
    """The tensors of nested tuples, in order."""
    if isinstance(value, tuple):
        for part in value:
            yield from flat(part)
    else:
        yield np.asarray(value)


def run_in_c(
    built: AotExecutorFactory, args: tuple[Any, ...], folder: Path, platform: Platform, *, source: bool
) -> tuple[np.ndarray[Any, Any], ...]:
    """What the library gives in a C program of its own: compiled from its C source, or linked with its object file."""
    library = built.library
    program = library.programs[0]
    name = identifier(library.mod_name)
    built.export_library(folder / f"{name}.{'c' if source else 'o'}")
    (folder / "main.c").write_text(driver(library, program))
    (folder / "node.mjs").write_text(_NODE)
    given = [*flat(tuple(args)), *([] if program.linked else map(np.asarray, library.parameters.values()))]
    (folder / "in.bin").write_bytes(b"".join(np.ascontiguousarray(a).tobytes() for a in given))
    parts = ["main.c", f"{name}.{'c' if source else 'o'}"]
    command([*platform.compiler, *STRICT, *parts, "-o", "program", "-lm"], folder)
    command([*platform.runner, "./program", "in.bin", "out.bin"], folder)
    return read_outputs(program, (folder / "out.bin").read_bytes())


def command(words: list[str], folder: Path) -> str:
    """Run a command in a folder; what it says fails the test when it fails."""
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}{done.stderr}"
    return done.stdout


def read_outputs(program: Program, content: bytes) -> tuple[np.ndarray[Any, Any], ...]:
    """The outputs, one after the other in a file."""
    made, at = [], 0
    for port in program.outputs:
        made.append(np.frombuffer(content[at : at + port.nbytes], dtype(port.dtype).numpy).reshape(port.shape))
        at += port.nbytes
    assert at == len(content)
    return tuple(made)


def driver(library: AotLibrary, program: Program) -> str:
    """A C program that reads inputs from a file, runs the library and writes the outputs to another."""
    name, packed = identifier(program.name), library.interface.packed
    given = [*program.inputs, *([] if program.linked else program.constants)]
    lines = ["#include <stdio.h>", f'#include "{identifier(library.mod_name)}.h"', ""]
    lines += [_array(p) for p in (*given, *program.outputs)]
    lines += ["", "int main(int argc, char **argv) {", "  int32_t status;", '  FILE *in = fopen(argv[1], "rb"), *out;']
    lines += [f"  if (fread({p.name}, 1, {p.nbytes}, in) != {p.nbytes}) return 2;" for p in given]
    lines += (_call_packed if packed else _call_structs)(program, name)
    lines += [
        f'  if (status) {{ printf("%s\\n", {name}_message(status)); return 1; }}',
        '  out = fopen(argv[2], "wb");',
    ]
    lines += [f"  if (fwrite({p.name}, 1, {p.nbytes}, out) != {p.nbytes}) return 2;" for p in program.outputs]
    return "\n".join([*lines, "  return fclose(out);", "}"]) + "\n"


def _array(port: Port) -> str:
    elements = max(1, port.nbytes // dtype(port.dtype).itemsize)
    return f"static {memory_type(dtype(port.dtype))} {port.name}[{elements}];"


def _call_structs(program: Program, name: str) -> list[str]:
    groups: Mapping[str, tuple[Port, ...]] = {"inputs": program.inputs, "outputs": program.outputs}
    if not program.linked:
        groups = {**groups, "constants": program.constants}
    lines = [
        f"  struct {name}_{group} {group} = {{{', '.join(p.name for p in ports) or '0'}}};"
        for group, ports in groups.items()
    ]
    return [*lines, f"  status = {name}_run({', '.join(f'&{group}' for group in groups)});"]


def _call_packed(program: Program, name: str) -> list[str]:
    ports = [*program.inputs, *program.outputs, *([] if program.linked else program.constants)]
    codes = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "bool": 6}
    lines = []
    for k, port in enumerate(ports):
        of = dtype(port.dtype)
        dims = ", ".join(map(str, port.shape)) or "0"
        kind = f"{{{codes[of.kind]}, {8 if of.is_bool else of.bits}, 1}}"
        lines += [
            f"  int64_t shape{k}[] = {{{dims}}};",
            f"  DLTensor tensor{k} = {{{port.name}, {{1, 0}}, {len(port.shape)}, {kind}, shape{k}, 0, 0}};",
        ]
    listed = ", ".join(f"&tensor{k}" for k in range(len(ports)))
    return [*lines, f"  DLTensor *args[] = {{{listed}}};", f"  status = {name}_run(args, {len(ports)});"]
