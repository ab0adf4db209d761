"""Executors' back ends: what makes a runtime module of a lowered module, by kind of executor."""

from __future__ import annotations

from collections.abc import Callable

from relaxlang.base.diagnostics import fail
from relaxlang.ir.configuration.compiler_config import CompilerConfig
from relaxlang.ir.configuration.executor import EXECUTORS
from relaxlang.ir.configuration.kinds import Kind
from relaxlang.ir.configuration.target import Target
from relaxlang.ir.module import IRModule
from relaxlang.runtime.module import RuntimeModule

BackEnd = Callable[[IRModule, CompilerConfig], RuntimeModule]
"""Code for a lowered module under a configuration; raises diagnostics for what the executor cannot run."""


def _vm(lowered: IRModule, config: CompilerConfig) -> RuntimeModule:
    from relaxlang.codegen.vm_module import build_vm

    return build_vm(lowered, config)


def _graph(lowered: IRModule, config: CompilerConfig) -> RuntimeModule:
    from relaxlang.codegen.graph import build_graph

    return build_graph(lowered, config)


def _aot(lowered: IRModule, config: CompilerConfig) -> RuntimeModule:
    from relaxlang.codegen.aot.library import build_aot

    return build_aot(lowered, config)


_BACK_ENDS: dict[str, BackEnd] = {"vm": _vm, "graph": _graph, "aot": _aot}


def register_executor(kind: Kind, back_end: BackEnd, override: bool = False) -> None:
    """Make an executor of one's own known to `build` and `relaxc`: its kind with its options, and its back end."""
    EXECUTORS.register(kind, override)
    _BACK_ENDS[kind.name] = back_end


def back_end(config: CompilerConfig) -> BackEnd:
    """The back end of a configuration's executor; RLX5026 when it has none."""
    found = _BACK_ENDS.get(config.executor.kind)
    if found is None:
        known = ", ".join(f"`{name}`" for name in _BACK_ENDS)
        fail("RLX5026", f"nothing makes code for the executor `{config.executor.kind}`", help=f"there is {known}")
    return found


def in_process_target(config: CompilerConfig) -> Target:
    """The target of an executor that runs in this process. RLX5028 unless LLVM makes its code and relaxlang is there
    when it runs."""
    target, executor = config.primitive_target, config.executor.kind
    if target is None or target.kind != "llvm":
        fail("RLX5028", f"the executor `{executor}` needs a target of kind `llvm`, not `{target}`")
    if config.runtime.kind != "cpp":
        fail("RLX5028", f"the executor `{executor}` needs the runtime `cpp`, not `{config.runtime.kind}`")
    return target
