"""What blocks read and write: regions of buffers, in terms of block axes or of loops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from relaxlang.arith.analyzer import Analyzer
from relaxlang.arith.intervals import IntSet, int_set, union
from relaxlang.base.dtype import DType
from relaxlang.ir import prim
from relaxlang.ir.prim import BufferLoad, IntImm, PrimExpr, Var, as_prim
from relaxlang.ir.tir import (
    Allocate,
    AllocConst,
    Block,
    BlockRealize,
    Buffer,
    BufferRegion,
    BufferStore,
    For,
    LetStmt,
    MatchBufferRegion,
    Range,
    Stmt,
)
from relaxlang.ir.visit import Rewriter, Visitor, free_vars, on, substitute

Domain = Mapping[Var, "Range | IntSet"]


def fill_regions(body: Stmt) -> Stmt:
    """The statement with the regions of its blocks stated where they are not."""
    made: Stmt = _Fill()(body)
    return made


class _Fill(Rewriter):
    @on(BlockRealize)
    def realize(self, node: BlockRealize) -> BlockRealize:
        """A block, its regions computed from the inside out."""
        made = self.below(node)
        block = made.block
        if block.reads is None or block.writes is None:
            reads, writes = regions(block)
            block = block.replace(
                reads=reads if block.reads is None else block.reads,
                writes=writes if block.writes is None else block.writes,
            )
        return made.replace(block=block)


def regions(block: Block) -> tuple[tuple[BufferRegion, ...], tuple[BufferRegion, ...]]:
    """What a block reads and writes, found in its body and init, in terms of its axes.

    The element that a reduction updates counts as written only.
    """
    found = _Accesses()
    if block.init is not None:
        found(block.init)
    found(block.body)
    local = set(block.alloc_buffers) | {m.buffer for m in block.match_buffers}
    local |= {b for b in (*found.reads, *found.writes) if b.data in found.memory}
    analyzer = Analyzer()
    writes = [_merged(b, boxes, analyzer) for b, boxes in found.writes.items() if b not in local]
    updated = {w.buffer: w.region for w in writes} if block.init is not None else {}
    reads = []
    for buffer, boxes in found.reads.items():
        if buffer in local:
            continue
        region = _merged(buffer, boxes, analyzer)
        if buffer not in updated or not same_box(region.region, updated[buffer]):
            reads.append(region)
    return tuple(reads), tuple(writes)


def same_box(a: Sequence[Range], b: Sequence[Range]) -> bool:
    """Whether two boxes are written alike."""
    return len(a) == len(b) and all(x.min == y.min and x.extent == y.extent for x, y in zip(a, b))


class _Accesses(Visitor):
    """Collects boxes of buffers, and the memory that is made inside; loops inside are relaxed."""

    def __init__(self) -> None:
        self.reads: dict[Buffer, list[list[IntSet]]] = {}
        self.writes: dict[Buffer, list[list[IntSet]]] = {}
        self.inner: dict[Var, Range | IntSet] = {}
        self.lets: dict[Var, PrimExpr] = {}
        self.memory: set[Var] = set()

    @on(Allocate, AllocConst)
    def allocate(self, node: Allocate | AllocConst) -> None:
        """Memory that nobody outside sees."""
        self.memory.add(node.buffer_var)
        self.below(node)

    @on(For)
    def loop(self, node: For) -> None:
        """A loop: what it runs through is known below it."""
        self(node.min)
        self(node.extent)
        self.inner[node.loop_var] = Range(node.min, node.extent)
        self(node.body)

    @on(LetStmt)
    def let(self, node: LetStmt) -> None:
        """A variable of the block; what is computed from it is not known here."""
        self(node.value)
        self.inner[node.var] = IntSet(None, None)
        self(node.body)

    @on(BufferLoad)
    def load(self, node: BufferLoad) -> None:
        """A read element."""
        self.reads.setdefault(node.buffer, []).append(self._box(node.indices))
        self.below(node)

    @on(BufferStore)
    def store(self, node: BufferStore) -> None:
        """A written element."""
        self.writes.setdefault(node.buffer, []).append(self._box(node.indices))
        for index in node.indices:
            self(index)
        self(node.value)

    @on(BlockRealize)
    def realize(self, node: BlockRealize) -> None:
        """An inner block: its regions, at the values of its axes."""
        values = {a.var: v for a, v in zip(node.block.iter_vars, node.iter_values)}
        inner = set(node.block.alloc_buffers)
        for box, into in ((node.block.reads, self.reads), (node.block.writes, self.writes)):
            for one in box or ():
                if one.buffer not in inner:
                    into.setdefault(one.buffer, []).append(self._region(substitute(one.region, values)))
        for value in node.iter_values:
            self(value)
        self(node.predicate)

    @on(MatchBufferRegion)
    def match(self, node: MatchBufferRegion) -> None:
        """A view: its source may be read and written."""
        box = self._region(node.source.region)
        self.reads.setdefault(node.source.buffer, []).append(box)
        self.writes.setdefault(node.source.buffer, []).append(box)

    def _box(self, indices: Sequence[PrimExpr]) -> list[IntSet]:
        return [self._lanes(i) if i.dtype.lanes > 1 else self._set(i, i) for i in indices]

    def _lanes(self, index: PrimExpr) -> IntSet:
        if isinstance(index, prim.Ramp):
            last = index.base + index.stride * (index.lanes - 1)
            return self._set(index.base, last)
        return IntSet(None, None)

    def _region(self, region: Sequence[Range]) -> list[IntSet]:
        return [self._set(r.min, r.min + r.extent - 1) for r in region]

    def _set(self, first: PrimExpr, last: PrimExpr) -> IntSet:
        if first is last and isinstance(first, (Var, IntImm)) and first not in self.inner:
            return IntSet(first, last)
        if any(isinstance(n, BufferLoad) for e in (first, last) for n in _parts(e)):
            return IntSet(None, None)
        used = [v for v in free_vars((first, last)) if v in self.inner]
        if not used:
            return IntSet(first, last)
        return relaxed(Range(first, last - first + 1), self.inner, Analyzer())


def _parts(e: PrimExpr) -> Iterable[object]:
    from relaxlang.ir.visit import walk

    return walk(e)


def relaxed(dim: Range, domain: Domain, analyzer: Analyzer) -> IntSet:
    """The interval that a range covers while the variables of `domain` run. The domain may be nested: an inner loop's
    bounds may mention outer loops."""
    found = _relaxed_linear(dim, domain)
    if found is not None:
        return found
    low: PrimExpr | None = dim.min
    high: PrimExpr | None = analyzer.simplify(dim.min + dim.extent - 1)
    for var in reversed(list(domain)):
        one = {var: domain[var]}
        if low is not None and var in free_vars(low):
            low = int_set(low, one, analyzer).min
        if high is not None and var in free_vars(high):
            high = int_set(high, one, analyzer).max
    return IntSet(low, high)


def _relaxed_linear(dim: Range, domain: Domain) -> IntSet | None:
    """`relaxed` for sums of variables times constants over loops of constant extent, which nearly all indices are: no
    arithmetic needs to be done on expressions. None for other ranges."""
    form = linear_form(dim.min)
    if form is None or not isinstance(dim.extent, IntImm):
        return None
    low, high = form[1], form[1] + dim.extent.value - 1
    kept: dict[Var, int] = {}
    for var, factor in form[0].items():
        run = domain.get(var)
        if run is None:
            kept[var] = factor
            continue
        if not isinstance(run, Range) or not isinstance(run.min, IntImm) or not isinstance(run.extent, IntImm):
            return None
        first, last = run.min.value * factor, (run.min.value + run.extent.value - 1) * factor
        low, high = low + min(first, last), high + max(first, last)
    of = dim.min.dtype
    return IntSet(_of_form(kept, low, of), _of_form(kept, high, of))


def linear_form(e: PrimExpr) -> tuple[dict[Var, int], int] | None:
    """The factors of the variables in a sum of variables times constants, and its constant part; None for another
    expression."""
    factors: dict[Var, int] = {}
    constant = 0
    work = [(e, 1)]
    while work:
        node, times = work.pop()
        if isinstance(node, Var):
            factors[node] = factors.get(node, 0) + times
        elif isinstance(node, IntImm):
            constant += node.value * times
        elif isinstance(node, prim.Add):
            work += [(node.b, times), (node.a, times)]
        elif isinstance(node, prim.Sub):
            work += [(node.b, -times), (node.a, times)]
        elif isinstance(node, prim.Mul) and isinstance(node.b, IntImm):
            work.append((node.a, times * node.b.value))
        else:
            return None
    return {v: f for v, f in factors.items() if f}, constant


def _of_form(factors: Mapping[Var, int], constant: int, of: DType) -> PrimExpr:
    total: PrimExpr | None = None
    for var, factor in factors.items():
        term: PrimExpr = var if factor == 1 else prim.Mul(var, IntImm(of, factor))
        total = term if total is None else prim.Add(total, term)
    if total is None:
        return IntImm(of, constant)
    return total if not constant else prim.Add(total, IntImm(of, constant))


def _merged(buffer: Buffer, boxes: list[list[IntSet]], analyzer: Analyzer) -> BufferRegion:
    """The smallest region that holds all boxes of a buffer; the whole extent of a dimension where that is not known."""
    region = []
    for k, dim in enumerate(buffer.shape):
        whole = union([box[k] for box in boxes], analyzer)
        region.append(box_range(whole, dim, analyzer))
    return BufferRegion(buffer, tuple(region))


def box_range(interval: IntSet, dim: PrimExpr, analyzer: Analyzer) -> Range:
    """An interval as a range; the whole dimension when an end is not known."""
    if interval.min is None or interval.max is None:
        return Range(as_prim(0, dim.dtype), dim)
    if interval.min == interval.max:
        return Range(interval.min, IntImm(interval.min.dtype, 1))
    return Range(interval.min, analyzer.simplify(interval.max - interval.min + 1))


def at_values(realize: BlockRealize, what: Sequence[Range]) -> tuple[Range, ...]:
    """A region of a block in terms of the loops around it."""
    values = {a.var: prim.cast(v, a.var.dtype) for a, v in zip(realize.block.iter_vars, realize.iter_values)}
    return tuple(substitute(tuple(what), values))


def read_buffers(realize: BlockRealize) -> list[Buffer]:
    """The buffers that a block reads, each once."""
    return list(dict.fromkeys(r.buffer for r in realize.block.reads or ()))


def written_buffers(realize: BlockRealize) -> list[Buffer]:
    """The buffers that a block writes, each once."""
    return list(dict.fromkeys(w.buffer for w in realize.block.writes or ()))
