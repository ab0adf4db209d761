"""LoopPartition: iterations in which a condition always holds run without it."""

from __future__ import annotations

from relaxlang.arith.analyzer import Analyzer
from relaxlang.arith.deduce import deduce_bound
from relaxlang.arith.intervals import Domain
from relaxlang.base.record import record
from relaxlang.ir import prim
from relaxlang.ir.prim import BufferLoad, IntImm, PrimExpr, Var, const
from relaxlang.ir.tir import For, IfThenElse, PrimFunc, Range, Stmt, seq
from relaxlang.ir.visit import Rewriter, Visitor, conjuncts, free_vars, on, substitute, walk
from relaxlang.passes.base import PassContext, PrimFuncPass
from relaxlang.passes.tir.stmt_simplify import Simplifier
from relaxlang.schedule.stmts import walk_stmts

HINT = "pragma_loop_partition_hint"
"""The annotation of a loop that says whether it is to be taken apart."""
MOST = 2
"""How many loops around each other are taken apart: each doubles the code."""


@record
class LoopPartition(PrimFuncPass):
    """A loop of tiles whose last one is not full is taken apart: full tiles run without the condition, which stands in
    inner loops, and the rest runs with it. A parallel loop stays one loop, whose body chooses. A loop with the
    annotation `pragma_loop_partition_hint` of 0 stays as it is.

    Before:

        @T.prim_func
        def f(A: T.Buffer((61,), "float32")):
            for i in range(4):
                for j in T.vectorized(16):
                    if i * 16 + j < 61:
                        A[i * 16 + j] = T.float32(0)

    After:

        @T.prim_func
        def f(A: T.Buffer((61,), "float32")):
            for i in range(3):
                for j in T.vectorized(16):
                    A[i * 16 + j] = T.float32(0)
            for i_1 in range(3, 4):
                for j in T.vectorized(16):
                    if j < 13:
                        A[j + 48] = T.float32(0)
    """

    def run_prim_func(self, func: PrimFunc, ctx: PassContext) -> PrimFunc:
        return loop_partition(func)


def loop_partition(func: PrimFunc) -> PrimFunc:
    """The function with its loops of tiles taken apart."""
    if not _has_conditions(func.body):
        return func
    dims = [d for b in func.buffer_map.values() for d in b.shape if isinstance(d, Var)]
    partition = _Partition(Analyzer(dims))
    body = partition.visit(func.body)
    if body is func.body:
        return func
    return func.replace(body=_Afresh(Analyzer(dims), partition).visit(body))


class _Partition(Rewriter):
    """`depth` counts the loops taken apart around the statement at hand; `pieces` are the loops that came of loops that
    were taken apart, `around` those that are new for what changed in them, both by identity."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self.depth = 0
        self.pieces: dict[int, For] = {}
        self.around: dict[int, For] = {}

    @on(For)
    def loop(self, node: For) -> Stmt:
        """A loop."""
        if not _has_conditions(node.body):
            return node
        if not isinstance(node.step, IntImm) or node.step.value != 1:
            return self._entered(node)
        with self.analyzer.within(node.loop_var, Range(node.min, node.extent)):
            found = self._parts(node)
            if found is None:
                return self._entered(node)
        # From here on nothing may be taken from the loop's running at all: its extent may be 0.
        end, full, rest = found
        holding = prim.fold(prim.Max, end - node.min, const(0, node.extent.dtype))
        count = self.analyzer.simplify(prim.fold(prim.Min, holding, node.extent))
        if node.kind == "parallel":
            return self._piece(node.replace(body=IfThenElse(prim.LT(node.loop_var, end), full, rest)))
        last = Var(node.loop_var.name, node.loop_var.dtype)
        tail = substitute(rest, {node.loop_var: last})
        first = self.analyzer.simplify(node.min + count)
        left = self.analyzer.simplify(node.extent - count)
        return seq(
            self._piece(node.replace(extent=count, body=full)),
            self._piece(node.replace(loop_var=last, min=first, extent=left, body=tail)),
        )

    def _piece(self, loop: For) -> For:
        self.pieces[id(loop)] = loop
        return loop

    def _entered(self, node: For) -> For:
        """A loop that stays one."""
        made = self.below(node)
        if made is not node:
            self.around[id(made)] = made
        return made

    def _parts(self, node: For) -> tuple[PrimExpr, Stmt, Stmt] | None:
        """Up to where conditions of a loop's body hold, the body without them, and the body with them."""
        single = isinstance(node.extent, IntImm) and node.extent.value <= 1
        declined = node.annotations.get(HINT, 1) == 0
        if node.kind not in ("serial", "parallel") or self.depth >= MOST or single or declined:
            return None
        found = _Conditions(node.loop_var)
        found.visit(node.body)
        end, terms = self._full(node, found.terms)
        if not terms:
            return None
        self.depth += 1
        full, rest = self.visit(_Strip(terms).visit(node.body)), self.visit(node.body)
        self.depth -= 1
        return end, full, rest

    def _full(self, node: For, terms: list[tuple[PrimExpr, Domain]]) -> tuple[PrimExpr, set[PrimExpr]]:
        """Up to which value (excluded) of the loop variable conditions hold, and which those are: the ones that end
        first, and all that hold as long."""
        var, best = node.loop_var, None
        ends: list[tuple[PrimExpr, PrimExpr]] = []
        for term, inner in terms:
            try:
                holds = deduce_bound(var, term, relax=inner, analyzer=self.analyzer)
            except ValueError:
                continue
            if holds.max is None or holds.min is not None:
                continue
            end = self.analyzer.simplify(holds.max + 1)
            ends.append((term, end))
            if best is None or self.analyzer.can_prove(end <= best):
                best = end
        if best is None or self.analyzer.can_prove(best <= node.min):
            return node.min, set()
        if self.analyzer.can_prove(best >= node.min + node.extent):
            best = self.analyzer.simplify(node.min + node.extent)
        return best, {term for term, end in ends if end == best or self.analyzer.can_prove(end >= best)}


def _has_conditions(body: Stmt) -> bool:
    return any(isinstance(stmt, IfThenElse) for stmt in walk_stmts(body))


class _Conditions(Visitor):
    """Collects the conditions on a variable that stand in inner loops, with what these loops run through."""

    def __init__(self, var: Var) -> None:
        self.var = var
        self.inner: dict[Var, Range] = {}
        self.terms: list[tuple[PrimExpr, Domain]] = []

    @on(For)
    def loop(self, node: For) -> None:
        """An inner loop; its variable is relaxed in what is below."""
        self.inner[node.loop_var] = Range(node.min, node.extent)
        self.visit(node.body)

    @on(IfThenElse)
    def condition(self, node: IfThenElse) -> None:
        """A condition."""
        if self.inner and node.else_case is None:
            for term in conjuncts(node.condition):
                used = set(free_vars(term))
                if self.var in used and not any(isinstance(n, BufferLoad) for n in walk(term)):
                    loops = used & {self.var, *self.inner}
                    nested = any(v in loops for r in self.inner.values() for v in free_vars((r.min, r.extent)))
                    if not nested:
                        self.terms.append((term, {v: r for v, r in self.inner.items() if v in used}))
        self.below(node)


class _Afresh(Simplifier):
    """Simplifies the loops that were taken apart; the others are as they were."""

    def __init__(self, analyzer: Analyzer, partition: _Partition) -> None:
        super().__init__(analyzer)
        self.partition = partition
        self.inside = False

    @on(For)
    def piece(self, node: For) -> Stmt:
        """A loop."""
        outer = self.inside
        if not outer and id(node) not in self.partition.pieces and id(node) not in self.partition.around:
            return node
        self.inside = outer or id(node) in self.partition.pieces
        made = self.loop(node)
        self.inside = outer
        return made


class _Strip(Rewriter):
    """Removes conditions that always hold."""

    def __init__(self, terms: set[PrimExpr]) -> None:
        self.terms = terms

    @on(IfThenElse)
    def condition(self, node: IfThenElse) -> Stmt:
        """A condition, without the parts that hold."""
        then: Stmt = self.visit(node.then_case)
        kept = [t for t in conjuncts(node.condition) if t not in self.terms]
        if not kept and node.else_case is None:
            return then
        other = None if node.else_case is None else self.visit(node.else_case)
        return node.replace(condition=prim.all_of(*kept), then_case=then, else_case=other)
