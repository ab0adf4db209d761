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
    from relaxlang.passes.relax.adjust_matmul_order import AdjustMatmulOrder
    from relaxlang.passes.relax.annotate_tir_op_pattern import AnnotateTIROpPattern
    from relaxlang.passes.relax.apply_rewrites import ApplyRewrites
    from relaxlang.passes.relax.bind_params import BindParams
    from relaxlang.passes.relax.bind_symbolic_vars import BindSymbolicVars
    from relaxlang.passes.relax.canonicalize_bindings import CanonicalizeBindings
    from relaxlang.passes.relax.combine_parallel_matmul import CombineParallelMatmul
    from relaxlang.passes.relax.convert_to_dataflow import ConvertToDataflow
    from relaxlang.passes.relax.dataflow_use_inplace_calls import DataflowUseInplaceCalls
    from relaxlang.passes.relax.dead_code_elimination import DeadCodeElimination
    from relaxlang.passes.relax.decompose_ops_for_inference import DecomposeOpsForInference
    from relaxlang.passes.relax.eliminate_common_subexpr import EliminateCommonSubexpr
    from relaxlang.passes.relax.fold_batchnorm_to_conv2d import FoldBatchnormToConv2D
    from relaxlang.passes.relax.fold_constant import FoldConstant
    from relaxlang.passes.relax.fuse_matmul_chain import FuseMatmulChain
    from relaxlang.passes.relax.fuse_ops import FuseOps
    from relaxlang.passes.relax.fuse_ops_by_pattern import FuseOpsByPattern
    from relaxlang.passes.relax.fuse_tir import FuseTIR
    from relaxlang.passes.relax.fuse_transpose_matmul import FuseTransposeMatmul
    from relaxlang.passes.relax.inline_private_functions import InlinePrivateFunctions
    from relaxlang.passes.relax.kill_after_last_use import KillAfterLastUse
    from relaxlang.passes.relax.lambda_lift import LambdaLift
    from relaxlang.passes.relax.legalize_ops import LegalizeOps
    from relaxlang.passes.relax.lift_transform_params import LiftTransformParams
    from relaxlang.passes.relax.merge_composite_functions import MergeCompositeFunctions
    from relaxlang.passes.relax.normalize import Normalize
    from relaxlang.passes.relax.place_by_cost import PlaceByCost
    from relaxlang.passes.relax.remove_redundant_reshape import RemoveRedundantReshape
    from relaxlang.passes.relax.remove_unused_outputs import RemoveUnusedOutputs
    from relaxlang.passes.relax.remove_unused_parameters import RemoveUnusedParameters
    from relaxlang.passes.relax.rewrite_dataflow_reshape import RewriteDataflowReshape
    from relaxlang.passes.relax.run_codegen import RunCodegen
    from relaxlang.passes.relax.static_plan_block_memory import StaticPlanBlockMemory
    from relaxlang.passes.relax.to_mixed_precision import ToMixedPrecision
    from relaxlang.passes.tir.block_sums import BlockSums
    from relaxlang.passes.tir.check_parallel_loops import CheckParallelLoops
    from relaxlang.passes.tir.compact_buffer_allocation import CompactBufferAllocation
    from relaxlang.passes.tir.convert_blocks_to_opaque import ConvertBlocksToOpaque
    from relaxlang.passes.tir.flatten_buffer import FlattenBuffer
    from relaxlang.passes.tir.hoist_if_then_else import HoistIfThenElse
    from relaxlang.passes.tir.inline_blocks import InlineBlocks
    from relaxlang.passes.tir.loop_partition import LoopPartition
    from relaxlang.passes.tir.lower_init_block import LowerInitBlock
    from relaxlang.passes.tir.lower_match_buffer import LowerMatchBuffer
    from relaxlang.passes.tir.lower_opaque_block import LowerOpaqueBlock
    from relaxlang.passes.tir.merge_loops import MergeLoops
    from relaxlang.passes.tir.plan_and_update_buffer_allocation_location import PlanAndUpdateBufferAllocationLocation
    from relaxlang.passes.tir.remove_no_op import RemoveNoOp
    from relaxlang.passes.tir.reorder_reductions import ReorderReductions
    from relaxlang.passes.tir.schedule_cpu import ScheduleCPU
    from relaxlang.passes.tir.stmt_simplify import StmtSimplify
    from relaxlang.passes.tir.unroll_loop import UnrollLoop
    from relaxlang.passes.tir.vectorize_loop import VectorizeLoop

__all__ = [
    "AdjustMatmulOrder", "AnnotateTIROpPattern", "ApplyRewrites", "AttachGlobalSymbol", "BindParams",
    "BindSymbolicVars", "BlockSums", "CallTIRRewrite", "CanonicalizeBindings", "CheckParallelLoops",
    "CombineParallelMatmul",
    "CompactBufferAllocation", "ConvertBlocksToOpaque", "ConvertToDataflow", "DataflowUseInplaceCalls",
    "DeadCodeElimination", "DecomposeOpsForInference", "EliminateCommonSubexpr", "FlattenBuffer",
    "FoldBatchnormToConv2D", "FoldConstant", "FunctionPass", "FuseMatmulChain", "FuseOps", "FuseOpsByPattern",
    "FuseTIR", "FuseTransposeMatmul", "HoistIfThenElse",
    "InlineBlocks", "InlinePrivateFunctions", "KillAfterLastUse", "LambdaLift", "LegalizeOps", "LiftTransformParams",
    "LoopPartition", "LowerInitBlock", "LowerMatchBuffer", "LowerOpaqueBlock", "MergeCompositeFunctions", "MergeLoops",
    "Normalize", "Pass",
    "PassContext", "PassInstrument", "PassTiming", "PlaceByCost",
    "PlanAndUpdateBufferAllocationLocation", "PrimFuncPass", "PrintIR",
    "RemoveNoOp", "RemoveRedundantReshape", "RemoveUnusedOutputs", "RemoveUnusedParameters", "ReorderReductions",
    "RewriteDataflowReshape", "RunCodegen", "ScheduleCPU", "Sequential", "StaticPlanBlockMemory", "StmtSimplify",
    "ToMixedPrecision", "ToNonDataflow", "UnrollLoop", "VMMemoryLower", "VMShapeLower", "VectorizeLoop", "pipeline",
    "register_pipeline",
]  # fmt: skip

# Class names of other releases of TVM.
_OLD_NAMES = {
    "CallDPSRewrite": "call-tir-rewrite",
    "LowerAllocTensor": "vm-memory-lower",
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
