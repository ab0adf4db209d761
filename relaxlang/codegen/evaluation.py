"""Kernels that are run while compiling, on constants: layers of a network need the same ones again and again.

Most run once, on some megabytes, where optimising their code would take longer than it saves: they are compiled as they
stand, and again with LLVM's passes when they turn out to have more to do.
"""

from __future__ import annotations

import atexit
from typing import Any

from relaxlang.analysis.flops import work_of
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.codegen.kernel import build_kernels, load_kernels
from relaxlang.ir.configuration.target import Target
from relaxlang.ir.structural import structural_equal, structural_hash
from relaxlang.ir.tir import PrimFunc
from relaxlang.runtime.kernel import Kernel

PATIENCE = 256 << 20
"""Bytes that a kernel touches until optimising its code takes less time than it saves; an operation counts as 4."""
RECENT = 16
"""Kernels that are kept."""


class _Evaluated:
    """A kernel, and how many bytes it has touched."""

    __slots__ = ("func", "hash", "touched", "_work", "_kernel", "_optimized")

    def __init__(self, func: PrimFunc) -> None:
        self.func = func
        self.hash = structural_hash(func)
        self.touched = 0
        self._work = work_of(func)
        self._kernel: Kernel | None = None
        self._optimized = False

    def does(self, func: PrimFunc, key: int) -> bool:
        """Whether it does the same as a PrimFunc, of that hash."""
        return self.hash == key and structural_equal(func, self.func)

    def run(self, args: list[Any]) -> None:
        """Run it on arrays, outputs last."""
        self.touched += self._touches(args)
        optimized = self.touched >= PATIENCE
        if self._kernel is None or optimized > self._optimized:
            target = Target() if optimized else Target({"kind": "llvm", "opt-level": 0})
            self._kernel = load_kernels(build_kernels({"kernel": self.func}, target))["kernel"]
            self._optimized = optimized
        self._kernel(*args)

    def _touches(self, args: list[Any]) -> int:
        try:
            operations, nbytes = self._work.at(self.func, [a.shape for a in args])
        except DiagnosticError:  # a dimension that no argument tells
            return PATIENCE
        return nbytes + 4 * operations


_recent: list[_Evaluated] = []
atexit.register(_recent.clear)  # code is given back while what gave it is still there


def run_compiled(func: PrimFunc, args: list[Any]) -> None:
    """Run a kernel on arrays, outputs last, as compiled code; that of one that does the same and ran lately serves
    again."""
    known = next((k for k in list(_recent) if k.func is func), None)
    if known is None:
        key = structural_hash(func)
        known = next((k for k in list(_recent) if k.does(func, key)), None)
    if known is None:
        known = _Evaluated(func)
        _recent[RECENT - 1 :] = []
        _recent.insert(0, known)
    known.run(args)
