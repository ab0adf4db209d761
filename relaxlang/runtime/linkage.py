"""How the entries of an executable's function table become callables and values, for bytecode and native code alike."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from relaxlang.base.diagnostics import Diagnostic, DiagnosticError, fail
from relaxlang.runtime import checks
from relaxlang.runtime.builtins import BUILTINS
from relaxlang.runtime.dlpack import to_numpy
from relaxlang.runtime.errors import blame, unknown_function
from relaxlang.runtime.executable import (
    Arg,
    Constant,
    Executable,
    Func,
    Immediate,
    Instruction,
    KernelFunction,
    PackedFunction,
    VMFunction,
)
from relaxlang.runtime.kernel import Kernel
from relaxlang.runtime.ndarray import NDArray, ShapeTuple, as_tensor
from relaxlang.runtime.registry import LinkedFunction, find_func, list_global_func_names

MAX_DEPTH = 10_000
"""Calls of Relax functions within each other."""
MAX_NESTING = 60
"""Calls of users' functions within each other on one Python thread (a packed function that runs a program again)."""

FAULTS = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, MemoryError, ctypes.ArgumentError)
"""What a builtin or ctypes raises when hand-written bytecode gives it values that it cannot take."""

_nesting = threading.local()


class Linkage:
    """How one machine turns entries of the function table into callables and values."""

    def __init__(
        self,
        executable: Executable,
        kernels: Mapping[str, Kernel],
        machine: object,
        closure: Callable[[int], Any],
        imports: Mapping[str, Callable[..., Any]] | None = None,
    ) -> None:
        """`machine` is what builtins receive as the machine; `closure` gives the VM function of an index as a value;
        `imports` are called by name like packed functions."""
        self.imports = imports or {}
        self.executable = executable
        self.kernels = kernels
        self.machine = machine
        self.closure = closure

    def kernel(self, name: str) -> Kernel:
        """A kernel by name; RLX6008 when nobody linked it."""
        found = self.kernels.get(name)
        if found is None:
            unknown_function(name, "the executable's kernels lack", self.kernels)
        return found

    def callee(self, index: int) -> Callable[..., Any]:
        """The callable of a kernel, builtin or packed function, called from a program."""
        function = self.executable.functions[index]
        if isinstance(function, KernelFunction):
            return self.kernel(function.name).run
        return BUILTINS.get(function.name) or packed(
            function.name, self.imports.get(function.name) or declared(function)
        )

    def value(self, arg: Arg) -> Any:
        """What an operand other than a register stands for."""
        if isinstance(arg, Immediate):
            return arg.value
        if isinstance(arg, Constant):
            return self.executable.constants[arg.index]
        assert isinstance(arg, Func)
        function = self.executable.functions[arg.index]
        if isinstance(function, VMFunction):
            return self.closure(arg.index)
        return self.kernel(function.name) if isinstance(function, KernelFunction) else self.callee(arg.index)


def declared(function: PackedFunction | VMFunction) -> Callable[..., Any] | None:
    """The C function that a program declares, unless one of its name is registered."""
    declaration = function.declaration if isinstance(function, PackedFunction) else None
    if declaration is None or find_func(function.name) is not None:
        return None
    from relaxlang.runtime.c_function import CFunction

    return CFunction(function.name, declaration)


def link_libraries(executable: Executable) -> None:
    """See to it that all libraries that a program calls are there; RLX6038 else."""
    for function in executable.functions:
        if isinstance(function, PackedFunction) and function.name not in BUILTINS:
            found = find_func(function.name) or declared(function)
            if isinstance(found, LinkedFunction):
                found.link()


def call_foreign(closure: Any, values: Sequence[Any]) -> Any:
    """Call a closure that is not one of the calling machine's: a kernel, a packed function, one of another machine."""
    if not callable(closure):
        fail("RLX6018", f"{checks.describe(closure)} is no function")
    return guarded(str(getattr(closure, "name", None) or getattr(closure, "__name__", closure)), closure, values)


def packed(name: str, imported: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """The packed function of that name (`imported` if given) as programs call it: found now if it exists, else at its
    first call (RLX6008 if there is none then either); what it raises becomes a `PackedFunctionError`, what it returns
    the machine's form."""
    function = imported or find_func(name)
    if isinstance(function, LinkedFunction):
        function.link()
        return function

    def call(*args: Any) -> Any:
        chosen = function or find_func(name)
        if chosen is None:
            unknown_function(name, "there is no packed function", list_global_func_names())
        return guarded(name, chosen, args)

    return call


def guarded(name: str, function: Callable[..., Any], args: Sequence[Any]) -> Any:
    """Call a user's function. RLX6010 when such calls are nested too deeply, `PackedFunctionError` when it raises."""
    depth = getattr(_nesting, "depth", 0)
    if depth >= MAX_NESTING:
        fail("RLX6010", f"recursion too deep: `{name}` is called within {depth} other calls of packed functions")
    _nesting.depth = depth + 1
    try:
        with blame(name):
            return normalize(function(*args))
    finally:
        _nesting.depth = depth


def normalize(value: Any) -> Any:
    """A packed function's result in the machine's form: tensors contiguous, numpy scalars as Python's, lists as
    tuples."""
    if value is None or isinstance(value, (bool, int, float, str, ShapeTuple)):
        return value.item() if isinstance(value, np.generic) else value
    if isinstance(value, NDArray) and value.flags.c_contiguous and hasattr(value, "_address"):
        return value
    if isinstance(value, np.ndarray):
        return as_tensor(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (tuple, list)):
        return tuple(normalize(v) for v in value)
    return as_tensor(to_numpy(value)) if hasattr(value, "__dlpack__") else value


def bad_instruction(
    executable: Executable, function: VMFunction, pc: int, instruction: Instruction, error: Exception
) -> DiagnosticError:
    """The error for an instruction whose operands its function cannot take (one of `FAULTS`)."""
    from relaxlang.runtime.exec_text import instruction_text

    number = "RLX6006" if isinstance(error, MemoryError) else "RLX6014"
    text = instruction_text(executable, instruction)
    return DiagnosticError([Diagnostic(number, f"instruction {pc} of `{function.name}` (`{text}`) failed: {error}")])


def too_deep(name: str) -> DiagnosticError:
    """The error for calls of Relax functions nested too deeply."""
    return DiagnosticError(
        [Diagnostic("RLX6010", f"recursion too deep: `{name}` is called within {MAX_DEPTH} other calls")]
    )
