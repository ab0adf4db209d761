"""Native programs: from an executable and its kernels to functions that Python calls."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any

from relaxlang.codegen import jit
from relaxlang.codegen.native import layout, stored
from relaxlang.codegen.native.helpers import Context
from relaxlang.codegen.native.support import c_clock, has_clock, support
from relaxlang.codegen.native.table import TABLE, Entry
from relaxlang.runtime.executable import Executable, VMFunction
from relaxlang.runtime.kernel import Kernel
from relaxlang.runtime.native import Imports
from relaxlang.runtime.observe import Observer

_FASTCALL_KEYWORDS = 0x80 | 0x2


def compile_program(
    executable: Executable,
    kernels: Mapping[str, Kernel],
    imports: Imports | None = None,
    observer: Observer | None = None,
) -> NativeProgram | None:
    """The native program of an executable; None where this process cannot run one, a kernel is missing, or something
    stands for a kernel that has no address. With an `observer`, a program that tells it of every call of a kernel."""
    linked = (isinstance(kernels.get(s.name), Kernel) for s in executable.kernel_signatures())
    if not layout.supported() or not all(linked) or (observer is not None and not has_clock()):
        return None
    return NativeProgram(executable, kernels, imports, observer)


class _Method(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


class NativeFunction:
    """What a function of a program is bound to (its `__self__`): it keeps the code alive, and the definition from
    which CPython made the function."""

    __slots__ = ("program", "name", "params", "_method")

    def __init__(self, program: NativeProgram, name: str, params: tuple[str, ...], address: int) -> None:
        self.program = program
        self.name = name
        self.params = params
        self._method = _Method(name.encode(), address, _FASTCALL_KEYWORDS, None)

    def make(self) -> Callable[..., Any]:
        """The function as Python calls it."""
        # Held by the process for good: CPython may read the definition while it collects a cycle in whatever order.
        _methods.append(self._method)
        made: Callable[..., Any] = _new_function(ctypes.addressof(self._method), self, None)
        return made

    def __repr__(self) -> str:
        return f"<native {self.name}({', '.join(self.params)})>"


_methods: list[_Method] = []
_new_function = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)


class NativeProgram:
    """An executable as machine code. Immutable once made; any number of threads may call its functions at once."""

    def __init__(
        self,
        executable: Executable,
        kernels: Mapping[str, Kernel],
        imports: Imports | None = None,
        observer: Observer | None = None,
    ) -> None:
        self.executable = executable
        code, entries = stored.program(executable, observer is not None)
        indices = [i for i, f in enumerate(executable.functions) if isinstance(f, VMFunction)]
        symbols = [f"{kind}.{i}" for i in indices for kind in ("entry", "raw")]
        self._code = jit.load([code], [*symbols, TABLE], {**layout.c_functions(), **c_clock(), **support().addresses})
        self._kernels = kernels
        context = Context(executable, kernels, imports or {}, observer)
        for index in indices:
            function = context.defined(index)
            found = [self._code.addresses[f"{kind}.{index}"] for kind in ("entry", "raw")]
            entry, raw = (NativeFunction(self, function.name, function.params, a).make() for a in found)
            context.entries[index], context.raw[index] = entry, raw
        self._functions = context.entries
        self._held = _fill(self._code.addresses[TABLE], entries, context)

    def function(self, index: int) -> Callable[..., Any]:
        """The Relax function at a place of the function table."""
        return self._functions[index]


def _fill(table: int, entries: list[Entry], context: Context) -> list[Any]:
    """Write the table; the result keeps its objects alive."""
    words = (ctypes.c_size_t * len(entries)).from_address(table)
    held = [entry.make(context) for entry in entries]
    for place, (entry, made) in enumerate(zip(entries, held, strict=True)):
        words[place] = made if entry.word else id(made)
    return held
