"""Object code into this process: addresses of functions, for as long as somebody holds on to them."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

from llvmlite import binding

from relaxlang.base.diagnostics import fail
from relaxlang.codegen.compile import machine, start
from relaxlang.codegen.target import Target


class LoadedCode:
    """Object files linked into the process; `addresses` are valid while this object lives."""

    __slots__ = ("addresses", "_jit", "_tracker", "__weakref__")

    def __init__(self, addresses: dict[str, int], jit: Any, tracker: Any) -> None:
        self.addresses = addresses
        self._jit = jit
        self._tracker = tracker

    def __del__(self) -> None:
        for part in (getattr(self, "_tracker", None), getattr(self, "_jit", None)):
            if part is not None and not part.closed:
                part.close()


def load(objects: Sequence[bytes], symbols: Sequence[str], provided: Mapping[str, int] | None = None) -> LoadedCode:
    """Link object files together into this process and find `symbols` in them.

    `provided` are symbols that the objects may use, others come from the process. RLX5014 when one is not there.
    """
    start()
    # An LLJIT of its own for each load: closing it gives everything back, which a library within a shared one does not.
    jit = binding.create_lljit_compiler(machine(Target(), jit=True), suppress_errors=True)
    library = binding.JITLibraryBuilder()
    for content in objects:
        library.add_object_img(content)
    for name, address in (provided or {}).items():
        library.import_symbol(name, address)
    for name in symbols:
        library.export_symbol(name)
    library.add_current_process()
    try:
        tracker = library.link(jit, "kernels")
        return LoadedCode({name: int(tracker[name]) for name in symbols}, jit, tracker)
    except RuntimeError as error:
        fail("RLX5014", f"the code cannot be linked: {str(error).strip().lower()}", help=LOAD_FIRST)


LOAD_FIRST = "a library that the code calls must be loaded first, with `ctypes.CDLL(path, ctypes.RTLD_GLOBAL)`"


def missing_symbol(names: Sequence[str]) -> str | None:
    """The first of these external symbols that the process does not have."""
    process = ctypes.CDLL(None)
    return next((name for name in names if not hasattr(process, name)), None)
