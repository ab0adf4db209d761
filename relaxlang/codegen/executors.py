"""Executors' back ends: what makes a runtime module of a lowered module, by kind of executor."""

from __future__ import annotations

from collections.abc import Callable

from relaxlang.base.diagnostics import fail
from relaxlang.ir.configuration.compiler_config import CompilerConfig
from relaxlang.ir.configuration.executor import EXECUTORS
from relaxlang.ir.configuration.kinds import Kind
from relaxlang.ir.module import IRModule
from relaxlang.runtime.module import RuntimeModule

BackEnd = Callable[[IRModule, CompilerConfig], RuntimeModule]
"""Code for a lowered module under a configuration; raises diagnostics for what the executor cannot run."""


def _vm(lowered: IRModule, config: CompilerConfig) -> RuntimeModule:
    from relaxlang.codegen.vm_module import build_vm

    return build_vm(lowered, config)


_BACK_ENDS: dict[str, BackEnd] = {"vm": _vm}


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
