"""The virtual machine's back end: machine code for PrimFuncs, bytecode for Relax functions."""

from __future__ import annotations

from relaxlang.codegen.executors import in_process_target
from relaxlang.codegen.kernel import build_kernels, load_kernels
from relaxlang.codegen.target import runs_here
from relaxlang.codegen.vm import emit_functions
from relaxlang.ir.configuration.compiler_config import CompilerConfig
from relaxlang.ir.module import IRModule
from relaxlang.runtime.exec_builder import ExecBuilder
from relaxlang.runtime.module import RuntimeModule, runtime_module


def build_vm(lowered: IRModule, config: CompilerConfig) -> RuntimeModule:
    """The program that a lowered module is."""
    target = in_process_target(config)
    builder = ExecBuilder()
    kernels = build_kernels(dict(lowered.prim_funcs()), target)
    for kernel in kernels.values():
        builder.declare_kernel(kernel.signature)
    emit_functions(lowered, builder)
    executable = builder.get(tuple(k.object_code for k in kernels.values()))
    return runtime_module(executable, load_kernels(kernels) if runs_here(target) else {}, lowered)
