"""What the loop primitives share: rebinding the axes of the blocks below."""

from __future__ import annotations

from collections.abc import Mapping

from relaxlang.arith.analyzer import Analyzer
from relaxlang.arith.iter_map import iter_map_simplify
from relaxlang.ir.prim import BOOL, IntImm, PrimExpr, Var, all_of, cast, const
from relaxlang.ir.tir import BlockRealize, BufferStore, Evaluate, For, IfThenElse, Range, Stmt
from relaxlang.ir.visit import Substitute, conjuncts, free_vars, on
from relaxlang.schedule.state import State


class Rebind(Substitute):
    """Replaces loop variables in a loop's body, and adds a condition under which the blocks there run."""

    def __init__(self, mapping: Mapping[Var, PrimExpr], condition: PrimExpr | None = None) -> None:
        super().__init__(mapping)
        self.condition = condition

    @on(BlockRealize)
    def realize(self, node: BlockRealize) -> BlockRealize:
        """A block: its bindings and predicate; what is inside of it has the condition through it."""
        outer, self.condition = self.condition, None
        made = self.below(node)
        self.condition = outer
        return made if outer is None else made.replace(predicate=conjunction(outer, made.predicate))

    @on(BufferStore, Evaluate)
    def bare(self, node: Stmt) -> Stmt:
        """A statement outside of any block."""
        made = self.below(node)
        return made if self.condition is None else IfThenElse(self.condition, made, span=node.span)


def conjunction(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """Both conditions, each once."""
    parts = dict.fromkeys((*requirements(a), *requirements(b)))
    return all_of(*parts) if parts else IntImm(BOOL, 1)


def clean(state: State, top: Stmt) -> State:
    """The state with the bindings of all blocks below `top` (of its scope) in their simplest form."""
    changes: dict[Stmt, Stmt | None] = {}
    analyzer = state.analyzer()
    for realize in state.blocks_under(top):
        made = simplified(realize, state.ranges(realize), analyzer)
        if made is not realize:
            changes[realize] = made
    return state.replace(changes) if changes else state


def simplified(realize: BlockRealize, iters: Mapping[Var, Range], analyzer: Analyzer) -> BlockRealize:
    """A block with simpler bindings and predicate, given the loops around it."""
    values = iter_map_simplify(realize.iter_values, iters, predicate=realize.predicate, analyzer=analyzer)
    with analyzer.assuming():
        for var, dom in iters.items():
            analyzer.bind(var, dom)
        parts = [analyzer.simplify(p) for p in requirements(realize.predicate)]
        # Where a loop has one iteration, or the condition leaves one, the binding still says which loop it is.
        values = [
            old if isinstance(old, Var) else v if set(free_vars(v)) == set(free_vars(old)) else analyzer.simplify(old)
            for v, old in zip(values, realize.iter_values)
        ]
    predicate = IntImm(BOOL, 1) if not parts else parts[0]
    for part in parts[1:]:
        predicate = conjunction(predicate, part)
    if all(a == b for a, b in zip(values, realize.iter_values)) and predicate == realize.predicate:
        return realize
    return realize.replace(iter_values=tuple(values), predicate=predicate)


def requirements(condition: PrimExpr) -> list[PrimExpr]:
    """The conditions that a conjunction consists of, in order; none for a constant true."""
    return [part for part in conjuncts(condition) if not (isinstance(part, IntImm) and part.value)]


def nest(loops: list[tuple[Var, PrimExpr]], body: Stmt) -> Stmt:
    """Serial loops from 0, outermost first, around a statement."""
    for var, extent in reversed(loops):
        body = For(var, const(0, var.dtype), cast(extent, var.dtype), "serial", body)
    return body
