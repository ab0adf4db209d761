"""pad_einsum: the axes of a sum of products get extents that tiles divide."""

from __future__ import annotations

from collections.abc import Sequence

from relaxlang.base.record import record
from relaxlang.ir import prim
from relaxlang.ir.prim import LT, BufferLoad, Call, FloatImm, IntImm, PrimExpr, Var, cast, const
from relaxlang.ir.tir import Block, BlockRealize, Buffer, BufferStore, For, IterVar, Range, Stmt, seq
from relaxlang.ir.visit import Rewriter, free_vars, on, substitute
from relaxlang.schedule.access import regions
from relaxlang.schedule.checks import require_plain, require_reduction
from relaxlang.schedule.primitives.cache import new_buffer
from relaxlang.schedule.primitives.loops import nest, requirements
from relaxlang.schedule.state import TRUE, State


def pad_einsum(state: State, name: str, padding: Sequence[int], repeat: Sequence[int] = ()) -> State:
    """Axis k of the block gets the next multiple of `padding[k]` as its extent. It then reads copies of its inputs that
    hold zeros beyond the old extents (`<input>_pad`), and writes a larger output, of which the block `<output>_cut`
    copies what is wanted. Along the spatial axes `repeat` the last element stands there instead of zeros: what becomes
    of it is cut off, and it is loaded without a condition.

    RLX1004: the block is no sum of products in loops of its own, one an axis. RLX1013: not one positive number an axis,
    or an axis to repeat that is no spatial one.
    """
    realize = state.blocks[name]
    require_reduction(state, realize)
    axes = realize.block.iter_vars
    if len(padding) != len(axes) or any(type(p) is not int or p < 1 for p in padding):
        message = f"`pad_einsum` takes a positive number for each of the {len(axes)} axes of `{name}`"
        state.fail("RLX1013", f"{message}, not {list(padding)!r}", realize)
    if any(type(k) is not int or not 0 <= k < len(axes) or axes[k].kind != "spatial" for k in repeat):
        message = f"`pad_einsum` repeats elements along spatial axes of `{name}`"
        state.fail("RLX1013", f"{message}, not {list(repeat)!r}", realize)
    loops = _loops(state, realize)
    analyzer = state.analyzer()
    wider: dict[Var, PrimExpr] = {}
    for axis, factor in zip(axes, padding):
        extent = cast(axis.dom.extent, axis.var.dtype)
        padded = analyzer.simplify((extent + (factor - 1)) // factor * factor)
        if not analyzer.can_prove_equal(padded, extent):
            wider[axis.var] = padded
    if not wider:
        return state
    store = _einsum(state, realize, wider)
    last = frozenset(axes[k].var for k in repeat)
    pads = [_pad(load, axes, wider, last) for load in _loads(store) if set(free_vars(load.indices)) & set(wider)]
    pads = list({p.load.buffer: p for p in pads}.values())
    output = store.buffer
    shape = tuple(wider.get(i, d) if isinstance(i, Var) else d for i, d in zip(store.indices, output.shape))
    grown = new_buffer(f"{output.name}_pad", output, shape, "global")
    block = _widened(realize.block, wider, {p.load.buffer: (p.copy, p.indices) for p in pads}, output, grown)
    body: Stmt = realize.replace(block=block)
    for loop, axis in zip(reversed(loops), reversed(axes)):
        body = loop.replace(extent=wider.get(axis.var, loop.extent), body=body)
    before = [p.nest(state) for p in pads]
    cut = _cut(state, grown, output)
    scope = state.scope(realize)
    changes: dict[Stmt, Stmt | None] = {loops[0]: seq(*before, body, cut)}
    return state.with_buffers(scope, add=(*(p.copy for p in pads), grown), changes=changes)


def _loops(state: State, realize: BlockRealize) -> list[For]:
    """The loops of the block; RLX1004 unless they are plain and drive one axis each, in order."""
    loops = state.loops_around(realize)
    alone = all(outer.body is inner for outer, inner in zip(loops, [*loops[1:], realize]))
    fits = len(loops) == len(realize.iter_values) and all(s.loop_var is v for s, v in zip(loops, realize.iter_values))
    if not loops or not alone or not fits or requirements(realize.predicate):
        message = f"`pad_einsum`: the block `{realize.block.name_hint}` does not stand alone in loops, one an axis"
        state.fail("RLX1004", message, realize, help="use `pad_einsum` before `split`, `fuse` and `reorder`")
    for loop in loops:
        require_plain(state, loop, "pad_einsum")
    return loops


def _einsum(state: State, realize: BlockRealize, wider: dict[Var, PrimExpr]) -> BufferStore:
    """The store of the block; RLX1004 unless it adds up products of elements."""
    block = realize.block
    store = block.body
    fault = ""
    if not isinstance(store, BufferStore) or not isinstance(store.value, prim.Add):
        fault = "it does not add one value to an element"
        state.fail("RLX1004", f"the block `{block.name_hint}` is no sum of products: {fault}", realize)
    old, value = store.value.a, store.value.b
    if not (isinstance(old, BufferLoad) and old.buffer is store.buffer and old.indices == store.indices):
        fault = "it does not add to the element that it stores"
    elif not _is_product(value):
        fault = "what it adds is no product of elements"
    if fault:
        state.fail("RLX1004", f"the block `{block.name_hint}` is no sum of products: {fault}", realize)
    twice = [x.buffer.name for x in _loads(store) for y in _loads(store) if x.buffer is y.buffer and x != y]
    if twice:
        fault = f"it reads `{twice[0]}` at two places"
    for axis in block.iter_vars:
        if fault or axis.var not in wider:
            continue
        if axis.kind == "spatial":
            if axis.var not in store.indices or sum(axis.var in free_vars(i) for i in store.indices) != 1:
                fault = f"the axis `{axis.var.name}` alone is no index of `{store.buffer.name}`"
        elif any(axis.var not in free_vars(load.indices) for load in _loads(store)):
            fault = f"a factor does not depend on the axis `{axis.var.name}`, so that padding it with zeros may not do"
    if fault:
        state.fail("RLX1004", f"the block `{block.name_hint}` is no sum of products: {fault}", realize)
    return store


def _is_product(value: PrimExpr) -> bool:
    if isinstance(value, prim.Mul):
        return _is_product(value.a) and _is_product(value.b)
    if isinstance(value, prim.Cast):
        return _is_product(value.value)
    if isinstance(value, Call) and value.op == "dp4a":
        return all(_is_product(arg) for arg in value.args[:2]) and value.args[2] == IntImm(value.of, 0)
    return isinstance(value, BufferLoad)


def _loads(store: BufferStore) -> list[BufferLoad]:
    """The factors of what a block adds."""
    assert isinstance(store.value, prim.Add)
    found: list[BufferLoad] = []
    work = [store.value.b]
    while work:
        one = work.pop()
        if isinstance(one, BufferLoad):
            found.append(one)
        elif isinstance(one, prim.Mul):
            work += [one.b, one.a]
        elif isinstance(one, prim.Cast):
            work.append(one.value)
        elif isinstance(one, Call):  # the products of the bytes of words
            work += [one.args[1], one.args[0]]
    return found


@record
class _Pad:
    """A padded copy of an input: the access that it stands for, the buffer, where the block reads it (at its axes), the
    axes with their new extents, those that grew marked, and the axes along which the last element is repeated."""

    load: BufferLoad
    copy: Buffer
    indices: tuple[Var, ...]
    axes: tuple[tuple[IterVar, PrimExpr, bool], ...]
    repeat: frozenset[Var]

    def nest(self, state: State) -> Stmt:
        """The loops that fill it."""
        fresh = {a.var: Var(f"v{k}", a.var.dtype) for k, (a, _, _) in enumerate(self.axes)}
        inside: list[PrimExpr] = []
        at: dict[Var, PrimExpr] = dict(fresh)
        for axis, _, grew in self.axes:
            end = cast(axis.dom.extent, axis.var.dtype)
            if grew and axis.var in self.repeat:
                at[axis.var] = prim.fold(prim.Min, fresh[axis.var], end - 1)
            elif grew:
                inside.append(LT(fresh[axis.var], end))
        made: PrimExpr = substitute(self.load, at)
        of = self.load.dtype
        zero = FloatImm(of, 0.0) if of.is_float else IntImm(of, 0)
        if inside:
            made = Call(of, "if_then_else", (prim.all_of(*inside), made, zero))
        iters = tuple(IterVar(fresh[a.var], Range(const(0, a.var.dtype), e), "spatial") for a, e, _ in self.axes)
        body = BufferStore(self.copy, made, tuple(fresh[a.var] for a, _, _ in self.axes))
        return _copy_nest(state.unique(self.copy.name), iters, body)


def _copy_nest(name: str, iters: tuple[IterVar, ...], body: BufferStore) -> Stmt:
    """A block in loops of its own, one an axis."""
    block = Block(iters, None, None, name, body)
    reads, writes = regions(block)
    loops = [(Var(f"ax{k}", i.var.dtype), i.dom.extent) for k, i in enumerate(iters)]
    return nest(loops, BlockRealize(tuple(v for v, _ in loops), TRUE, block.replace(reads=reads, writes=writes)))


def _pad(load: BufferLoad, axes: Sequence[IterVar], wider: dict[Var, PrimExpr], repeat: frozenset[Var]) -> _Pad:
    used = set(free_vars(load.indices))
    by_var = {a.var: a for a in axes}
    plain = all(i in by_var for i in load.indices) and len(set(load.indices)) == len(load.indices)
    order = [i for i in load.indices if isinstance(i, Var)] if plain else [a.var for a in axes if a.var in used]
    chosen = tuple((by_var[v], wider.get(v, cast(by_var[v].dom.extent, v.dtype)), v in wider) for v in order)
    copy = new_buffer(f"{load.buffer.name}_pad", load.buffer, [e for _, e, _ in chosen], "global")
    return _Pad(load, copy, tuple(order), chosen, repeat)


def _widened(
    block: Block, wider: dict[Var, PrimExpr], reads: dict[Buffer, tuple[Buffer, tuple[Var, ...]]], output: Buffer,
    grown: Buffer,
) -> Block:  # fmt: skip
    """The block over the larger axes, on the padded buffers."""
    axes = tuple(a.replace(dom=Range(a.dom.min, wider[a.var])) if a.var in wider else a for a in block.iter_vars)
    swap = _Swap(reads, output, grown)
    init = None if block.init is None else swap(block.init)
    made = block.replace(iter_vars=axes, body=swap(block.body), init=init)
    found_reads, found_writes = regions(made)
    return made.replace(reads=found_reads, writes=found_writes)


class _Swap(Rewriter):
    """Accesses to buffers become accesses to their padded forms."""

    def __init__(self, reads: dict[Buffer, tuple[Buffer, tuple[Var, ...]]], output: Buffer, grown: Buffer) -> None:
        self.reads = reads
        self.output = output
        self.grown = grown

    @on(BufferLoad)
    def load(self, node: BufferLoad) -> BufferLoad:
        """A load of a factor, or of what is updated."""
        if node.buffer is self.output:
            return node.replace(buffer=self.grown)
        found = self.reads.get(node.buffer)
        return node if found is None else BufferLoad(found[0], found[1])

    @on(BufferStore)
    def store(self, node: BufferStore) -> BufferStore:
        """The store of the output."""
        made = self.below(node)
        return made.replace(buffer=self.grown) if made.buffer is self.output else made


def _cut(state: State, source: Buffer, target: Buffer) -> Stmt:
    """The block that takes what is wanted out of the padded output."""
    iters = tuple(
        IterVar(Var(f"v{k}", d.dtype), Range(const(0, d.dtype), d), "spatial") for k, d in enumerate(target.shape)
    )
    point = tuple(i.var for i in iters)
    return _copy_nest(state.unique(f"{target.name}_cut"), iters, BufferStore(target, BufferLoad(source, point), point))
