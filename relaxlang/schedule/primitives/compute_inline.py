"""compute_inline and reverse_compute_inline: a block becomes part of its consumers, or of its producer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from relaxlang.arith.analyzer import Analyzer
from relaxlang.arith.index_map import IndexMap
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.ir.prim import BufferLoad, PrimExpr, Var, cast, const
from relaxlang.ir.tir import Block, BlockRealize, Buffer, BufferStore, Stmt
from relaxlang.ir.visit import Rewriter, free_vars, on, substitute, walk
from relaxlang.schedule.access import regions, written_buffers
from relaxlang.schedule.checks import consumers, is_output, producers, require_complete
from relaxlang.schedule.primitives.loops import requirements
from relaxlang.schedule.state import State


def compute_inline(state: State, name: str) -> State:
    """The block goes; whoever reads what it wrote computes it. RLX1009: it is no `B[i, j, …] = expression`."""
    realize = state.blocks[name]
    store = _only_store(state, realize, "compute_inline")
    require_complete(state, realize, reduction=False)
    if is_output(state, realize):
        state.fail("RLX1009", f"the block `{name}` writes an output, which cannot be inlined", realize)
    axes = _distinct_axes(state, realize, store)
    buffer = store.buffer
    inline = _Inline(buffer, axes, store.value)
    changes: dict[Stmt, Stmt | None] = {realize: None}
    for user in consumers(state, realize):
        changes[user.block] = _renewed(inline(user.block))
    return state.with_buffers(state.scope(realize), drop=(buffer,), changes=changes)


def reverse_compute_inline(state: State, name: str) -> State:
    """The block goes; its only producer stores what it would have made of the value. RLX1009: that is not possible."""
    realize = state.blocks[name]
    store = _only_store(state, realize, "reverse_compute_inline")
    require_complete(state, realize, reduction=False)
    if requirements(realize.predicate):
        state.fail("RLX1009", f"the block `{name}` has a condition", realize)
    makers = [p for p in producers(state, realize) if consumers(state, p) == [realize]]
    if len(makers) != 1 or is_output(state, makers[0]):
        state.fail("RLX1009", f"the block `{name}` has no producer whose values it alone uses", realize)
    maker = makers[0]
    source = _only_store(state, maker, "reverse_compute_inline")
    require_complete(state, maker, reduction=False)
    indices = _only_indices(state, realize, store, source.buffer)
    values = _inverse(state, realize, indices, source)
    value = _Put(source.buffer, source.value)(substitute(store.value, values))
    made = BufferStore(store.buffer, value, substitute(store.indices, values), span=source.span)
    block = _renewed(maker.block.replace(body=made))
    changes: dict[Stmt, Stmt | None] = {maker.block: block, realize: None}
    return state.with_buffers(state.scope(realize), drop=(source.buffer,), changes=changes)


def _only_store(state: State, realize: BlockRealize, what: str) -> BufferStore:
    body = realize.block.body
    if not isinstance(body, BufferStore) or realize.block.init is not None or realize.block.alloc_buffers:
        name = realize.block.name_hint
        state.fail("RLX1009", f"`{what}`: the block `{name}` is more than one store of an expression", realize)
    return body


def _distinct_axes(state: State, realize: BlockRealize, store: BufferStore) -> list[Var | PrimExpr]:
    """The indices of the store: axes, each once, or constants."""
    seen: set[Var] = set()
    for index in store.indices:
        if isinstance(index, Var) and index not in seen:
            seen.add(index)
        elif free_vars(index):
            message = f"the block `{realize.block.name_hint}` does not store at its axes, each used once"
            state.fail("RLX1009", message, realize, help="`transform_layout` or `reindex` can bring it to that form")
    unset = set(free_vars(store.value)) & {a.var for a in realize.block.iter_vars} - seen
    for var in unset:
        if not _unit(realize, var):
            message = f"the value in the block `{realize.block.name_hint}` depends on `{var.name}`, its place does not"
            state.fail("RLX1009", message, realize)
    if requirements(realize.predicate):
        state.fail("RLX1009", f"the block `{realize.block.name_hint}` has a condition", realize)
    return list(store.indices)


def _unit(realize: BlockRealize, var: Var) -> bool:
    axis = next(a for a in realize.block.iter_vars if a.var is var)
    return getattr(axis.dom.extent, "value", None) == 1


def _renewed(block: Block) -> Block:
    """A block with the regions that its body now has."""
    reads, writes = regions(block)
    return block.replace(reads=reads, writes=writes)


class _Inline(Rewriter):
    """Replaces loads of a buffer by the expression that was stored."""

    def __init__(self, buffer: Buffer, indices: list[Var | PrimExpr], value: PrimExpr) -> None:
        self.buffer = buffer
        self.indices = indices
        self.value_of = value

    @on(BufferLoad)
    def load(self, node: BufferLoad) -> PrimExpr:
        """A load; of the buffer at hand it is the value itself."""
        made = self.below(node)
        if made.buffer is not self.buffer:
            return made
        values = {v: cast(i, v.dtype) for v, i in zip(self.indices, made.indices) if isinstance(v, Var)}
        return substitute(self.value_of, values)

    @on(BlockRealize)
    def nested(self, node: BlockRealize) -> BlockRealize:
        """An inner block, with the regions that it has afterwards."""
        made = self.below(node)
        return made if made is node else made.replace(block=_renewed(made.block))


class _Put(Rewriter):
    """Replaces every load of a buffer by a value."""

    def __init__(self, buffer: Buffer, value: PrimExpr) -> None:
        self.buffer = buffer
        self.put = value

    @on(BufferLoad)
    def load(self, node: BufferLoad) -> Any:
        """A load."""
        return self.put if node.buffer is self.buffer else self.below(node)


def _only_indices(state: State, realize: BlockRealize, store: BufferStore, buffer: Buffer) -> tuple[PrimExpr, ...]:
    found = {n.indices for n in walk(store) if isinstance(n, BufferLoad) and n.buffer is buffer}
    if len(found) != 1:
        message = f"the block `{realize.block.name_hint}` reads `{buffer.name}` at {len(found)} places"
        state.fail("RLX1009", message, realize)
    return found.pop()


def _inverse(
    state: State, realize: BlockRealize, indices: tuple[PrimExpr, ...], source: BufferStore
) -> dict[Var, PrimExpr]:
    """The value of each axis of the consumer, given where the producer stores."""
    block = realize.block
    axes = tuple(a.var for a in block.iter_vars)
    try:
        ranges = [a.dom for a in block.iter_vars]
        kept = [k for k, i in enumerate(indices) if free_vars(i)]
        inverse = IndexMap(axes, tuple(indices[k] for k in kept)).inverse(ranges, Analyzer())
    except DiagnosticError as reason:
        why = reason.diagnostics[0].notes[:1] or (reason.diagnostics[0].message,)
        message = f"the block `{block.name_hint}` does not read each element of `{source.buffer.name}` once: {why[0]}"
        state.fail("RLX1009", message, realize)
    if not state.analyzer().can_prove_equal(_count(a.dom.extent for a in block.iter_vars), _count(source.buffer.shape)):
        state.fail("RLX1009", f"the block `{block.name_hint}` reads only a part of `{source.buffer.name}`", realize)
    found = inverse.map_indices([source.indices[k] for k in kept])
    return dict(zip(axes, found))


def _count(extents: Iterable[PrimExpr]) -> PrimExpr:
    total: PrimExpr = const(1, "int64")
    for extent in extents:
        total = total * cast(extent, "int64")
    return total


def inlinable(state: State, name: str) -> bool:
    """Whether `compute_inline` takes the block."""
    realize = state.blocks[name]
    if not isinstance(realize.block.body, BufferStore) or not written_buffers(realize):
        return False
    try:
        compute_inline(state, name)
    except DiagnosticError:
        return False
    return True
