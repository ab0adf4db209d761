"""Code generation: from TensorIR to machine code in this process, or in a file.

In: PrimFuncs. Out: `CompiledKernel`s (object code, signature, LLVM and assembly text), and from these `Kernel`s that
can be called. `build_kernels(funcs, target)` and `load_kernels(compiled)` are the way through.

Reading order: `target`; `kernel` (the entry points) with `signature`, `cache`, `link`, and `jit` with `placed` (into
memory, with LLVM and without); `function` (the C signature), `stmt`, `expr`, `access`, `memory`, `parallel` (writing
LLVM text; `text` and `lltypes` below them; `shared_bodies` finds loops that several kernels have), with the forms that
some loops and loads have: `transpose`, `horizontal`, `strided`, `streaming`, `invariants`; `intrinsics` and `calls`;
then what is computed: `algebra` (operators on LLVM values), `arithmetic`, `casts`, `narrow`, `math_single`,
`math_double`; `compile` drives LLVM; `workers` are a thread and processes that compile; `evaluation` runs kernels while
compiling; `pool` holds the threads; `native` makes programs of Relax functions; `library` writes shared libraries.

Whole programs are found again by `build_cache`, or made by back ends, one for each kind of executor: `executors` lists
them, `vm_module` (with `vm`, the bytecode, and `native`) and `graph` are two of them, `aot` with `c` is the third.
`compilers` are for single functions, `back_ends` for parts of functions that libraries compute.

Importing this package installs what links the kernels of an executable, what makes native programs, and what writes and
takes in `.so` files.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from relaxlang.runtime.executable import Executable
from relaxlang.runtime.kernel import Kernel
from relaxlang.runtime.module import RuntimeModule, set_adopter, set_exporter, set_linker
from relaxlang.runtime.native import Imports, Program, set_native
from relaxlang.runtime.observe import Observer

if TYPE_CHECKING:
    from relaxlang.codegen.kernel import (
        CompiledKernel,
        asm_text,
        build_kernels,
        llvm_text,
        load_kernels,
        object_bytes,
    )
    from relaxlang.codegen.pool import get_num_threads, set_num_threads
    from relaxlang.codegen.target import Target

__all__ = [
    "CompiledKernel", "Target", "asm_text", "build_kernels", "get_num_threads", "llvm_text", "load_kernels",
    "object_bytes", "set_num_threads",
]  # fmt: skip

_HOMES = {
    "CompiledKernel": "kernel", "asm_text": "kernel", "build_kernels": "kernel", "llvm_text": "kernel",
    "load_kernels": "kernel", "object_bytes": "kernel", "get_num_threads": "pool", "set_num_threads": "pool",
    "Target": "target",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"relaxlang.codegen.{_HOMES[name]}"), name)


def _link(executable: Executable) -> dict[str, Kernel]:
    from relaxlang.codegen.link import link_executable

    return link_executable(executable)


def _compile(
    executable: Executable, kernels: Mapping[str, Kernel], imports: Imports, observer: Observer | None
) -> Program | None:
    from relaxlang.codegen.native.program import compile_program

    return compile_program(executable, kernels, imports, observer)


def _export(module: RuntimeModule, path: str) -> None:
    from relaxlang.codegen.library import export_library

    export_library(module, path)


def _adopt(executable: Executable, library: ctypes.CDLL) -> None:
    from relaxlang.codegen.library import adopt_library

    adopt_library(executable, library)


set_linker(_link)
set_exporter(".so", _export)
set_adopter(_adopt)
set_native(_compile)
