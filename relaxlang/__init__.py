"""Relax as a language you can type: parse `.rlx` text, transform it, build it, run it.

    import relaxlang
    mod = relaxlang.load("examples/digits.rlx")
    vm = relaxlang.VirtualMachine(relaxlang.build(mod), relaxlang.cpu())
    scores = vm["main"](images)

Names are imported when they are first used, so that `import relaxlang` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from relaxlang.base.diagnostics import DiagnosticError, RelaxlangError
from relaxlang.base.version import __version__
from relaxlang.ir.configuration.host import Host, install_host
from relaxlang.ir.printing import install_printer
from relaxlang.passes.back_end import BackEnds, install_back_ends

if TYPE_CHECKING:
    from relaxlang import script, transform
    from relaxlang.builder import dpl, te
    from relaxlang.builder.block_builder import BlockBuilder
    from relaxlang.builder.construct import const, struct_info
    from relaxlang.builder.construct import var as Var
    from relaxlang.codegen.pool import set_num_threads
    from relaxlang.driver import build, estimate_memory_usage, load, load_module, lower, parse
    from relaxlang.interp import run as interpret
    from relaxlang.ir.configuration.compiler_config import CompilerConfig
    from relaxlang.ir.configuration.executor import Executor
    from relaxlang.ir.configuration.runtime import Runtime
    from relaxlang.ir.configuration.target import Target
    from relaxlang.ir.module import IRModule
    from relaxlang.ir.structural import assert_structural_equal, structural_equal, structural_hash
    from relaxlang.ops import python_api as op
    from relaxlang.runtime.c_function import register_c_function
    from relaxlang.runtime.device import cpu
    from relaxlang.runtime.ndarray import NDArray, ShapeTuple, array
    from relaxlang.runtime.registry import get_global_func, register_func
    from relaxlang.runtime.vm import VirtualMachine
    from relaxlang.schedule import Schedule

__all__ = [
    "__version__", "BlockBuilder", "CompilerConfig", "DiagnosticError", "Executor", "IRModule", "NDArray",
    "RelaxlangError", "Runtime", "Schedule", "ShapeTuple", "Target", "Var", "VirtualMachine", "array",
    "assert_structural_equal", "build", "const", "cpu", "dpl", "estimate_memory_usage", "get_global_func", "interpret",
    "load", "load_module", "lower", "op", "parse", "register_c_function", "register_func", "script", "set_num_threads",
    "struct_info", "structural_equal", "structural_hash", "te", "transform",
]  # fmt: skip

# Where each lazily imported name lives; one that names no attribute is the module itself.
_HOMES = {
    "BlockBuilder": "builder.block_builder:BlockBuilder",
    "CompilerConfig": "ir.configuration.compiler_config:CompilerConfig",
    "Executor": "ir.configuration.executor:Executor",
    "IRModule": "ir.module:IRModule",
    "NDArray": "runtime.ndarray:NDArray",
    "Runtime": "ir.configuration.runtime:Runtime",
    "Schedule": "schedule:Schedule",
    "ShapeTuple": "runtime.ndarray:ShapeTuple",
    "Target": "ir.configuration.target:Target",
    "Var": "builder.construct:var",
    "VirtualMachine": "runtime.vm:VirtualMachine",
    "array": "runtime.ndarray:array",
    "assert_structural_equal": "ir.structural:assert_structural_equal",
    "build": "driver:build",
    "const": "builder.construct:const",
    "cpu": "runtime.device:cpu",
    "dpl": "builder.dpl",
    "estimate_memory_usage": "driver:estimate_memory_usage",
    "get_global_func": "runtime.registry:get_global_func",
    "interpret": "interp:run",
    "load": "driver:load",
    "load_module": "driver:load_module",
    "lower": "driver:lower",
    "op": "ops.python_api",
    "parse": "driver:parse",
    "register_c_function": "runtime.c_function:register_c_function",
    "register_func": "runtime.registry:register_func",
    "script": "script",
    "set_num_threads": "codegen.pool:set_num_threads",
    "struct_info": "builder.construct:struct_info",
    "structural_equal": "ir.structural:structural_equal",
    "structural_hash": "ir.structural:structural_hash",
    "te": "builder.te",
    "transform": "transform",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"relaxlang has no attribute {name!r}")
    module, _, attribute = home.partition(":")
    value: Any = import_module(f"relaxlang.{module}")
    value = getattr(value, attribute) if attribute else value
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


def _script(node: Any, **options: Any) -> str:
    """The printer, imported when something is first printed."""
    from relaxlang.syntax.printer import script

    return script(node, **options)


install_printer(_script)


def _host() -> Host:
    """This machine, looked at when a target first needs it (which imports LLVM)."""
    from relaxlang.codegen.target import probe

    return probe()


install_host(_host)


def _back_ends() -> BackEnds:
    """The back ends that relaxlang brings, made when a pass first asks for one."""
    from relaxlang.driver import back_ends

    return back_ends()


install_back_ends(_back_ends)


def load_ipython_extension(ipython: Any) -> None:
    """What `%load_ext relaxlang` calls in a notebook: the cell magic `%%rlx`."""
    from relaxlang.repl.jupyter import load

    load(ipython)
