"""MergeLoops: stages that follow each other share their outer loops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from relaxlang.analysis.stages import Stage, Stages, stages_of
from relaxlang.arith import Analyzer
from relaxlang.base.record import record
from relaxlang.ir import prim, tir
from relaxlang.ir.prim import BOOL, BufferLoad, IntImm, PrimExpr, Var
from relaxlang.ir.tir import Block, BlockRealize, Buffer, BufferRegion, BufferStore, For, PrimFunc, Range, Stmt
from relaxlang.ir.visit import Rewriter, free_vars, on
from relaxlang.passes.base import PassContext, PrimFuncPass
from relaxlang.passes.tir.reorder_reductions import reorder_reductions


@record
class MergeLoops(PrimFuncPass):
    """Let consecutive loop nests share their outer spatial loops, where an iteration needs of the others' results only
    what the same iteration made; buffers between them shrink to what one iteration needs.

    So a softmax goes row by row, and what follows a matrix product is done to each row as soon as it is there. One loop
    stays inside every nest, to run along memory. Reductions are brought into the order of `reorder-reductions` first.

    Before:

        @T.prim_func
        def f(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8, 16), "float32")):
            S = T.alloc_buffer((8,), "float32")
            for i, k in T.grid(8, 16):
                with T.block("sum"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        S[vi] = T.float32(0)
                    S[vi] = S[vi] + A[vi, vk]
            for i, j in T.grid(8, 16):
                with T.block("scale"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] / S[vi]

    After:

        @T.prim_func
        def f(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8, 16), "float32")):
            S = T.alloc_buffer((1,), "float32")
            for i in range(8):
                for k in range(16):
                    with T.block("sum"):
                        vi, vk = T.axis.remap("SR", [i, k])
                        with T.init():
                            S[0] = T.float32(0)
                        S[0] = S[0] + A[vi, vk]
                for j in range(16):
                    with T.block("scale"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        B[vi, vj] = A[vi, vj] / S[0]
    """

    def run_prim_func(self, func: PrimFunc, ctx: PassContext) -> PrimFunc:
        return merge_loops(func)


def merge_loops(func: PrimFunc) -> PrimFunc:
    """The function with shared loops; itself when there is nothing to share."""
    found = stages_of(func)
    if found is None or len(found.stages) < 2:
        return func
    ordered = stages_of(reorder_reductions(func))
    if ordered is None:
        return func
    merge = _Merger(ordered)
    body = merge.statement([_Item(s) for s in ordered.stages], 0)
    if not merge.shared:
        return func
    return func.replace(body=_root(ordered, _Shrink(merge.shrunk)(body), merge.shrunk))


class _Item:
    """A stage with its *spine*: the leading loops that drive a spatial axis each, and the axes that they drive."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        driven = {
            value: axis.var
            for axis, value in zip(stage.block.iter_vars, stage.realize.iter_values)
            if axis.kind == "spatial" and isinstance(value, Var)
        }
        self.spine: list[tuple[For, Var]] = []
        plain = _is_one(stage.realize.predicate)
        for loop in stage.loops:
            axis = driven.get(loop.loop_var)
            uses = sum(loop.loop_var in free_vars(v) for v in stage.realize.iter_values)
            if not plain or axis is None or uses != 1 or self._nested(loop):
                break
            self.spine.append((loop, axis))
        self.busy = max((k + 1 for k, loop in enumerate(stage.loops) if not _is_one(loop.extent)), default=0)
        self.accesses: dict[Buffer, list[tuple[PrimExpr, ...]]] = {}
        for buffer, indices in _accesses(stage):
            self.accesses.setdefault(buffer, []).append(indices)
        self.written = {s.buffer for s in stage.stores}

    def _nested(self, loop: For) -> bool:
        """Whether the bounds of a loop depend on other loops."""
        around = {s.loop_var for s in self.stage.loops}
        return bool(around & set(free_vars((loop.min, loop.extent))))

    def owns(self, buffer: Buffer, level: int) -> bool:
        """Whether every access to a buffer has the axis of a loop of the spine as its index `level`."""
        axis = self.spine[level][1]
        return all(len(i) > level and i[level] is axis for i in self.accesses.get(buffer, ()))


class _Merger:
    """`shrunk`: the dimensions of each buffer that are not needed any more; `shared`: how many loops were saved."""

    def __init__(self, found: Stages) -> None:
        self.temporary = set(found.buffers)
        self.users: dict[Buffer, int] = {}
        for stage in found.stages:
            for buffer in {b for b, _ in _accesses(stage)}:
                self.users[buffer] = self.users.get(buffer, 0) + 1
        self.shrunk: dict[Buffer, set[int]] = {}
        self.shared = 0

    def statement(self, items: list[_Item], level: int, outer: tuple[Var, ...] = ()) -> Stmt:
        """The items as a statement, inside `level` shared loops over `outer`."""
        parts: list[Stmt] = []
        at = 0
        while at < len(items):
            run = [items[at]]
            while at + len(run) < len(items) and self.fits(run, items[at + len(run)], level):
                run.append(items[at + len(run)])
            # One nest must have a loop left to run inside the shared one.
            if len(run) > 1 and any(item.busy > level + 1 for item in run):
                parts.append(self.loop(run, level, outer))
            else:
                parts += [self.nest(item, level, outer) for item in run]
            at += len(run)
        return tir.seq(*parts)

    def fits(self, run: list[_Item], item: _Item, level: int) -> bool:
        """Whether an item may share loop `level` with a run."""
        if any(len(i.spine) <= level for i in (*run, item)):
            return False
        mine, theirs = item.spine[level][0], run[0].spine[level][0]
        if mine.loop_var.dtype is not theirs.loop_var.dtype:
            return False
        if not _same(mine.extent, theirs.extent) or not _same(mine.min, theirs.min):
            return False
        for other in run:
            common = item.accesses.keys() & other.accesses.keys()
            for buffer in common & (item.written | other.written):
                if not item.owns(buffer, level) or not other.owns(buffer, level):
                    return False
        return True

    def loop(self, run: list[_Item], level: int, outer: tuple[Var, ...]) -> Stmt:
        """A shared loop."""
        self.shared += len(run) - 1
        for buffer in {b for item in run for b in item.written} & self.temporary:
            inside = [item for item in run if buffer in item.accesses]
            if len(inside) == self.users[buffer] and all(item.owns(buffer, level) for item in inside):
                self.shrunk.setdefault(buffer, set()).add(level)
        shared = run[0].spine[level][0]
        return shared.replace(body=self.statement(run, level + 1, (*outer, shared.loop_var)))

    def nest(self, item: _Item, level: int, outer: tuple[Var, ...]) -> Stmt:
        """What is left of a nest inside shared loops."""
        old = item.stage.realize
        names: Mapping[PrimExpr, PrimExpr] = {loop.loop_var: v for (loop, _), v in zip(item.spine, outer)}
        made: Stmt = old.replace(iter_values=tuple(names.get(v, v) for v in old.iter_values))
        for one in reversed(item.stage.loops[level:]):
            made = one.replace(body=made)
        return made


def _accesses(stage: Stage) -> list[tuple[Buffer, tuple[PrimExpr, ...]]]:
    """Every buffer that a stage loads from or stores to, with the indices."""
    return [(n.buffer, n.indices) for n in stage.loads()] + [(n.buffer, n.indices) for n in stage.stores]


def _same(a: PrimExpr, b: PrimExpr) -> bool:
    return a == b or Analyzer().can_prove_equal(a, b)


def _is_one(e: PrimExpr) -> bool:
    return isinstance(e, IntImm) and e.value == 1


def _root(found: Stages, body: Stmt, shrunk: Mapping[Buffer, Iterable[int]]) -> Stmt:
    """The body of the function, with smaller buffers."""
    buffers = tuple(small(b, shrunk.get(b, ())) for b in found.buffers)
    names = dict(zip(found.buffers, buffers))
    body = _Rename(names)(body)
    for one in reversed(found.asserts):
        body = one.replace(body=body)
    return BlockRealize((), IntImm(BOOL, 1), Block((), (), (), "root", body, alloc_buffers=buffers))


def small(buffer: Buffer, dims: Iterable[int]) -> Buffer:
    """A buffer of which some dimensions are 1; itself when there are none."""
    gone = set(dims)
    shape = tuple(prim.const(1, d.dtype) if k in gone else d for k, d in enumerate(buffer.shape))
    return buffer.replace(shape=shape) if gone else buffer


class _Shrink(Rewriter):
    """Makes 0 of the indices into dimensions that are not needed any more."""

    def __init__(self, shrunk: Mapping[Buffer, set[int]]) -> None:
        self.shrunk = shrunk

    def indices(self, buffer: Buffer, indices: tuple[PrimExpr, ...]) -> tuple[PrimExpr, ...]:
        """The indices of an access."""
        gone = self.shrunk[buffer]
        return tuple(prim.const(0, i.dtype) if k in gone else self(i) for k, i in enumerate(indices))

    @on(BufferLoad)
    def load(self, node: BufferLoad) -> BufferLoad:
        """A load."""
        if node.buffer not in self.shrunk:
            return self.below(node)
        return node.replace(indices=self.indices(node.buffer, node.indices))

    @on(BufferStore)
    def store(self, node: BufferStore) -> BufferStore:
        """A store."""
        if node.buffer not in self.shrunk:
            return self.below(node)
        return node.replace(indices=self.indices(node.buffer, node.indices), value=self(node.value))

    @on(BufferRegion)
    def region(self, node: BufferRegion) -> BufferRegion:
        """What a block states that it accesses; in a dimension that is gone, its one element."""
        if node.buffer not in self.shrunk:
            return self.below(node)
        gone = self.shrunk[node.buffer]
        ranges = tuple(
            Range(prim.const(0, r.min.dtype), prim.const(1, r.min.dtype)) if k in gone else self(r)
            for k, r in enumerate(node.region)
        )
        return node.replace(region=ranges)


class _Rename(Rewriter):
    def __init__(self, names: Mapping[Buffer, Buffer]) -> None:
        self.names = names

    @on(Buffer)
    def buffer(self, node: Buffer) -> Buffer:
        """The smaller buffer."""
        return self.names.get(node, node)
