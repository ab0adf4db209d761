"""rfactor: partial results of a reduction, one for each iteration of a loop, combined afterwards."""

from __future__ import annotations

from relaxlang.base.record import record
from relaxlang.ir.attrs import EMPTY
from relaxlang.ir.prim import Add, BufferLoad, Max, Min, Mul, PrimExpr, Var, all_of, cast, const
from relaxlang.ir.tir import Block, BlockRealize, Buffer, BufferRegion, BufferStore, For, IterVar, Range, Stmt, seq
from relaxlang.ir.visit import free_vars, substitute, walk
from relaxlang.schedule.checks import require_reduction
from relaxlang.schedule.primitives.cache import new_buffer
from relaxlang.schedule.primitives.loops import requirements
from relaxlang.schedule.state import State


@record
class _Update:
    """`buffer[indices] = kind(buffer[indices], value)`, which begins with `first`."""

    buffer: Buffer
    indices: tuple[PrimExpr, ...]
    kind: type[Add | Mul | Min | Max]
    value: PrimExpr
    first: PrimExpr

    @property
    def neutral(self) -> PrimExpr:
        """What partial results begin with: `first` counts once, however many there are."""
        if self.kind in (Min, Max):
            return self.first
        return const(int(self.kind is Mul), self.buffer.dtype)


def rfactor(state: State, var: Var, axis: int) -> tuple[State, str]:
    """The iterations of the loop, which drives a reduction, get partial results: dimension `axis` of a new buffer; the
    name of the block that computes them.

    RLX1004: the block below is no reduction. RLX1011: there is more than one block, the loop drives no reduction, or
    the update is no sum, product, minimum or maximum.
    """
    loop = state.loops[var]
    below = state.blocks_under(loop)
    if len(below) != 1:
        state.fail(
            "RLX1011", f"`rfactor`: below the loop `{var.name}` there are {len(below)} blocks; it takes one", loop
        )
    realize = below[0]
    require_reduction(state, realize)
    update = _update(state, realize)
    loops = state.loops_around(realize)
    top = _top(state, loops, realize)
    if not 0 <= axis <= update.buffer.ndim:
        message = f"`rfactor`: `factor_axis` is {axis}; the result has {update.buffer.ndim} dimensions"
        state.fail("RLX1013", message, realize)
    partial = new_buffer(
        f"{update.buffer.name}_rf", update.buffer, _with(update.buffer.shape, axis, loop.extent), "global"
    )
    first, name = _partial(state, realize, loop, loops, update, partial, axis)
    second = _combine(state, realize, loop, loops, update, partial, axis)
    made: Stmt = first
    for one in reversed(loops[loops.index(top) :]):
        made = one.replace(body=made)
    changes: dict[Stmt, Stmt | None] = {top: seq(made, second)}
    return state.with_buffers(state.scope(realize), add=(partial,), changes=changes), name


def _with(items: tuple[PrimExpr, ...], at: int, item: PrimExpr) -> tuple[PrimExpr, ...]:
    return (*items[:at], item, *items[at:])


def _update(state: State, realize: BlockRealize) -> _Update:
    block = realize.block
    store, init = block.body, block.init
    if (
        isinstance(store, BufferStore)
        and isinstance(init, BufferStore)
        and isinstance(store.value, Add | Mul | Min | Max)
    ):
        for old, new in ((store.value.a, store.value.b), (store.value.b, store.value.a)):
            if isinstance(old, BufferLoad) and old.buffer is store.buffer and old.indices == store.indices:
                return _Update(store.buffer, store.indices, type(store.value), new, init.value)
    state.fail(
        "RLX1011", f"`rfactor`: the update in `{block.name_hint}` is no sum, product, minimum or maximum", realize
    )


def _top(state: State, loops: list[For], realize: BlockRealize) -> For:
    """The outermost loop around the block that has nothing else in it."""
    chain: list[For] = []
    below: Stmt = realize
    for loop in reversed(loops):
        if loop.body is not below:
            break
        chain.append(loop)
        below = loop
    outside = [s for s in loops if s not in chain]
    values = dict(zip((a.var for a in realize.block.iter_vars), realize.iter_values))
    driving = {v for a in realize.block.iter_vars if a.kind == "reduce" for v in free_vars(values[a.var])}
    bad = next((s for s in outside if s.loop_var in driving), None)
    if bad is not None or not chain:
        at = bad or loops[-1]
        message = f"`rfactor`: the loop `{at.loop_var.name}` holds more than the reduction `{realize.block.name_hint}`"
        state.fail("RLX1011", message, at)
    return chain[-1]


def _partial(
    state: State, realize: BlockRealize, loop: For, loops: list[For], update: _Update, partial: Buffer, axis: int
) -> tuple[BlockRealize, str]:
    """The block that computes the partial results, in the loops of the original."""
    block = realize.block
    bindings = dict(zip((a.var for a in block.iter_vars), realize.iter_values))
    lane = Var(f"v{loop.loop_var.name}", loop.loop_var.dtype)
    iters: list[IterVar] = [IterVar(lane, Range(const(0, lane.dtype), loop.extent), "spatial")]
    values: list[PrimExpr] = [loop.loop_var]
    inner: dict[Var, PrimExpr] = {loop.loop_var: lane}
    changed: dict[Var, PrimExpr] = {}
    touched = False
    for one in block.iter_vars:
        value = bindings[one.var]
        if loop.loop_var not in free_vars(value):
            iters.append(one)
            values.append(value)
            continue
        if one.kind != "reduce":
            message = f"`rfactor`: the loop `{loop.loop_var.name}` drives the spatial axis `{one.var.name}`"
            state.fail("RLX1011", message, realize)
        touched = True
        for other in loops:
            if other.loop_var in free_vars(value) and other.loop_var not in inner:
                made = Var(f"v{other.loop_var.name}", other.loop_var.dtype)
                inner[other.loop_var] = made
                iters.append(IterVar(made, Range(other.min, other.extent), "reduce"))
                values.append(other.loop_var)
        changed[one.var] = cast(substitute(value, inner), one.var.dtype)
    if not touched:
        message = f"`rfactor`: the loop `{loop.loop_var.name}` drives no reduction axis of `{block.name_hint}`"
        state.fail("RLX1011", message, loop)
    place = _with(update.indices, axis, lane)
    body = BufferStore(partial, update.kind(BufferLoad(partial, place), substitute(update.value, changed)), place)
    init = BufferStore(partial, update.neutral, place)
    reads = substitute(block.reads, changed)
    name = state.unique(f"{block.name_hint}_rf")
    made_block = Block(tuple(iters), reads, (_point(partial, place),), name, body, init, annotations=block.annotations)
    return BlockRealize(tuple(values), realize.predicate, made_block, span=realize.span), name


def _point(buffer: Buffer, indices: tuple[PrimExpr, ...]) -> BufferRegion:
    return BufferRegion(buffer, tuple(Range(i, const(1, i.dtype)) for i in indices))


def _combine(
    state: State, realize: BlockRealize, loop: For, loops: list[For], update: _Update, partial: Buffer, axis: int
) -> Stmt:
    """The original block, now over the partial results, in loops of its own."""
    block = realize.block
    bindings = dict(zip((a.var for a in block.iter_vars), realize.iter_values))
    spatial = [a for a in block.iter_vars if a.kind == "spatial"]
    driving = {v for a in block.iter_vars if a.kind == "reduce" for v in free_vars(bindings[a.var])}
    top = loops.index(_top(state, loops, realize))
    kept = [s for s in loops[top:] if s.loop_var not in driving] + [loop]
    fresh = {s.loop_var: Var(s.loop_var.name, s.loop_var.dtype) for s in kept}
    axes = {a.var: Var(a.var.name, a.var.dtype) for a in spatial}
    lane = Var(f"v{loop.loop_var.name}", loop.loop_var.dtype)
    indices = substitute(update.indices, axes)
    place = _with(indices, axis, lane)
    value = update.kind(BufferLoad(update.buffer, indices), BufferLoad(partial, place))
    iters = [IterVar(lane, Range(const(0, lane.dtype), loop.extent), "reduce")]
    iters += [a.replace(var=axes[a.var]) for a in spatial]
    # A partial result exists when the iterations that come first contribute to it.
    firsts = {s.loop_var: cast(s.min, s.loop_var.dtype) for s in loops if s.loop_var in driving and s is not loop}
    analyzer = state.analyzer()
    for one in loops:
        analyzer.bind(one.loop_var, Range(one.min, one.extent))
    terms = [analyzer.simplify(substitute(t, firsts)) for t in requirements(realize.predicate)]
    predicate = substitute(all_of(*terms), fresh)
    first = substitute(update.first, axes)
    reads = [_point(n.buffer, n.indices) for n in walk(first) if isinstance(n, BufferLoad)]
    made_block = Block(
        tuple(iters), (_point(partial, place), *reads), (_point(update.buffer, indices),), block.name_hint,
        BufferStore(update.buffer, value, indices), BufferStore(update.buffer, first, indices),
    )  # fmt: skip
    bound = (fresh[loop.loop_var], *(substitute(bindings[a.var], fresh) for a in spatial))
    made: Stmt = BlockRealize(bound, predicate, made_block)
    for s in reversed(kept):
        made = s.replace(loop_var=fresh[s.loop_var], body=made, kind="serial", annotations=EMPTY)
    return made
