"""InlineBlocks: intermediate elements are computed where they are used."""

from __future__ import annotations

from collections.abc import Mapping

from relaxlang.analysis.reshape_pattern import covers
from relaxlang.analysis.stages import Stage, Stages, stages_of
from relaxlang.arith import Analyzer
from relaxlang.arith.iter_map import is_bijective
from relaxlang.base.record import record
from relaxlang.ir import prim, tir
from relaxlang.ir.prim import BOOL, BufferLoad, IntImm, PrimExpr, Var
from relaxlang.ir.tir import Block, BlockRealize, Buffer, BufferStore, PrimFunc, Range, Stmt
from relaxlang.ir.visit import Rewriter, Substitute, children, free_vars, on, walk
from relaxlang.passes.base import PassContext, PrimFuncPass

MOST_NODES = 2000
"""An expression of more nodes than this is not put into another one."""
_CHEAP = (prim.Add, prim.Sub, prim.Mul, prim.Min, prim.Max, prim.Cast, prim.Select, prim.CmpOp, prim.Not, prim.IntImm,
          prim.FloatImm, prim.BufferLoad, prim.Var, prim.FloorDiv, prim.FloorMod)  # fmt: skip


@record
class InlineBlocks(PrimFuncPass):
    """Put the expression of an elementwise or injective stage into the stages that read its buffer.

    That is done where it costs little: the one reader reads each element about once, or the expression is cheap. A
    value that one element needs several times is bound with a let. Stages that nobody reads are dropped. Kernels that
    somebody scheduled stay as they are.

    Before:

        @T.prim_func
        def f(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
            C = T.alloc_buffer((8, 8), "float32")
            for i, j in T.grid(8, 8):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = T.exp(A[vi, vj])
            for i, j in T.grid(8, 8):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = C[vj, vi] + T.float32(1)

    After:

        @T.prim_func
        def f(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
            for i, j in T.grid(8, 8):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = T.exp(A[vj, vi]) + T.float32(1)
    """

    def run_prim_func(self, func: PrimFunc, ctx: PassContext) -> PrimFunc:
        return inline_blocks(func)


def inline_blocks(func: PrimFunc) -> PrimFunc:
    """The function with fewer intermediate buffers."""
    found = stages_of(func)
    if found is None or not found.buffers:
        return func
    kept = _Inliner(found, func).run()
    if len(kept) == len(found.stages):
        return func
    return func.replace(body=assemble(found, kept))


def assemble(found: Stages, kept: list[Stage]) -> Stmt:
    """The body of a kernel with these stages; buffers that no stage uses are not allocated."""
    used = {s.buffer for stage in kept for s in stage.stores} | {load.buffer for s in kept for load in s.loads()}
    buffers = tuple(b for b in found.buffers if b in used)
    body = tir.seq(*(stage.nest for stage in kept))
    for one in reversed(found.asserts):
        body = one.replace(body=body)
    return BlockRealize((), IntImm(BOOL, 1), Block((), (), (), "root", body, alloc_buffers=buffers))


class _Inliner:
    """`bodies`: buffer to the axes of its block and the expression of its element."""

    def __init__(self, found: Stages, func: PrimFunc) -> None:
        self.stages = found.stages
        self.temporary = set(found.buffers)
        self.readers: dict[Buffer, list[Stage]] = {}
        writers: dict[Buffer, int] = {}
        for stage in found.stages:
            for buffer in dict.fromkeys(load.buffer for load in stage.loads()):
                self.readers.setdefault(buffer, []).append(stage)
            for store in stage.stores:
                writers[store.buffer] = writers.get(store.buffer, 0) + 1
        self.written_once = {b for b, n in writers.items() if n == 1}
        self.dims = [d for b in func.buffer_map.values() for d in b.shape if isinstance(d, Var)]

    def run(self) -> list[Stage]:
        """The stages that are left."""
        bodies: dict[Buffer, tuple[tuple[PrimExpr, ...], PrimExpr]] = {}
        kept: list[Stage] = []
        for stage in self._needed():
            made = self._rewritten(stage, bodies)
            store = made.stores[0]
            if self._inlines(made, stage):
                bodies[store.buffer] = (store.indices, store.value)
            else:
                kept.append(made)
        return kept

    def _needed(self) -> list[Stage]:
        """The stages whose results are read, or are the kernel's."""
        needed: set[Buffer] = set()
        kept: list[Stage] = []
        for stage in reversed(self.stages):
            if any(s.buffer not in self.temporary or s.buffer in needed for s in stage.stores):
                kept.append(stage)
                needed.update(load.buffer for load in stage.loads())
        return kept[::-1]

    def _inlines(self, stage: Stage, original: Stage) -> bool:
        """Whether a stage is to be computed by its readers."""
        store = stage.stores[0]
        if len(stage.stores) != 1 or stage.is_reduction or not isinstance(stage.block.body, BufferStore):
            return False
        if store.buffer not in self.temporary or store.buffer not in self.written_once:
            return False
        if not covers(store, stage.block) or not _is_one(stage.realize.predicate):
            return False
        readers = self.readers.get(store.buffer, [])
        size = sum(1 for _ in walk(store.value))
        if not readers or size > MOST_NODES:
            return False
        if isinstance(store.value, (IntImm, prim.FloatImm)) or _is_copy(store.value):
            return True
        if not all(isinstance(r.block.body, BufferStore) for r in readers):
            return False
        cheap = all(isinstance(n, _CHEAP) for n in walk(store.value) if isinstance(n, PrimExpr)) and size < 16
        if len(readers) > 1:
            return False
        return self._reads_once(readers[0], store.buffer) or (cheap and not readers[0].is_reduction)

    def _reads_once(self, reader: Stage, buffer: Buffer) -> bool:
        """Whether a stage reads each element about as often as there are elements: at one index, which moves with every
        axis of the block."""
        loads = {load.indices for load in reader.loads() if load.buffer is buffer}
        axes = {a.var for a in reader.block.iter_vars if not _is_one(a.dom.extent)}
        if not all(axes <= set(free_vars(indices)) for indices in loads):
            return False
        if len(loads) != 1 or any(isinstance(n, BufferLoad) for i in next(iter(loads)) for n in walk(i)):
            return False
        # A window that moves by less than its width (a pool, a convolution) reads elements again.
        domains = {a.var: a.dom for a in reader.block.iter_vars}
        return not reader.is_reduction or is_bijective(next(iter(loads)), domains, Analyzer(self.dims))

    def _rewritten(self, stage: Stage, bodies: Mapping[Buffer, tuple[tuple[PrimExpr, ...], PrimExpr]]) -> Stage:
        """A stage with the expressions of inlined ones in it."""
        if not any(load.buffer in bodies for load in stage.loads()):
            return stage
        analyzer = Analyzer(self.dims)
        for axis in stage.block.iter_vars:
            analyzer.bind(axis.var, Range(prim.cast(axis.dom.min, axis.var.dtype), axis.dom.extent))
        replace = _Loads(bodies, analyzer)
        init = stage.block.init
        block = stage.block.replace(
            body=replace.statement(stage.block.body), init=None if init is None else replace.statement(init)
        )
        return with_block(stage, block.replace(reads=_regions(block, stage)))


def with_block(stage: Stage, block: Block) -> Stage:
    """A stage with another block in its loops."""
    realize = stage.realize.replace(block=block)
    nest: Stmt = realize
    for loop in reversed(stage.loops):
        nest = loop.replace(body=nest)
    stores = tuple(n for n in walk(block.body) if isinstance(n, BufferStore))
    return Stage(nest, stage.loops, realize, stores)


def _regions(block: Block, stage: Stage) -> tuple[tir.BufferRegion, ...] | None:
    """What a block reads, element by element; None (found out when needed) where it had not said so."""
    if stage.block.reads is None:
        return None
    own = {s.buffer for s in stage.stores}
    seen: dict[Buffer, tuple[PrimExpr, ...] | None] = {}
    bound = {n.var for n in walk(block.body) if isinstance(n, (prim.Let, tir.LetStmt))}
    for load in (n for n in walk(block.body) if isinstance(n, BufferLoad) and n.buffer not in own):
        plain = not any(isinstance(n, BufferLoad) or n in bound for i in load.indices for n in walk(i))
        indices = load.indices if plain else None
        seen[load.buffer] = indices if seen.get(load.buffer, indices) == indices else None
    one = IntImm(prim.INT64, 1)
    return tuple(
        tir.BufferRegion(b, tuple(Range(prim.const(0, d.dtype), d) for d in b.shape))
        if indices is None
        else tir.BufferRegion(b, tuple(Range(i, prim.cast(one, i.dtype)) for i in indices))
        for b, indices in seen.items()
    )


def _is_copy(e: PrimExpr) -> bool:
    """Whether an expression is one element at plain indices."""
    return isinstance(e, BufferLoad) and all(isinstance(i, (Var, IntImm)) for i in e.indices)


def _is_one(e: PrimExpr) -> bool:
    return isinstance(e, IntImm) and e.value == 1


class _Loads(Rewriter):
    """Puts expressions in the places of loads. A value that a statement needs more than once is bound by a let around
    the stored value, when at least one of its uses is evaluated in any case."""

    def __init__(self, bodies: Mapping[Buffer, tuple[tuple[PrimExpr, ...], PrimExpr]], analyzer: Analyzer) -> None:
        self.bodies = bodies
        self.analyzer = analyzer
        self.held: dict[tuple[Buffer, tuple[PrimExpr, ...]], Var] = {}

    def statement(self, stmt: Stmt) -> Stmt:
        """A block's body."""
        made: Stmt = self(stmt)
        return made

    @on(BufferStore)
    def store(self, node: BufferStore) -> BufferStore:
        """A store: which values does it need more than once?"""
        counts: dict[tuple[Buffer, tuple[PrimExpr, ...]], int] = {}
        for load in _always(node.value):
            if load.buffer in self.bodies:
                counts[load.buffer, load.indices] = counts.get((load.buffer, load.indices), 0) + 1
        total: dict[tuple[Buffer, tuple[PrimExpr, ...]], int] = {}
        for load in (n for n in walk(node.value) if isinstance(n, BufferLoad)):
            total[load.buffer, load.indices] = total.get((load.buffer, load.indices), 0) + 1
        outer, self.held = self.held, {}
        values: list[tuple[Var, PrimExpr]] = []
        for key in counts:
            made = self.value_of(*key)
            if total[key] > 1 and not isinstance(made, (BufferLoad, IntImm, prim.FloatImm, Var)):
                var = Var(f"{key[0].name}_value", key[0].dtype)
                values.append((var, made))
                self.held[key] = var
        made_value: PrimExpr = self(node.value)
        for var, value in reversed(values):
            made_value = prim.Let(var, value, made_value)
        self.held = outer
        return node.replace(value=made_value)

    @on(BufferLoad)
    def load(self, node: BufferLoad) -> PrimExpr:
        """A load of a buffer that is there, or the value that would be in it."""
        held = self.held.get((node.buffer, node.indices))
        if held is not None:
            return held
        if node.buffer in self.bodies:
            return self.value_of(node.buffer, node.indices)
        return self.below(node)

    def value_of(self, buffer: Buffer, indices: tuple[PrimExpr, ...]) -> PrimExpr:
        """The expression of an element; every use has variables of its own inside."""
        at, value = self.bodies[buffer]
        mapping = {v: prim.cast(self(i), v.dtype) for v, i in zip(at, indices) if isinstance(v, Var)}
        made: PrimExpr = _Simplified(mapping, self.analyzer)(value)
        return made


class _Simplified(Substitute):
    """Substitutes axes, and simplifies the indices that this makes; lets get new variables."""

    def __init__(self, mapping: Mapping[Var, PrimExpr], analyzer: Analyzer) -> None:
        super().__init__(dict(mapping))
        self.analyzer = analyzer
        self.new: dict[Var, PrimExpr] = {}

    @on(prim.Var, prim.SizeVar)
    def var(self, node: Var) -> PrimExpr:
        """A variable's replacement, or itself."""
        found = self.new.get(node)
        return self.mapping.get(node, node) if found is None else found

    @on(prim.Let)
    def let(self, node: prim.Let) -> PrimExpr:
        """A let with a variable of its own."""
        value = self(node.value)
        self.new[node.var] = fresh = Var(node.var.name, node.var.of)
        return prim.Let(fresh, value, self(node.body), span=node.span)

    @on(BufferLoad)
    def load(self, node: BufferLoad) -> BufferLoad:
        """A load at the new indices."""
        made = tuple(self._index(i) for i in node.indices)
        return node if all(a is b for a, b in zip(made, node.indices)) else node.replace(indices=made)

    def _index(self, index: PrimExpr) -> PrimExpr:
        made: PrimExpr = self(index)
        if made is index or isinstance(made, (Var, IntImm)) or any(isinstance(n, BufferLoad) for n in walk(made)):
            return made
        return self.analyzer.simplify(made)


def _always(e: PrimExpr) -> list[BufferLoad]:
    """The loads of an expression that are evaluated whatever the conditions in it are."""
    found: list[BufferLoad] = []
    work: list[PrimExpr] = [e]
    while work:
        node = work.pop()
        if isinstance(node, BufferLoad):
            found.append(node)
        elif isinstance(node, prim.Call) and node.op == "if_then_else":
            work.append(node.args[0])
        elif isinstance(node, (prim.And, prim.Or)):
            work.append(node.a)
        elif not isinstance(node, Var):
            work += [n for n in children(node) if isinstance(n, PrimExpr)]
    return found
