"""LowerInitBlock: where a reduction's start value is stored."""

from __future__ import annotations

from collections.abc import Iterable

from relaxlang.base.record import record
from relaxlang.ir import prim
from relaxlang.ir.prim import PrimExpr, Var, all_of
from relaxlang.ir.tir import (
    Block,
    BlockRealize,
    BufferStore,
    For,
    IfThenElse,
    IterVar,
    PrimFunc,
    SeqStmt,
    Stmt,
    seq,
)
from relaxlang.ir.visit import Rewriter, free_vars, on, substitute, walk
from relaxlang.passes.base import PassContext, PrimFuncPass
from relaxlang.schedule.stmts import walk_stmts


@record
class LowerInitBlock(PrimFuncPass):
    """Blocks lose their `init`.

    It becomes a block of its own, in loops over the spatial axes, before the outermost loop of the reduction: so it
    runs once for each point, also when the reduction has no iteration. Where that is impossible (one loop drives
    spatial and reduction axes, or a condition stands between) it becomes a first statement of the body, under the
    condition that every reduction axis is at its first value.

    Before:

        @T.prim_func
        def f(A: T.Buffer((8, 32), "float32"), B: T.Buffer((8,), "float32")):
            for i, k in T.grid(8, 32):
                with T.block("sum"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        B[vi] = T.float32(0)
                    B[vi] = B[vi] + A[vi, vk]

    After:

        @T.prim_func
        def f(A: T.Buffer((8, 32), "float32"), B: T.Buffer((8,), "float32")):
            for i in range(8):
                with T.block("sum_init"):
                    vi_init = T.axis.spatial(8, i)
                    T.reads()
                    B[vi_init] = T.float32(0.0)
                for k in range(32):
                    with T.block("sum"):
                        vi, vk = T.axis.remap("SR", [i, k])
                        B[vi] = B[vi] + A[vi, vk]
    """

    def run_prim_func(self, func: PrimFunc, ctx: PassContext) -> PrimFunc:
        return lower_init_block(func)


def lower_init_block(func: PrimFunc) -> PrimFunc:
    """The function with no `init` in any block."""
    if not any(isinstance(stmt, Block) and stmt.init is not None for stmt in walk_stmts(func.body)):
        return func
    return func.replace(body=_Lower()(func.body))


class _Lower(Rewriter):
    """Keeps the statements between the enclosing block and the current one; `hoisted` are the initialisations that go
    before a loop, by that loop's identity."""

    def __init__(self) -> None:
        self.path: list[Stmt] = []
        self.hoisted: dict[int, list[Stmt]] = {}

    @on(For)
    def loop(self, node: For) -> Stmt:
        """A loop, after the initialisations of the reductions that it is the outermost loop of."""
        self.path.append(node)
        made = self.below(node)
        self.path.pop()
        return seq(*self.hoisted.pop(id(node), ()), made)

    @on(SeqStmt, IfThenElse)
    def between(self, node: Stmt) -> Stmt:
        """A statement on the way to a block."""
        self.path.append(node)
        made = self.below(node)
        self.path.pop()
        return seq(*made.seq) if isinstance(made, SeqStmt) else made

    @on(BlockRealize)
    def realize(self, node: BlockRealize) -> Stmt:
        """A block: its own scope, its init lowered."""
        outer, self.path = self.path, []
        block = node.block.replace(body=self.visit(node.block.body))
        self.path = outer
        if block.init is None:
            return node.replace(block=block)
        bare = block.replace(init=None)
        place, init = _split(node, block, self.path)
        if init is None:
            return node.replace(block=bare.replace(body=seq(_guarded(node, block), bare.body)))
        if place is not None:
            self.hoisted.setdefault(id(place), []).append(init)
        else:
            return node.replace(block=bare.replace(body=seq(block.init, bare.body)))
        return node.replace(block=bare)


def _guarded(node: BlockRealize, block: Block) -> Stmt:
    """The init under the condition that every reduction axis is at its first value."""
    assert block.init is not None
    at_first = [prim.EQ(axis.var, prim.cast(axis.dom.min, axis.var.dtype)) for axis in _reduce(block)]
    return IfThenElse(all_of(*at_first), block.init, span=block.init.span)


def _reduce(block: Block) -> list[IterVar]:
    return [axis for axis in block.iter_vars if axis.kind != "spatial"]


def _split(node: BlockRealize, block: Block, path: list[Stmt]) -> tuple[For | None, Stmt | None]:
    """The loop before which the init can go, and what goes there.

    (None, init): right before the body, at every run; (None, None): only under a condition.
    """
    values = dict(zip((axis.var for axis in block.iter_vars), node.iter_values))
    driving = set(_vars(values[axis.var] for axis in _reduce(block)))
    loops = [s for s in path if isinstance(s, For)]
    place = next((s for s in loops if s.loop_var in driving), None)
    if place is None:
        first = all(values[axis.var] == axis.dom.min for axis in _reduce(block))
        return None, block.init if first else None
    below = path[next(i for i, s in enumerate(path) if s is place) :]
    inner = [s for s in below if isinstance(s, For)]
    dropped = {s.loop_var for s in inner if s.loop_var in driving}
    spatial = [axis for axis in block.iter_vars if axis.kind == "spatial"]
    terms = _keep(node.predicate, {s.loop_var for s in inner}, dropped)
    wanted = set(_vars([*(values[axis.var] for axis in spatial), *(terms or ())]))
    kept = [s for s in inner if s.loop_var in wanted]
    bounds = set(_vars(e for s in kept for e in (s.min, s.extent)))
    if (
        terms is None
        or wanted & dropped
        or bounds & {s.loop_var for s in inner if s not in kept}
        or block.match_buffers
        or any(not isinstance(s, (For, SeqStmt)) for s in below)
        or _written_elsewhere(place, node)
    ):
        return None, None
    return place, _nest(block, spatial, values, kept, terms)


def _vars(exprs: Iterable[PrimExpr]) -> list[Var]:
    return free_vars(tuple(exprs))


def _keep(predicate: PrimExpr, inner: set[Var], dropped: set[Var]) -> list[PrimExpr] | None:
    """The conditions of a predicate that do not speak of the reduction; None when one mixes both."""
    terms, work = [], [predicate]
    while work:
        term = work.pop()
        if isinstance(term, prim.And):
            work += [term.b, term.a]
            continue
        used = set(free_vars(term))
        if used & dropped:
            if used & (inner - dropped):
                return None
        else:
            terms.append(term)
    return terms


def _written_elsewhere(place: For, node: BlockRealize) -> bool:
    """Whether something in the loop other than this block writes what the block initialises."""
    assert node.block.init is not None
    mine = {s.buffer.data for s in walk(node.block.init) if isinstance(s, BufferStore)}
    inside = {id(s) for s in walk(node) if isinstance(s, BufferStore)}
    return any(isinstance(s, BufferStore) and s.buffer.data in mine and id(s) not in inside for s in walk(place))


def _nest(
    block: Block, spatial: list[IterVar], values: dict[Var, PrimExpr], kept: list[For], terms: list[PrimExpr]
) -> Stmt:
    """The init as a block in loops of its own, with variables of their own."""
    assert block.init is not None
    renamed = {s.loop_var: Var(f"{s.loop_var.name}_init", s.loop_var.dtype) for s in kept}
    axes = {a.var: Var(f"{a.var.name}_init", a.var.dtype) for a in spatial}
    iter_vars = tuple(a.replace(var=axes[a.var]) for a in spatial)
    writes, body = substitute((block.writes, block.init), axes)
    init = Block(iter_vars, (), writes, f"{block.name_hint}_init", body, span=block.span)
    bindings = tuple(substitute(values[a.var], renamed) for a in spatial)
    made: Stmt = BlockRealize(bindings, substitute(all_of(*terms), renamed), init, span=block.span)
    for s in reversed(kept):
        low, extent = substitute((s.min, s.extent), renamed)
        made = For(renamed[s.loop_var], low, extent, s.kind, made, step=s.step, span=s.span)
    return made
