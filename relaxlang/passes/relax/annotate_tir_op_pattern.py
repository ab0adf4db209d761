"""AnnotateTIROpPattern: kernels say what kind of computation they are."""

from __future__ import annotations

from relaxlang.analysis.op_pattern import op_pattern
from relaxlang.base.record import record
from relaxlang.ir.tir import PrimFunc
from relaxlang.passes.base import PassContext, PrimFuncPass


@record
class AnnotateTIROpPattern(PrimFuncPass):
    """Give every PrimFunc the attribute `op_pattern` that fusion goes by, unless it has one: see `analysis.op_pattern`.

    The kind is read off the loops and indices: kernels that users write fuse like those of operators.

    Before:

        @T.prim_func
        def add(A: T.Buffer((n, 8), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((n, 8), "float32")):
            for i, j in T.grid(n, 8):
                with T.block("add"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = A[vi, vj] + B[vj]

    After:

        @T.prim_func
        def add(A: T.Buffer((n, 8), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((n, 8), "float32")):
            T.func_attr({"op_pattern": 0})
            for i, j in T.grid(n, 8):
                with T.block("add"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = A[vi, vj] + B[vj]
    """

    def run_prim_func(self, func: PrimFunc, ctx: PassContext) -> PrimFunc:
        if "op_pattern" in func.attrs:
            return func
        return func.replace(attrs=func.attrs.set("op_pattern", int(op_pattern(func))))
