"""The virtual machine's back end: machine code for PrimFuncs, bytecode for Relax functions."""

from __future__ import annotations

from relaxlang.base.diagnostics import DiagnosticError, fail
from relaxlang.codegen.kernel import build_kernels, load_kernels
from relaxlang.codegen.target import runs_here
from relaxlang.codegen.vm import emit_functions
from relaxlang.ir.configuration.compiler_config import CompilerConfig
from relaxlang.ir.module import IRModule
from relaxlang.runtime.exec_builder import ExecBuilder
from relaxlang.runtime.module import RuntimeModule, runtime_module


def build_vm(lowered: IRModule, config: CompilerConfig) -> RuntimeModule:
    """The program that a lowered module is."""
    target = config.primitive_target
    if target is None or target.kind != "llvm" or config.runtime.kind != "cpp":
        fail(
            "RLX5028",
            f"the executor `vm` needs a target of kind `llvm` and the runtime `cpp`, not `{target}` and "
            f"`{config.runtime.kind}`",
        )
    builder = ExecBuilder()
    try:
        kernels = build_kernels(dict(lowered.prim_funcs()), target)
        for kernel in kernels.values():
            builder.declare_kernel(kernel.signature)
        emit_functions(lowered, builder)
    except DiagnosticError as fault:
        from relaxlang.syntax.printer.locate import show_nodes

        show_nodes(fault, lowered, "<lowered module>")
        raise
    executable = builder.get(tuple(k.object_code for k in kernels.values()))
    return runtime_module(executable, load_kernels(kernels) if runs_here(target) else {}, lowered)
