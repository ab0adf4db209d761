"""UnrollLoop: unrolled loops become copies of their bodies."""

from __future__ import annotations

from relaxlang.base.record import record
from relaxlang.ir import prim
from relaxlang.ir.prim import IntImm, cast, const
from relaxlang.ir.tir import Break, Continue, For, IfThenElse, PrimFunc, Stmt, seq
from relaxlang.ir.visit import Rewriter, Substitute, on, walk
from relaxlang.passes.base import PassContext, PrimFuncPass
from relaxlang.passes.tir.stmt_simplify import stmt_simplify
from relaxlang.schedule.stmts import walk_stmts


@record
class UnrollLoop(PrimFuncPass):
    """`for i in T.unroll(4): body` becomes four copies of the body.

    Loops of more than `max_steps` copies in all, with an extent that is not constant, or with `break` or `continue`,
    stay loops.

    Before:

        @T.prim_func
        def f(A: T.Buffer((8,), "float32")):
            for i in T.unroll(2):
                A[i * 4] = T.float32(1)

    After:

        @T.prim_func
        def f(A: T.Buffer((8,), "float32")):
            A[0] = T.float32(1.0)
            A[4] = T.float32(1.0)
    """

    max_steps: int = 512

    def run_prim_func(self, func: PrimFunc, ctx: PassContext) -> PrimFunc:
        return unroll_loop(func, self.max_steps)


def unroll_loop(func: PrimFunc, max_steps: int = 512) -> PrimFunc:
    """The function with its unrolled loops expanded."""
    unroll = _Unroll(max_steps)
    made = func.replace(body=unroll.visit(func.body))
    return stmt_simplify(made) if unroll.conditions else made


class _Unroll(Rewriter):
    """`copies` is how often the statement at hand stands in the result."""

    def __init__(self, max_steps: int) -> None:
        self.max_steps = max_steps
        self.copies = 1
        self.conditions = False  # whether a copy has a condition, which its number may decide

    @on(For)
    def loop(self, node: For) -> Stmt:
        """A loop; an unrolled one is expanded."""
        if node.kind != "unroll" or not isinstance(node.extent, IntImm) or not isinstance(node.step, IntImm):
            return self.below(node)
        steps = max(node.extent.value, 0)
        if steps * self.copies > self.max_steps or any(isinstance(n, (Break, Continue)) for n in walk(node.body)):
            return self.below(node)
        self.conditions = self.conditions or any(isinstance(n, IfThenElse) for n in walk_stmts(node.body))
        outer, self.copies = self.copies, self.copies * max(steps, 1)
        body: Stmt = self.visit(node.body)
        self.copies = outer
        var, step = node.loop_var, node.step.value
        low = cast(node.min, var.dtype)
        return seq(*(_Copy({var: low + const(i * step, var.dtype)})(body) for i in range(steps)))


class _Copy(Substitute):
    """A copy of the body for one value of the loop variable; constants that meet are computed."""

    @on(prim.Add, prim.Sub, prim.Mul, prim.FloorDiv, prim.FloorMod)
    def arithmetic(self, node: prim.BinaryOp) -> prim.PrimExpr:
        """An operation; computed when the variable's value makes its operands constants or neutral."""
        made = self.below(node)
        if made is node or not (isinstance(made.a, IntImm) or isinstance(made.b, IntImm)):
            return made
        folded = prim.fold(made.__class__, made.a, made.b)
        return made if type(folded) is type(made) else folded
