"""Executors' back ends: what makes a runtime module of a lowered module, by kind of executor."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from relaxlang.base.diagnostics import fail
from relaxlang.base.fingerprint import note_addition
from relaxlang.ir.configuration.compiler_config import CompilerConfig
from relaxlang.ir.configuration.executor import EXECUTORS
from relaxlang.ir.configuration.function_targets import function_target, listed
from relaxlang.ir.configuration.kinds import Kind
from relaxlang.ir.configuration.target import Target
from relaxlang.ir.module import IRModule
from relaxlang.runtime.module import RuntimeModule

if TYPE_CHECKING:
    from relaxlang.codegen.kernel import CompiledKernel
    from relaxlang.runtime.kernel import Kernel

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
    note_addition(kind.name)


def back_end(config: CompilerConfig) -> BackEnd:
    """The back end of a configuration's executor; RLX5026 when it has none."""
    found = _BACK_ENDS.get(config.executor.kind)
    if found is None:
        known = ", ".join(f"`{name}`" for name in _BACK_ENDS)
        fail("RLX5026", f"nothing makes code for the executor `{config.executor.kind}`", help=f"there is {known}")
    return found


def in_process_kernels(
    lowered: IRModule, config: CompilerConfig
) -> tuple[dict[str, CompiledKernel], dict[str, Kernel]]:
    """The compiled kernels of a module, each for its own target or the default, and those in this process: none when
    they are for another machine.

    RLX5028 unless LLVM makes their code and relaxlang is there when they run, RLX5027 for kernels without a target.
    """
    from relaxlang.codegen.kernel import build_kernels, load_kernels
    from relaxlang.codegen.target import runs_here

    executor, own = config.executor.kind, kernel_targets(lowered, config)
    for target in own.values():
        if target.kind != "llvm":
            help = 'the executor `aot` makes C source: `executor="aot"`, `relaxc --executor=aot`'
            fail("RLX5028", f"the executor `{executor}` needs targets of kind `llvm`, not `{target}`", help=help)
    if config.runtime.kind != "cpp":
        fail("RLX5028", f"the executor `{executor}` needs the runtime `cpp`, not `{config.runtime.kind}`")
    made = build_kernels(dict(lowered.prim_funcs()), config.primitive_target, own)
    return made, load_kernels(made) if all(runs_here(t) for t in set(own.values())) else {}


def kernel_targets(lowered: IRModule, config: CompilerConfig) -> dict[str, Target]:
    """The target of each PrimFunc: its own, or the default, which for the computation of shapes is the host's. RLX5027,
    with their names, for those that have neither."""
    found: dict[str, Target] = {}
    lacking = []
    for name, func in lowered.prim_funcs():
        own = function_target(func, config.targets)
        default = config.shape_target if func.attrs.get("tir.is_host_func") else config.primitive_target
        target = default if own is None else own.target
        if target is None:
            lacking.append(name)
        else:
            found[name] = target
    if lacking:
        fail("RLX5027", f"there is no default target, and these functions have none of their own: {listed(lacking)}")
    return found
