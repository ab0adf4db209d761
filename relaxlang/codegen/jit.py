"""Object code into this process: addresses of functions, for as long as somebody holds on to them."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from llvmlite import binding

from relaxlang.base.diagnostics import fail
from relaxlang.codegen.compile import machine, start
from relaxlang.codegen.target import Target

_EMPTY = 'target triple = "{}"\n'


class LoadedCode:
    """Object files linked into the process. `address(symbol)` is valid while this object lives."""

    __slots__ = ("_engine", "__weakref__")

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def address(self, symbol: str) -> int:
        """Where the function of that name begins. RLX5014 when there is none."""
        found = int(self._engine.get_function_address(symbol))
        if not found:
            fail("RLX5014", f"the object code has no function `{symbol}`")
        return found

    def __del__(self) -> None:
        engine = getattr(self, "_engine", None)
        if engine is not None and not engine.closed:
            engine.close()


_lock = threading.Lock()


def load(objects: Sequence[bytes], externals: Sequence[str] = ()) -> LoadedCode:
    """Link object files together into this process.

    `externals` are the symbols they expect from outside; RLX5014 names one that the process does not have.
    """
    start()
    missing = [name for name in externals if binding.address_of_symbol(name) is None]
    if missing:
        fail("RLX5014", f"the symbol `{missing[0]}` is not found in this process",
             help="load the library that has it first, with `ctypes.CDLL(path, ctypes.RTLD_GLOBAL)`")  # fmt: skip
    tm = machine(Target(), jit=True)
    with _lock:
        module = binding.parse_assembly(_EMPTY.format(Target().mtriple), binding.create_context())
        engine = binding.create_mcjit_compiler(module, tm)
        for content in objects:
            engine.add_object_file(binding.ObjectFileRef.from_data(content))
        engine.finalize_object()
    return LoadedCode(engine)


def provide(symbols: Mapping[str, int]) -> None:
    """Make addresses known under names, for code that is loaded later."""
    start()
    for name, where in symbols.items():
        binding.add_symbol(name, where)
