"""Shared libraries of C functions, and where a BLAS is found."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from relaxlang.base.config import config
from relaxlang.base.diagnostics import fail
from relaxlang.base.suggest import did_you_mean
from relaxlang.runtime.elf import fault_of_library

BLAS = "blas"
"""The name of the library that is whatever BLAS there is."""
_WHEELS = ("scipy_openblas64", "scipy_openblas32", "numpy", "scipy")
_SYSTEM = ("openblas", "mkl_rt", "blis", "cblas", "blas")
_MANGLED = (("scipy_", "64_", ctypes.c_int64), ("scipy_", "", ctypes.c_int32), ("", "64_", ctypes.c_int64),
            ("", "", ctypes.c_int32))  # fmt: skip
"""How builds of OpenBLAS name `cblas_sgemm`, and the integer that its functions then take."""


class Library(NamedTuple):
    """An open library: how its symbols are written, and its own integer."""

    name: str
    handle: ctypes.CDLL
    prefix: str = ""
    suffix: str = ""
    integer: Any = ctypes.c_int32

    def symbol(self, name: str, user: str) -> int:
        """The address of a symbol; RLX6038 when there is none."""
        try:
            found = getattr(self.handle, f"{self.prefix}{name}{self.suffix}")
        except (AttributeError, ValueError):
            fail("RLX6038", f"{user} needs the symbol `{name}`, which the library `{self.name}` does not have")
        return ctypes.cast(found, ctypes.c_void_p).value or 0


def open_library(name: str, user: str) -> Library:
    """The library of a name or path. RLX6038, which names the `user`, when it can't be opened."""
    if not isinstance(name, str) or not name:
        fail("RLX6038", f"{user} needs a library by its name or path, not {name!r}")
    if name == BLAS:
        return blas(user)
    why = "there is no file or library of that name"
    for candidate in dict.fromkeys(filter(None, (name, None if os.sep in name else _found(name)))):
        fault = fault_of_library(candidate) if os.sep in candidate else ""
        if fault:
            fail("RLX6038", f"{user} needs the library `{name}`, which can't be opened: {fault}")
        try:
            return Library(name, ctypes.CDLL(candidate))
        except OSError as fault:
            why = str(fault)
        except ValueError:  # a name that no file can have
            pass
    near = did_you_mean(name, (BLAS,))
    help = f"did you mean `{near}`?" if near else "give its path, or install it where the system's loader looks"
    fail("RLX6038", f"{user} needs the library `{name}`, which can't be opened: {why}", help=help)


def blas(user: str) -> Library:
    """Any BLAS: what `RELAXLANG_BLAS` names, the one that a wheel of numpy, scipy or OpenBLAS brings, or the system's.
    RLX6038 when there is none."""
    found = _find_blas()
    if found is None:
        where = f" at `{config.blas}`, which RELAXLANG_BLAS names" if config.blas else ""
        help = "`pip install scipy-openblas64` brings one; RELAXLANG_BLAS is the path of another"
        fail("RLX6038", f"{user} needs a BLAS, and there is none{where}", help=help)
    return found


@cache
def _find_blas() -> Library | None:
    for path in _candidates():
        if fault_of_library(path):
            continue
        try:
            handle = ctypes.CDLL(path)
        except OSError:
            continue
        for prefix, suffix, integer in _MANGLED:
            if hasattr(handle, f"{prefix}cblas_sgemm{suffix}"):
                return Library(f"{BLAS} ({os.path.basename(path)})", handle, prefix, suffix, integer)
    return None


def _candidates() -> list[str]:
    """Paths and names of libraries that may be a BLAS, the likeliest first."""
    if config.blas:
        return [config.blas]
    paths: list[str] = []
    for wheel in _WHEELS:
        spec = find_spec(wheel)
        if spec is None or spec.origin is None:
            continue
        package = Path(spec.origin).parent
        for folder in (package / "lib", package.parent / f"{wheel}.libs", package / ".dylibs"):
            paths += sorted(str(p) for p in folder.glob("*openblas*") if p.suffix in (".so", ".dylib", ".dll"))
    paths += filter(None, map(_found, _SYSTEM))
    return paths


def _found(name: str) -> str | None:
    """Where the system has a library."""
    from ctypes.util import find_library  # it imports what runs other programs

    return find_library(name)
