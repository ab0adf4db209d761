"""Runtime modules: what `build` returns and `load_module` reads."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from relaxlang.base.diagnostics import fail
from relaxlang.runtime.device import Device
from relaxlang.runtime.elf import fault_of_library
from relaxlang.runtime.errors import unknown_function
from relaxlang.runtime.executable import Executable
from relaxlang.runtime.kernel import Kernel
from relaxlang.runtime.kernel_signature import SYMBOL_PREFIX
from relaxlang.runtime.native import ExecMode, Program
from relaxlang.runtime.registry import PackedFunc

if TYPE_CHECKING:
    from relaxlang.runtime.vm import VirtualMachine

EXECUTOR_MAKERS = ("create_executor", "default")
"""The names by which a runtime module gives what makes its executors."""

FOR_C = (".c", ".o", ".a", ".tar")
"""Suffixes of what the executor `aot` writes for C programs."""

Linker = Callable[[Executable], Mapping[str, Kernel]]
Exporter = Callable[["RuntimeModule", str], None]

Adopter = Callable[[Executable, ctypes.CDLL], None]

_linkers: list[Linker] = []
_adopters: list[Adopter] = []
_exporters: dict[str, Exporter] = {}


def set_linker(linker: Linker) -> None:
    """Install what makes kernels of an executable's object code (code generation does, when it is imported). It checks
    that the code is for this machine."""
    _linkers[:] = [linker]


def set_adopter(adopter: Adopter) -> None:
    """Install what a shared library is shown to before any of its kernels runs (code generation does): it checks that
    the code is for this machine and connects it with this process."""
    _adopters[:] = [adopter]


def set_exporter(suffix: str, exporter: Exporter) -> None:
    """Install what `export_library` does for files with a suffix such as `.so`: called with the module and the path."""
    _exporters[suffix] = exporter


def link(executable: Executable) -> Mapping[str, Kernel]:
    """The kernels of an executable, linked from its object code; none when it has none.

    Raises RLX6020 when there is code but nothing that can link it.
    """
    if not executable.objects:
        return {}
    if not _linkers:
        fail(
            "RLX6020",
            "the executable holds object code, and no linker is installed",
            help="`import relaxlang.codegen` installs one",
        )
    return _linkers[0](executable)


def linked(executable: Executable, kernels: Mapping[str, Kernel]) -> Mapping[str, Kernel]:
    """The kernels of a program in this process. RLX5018 when it was built for another machine."""
    return kernels if kernels or not executable.objects else link(executable)


class RuntimeModule:
    """A built program: an executable and its kernels.

    `rt_mod["name"]` is a kernel, called with all its buffers, outputs included. What was built for an executor is a
    subclass, which adds the functions that the executor runs, and `"create_executor"` with its alias `"default"`:
    functions from a device to a fresh executor. Executors of one module share nothing that changes. A module of
    PrimFuncs alone has none. `ir_module` is for the compiler to keep what the program was built from, or a function
    that makes it when it is first asked for. `imports` are functions that another compiler made, by name: they are
    called like packed functions and stay in this process.

    `exec_mode` is how machines made from the module run their functions, `native_code` the native program they share.
    `linked` says that the constants of a program for the graph executor belong to its library.
    """

    exec_mode: ExecMode = "native"
    linked: bool = False
    native_code: Program | None = None
    imports: Mapping[str, PackedFunc] = {}

    def __init__(
        self, executable: Executable, kernels: Mapping[str, Kernel] | None = None, ir_module: Any = None
    ) -> None:
        self.executable = executable
        self.kernels: Mapping[str, Kernel] = link(executable) if kernels is None else kernels
        self._ir_module = ir_module

    @property
    def ir_module(self) -> Any:
        """What the program was built from."""
        if callable(self._ir_module):
            self._ir_module = self._ir_module()
        return self._ir_module

    @ir_module.setter
    def ir_module(self, value: Any) -> None:
        self._ir_module = value

    def __getitem__(self, name: str) -> PackedFunc:
        """A function by name; RLX6008 (also a KeyError) when there is none."""
        if name in self.kernels:
            return self.kernels[name]
        if name in self.imports:
            return self.imports[name]
        unknown_function(name, "the module has no function", self.function_names)

    def __contains__(self, name: object) -> bool:
        return name in self.function_names

    @property
    def function_names(self) -> list[str]:
        """What `rt_mod[name]` knows."""
        return [*self.kernels, *self.imports]

    def create_executor(self, device: Device | None = None) -> Any:
        """A fresh executor for the module's functions; RLX6008 when it has none."""
        unknown_function("create_executor", "a module without Relax functions has no", ())

    def stats(self) -> str:
        """A summary of the executable."""
        return self.executable.stats()

    def as_text(self) -> str:
        """The executable as text."""
        return self.executable.as_text()

    def export_library(self, path: str | os.PathLike[str]) -> None:
        """Write the module to a file: `.rlxe`, and whatever suffixes code generation adds (`.so`).

        Raises RLX6019 for other suffixes and `RelaxlangError` when the file cannot be written.
        """
        shown = os.fspath(path)
        suffix = os.path.splitext(shown)[1]
        if self.imports:
            names = ", ".join(f"`{name}`" for name in self.imports)
            help = "without the attribute `target` of these functions everything is in the file"
            fail("RLX6019", f"cannot export `{shown}`: what another compiler made is in this process only: {names}",
                 help=help)  # fmt: skip
        if suffix == ".rlxe":
            self.executable.save(shown)
        elif suffix in _exporters:
            _exporters[suffix](self, shown)
        else:
            known = ", ".join(sorted({".rlxe", *_exporters}))
            more = f'; {", ".join(FOR_C)} are made with `executor="aot"`' if suffix in FOR_C else ""
            fail("RLX6019", f"cannot export `{shown}`: unknown suffix", help=f"known suffixes are {known}{more}")

    def __repr__(self) -> str:
        return f"<runtime module of {', '.join(self.function_names)}>"


class VMExecutorFactory(RuntimeModule):
    """A program for the virtual machine: `rt_mod["main"]` is a Relax function, `rt_mod["create_executor"](device)` a
    fresh `VirtualMachine`."""

    def __getitem__(self, name: str) -> PackedFunc:
        """A kernel, a Relax function on a machine of its own, or the maker of machines. RLX6008 as a KeyError."""
        if name in self._relax_names():
            return self.create_executor()[name]
        if name in EXECUTOR_MAKERS and name not in self.kernels:
            return self.create_executor
        return super().__getitem__(name)

    @property
    def function_names(self) -> list[str]:
        """What `rt_mod[name]` knows."""
        return list(dict.fromkeys([*self._relax_names(), *super().function_names, *EXECUTOR_MAKERS]))

    def create_executor(self, device: Device | None = None) -> VirtualMachine:
        """A fresh machine for the module's Relax functions."""
        from relaxlang.runtime.vm import VirtualMachine

        return VirtualMachine(self, device)

    def _relax_names(self) -> list[str]:
        return [f.name for f in self.executable.vm_functions()]


def runtime_module(
    executable: Executable, kernels: Mapping[str, Kernel] | None = None, ir_module: Any = None
) -> RuntimeModule:
    """The runtime module of an executable: a `VMExecutorFactory` when it has Relax functions, a `GraphExecutorFactory`
    when it holds graphs."""
    if next(executable.vm_functions(), None) is not None:
        return VMExecutorFactory(executable, kernels, ir_module)
    from relaxlang.runtime.graph_module import GraphExecutorFactory, holds_graphs

    return (GraphExecutorFactory if holds_graphs(executable) else RuntimeModule)(executable, kernels, ir_module)


def load_module(path: str | os.PathLike[str]) -> RuntimeModule:
    """The module in a file that `export_library` wrote (`.rlxe`, or a shared library with the executable embedded).

    Loading a shared library, or linking the kernels of an `.rlxe` file, makes its machine code callable: do it only for
    files you trust. Raises RLX6011, RLX6012, RLX6019 and what the linker raises.
    """
    shown = os.fspath(path)
    suffix = os.path.splitext(shown)[1]
    if suffix in (".so", ".dylib", ".dll"):
        return _load_library(shown)
    if suffix in FOR_C and os.path.isfile(shown):
        help = "link it into a C program; a program of the executor `aot` can also be exported as `.so` or `.rlxe`"
        fail("RLX6019", f"`{shown}` is for C programs and cannot be loaded here", help=help)
    return runtime_module(Executable.load(shown))


def _load_library(path: str) -> RuntimeModule:
    """Symbols: `relaxlang_executable` (bytes), `relaxlang_executable_size` (uint64), and one function per kernel, its
    name behind `SYMBOL_PREFIX`."""
    fault = fault_of_library(path)
    if fault:
        fail("RLX5018" if "machine" in fault else "RLX6019", f"`{path}` cannot be loaded: {fault}")
    try:
        library = ctypes.CDLL(os.path.abspath(path))
    except OSError as error:
        fail("RLX6019", f"cannot load `{path}`: {error}")
    try:
        size = ctypes.c_uint64.in_dll(library, "relaxlang_executable_size").value
        blob = bytes((ctypes.c_char * size).in_dll(library, "relaxlang_executable"))
    except ValueError:
        fail("RLX6019", f"`{path}` holds no relaxlang executable", help="write it by `export_library`")
    executable = Executable.from_bytes(blob, path)
    for adopt in _adopters:
        adopt(executable, library)
    kernels: dict[str, Kernel] = {}
    for signature in executable.kernel_signatures():
        symbol = getattr(library, SYMBOL_PREFIX + signature.name, None)
        if symbol is None:
            fail("RLX6019", f"`{path}` lacks the kernel `{signature.name}`")
        where = ctypes.cast(symbol, ctypes.c_void_p).value or 0
        kernels[signature.name] = Kernel(signature, where, library)
    return runtime_module(executable, kernels)
