"""LLVM: from IR text to optimised modules, assembly and object code."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from llvmlite import binding

from relaxlang.base.diagnostics import fail
from relaxlang.codegen.processors import check_processor
from relaxlang.codegen.target import Target

_ready = threading.Lock()
_started: set[bool] = set()


def start(everywhere: bool = False) -> None:
    """Initialise LLVM, once: for this machine, or `everywhere`, which takes 10 MB more."""
    with _ready:
        if everywhere in _started:
            return
        if not _started:
            # NewGVN's phis of operations are wrong in loops whose conditions partly stay the same (of LLVM 22 too).
            binding.set_option("", "-enable-phi-of-ops=false")
        if everywhere:
            binding.initialize_all_targets()
            binding.initialize_all_asmprinters()
        else:
            binding.initialize_native_target()
            binding.initialize_native_asmprinter()
            binding.initialize_native_asmparser()
        _started.add(everywhere)


@lru_cache(maxsize=32)
def machine(target: Target, *, jit: bool = False) -> Any:
    """LLVM's TargetMachine for a target. RLX5004 when LLVM does not know the platform or the processor."""
    start()
    if not target.is_host:
        start(everywhere=True)
    try:
        chosen = binding.Target.from_triple(target.mtriple)
    except RuntimeError as error:
        fail("RLX5004", f"LLVM cannot make code for `{target.mtriple}`: {str(error).strip()}")
    if not target.is_host:
        check_processor(target.mtriple, target.mcpu, target.mattr)
    level = min(target.opt_level, 3)
    return chosen.create_target_machine(
        cpu=target.mcpu, features=target.mattr, opt=level, reloc="pic", codemodel="jitdefault" if jit else "default"
    )


def llvm_version() -> str:
    """The version of LLVM."""
    return ".".join(map(str, binding.llvm_version_info))


@lru_cache(maxsize=32)
def layout(target: Target) -> str:
    """The data layout of a target, as it stands in a module."""
    return str(machine(target).target_data)


def parsed(text: str) -> Any:
    """The module of an IR text. RLX5020 when LLVM rejects the text."""
    try:
        module = binding.parse_assembly(text, binding.create_context())
        module.verify()
    except RuntimeError as error:
        fail("RLX5020", f"LLVM rejects the generated code: {_first_line(str(error))}")
    return module


def optimized(text: str, target: Target) -> Any:
    """The module of an IR text after LLVM's passes. RLX5020 when LLVM rejects the text."""
    from relaxlang.codegen.context import VECTORS  # here, because code that was compiled before is linked without it

    tm = machine(target)
    module = parsed(text)
    if target.opt_level > 0 and text.startswith(VECTORS):
        _tidy(tm, module)
        return module
    tuning = binding.create_pipeline_tuning_options(speed_level=target.opt_level)
    tuning.loop_vectorization = target.opt_level > 0
    tuning.slp_vectorization = target.opt_level > 0
    builder = binding.create_pass_builder(tm, tuning)
    builder.getModulePassManager().run(module, builder)
    return module


_TIDYING = ("always_inliner", "sroa", "new_gvn", "dead_store_elimination", "instruction_combine", "simplify_cfg")


def _tidy(tm: Any, module: Any) -> None:
    """What code needs whose loops are vectors already: values in registers, and each computed once. LLVM's whole
    pipeline takes several times as long and finds nothing more."""
    manager = binding.create_new_module_pass_manager()
    for name in _TIDYING:
        getattr(manager, f"add_{name}_pass")()
    manager.run(module, binding.create_pass_builder(tm, binding.create_pipeline_tuning_options(speed_level=2)))


def joined(texts: Sequence[str]) -> str:
    """One IR text that has the functions of several; internal names that clash are changed."""
    start()
    if len(texts) == 1:
        return texts[0]
    context = binding.create_context()
    whole = binding.parse_assembly("", context)
    for text in texts:
        whole.link_in(binding.parse_assembly(text, context))
    return str(whole)


def _first_line(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return " ".join(lines[:3])


def object_code(text: str, target: Target) -> bytes:
    """Object code of an IR text. RLX5004 for platforms that LLVM makes assembly for but no object files."""
    return _emitted(optimized(text, target), target)


def assembled(text: str, target: Target) -> bytes:
    """Object code of an IR text as it stands: LLVM's passes find nothing in what was written by hand."""
    machine(target)  # which LLVM has to know before it reads what names it
    return _emitted(parsed(text), target)


def tidied(text: str, target: Target) -> bytes:
    """Object code of an IR text that was written by hand, but for what is inlined and computed twice."""
    tm, module = machine(target), parsed(text)
    _tidy(tm, module)
    return _emitted(module, target)


def _emitted(module: Any, target: Target) -> bytes:
    try:
        return bytes(machine(target).emit_object(module))
    except RuntimeError as error:
        fail("RLX5004", f"LLVM makes no object files for `{target.mtriple}`: {str(error).lower()}",
             help="`--emit=asm` shows the code")  # fmt: skip


def assembly(text: str, target: Target) -> str:
    """Assembly of an IR text."""
    return str(machine(target).emit_assembly(optimized(text, target)))
