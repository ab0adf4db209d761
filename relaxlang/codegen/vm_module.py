"""The virtual machine's back end: machine code for PrimFuncs, bytecode for Relax functions, of which machines make
native code (`codegen.native`)."""

from __future__ import annotations

from relaxlang.codegen.executors import in_process_kernels
from relaxlang.codegen.kernel import codes_of
from relaxlang.codegen.vm import emit_functions
from relaxlang.ir.configuration.compiler_config import CompilerConfig
from relaxlang.ir.module import IRModule
from relaxlang.runtime.exec_builder import ExecBuilder
from relaxlang.runtime.module import RuntimeModule, runtime_module


def build_vm(lowered: IRModule, config: CompilerConfig) -> RuntimeModule:
    """The program that a lowered module is."""
    builder = ExecBuilder()
    kernels, loaded = in_process_kernels(lowered, config)
    for kernel in kernels.values():
        builder.declare_kernel(kernel.signature)
    emit_functions(lowered, builder)
    executable = builder.get(tuple(code.object_code for code in codes_of(kernels)))
    made = runtime_module(executable, loaded, lowered)
    made.exec_mode = "bytecode" if config.executor.options.get("exec-mode") == "bytecode" else "native"
    return made
