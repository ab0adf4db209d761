"""StmtSimplify: shorter index arithmetic, and conditions that are decided."""

from __future__ import annotations

from relaxlang.arith.analyzer import Analyzer
from relaxlang.base.record import record
from relaxlang.ir import prim
from relaxlang.ir.prim import IntImm, PrimExpr
from relaxlang.ir.tir import AssertStmt, For, IfThenElse, PrimFunc, Range, SeqStmt, Stmt, seq
from relaxlang.ir.visit import Rewriter, on
from relaxlang.passes.base import PassContext, PrimFuncPass


@record
class StmtSimplify(PrimFuncPass):
    """Simplifies integer expressions over loop variables and dimensions, knowing the ranges of the loops.

    Conditions that always hold go, as do statements that never run. Values computed from memory stay as written: they
    may wrap, and wrapping is their meaning.

    Before:

        @T.prim_func
        def f(A: T.Buffer((64,), "float32")):
            for i, j in T.grid(8, 8):
                if i * 8 + j < 64:
                    A[(i * 16 + j * 2) // 2] = T.float32(0)

    After:

        @T.prim_func
        def f(A: T.Buffer((64,), "float32")):
            for i, j in T.grid(8, 8):
                A[i * 8 + j] = T.float32(0)
    """

    def run_prim_func(self, func: PrimFunc, ctx: PassContext) -> PrimFunc:
        return stmt_simplify(func)


def stmt_simplify(func: PrimFunc) -> PrimFunc:
    """The function with simpler index arithmetic."""
    dims = [d for b in func.buffer_map.values() for d in b.shape if isinstance(d, prim.Var)]
    return func.replace(body=Simplifier(Analyzer(dims))(func.body))


class Simplifier(Rewriter):
    """What the pass does with statements and expressions; `analyzer` knows the ranges of the loops around."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self._plain: dict[int, tuple[PrimExpr, bool]] = {}

    @on(prim.Add, prim.Sub, prim.Mul, prim.Div, prim.Mod, prim.FloorDiv, prim.FloorMod, prim.Min, prim.Max, prim.EQ,
        prim.NE, prim.LT, prim.LE, prim.GT, prim.GE, prim.And, prim.Or, prim.Not, prim.Cast)  # fmt: skip
    def arithmetic(self, node: PrimExpr) -> PrimExpr:
        """Expressions over index variables are simplified as a whole, all others part by part."""
        return self.analyzer.simplify(node) if self._is_index(node) else self.below(node)

    def _is_index(self, e: PrimExpr) -> bool:
        """Whether an expression consists of integer variables, constants and arithmetic."""
        if e.dtype.kind not in ("int", "uint", "bool"):
            return False
        if isinstance(e, (prim.Var, IntImm)):
            return e.dtype.lanes == 1
        known = self._plain.get(id(e))
        if known is None:
            if isinstance(e, (prim.BinaryOp, prim.CmpOp)):
                made = self._is_index(e.a) and self._is_index(e.b)
            elif isinstance(e, prim.Not):
                made = self._is_index(e.a)
            else:
                made = isinstance(e, prim.Cast) and e.of.is_int and e.of.bits >= 32 and self._is_index(e.value)
            known = self._plain[id(e)] = (e, made)
        return known[1]

    @on(For)
    def loop(self, node: For) -> Stmt:
        """A loop: its variable's range is known inside."""
        low, extent = self.visit(node.min), self.visit(node.extent)
        if isinstance(extent, IntImm) and extent.value <= 0:
            return seq()
        step = self.visit(node.step)
        if not isinstance(step, IntImm) or step.value != 1:
            return node.replace(min=low, extent=extent, step=step, body=self.visit(node.body))
        with self.analyzer.within(node.loop_var, Range(low, extent)):
            return node.replace(min=low, extent=extent, step=step, body=self.visit(node.body))

    @on(IfThenElse)
    def condition(self, node: IfThenElse) -> Stmt:
        """A condition: decided, or known to hold inside."""
        condition = self.visit(node.condition)
        if isinstance(condition, IntImm):
            chosen = node.then_case if condition.value else node.else_case
            kept: Stmt = seq() if chosen is None else self.visit(chosen)
            return kept
        if not self._is_index(condition):
            other = None if node.else_case is None else self.visit(node.else_case)
            return node.replace(condition=condition, then_case=self.visit(node.then_case), else_case=other)
        with self.analyzer.assuming(condition):
            then = self.visit(node.then_case)
        other = None if node.else_case is None else self.visit(node.else_case)
        return node.replace(condition=condition, then_case=then, else_case=other)

    @on(AssertStmt)
    def assertion(self, node: AssertStmt) -> Stmt:
        """An assertion that always holds goes."""
        condition = self.visit(node.condition)
        if isinstance(condition, IntImm) and condition.value:
            made: Stmt = self.visit(node.body)
            return made
        return node.replace(condition=condition, body=self.visit(node.body))

    @on(SeqStmt)
    def sequence(self, node: SeqStmt) -> Stmt:
        """A sequence without what came to nothing."""
        made = [self.visit(s) for s in node.seq]
        return node if all(a is b for a, b in zip(made, node.seq)) else seq(*made)

    @on(prim.Call)
    def call(self, node: prim.Call) -> PrimExpr:
        """A call; a conditional expression whose condition is decided is one of its arms."""
        made: prim.Call = self.below(node)
        if made.op == "if_then_else" and isinstance(made.args[0], IntImm):
            return made.args[1] if made.args[0].value else made.args[2]
        return made
