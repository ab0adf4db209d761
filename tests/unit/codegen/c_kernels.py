"""Kernels through C: the source that is made of a PrimFunc, compiled strictly and loaded."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path

from relaxlang.codegen.c.source import c_file
from relaxlang.codegen.function import PREFIX
from relaxlang.codegen.signature import signature_of
from relaxlang.ir.module import IRModule
from relaxlang.passes.tir.lowering import flatten
from relaxlang.runtime.kernel import Kernel

STRICT = ("-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-shared", "-fPIC")
HAS_COMPILER = shutil.which("gcc") is not None


def c_text(mod: IRModule) -> str:
    """The C source of a module's PrimFuncs."""
    return c_file(dict(mod.prim_funcs()), dict(mod.prim_funcs())).text()


def c_kernels(mod: IRModule) -> dict[str, Kernel]:
    """The PrimFuncs of a module, compiled by gcc as one file without a warning."""
    functions = dict(mod.prim_funcs())
    file = c_file(functions, functions)
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "kernels.c", Path(folder) / "kernels.so"
        source.write_text(file.text())
        command = ["gcc", *STRICT, str(source), "-o", str(library), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        loaded = ctypes.CDLL(str(library))
    made = {}
    for name, func in functions.items():
        address = ctypes.cast(getattr(loaded, PREFIX + name), ctypes.c_void_p).value or 0
        made[name] = Kernel(signature_of(name, flatten(func), file.messages), address, loaded)
    return made
