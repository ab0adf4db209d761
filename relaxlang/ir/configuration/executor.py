"""Executors: what runs the functions of a built module."""

from __future__ import annotations

from relaxlang.ir.configuration.kinds import Codes, Configured, Kind, Kinds, Option

WORKSPACE_LIMIT = "workspace-byte-limit"
_LIMIT = Option(WORKSPACE_LIMIT, int, None, "the most bytes of intermediates that a function may need")

EXECUTORS = Kinds(
    "executor",
    Codes("RLX5022", "RLX5023", "RLX5024"),
    (
        Kind(
            "vm",
            "the virtual machine: runs everything that Relax can say",
            (Option("exec-mode", str, "native", "how Relax functions run", ("native", "bytecode", "compiled")), _LIMIT),
        ),
        Kind(
            "graph",
            "a list of kernel calls over numbered storage, as JSON: static shapes, no control flow",
            (Option("link-params", bool, False, "keep constants in the library instead of beside the graph"), _LIMIT),
        ),
        Kind(
            "aot",
            "one C function that calls the kernels over a static workspace: static shapes, no control flow",
            (
                Option("unpacked-api", bool, False, "kernels take bare pointers instead of packed arguments"),
                Option("interface-api", str, "packed", "how the entry is called", ("packed", "c")),
                Option("workspace-byte-alignment", int, 16, "alignment of the workspace, in bytes"),
                Option("constant-byte-alignment", int, 16, "alignment of constants, in bytes"),
                Option("link-params", bool, True, "keep constants in the code instead of passing them"),
                _LIMIT,
            ),
        ),
    ),
)
"""The registry of executors. `relaxlang.codegen.executors.register_executor` adds one together with its back end."""


class Executor(Configured):
    """An executor: `Executor("graph")`, `Executor("aot", {"unpacked-api": True})`, or one mapping with `kind`.

    `options` has every option of the kind. RLX5022, RLX5023 and RLX5024 for unknown kinds, unknown options and wrong
    values.
    """

    __slots__ = ()
    REGISTRY = EXECUTORS
