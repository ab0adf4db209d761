"""RemoveNoOp: statements that do nothing go."""

from __future__ import annotations

from typing import Any

from relaxlang.base.record import record
from relaxlang.ir import prim
from relaxlang.ir.intrinsics import INTRINSICS
from relaxlang.ir.prim import PrimExpr
from relaxlang.ir.tir import (
    Allocate,
    AllocConst,
    DeclBuffer,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    PrimFunc,
    SeqStmt,
    Stmt,
    seq,
)
from relaxlang.ir.visit import Rewriter, on, walk
from relaxlang.passes.base import PassContext, PrimFuncPass


@record
class RemoveNoOp(PrimFuncPass):
    """Removes loops, conditions, variables and allocations around nothing, and expressions evaluated for nothing.

    Before:

        @T.prim_func
        def f(A: T.Buffer((8,), "float32")):
            for i in range(8):
                if A[i] > T.float32(0):
                    T.evaluate(0)
            A[0] = T.float32(1)

    After:

        @T.prim_func
        def f(A: T.Buffer((8,), "float32")):
            A[0] = T.float32(1)
    """

    def run_prim_func(self, func: PrimFunc, ctx: PassContext) -> PrimFunc:
        return remove_no_op(func)


def remove_no_op(func: PrimFunc) -> PrimFunc:
    """The function without statements that do nothing."""
    return func.replace(body=_Remove()(func.body))


class _Remove(Rewriter):
    @on(For, LetStmt, Allocate, AllocConst, DeclBuffer)
    def around(self, node: Any) -> Stmt:
        """A statement around another."""
        body = self.visit(node.body)
        parts = [getattr(node, name) for name in ("min", "extent", "value") if hasattr(node, name)]
        if _nothing(body) and all(_harmless(e) for e in parts):
            return seq()
        return node.replace(body=body)  # type: ignore[no-any-return]

    @on(IfThenElse)
    def condition(self, node: IfThenElse) -> Stmt:
        """A condition; one of two empty cases goes."""
        then = self.visit(node.then_case)
        other = None if node.else_case is None else self.visit(node.else_case)
        if other is not None and _nothing(other):
            other = None
        if other is None and _nothing(then) and _harmless(node.condition):
            return seq()
        return node.replace(then_case=then, else_case=other)

    @on(Evaluate)
    def evaluate(self, node: Evaluate) -> Stmt:
        """An expression evaluated for its effect."""
        return seq() if _harmless(node.value) else node

    @on(SeqStmt)
    def sequence(self, node: SeqStmt) -> Stmt:
        """A sequence without the statements that do nothing."""
        made = [self.visit(s) for s in node.seq]
        return node if all(a is b for a, b in zip(made, node.seq)) else seq(*made)


def _nothing(s: Stmt) -> bool:
    return isinstance(s, Evaluate) and _harmless(s.value)


def _harmless(e: PrimExpr) -> bool:
    """Whether evaluating it has no effect."""
    calls = [n.op for n in walk(e) if isinstance(n, prim.Call)]
    return all(isinstance(op, str) and op in INTRINSICS and INTRINSICS[op].pure for op in calls)
