"""Object code into this process: addresses of functions, for as long as somebody holds on to them."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Protocol

from relaxlang.base.diagnostics import fail
from relaxlang.codegen import placed


class _Part(Protocol):
    """Something that holds code until it is closed."""

    closed: bool

    def close(self) -> None: ...


class LoadedCode:
    """Object files linked into the process; `addresses` are valid while this object lives."""

    __slots__ = ("addresses", "_parts", "__weakref__")

    def __init__(self, addresses: dict[str, int], *parts: _Part) -> None:
        self.addresses = addresses
        self._parts = parts

    def __del__(self) -> None:
        for part in getattr(self, "_parts", ()):
            if not part.closed:
                part.close()


def load(objects: Sequence[bytes], symbols: Sequence[str], provided: Mapping[str, int] | None = None) -> LoadedCode:
    """Link object files together into this process and find `symbols` in them.

    `provided` are symbols that the objects may use, others come from the process. RLX5014 when one is not there.
    """
    if placed.is_possible():
        try:
            return LoadedCode(*placed.place(objects, symbols, provided or {}))
        except placed.UnsupportedObject:
            pass  # LLVM can do more, and says what is wrong
    return _load_by_llvm(objects, symbols, provided or {})


def _load_by_llvm(objects: Sequence[bytes], symbols: Sequence[str], provided: Mapping[str, int]) -> LoadedCode:
    from llvmlite import binding

    from relaxlang.codegen.compile import machine, start
    from relaxlang.codegen.target import Target

    start()
    # An LLJIT of its own for each load: closing it gives everything back, which a library within a shared one does not.
    jit = binding.create_lljit_compiler(machine(Target(), jit=True), suppress_errors=True)
    library = binding.JITLibraryBuilder()
    for content in objects:
        library.add_object_img(content)
    for name, address in provided.items():
        library.import_symbol(name, address)
    for name in symbols:
        library.export_symbol(name)
    library.add_current_process()
    try:
        tracker = library.link(jit, "kernels")
        return LoadedCode({name: int(tracker[name]) for name in symbols}, tracker, jit)
    except RuntimeError as error:
        fail("RLX5014", f"the code cannot be linked: {str(error).strip().lower()}", help=LOAD_FIRST)


LOAD_FIRST = "a library that the code calls must be loaded first, with `ctypes.CDLL(path, ctypes.RTLD_GLOBAL)`"


def missing_symbol(names: Sequence[str]) -> str | None:
    """The first of these external symbols that the process does not have."""
    process = ctypes.CDLL(None)
    return next((name for name in names if not hasattr(process, name)), None)
