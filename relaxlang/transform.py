"""Every pass by its class name: `relaxlang.transform.LegalizeOps()(mod)`; and what passes are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from relaxlang.passes import ALIASES, PASSES, load_pass
from relaxlang.passes.base import (
    FunctionPass,
    Pass,
    PassContext,
    PassInstrument,
    PassTiming,
    PrimFuncPass,
    PrintIR,
    Sequential,
)
from relaxlang.passes.pipelines import pipeline, register_pipeline

if TYPE_CHECKING:
    from relaxlang.passes.lower.attach_global_symbol import AttachGlobalSymbol
    from relaxlang.passes.lower.call_tir_rewrite import CallTIRRewrite
    from relaxlang.passes.lower.to_non_dataflow import ToNonDataflow
    from relaxlang.passes.lower.vm_memory_lower import VMMemoryLower
    from relaxlang.passes.lower.vm_shape_lower import VMShapeLower
    from relaxlang.passes.relax.bind_params import BindParams
    from relaxlang.passes.relax.lambda_lift import LambdaLift
    from relaxlang.passes.relax.legalize_ops import LegalizeOps
    from relaxlang.passes.relax.normalize import Normalize

__all__ = [
    "AttachGlobalSymbol", "BindParams", "CallTIRRewrite", "FunctionPass", "LambdaLift", "LegalizeOps", "Normalize", "Pass",
    "PassContext", "PassInstrument", "PassTiming", "PrimFuncPass", "PrintIR", "Sequential", "ToNonDataflow", "VMMemoryLower",
    "VMShapeLower", "pipeline", "register_pipeline",
]  # fmt: skip

# Class names of other releases of TVM.
_OLD_NAMES = {
    "CallDPSRewrite": "call-tir-rewrite",
    "LowerRuntimeBuiltin": "vm-memory-lower",
    "VMBuiltinLower": "vm-memory-lower",
}


def __getattr__(name: str) -> Any:
    by_class = {where.split(":")[1]: pass_name for pass_name, where in PASSES.items()}
    if name in by_class:
        return load_pass(by_class[name])
    if name in _OLD_NAMES:
        return load_pass(ALIASES.get(_OLD_NAMES[name], _OLD_NAMES[name]))
    raise AttributeError(f"relaxlang.transform has no pass {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_OLD_NAMES, *(where.split(":")[1] for where in PASSES.values())})
