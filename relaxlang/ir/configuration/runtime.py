"""Runtimes: the library that compiled functions stand on."""

from __future__ import annotations

from relaxlang.ir.configuration.kinds import Codes, Configured, Kind, Kinds, Option

_SYSTEM_LIB = Option("system-lib", bool, False, "register the functions under a prefix when the code is loaded")

RUNTIMES = Kinds(
    "runtime",
    Codes("RLX5022", "RLX5023", "RLX5024"),
    (
        Kind("cpp", "this process: tensors, packed functions and threads of relaxlang", (_SYSTEM_LIB,), ("c++",)),
        Kind(
            "c",
            "nothing but the C language: code for programs without Python",
            (_SYSTEM_LIB, Option("link-params", bool, False, "keep constants in the code")),
            ("crt",),
        ),
    ),
)
"""The registry of runtimes."""


class Runtime(Configured):
    """A runtime: `Runtime("c", {"system-lib": True})`, or one mapping with `kind`. As `Executor`."""

    __slots__ = ()
    REGISTRY = RUNTIMES
