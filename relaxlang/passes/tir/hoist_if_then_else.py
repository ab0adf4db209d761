"""HoistIfThenElse: conditions that are the same in all iterations of a loop are tested once."""

from __future__ import annotations

from relaxlang.base.record import record
from relaxlang.ir import prim
from relaxlang.ir.prim import BufferLoad, Call, IntImm, PrimExpr
from relaxlang.ir.tir import For, IfThenElse, PrimFunc, Stmt
from relaxlang.ir.visit import Rewriter, conjuncts, free_vars, on, walk
from relaxlang.passes.base import PassContext, PrimFuncPass


@record
class HoistIfThenElse(PrimFuncPass):
    """The parts of a condition around all that a loop does that its variable does not change go around the loop. Loops
    that may have no iteration stay, and so do conditions that load or call.

    Before:

        @T.prim_func
        def f(A: T.Buffer((8, 64), "float32"), n: T.int64):
            for i in range(8):
                for j in range(4):
                    for l in T.vectorized(16):
                        if i < n and j * 16 + l < 61:
                            A[i, j * 16 + l] = T.float32(0)

    After:

        @T.prim_func
        def f(A: T.Buffer((8, 64), "float32"), n: T.int64):
            for i in range(8):
                if i < n:
                    for j in range(4):
                        for l in T.vectorized(16):
                            if j * 16 + l < 61:
                                A[i, j * 16 + l] = T.float32(0)
    """

    def run_prim_func(self, func: PrimFunc, ctx: PassContext) -> PrimFunc:
        return func.replace(body=_Hoist()(func.body))


class _Hoist(Rewriter):
    @on(For)
    def loop(self, node: For) -> Stmt:
        """A loop, after those in it."""
        made: For = self.below(node)
        body, certain = made.body, isinstance(made.extent, IntImm) and made.extent.value > 0
        if not certain or not isinstance(body, IfThenElse) or body.else_case is not None:
            return made
        parts = conjuncts(body.condition)
        settled = [p for p in parts if made.loop_var not in free_vars(p) and _is_harmless(p)]
        if not settled:
            return made
        rest = [p for p in parts if p not in settled]
        inner: Stmt = body.replace(condition=prim.all_of(*rest)) if rest else body.then_case
        return IfThenElse(prim.all_of(*settled), made.replace(body=inner), None)


def _is_harmless(condition: PrimExpr) -> bool:
    """Whether evaluating a condition earlier than where it stands does no harm."""
    return not any(
        isinstance(n, (BufferLoad, Call, prim.Div, prim.Mod, prim.FloorDiv, prim.FloorMod)) for n in walk(condition)
    )
