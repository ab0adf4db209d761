"""Loops that somebody cut, joined or permuted, and marked in no way, become one loop an axis again: what a block
computes does not depend on them, and rules look at what a block computes."""

from __future__ import annotations

from relaxlang.arith.analyzer import Analyzer
from relaxlang.arith.iter_map import detect_iter_map
from relaxlang.arith.iter_sum import IterSum
from relaxlang.ir.prim import IntImm, PrimExpr, Var, cast, const
from relaxlang.ir.tir import Block, BlockRealize, For, PrimFunc, Range, Stmt
from relaxlang.ir.visit import Rewriter, free_vars, on
from relaxlang.schedule.primitives.loops import nest
from relaxlang.schedule.state import TRUE


def with_plain_loops(func: PrimFunc) -> PrimFunc:
    """The function in which each block that is alone in serial loops, which run through all values of its axes and each
    combination once, stands in a loop for each axis, in their order. The function itself when all do already."""
    return func.replace(body=_PlainLoops()(func.body))


class _PlainLoops(Rewriter):
    @on(For)
    def loop(self, node: For) -> Stmt:
        """The outermost loop of a nest."""
        loops: list[For] = []
        below: Stmt = node
        while isinstance(below, For) and below.kind == "serial" and not below.annotations:
            loops.append(below)
            below = below.body
        if not isinstance(below, BlockRealize):
            return self.below(node)
        if _is_plain(loops, below):  # and no part of the nest alone runs through all values of the axes
            made: Stmt = self.below(below)
            for one in reversed(loops) if made is not below else ():
                made = one.replace(body=made)
            return node if made is below else made
        return _one_for_each_axis(below) if _covers(loops, below) else self.below(node)


def _is_plain(loops: list[For], realize: BlockRealize) -> bool:
    """Whether there is one loop an axis already, in their order."""
    return len(loops) == len(realize.iter_values) and all(
        s.loop_var is v and isinstance(s.min, IntImm) and s.min.value == 0
        for s, v in zip(loops, realize.iter_values)
    )  # fmt: skip


def _covers(loops: list[For], realize: BlockRealize) -> bool:
    """Whether the loops run through each combination of the values of the block's axes, and once."""
    block: Block = realize.block
    mine = {s.loop_var for s in loops}
    if not block.iter_vars or any(a.kind not in ("spatial", "reduce") for a in block.iter_vars):
        return False
    if any(
        not isinstance(s.step, IntImm) or s.step.value != 1 or mine & set(free_vars((s.min, s.extent))) for s in loops
    ):
        return False
    analyzer = Analyzer()
    ranges = {s.loop_var: Range(s.min, s.extent) for s in loops}
    found = detect_iter_map(
        realize.iter_values, ranges, predicate=realize.predicate, level="bijective", analyzer=analyzer
    )
    if not found:
        return False
    for total, axis in zip(found.indices, block.iter_vars):
        extent, first = _extent(total, analyzer), cast(axis.dom.min, total.base.dtype)
        if extent is None or not analyzer.can_prove_equal(extent, cast(axis.dom.extent, extent.dtype)):
            return False
        if not analyzer.can_prove_equal(total.base, first):
            return False
    return True


def _extent(total: IterSum, analyzer: Analyzer) -> PrimExpr | None:
    """How many values a sum runs through, one after the other; None when there are gaps."""
    extent: PrimExpr = const(1, total.base.dtype)
    left = list(total.args)
    while left:
        following = next((one for one in left if analyzer.can_prove_equal(one.scale, extent)), None)
        if following is None:
            return None
        left.remove(following)
        extent = extent * following.extent
    return extent


def _one_for_each_axis(realize: BlockRealize) -> Stmt:
    """The block in loops of its axes."""
    axes = realize.block.iter_vars
    names = [a.var.name.removeprefix("v_").removeprefix("v") or a.var.name for a in axes]
    loops = [(Var(n, a.var.dtype), a.dom.extent) for n, a in zip(names, axes)]
    values: list[PrimExpr] = [
        v if isinstance(a.dom.min, IntImm) and a.dom.min.value == 0 else a.dom.min + v for a, (v, _) in zip(axes, loops)
    ]
    return nest(list(loops), realize.replace(iter_values=tuple(values), predicate=TRUE))
