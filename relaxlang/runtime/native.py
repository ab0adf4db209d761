"""Native programs, as far as the run time knows of them: who makes them, and what they can do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from relaxlang.base.diagnostics import fail
from relaxlang.runtime.executable import Executable
from relaxlang.runtime.kernel import Kernel
from relaxlang.runtime.observe import Observer

ExecMode: TypeAlias = Literal["native", "bytecode", "compiled"]
EXEC_MODES = ("native", "bytecode")
COMPILED = "compiled"
"""What TVM calls the mode `native`."""


class Program(Protocol):
    """An executable whose functions became machine code."""

    def function(self, index: int) -> Callable[..., Any]:
        """The Relax function at a place of the function table, to be called with its arguments and `out=`."""


@runtime_checkable
class Module(Protocol):
    """What keeps a native program for the machines made from it."""

    kernels: Mapping[str, Kernel]
    native_code: Program | None


Imports: TypeAlias = "Mapping[str, Callable[..., Any]]"
"""Functions that a program calls by name like packed functions."""
Compiler: TypeAlias = "Callable[[Executable, Mapping[str, Kernel], Imports, Observer | None], Program | None]"

_compilers: list[Compiler] = []


def set_native(compiler: Compiler) -> None:
    """Install what makes native programs (code generation does, when it is imported); it gives None where this process
    cannot run them. With an observer the program tells it of every call of a kernel."""
    _compilers[:] = [compiler]


def native_program(
    holder: object, executable: Executable, kernels: Mapping[str, Kernel], imports: Imports, mode: str
) -> Program | None:
    """The native program of an executable, None for the mode `bytecode` and where nothing can make one. Machines of one
    `holder` (a runtime module) share it."""
    if mode not in (*EXEC_MODES, COMPILED):
        fail("RLX6018", f"there is no execution mode `{mode}`", help="`native` or `bytecode`")
    if mode == "bytecode" or not _compilers:
        return None
    if not isinstance(holder, Module) or kernels is not holder.kernels:
        return _compilers[0](executable, kernels, imports, None)
    if holder.native_code is None:
        holder.native_code = _compilers[0](executable, kernels, imports, None)
    return holder.native_code


def observed_program(
    executable: Executable, kernels: Mapping[str, Kernel], imports: Imports, observer: Observer
) -> Program | None:
    """A native program of its own that tells `observer` of every call of a kernel; None where nothing can make one."""
    return _compilers[0](executable, kernels, imports, observer) if _compilers else None
