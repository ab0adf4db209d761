"""The sequence from blocks to flat loops, which code generation applies to every PrimFunc."""

from __future__ import annotations

from relaxlang.base.recursion import deep_recursion
from relaxlang.ir.tir import PrimFunc
from relaxlang.passes.base import PassContext, PrimFuncPass
from relaxlang.passes.tir.block_sums import BlockSums
from relaxlang.passes.tir.check_parallel_loops import CheckParallelLoops
from relaxlang.passes.tir.compact_buffer_allocation import CompactBufferAllocation
from relaxlang.passes.tir.convert_blocks_to_opaque import ConvertBlocksToOpaque
from relaxlang.passes.tir.flatten_buffer import FlattenBuffer
from relaxlang.passes.tir.hoist_if_then_else import HoistIfThenElse
from relaxlang.passes.tir.loop_partition import LoopPartition
from relaxlang.passes.tir.lower_init_block import LowerInitBlock
from relaxlang.passes.tir.lower_match_buffer import LowerMatchBuffer
from relaxlang.passes.tir.lower_opaque_block import LowerOpaqueBlock
from relaxlang.passes.tir.plan_and_update_buffer_allocation_location import PlanAndUpdateBufferAllocationLocation
from relaxlang.passes.tir.remove_no_op import RemoveNoOp
from relaxlang.passes.tir.reorder_reductions import ReorderReductions
from relaxlang.passes.tir.stmt_simplify import StmtSimplify
from relaxlang.passes.tir.vectorize_loop import VectorizeLoop

FLATTENING: tuple[PrimFuncPass, ...] = (
    CompactBufferAllocation(),
    PlanAndUpdateBufferAllocationLocation(),
    CheckParallelLoops(),
    ReorderReductions(),
    LowerInitBlock(),
    ConvertBlocksToOpaque(),
    LowerMatchBuffer(),
    LowerOpaqueBlock(),
    FlattenBuffer(),
    StmtSimplify(),
)
"""From blocks to loops over flat buffers."""
LOWERING: tuple[PrimFuncPass, ...] = (
    *FLATTENING,
    LoopPartition(),
    HoistIfThenElse(),
    VectorizeLoop(),
    RemoveNoOp(),
    BlockSums(),
)
"""What machine code is made from: loops are vectorised as their kinds say; code generation writes unrolled ones out."""


def lower(func: PrimFunc) -> PrimFunc:
    """A PrimFunc without blocks and with flat accesses; a function that is so already is returned as it is."""
    return _apply(LOWERING, func)


def flatten(func: PrimFunc) -> PrimFunc:
    """As `lower`, with the loops as they are written: what text in another language is made from."""
    return _apply((*FLATTENING, RemoveNoOp(), BlockSums()), func)


def _apply(steps: tuple[PrimFuncPass, ...], func: PrimFunc) -> PrimFunc:
    ctx = PassContext.current()
    with deep_recursion():
        for step in steps:
            func = step.run_prim_func(func, ctx)
    return func
