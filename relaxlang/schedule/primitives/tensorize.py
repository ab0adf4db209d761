"""tensorize: a tile is computed by an intrinsic."""

from __future__ import annotations

from relaxlang.arith.analyzer import Analyzer
from relaxlang.base.node import Node
from relaxlang.base.record import fresh, record
from relaxlang.ir.prim import BufferLoad, IntImm, PointerType, PrimExpr, Var, cast, const
from relaxlang.ir.tir import (
    Block,
    BlockRealize,
    Buffer,
    BufferRegion,
    BufferStore,
    For,
    MatchBufferRegion,
    PrimFunc,
    Range,
    Stmt,
)
from relaxlang.ir.visit import free_vars, substitute
from relaxlang.schedule.primitives.blockize import blockize
from relaxlang.schedule.primitives.cache import ReplaceBuffer
from relaxlang.schedule.state import State
from relaxlang.schedule.tensor_intrin import TensorIntrin


def tensorize(state: State, at: str | Var, name: str) -> State:
    """What is below a loop (`blockize` makes a block of it), or in a block, is done by the intrinsic `name`.

    RLX1018: it is not what the intrinsic's description says. RLX1017: it cannot become a block.
    """
    intrin = TensorIntrin.get(name)
    if isinstance(at, Var):
        state, at = blockize(state, at)
    realize = state.blocks[at]
    block = realize.block
    loops, inner = _nest(block.body)
    wanted_loops, wanted = _nest(_body(intrin.desc))
    match = _Match({})
    if inner is None or wanted is None:
        fault = "it is no block in loops"
    elif [_size(one) for one in loops] != [_size(one) for one in wanted_loops]:
        fault = "its loops differ in number or extent"
    else:
        match.variables = {w.loop_var: s.loop_var for w, s in zip(wanted_loops, loops)}
        fault = match.compare(_values(inner), _values(wanted))
    if fault:
        state.fail("RLX1018", f"the block `{at}` is not what the intrinsic `{name}` describes: {fault}", realize)
    made = _implemented(intrin, match, block)
    return state.replace({block: made})


def _size(loop: For) -> int | None:
    return loop.extent.value if isinstance(loop.extent, IntImm) else None


def _body(func: PrimFunc) -> Stmt:
    body = func.body
    return body.block.body if isinstance(body, BlockRealize) and not body.block.iter_vars else body


def _nest(stmt: Stmt) -> tuple[list[For], BlockRealize | None]:
    """The loops around a single block, and the block."""
    loops: list[For] = []
    while isinstance(stmt, For):
        loops.append(stmt)
        stmt = stmt.body
    return loops, stmt if isinstance(stmt, BlockRealize) else None


def _values(realize: BlockRealize) -> Stmt:
    """What a block does, in terms of the loops around."""
    axes = {a.var: v for a, v in zip(realize.block.iter_vars, realize.iter_values)}
    made: Stmt = substitute(realize.block.body, axes)
    return made


@record(frozen=False)
class _Match:
    """Which buffer stands for which of the description's, from where on; `variables`: the loops of the tile by those
    of the description."""

    variables: dict[Var, Var]
    buffers: dict[Buffer, tuple[Buffer, tuple[PrimExpr, ...]]] = fresh(factory=dict)

    def compare(self, mine: Node, wanted: Node) -> str:
        """Why two nodes do not compute the same; empty when they do."""
        if isinstance(wanted, Var):
            return "" if self.variables.get(wanted) is mine else f"`{wanted.name}` does not match"
        if type(mine) is not type(wanted):
            return f"a {type(wanted).__name__} is wanted where a {type(mine).__name__} is"
        if isinstance(mine, (BufferLoad, BufferStore)) and isinstance(wanted, (BufferLoad, BufferStore)):
            fault = self.access(mine, wanted)
            if fault or not isinstance(mine, BufferStore) or not isinstance(wanted, BufferStore):
                return fault
            return self.compare(mine.value, wanted.value)
        for name in mine.FIELDS:
            a, b = getattr(mine, name), getattr(wanted, name)
            pairs = list(zip(a, b)) if isinstance(a, tuple) else [(a, b)]
            if isinstance(a, tuple) and len(a) != len(b):
                return f"the {name} of a {type(mine).__name__} differ in number"
            for x, y in pairs:
                fault = self.compare(x, y) if isinstance(x, Node) else "" if x == y else f"{x} is not {y}"
                if fault:
                    return fault
        return ""

    def access(self, mine: BufferLoad | BufferStore, wanted: BufferLoad | BufferStore) -> str:
        """Why one access is not the other, moved by an offset that is the same for all of the buffer."""
        if mine.buffer.dtype is not wanted.buffer.dtype:
            return f"`{mine.buffer.name}` holds {mine.buffer.dtype}, not {wanted.buffer.dtype}"
        extra = len(mine.indices) - len(wanted.indices)
        if extra < 0:
            return f"`{mine.buffer.name}` has too few dimensions"
        analyzer = Analyzer()
        zero = {v: const(0, v.dtype) for v in self.variables.values()}
        offset = tuple(analyzer.simplify(substitute(i, zero)) for i in mine.indices)
        for index, low, want in zip(mine.indices[extra:], offset[extra:], wanted.indices):
            moved = cast(substitute(want, dict(self.variables)), index.dtype)
            if not analyzer.can_prove_equal(index, low + moved):
                return f"`{mine.buffer.name}` is accessed at {index}"
        if any(set(self.variables.values()) & set(free_vars(i)) for i in mine.indices[:extra]):
            return f"the first dimensions of `{mine.buffer.name}` change in the tile"
        known = self.buffers.setdefault(wanted.buffer, (mine.buffer, offset))
        same = known[0] is mine.buffer and all(analyzer.can_prove_equal(a, b) for a, b in zip(known[1], offset))
        return "" if same else f"`{wanted.buffer.name}` stands for two parts of memory"


def _implemented(intrin: TensorIntrin, match: _Match, block: Block) -> Block:
    """The block with the implementation in it, whose buffers are names for the parts that it works on."""
    body: Stmt = intrin.impl.body
    root = body.block if isinstance(body, BlockRealize) and not body.block.iter_vars else None
    views = []
    for param, given in zip(intrin.desc.params, intrin.impl.params):
        described, old = intrin.desc.buffer_map[param], intrin.impl.buffer_map[given]
        if described not in match.buffers:
            continue
        source, offset = match.buffers[described]
        data = Var(old.data.name, old.data.of, PointerType(old.dtype, source.scope))
        new = old.replace(data=data, scope=source.scope)
        extra = len(offset) - len(old.shape)
        extents = (*(const(1, o.dtype) for o in offset[:extra]), *old.shape)
        ranges = tuple(
            Range(o, const(e.value, o.dtype) if isinstance(e, IntImm) else e) for o, e in zip(offset, extents)
        )
        views.append(MatchBufferRegion(new, BufferRegion(source, ranges)))
        body = ReplaceBuffer(old, new)(body)
    if root is None:
        return block.replace(body=body, match_buffers=(*block.match_buffers, *views))
    assert isinstance(body, BlockRealize)
    inner = body.block
    return block.replace(
        body=inner.body, match_buffers=(*block.match_buffers, *views, *inner.match_buffers),
        alloc_buffers=(*block.alloc_buffers, *inner.alloc_buffers),
    )  # fmt: skip
