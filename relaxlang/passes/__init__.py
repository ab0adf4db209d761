"""Passes: modules in, modules out.

`base` says what a pass is; `pipelines` names sequences of them and reads pipelines as text. The passes themselves, one
a file: `relax/` on the graph level, `tir/` on TensorIR, `lower/` from Relax to what the virtual machine runs. `PASSES`
lists them all; `relaxlang.transform.FuseOps` finds a class through it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Pipeline name -> where its class is. One row a file; a test compares the table with the folders.
PASSES: dict[str, str] = {
    "adjust-matmul-order": "relax.adjust_matmul_order:AdjustMatmulOrder",
    "annotate-tir-op-pattern": "relax.annotate_tir_op_pattern:AnnotateTIROpPattern",
    "attach-global-symbol": "lower.attach_global_symbol:AttachGlobalSymbol",
    "call-tir-rewrite": "lower.call_tir_rewrite:CallTIRRewrite",
    "apply-rewrites": "relax.apply_rewrites:ApplyRewrites",
    "bind-params": "relax.bind_params:BindParams",
    "bind-target": "relax.bind_target:BindTarget",
    "bind-symbolic-vars": "relax.bind_symbolic_vars:BindSymbolicVars",
    "canonicalize-bindings": "relax.canonicalize_bindings:CanonicalizeBindings",
    "combine-parallel-matmul": "relax.combine_parallel_matmul:CombineParallelMatmul",
    "convert-layout": "relax.convert_layout:ConvertLayout",
    "convert-to-dataflow": "relax.convert_to_dataflow:ConvertToDataflow",
    "dataflow-use-inplace-calls": "relax.dataflow_use_inplace_calls:DataflowUseInplaceCalls",
    "dead-code-elimination": "relax.dead_code_elimination:DeadCodeElimination",
    "decompose-ops-for-inference": "relax.decompose_ops_for_inference:DecomposeOpsForInference",
    "eliminate-common-subexpr": "relax.eliminate_common_subexpr:EliminateCommonSubexpr",
    "fold-batchnorm-to-conv2d": "relax.fold_batchnorm_to_conv2d:FoldBatchnormToConv2D",
    "fold-constant": "relax.fold_constant:FoldConstant",
    "fuse-matmul-chain": "relax.fuse_matmul_chain:FuseMatmulChain",
    "fuse-ops": "relax.fuse_ops:FuseOps",
    "fuse-ops-by-pattern": "relax.fuse_ops_by_pattern:FuseOpsByPattern",
    "fuse-tir": "relax.fuse_tir:FuseTIR",
    "fuse-transpose-matmul": "relax.fuse_transpose_matmul:FuseTransposeMatmul",
    "inline-private-functions": "relax.inline_private_functions:InlinePrivateFunctions",
    "kill-after-last-use": "relax.kill_after_last_use:KillAfterLastUse",
    "lambda-lift": "relax.lambda_lift:LambdaLift",
    "legalize-ops": "relax.legalize_ops:LegalizeOps",
    "lift-transform-params": "relax.lift_transform_params:LiftTransformParams",
    "merge-composite-functions": "relax.merge_composite_functions:MergeCompositeFunctions",
    "normalize": "relax.normalize:Normalize",
    "place-by-cost": "relax.place_by_cost:PlaceByCost",
    "remove-redundant-reshape": "relax.remove_redundant_reshape:RemoveRedundantReshape",
    "remove-unused-outputs": "relax.remove_unused_outputs:RemoveUnusedOutputs",
    "remove-unused-parameters": "relax.remove_unused_parameters:RemoveUnusedParameters",
    "run-codegen": "relax.run_codegen:RunCodegen",
    "rewrite-dataflow-reshape": "relax.rewrite_dataflow_reshape:RewriteDataflowReshape",
    "split-layout-rewrite-preproc": "relax.split_layout_rewrite_preproc:SplitLayoutRewritePreproc",
    "static-plan-block-memory": "relax.static_plan_block_memory:StaticPlanBlockMemory",
    "to-mixed-precision": "relax.to_mixed_precision:ToMixedPrecision",
    "to-non-dataflow": "lower.to_non_dataflow:ToNonDataflow",
    "vm-memory-lower": "lower.vm_memory_lower:VMMemoryLower",
    "vm-shape-lower": "lower.vm_shape_lower:VMShapeLower",
    "block-sums": "tir.block_sums:BlockSums",
    "compact-buffer-allocation": "tir.compact_buffer_allocation:CompactBufferAllocation",
    "check-workspace": "relax.check_workspace:CheckWorkspace",
    "check-parallel-loops": "tir.check_parallel_loops:CheckParallelLoops",
    "convert-blocks-to-opaque": "tir.convert_blocks_to_opaque:ConvertBlocksToOpaque",
    "flatten-buffer": "tir.flatten_buffer:FlattenBuffer",
    "hoist-if-then-else": "tir.hoist_if_then_else:HoistIfThenElse",
    "loop-partition": "tir.loop_partition:LoopPartition",
    "inline-blocks": "tir.inline_blocks:InlineBlocks",
    "lower-init-block": "tir.lower_init_block:LowerInitBlock",
    "lower-match-buffer": "tir.lower_match_buffer:LowerMatchBuffer",
    "lower-opaque-block": "tir.lower_opaque_block:LowerOpaqueBlock",
    "merge-loops": "tir.merge_loops:MergeLoops",
    "plan-and-update-buffer-allocation-location": (
        "tir.plan_and_update_buffer_allocation_location:PlanAndUpdateBufferAllocationLocation"
    ),
    "pool-allocations": "tir.pool_allocations:PoolAllocations",
    "remove-no-op": "tir.remove_no_op:RemoveNoOp",
    "reorder-reductions": "tir.reorder_reductions:ReorderReductions",
    "schedule-cpu": "tir.schedule_cpu:ScheduleCPU",
    "stmt-simplify": "tir.stmt_simplify:StmtSimplify",
    "unroll-loop": "tir.unroll_loop:UnrollLoop",
    "vectorize-loop": "tir.vectorize_loop:VectorizeLoop",
}

# Names that other releases of TVM use.
ALIASES: dict[str, str] = {
    "call-dps-rewrite": "call-tir-rewrite",
    "lower-alloc-tensor": "vm-memory-lower",
    "lower-runtime-builtin": "vm-memory-lower",
    "vm-builtin-lower": "vm-memory-lower",
}


def load_pass(name: str) -> Any:
    """The class of a pass by its pipeline name; KeyError when there is none."""
    module, cls = PASSES[ALIASES.get(name, name)].split(":")
    return getattr(import_module(f"relaxlang.passes.{module}"), cls)
