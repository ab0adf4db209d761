"""The sequence from blocks to flat loops, which code generation applies to every PrimFunc."""

from __future__ import annotations

from relaxlang.base.recursion import deep_recursion
from relaxlang.ir.tir import PrimFunc
from relaxlang.passes.base import PassContext, PrimFuncPass
from relaxlang.passes.tir.convert_blocks_to_opaque import ConvertBlocksToOpaque
from relaxlang.passes.tir.flatten_buffer import FlattenBuffer
from relaxlang.passes.tir.lower_init_block import LowerInitBlock
from relaxlang.passes.tir.lower_match_buffer import LowerMatchBuffer
from relaxlang.passes.tir.lower_opaque_block import LowerOpaqueBlock

LOWERING: tuple[PrimFuncPass, ...] = (
    LowerInitBlock(),
    ConvertBlocksToOpaque(),
    LowerMatchBuffer(),
    LowerOpaqueBlock(),
    FlattenBuffer(),
)


def lower(func: PrimFunc) -> PrimFunc:
    """A PrimFunc without blocks and with flat accesses; a function that is so already is returned as it is."""
    ctx = PassContext.current()
    with deep_recursion():
        for step in LOWERING:
            func = step.run_prim_func(func, ctx)
    return func
