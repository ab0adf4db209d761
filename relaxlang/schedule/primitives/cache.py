"""cache_read, cache_write, reindex: a block works on a copy of a buffer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from relaxlang.base.diagnostics import fail
from relaxlang.ir.prim import HANDLE, BufferLoad, IntImm, PointerType, PrimExpr, Var, const
from relaxlang.ir.tir import (
    Block,
    BlockRealize,
    Buffer,
    BufferRegion,
    BufferStore,
    IterVar,
    MatchBufferRegion,
    Range,
    Stmt,
    seq,
)
from relaxlang.ir.visit import Rewriter, free_vars, on, substitute, walk
from relaxlang.schedule.access import read_buffers, written_buffers
from relaxlang.schedule.checks import consumers, require_complete
from relaxlang.schedule.primitives.loops import nest
from relaxlang.schedule.state import TRUE, State


def kind_and_index(buffer: tuple[str, int | str]) -> tuple[str, int | str]:
    """What a caller gives as a buffer of a block: `("read" | "write", index or name)`. RLX1013 for anything else."""
    if not isinstance(buffer, tuple) or len(buffer) != 2 or buffer[0] not in ("read", "write"):
        fail("RLX1013", f'a buffer of a block is `("read", 0)` or `("write", 0)`, not {buffer!r}')
    return buffer


def buffer_of(state: State, name: str, index: int | str, kind: str) -> Buffer:
    """The buffer that a block reads or writes as its `index`-th one, or under a name. RLX1008: there is none."""
    realize = state.blocks[name]
    found = read_buffers(realize) if kind == "read" else written_buffers(realize)
    if isinstance(index, str):
        named = [b for b in found if b.name == index]
        if len(named) == 1:
            return named[0]
    elif 0 <= index < len(found):
        return found[index]
    have = ", ".join(f"`{b.name}`" for b in found) or "no buffer"
    state.fail("RLX1008", f"the block `{name}` has no {kind} buffer {index!r}", realize, help=f"it {kind}s {have}")


def new_buffer(name: str, like: Buffer, shape: Sequence[PrimExpr], scope: str) -> Buffer:
    """A row-major buffer of the dtype of another one."""
    data = Var(name, HANDLE, PointerType(like.dtype, scope))
    return Buffer(name, tuple(shape), like.dtype, data, scope=scope)


class ReplaceBuffer(Rewriter):
    """Replaces a buffer, wherever it is read, written or stated."""

    def __init__(self, old: Buffer, new: Buffer) -> None:
        self.old = old
        self.new = new

    @on(Buffer)
    def buffer(self, node: Buffer) -> Buffer:
        """A buffer."""
        return self.new if node is self.old else node


def cache_read(state: State, name: str, index: int | str, scope: str, users: Sequence[str] | None) -> tuple[State, str]:
    """Copy what the block reads into a buffer in `scope`, before the first reader; the block that copies.

    `users`: the blocks that read the copy instead; all readers in the scope when it is None.
    """
    realize = state.blocks[name]
    old = buffer_of(state, name, index, "read")
    inside = state.scope(realize)
    everyone = [b for b in state.blocks_under(inside) if old in read_buffers(b)]
    chosen = everyone if users is None else [state.blocks[u] for u in users]
    for user in chosen:
        if user not in everyone:
            state.fail("RLX1008", f"the block `{user.block.name_hint}` does not read `{old.name}` there", user)
    made = new_buffer(f"{old.name}_{scope}", old, old.shape, scope)
    copy_name = state.unique(made.name)
    copy = _copy(copy_name, old, made)
    replace = ReplaceBuffer(old, made)
    changes: dict[Stmt, Stmt | None] = {u.block: replace(u.block) for u in chosen}
    first = _top(state, inside, chosen[0])
    writers = [b for b in state.blocks_under(inside) if old in written_buffers(b)]
    order = [id(s) for s in _tops(inside.block)]
    at = order.index(id(first))
    late = [w for w in writers if order.index(id(_top(state, inside, w))) >= at]
    if late:
        message = f"`{old.name}` is written by `{late[0].block.name_hint}` after the copy would be made"
        state.fail("RLX1010", message, late[0])
    return _insert(state, inside, at, copy, made, changes), copy_name


def cache_write(
    state: State, name: str, index: int | str, scope: str, users: Sequence[str] | None
) -> tuple[State, str]:
    """The block writes a buffer in `scope`, which a new block copies out afterwards; the block that copies.

    `users`: blocks that read the cached buffer instead of the original one.
    """
    realize = state.blocks[name]
    old = buffer_of(state, name, index, "write")
    require_complete(state, realize)
    inside = state.scope(realize)
    made = new_buffer(f"{old.name}_{scope}", old, old.shape, scope)
    copy_name = state.unique(made.name)
    replace = ReplaceBuffer(old, made)
    chosen = [state.blocks[u] for u in users or ()]
    top = _top(state, inside, realize)
    for user in consumers(state, realize):
        if user not in chosen and _top(state, inside, user) is top and old in read_buffers(user):
            message = (
                f"`{user.block.name_hint}` reads `{old.name}` in the loops of `{name}`, before the copy would be made"
            )
            state.fail("RLX1010", message, user, help="`cache_write` first, `reverse_compute_at` afterwards")
    changes: dict[Stmt, Stmt | None] = {b.block: replace(b.block) for b in [realize, *chosen]}
    at = [id(s) for s in _tops(inside.block)].index(id(top)) + 1
    return _insert(state, inside, at, _copy(copy_name, made, old), made, changes), copy_name


def reindex(state: State, name: str, kind: str, index: int | str) -> tuple[State, str]:
    """The block reads (or writes) a copy that is indexed by the block's axes themselves, those that occur in the
    access, in their order; the block that copies. RLX1008: the block accesses the buffer at more than one place."""
    realize = state.blocks[name]
    old = buffer_of(state, name, index, kind)
    block = realize.block
    places = {n.indices for n in walk(block) if isinstance(n, BufferLoad | BufferStore) and n.buffer is old}
    if len(places) != 1:
        state.fail("RLX1008", f"the block `{name}` accesses `{old.name}` at {len(places)} places", realize)
    indices = places.pop()
    used = set(free_vars(indices))
    axes = [a for a in block.iter_vars if a.var in used]
    if not used <= {a.var for a in axes} | set(state.func.params) or not axes:
        state.fail("RLX1008", f"the place of `{old.name}` in the block `{name}` depends on more than its axes", realize)
    if kind == "write":
        require_complete(state, realize)
    made = new_buffer(f"{old.name}_reindex", old, [a.dom.extent for a in axes], "global")
    inside = state.scope(realize)
    top = _top(state, inside, realize)
    at = [id(s) for s in _tops(inside.block)].index(id(top)) + (kind == "write")
    fresh = {a.var: Var(f"v{k}", a.var.dtype) for k, a in enumerate(axes)}
    there, here = substitute(indices, fresh), tuple(fresh[a.var] for a in axes)
    pair = ((old, there), (made, here)) if kind == "read" else ((made, here), (old, there))
    copy_name = state.unique(made.name)
    copy = _move(copy_name, [(fresh[a.var], a.dom.extent) for a in axes], *pair)
    point = tuple(a.var for a in axes)
    changed = _Move(old, made, point)(block)
    return _insert(state, inside, at, copy, made, {block: changed}), copy_name


class _Move(Rewriter):
    """Accesses to a buffer become accesses to another at one point."""

    def __init__(self, old: Buffer, new: Buffer, point: tuple[PrimExpr, ...]) -> None:
        self.old = old
        self.new = new
        self.point = point

    @on(BufferLoad)
    def load(self, node: BufferLoad) -> BufferLoad:
        """A load."""
        return BufferLoad(self.new, self.point) if node.buffer is self.old else self.below(node)

    @on(BufferStore)
    def store(self, node: BufferStore) -> BufferStore:
        """A store."""
        made = self.below(node)
        return made.replace(buffer=self.new, indices=self.point) if node.buffer is self.old else made

    @on(BufferRegion)
    def region(self, node: BufferRegion) -> BufferRegion:
        """A stated region."""
        if node.buffer is not self.old:
            return node
        return BufferRegion(self.new, tuple(Range(p, const(1, p.dtype)) for p in self.point))

    @on(MatchBufferRegion)
    def view(self, node: MatchBufferRegion) -> MatchBufferRegion:
        """A view stays: `reindex` refuses blocks with views through the count of places."""
        return node


def _copy(name: str, source: Buffer, target: Buffer) -> Stmt:
    axes = [(Var(f"v{k}", dim.dtype), dim) for k, dim in enumerate(source.shape)]
    point = tuple(v for v, _ in axes)
    return _move(name, axes, (source, point), (target, point))


def _move(
    name: str,
    axes: list[tuple[Var, PrimExpr]],
    source: tuple[Buffer, tuple[PrimExpr, ...]],
    target: tuple[Buffer, tuple[PrimExpr, ...]],
) -> Stmt:
    """A nest that copies one buffer to another."""
    loops = [(Var(f"ax{k}", v.dtype), extent) for k, (v, extent) in enumerate(axes)]
    iters = tuple(IterVar(v, Range(const(0, v.dtype), extent), "spatial") for v, extent in axes)
    box = [BufferRegion(b, tuple(Range(i, IntImm(i.dtype, 1)) for i in at)) for b, at in (source, target)]
    body = BufferStore(target[0], BufferLoad(*source), target[1])
    block = Block(iters, (box[0],), (box[1],), name, body)
    return nest(loops, BlockRealize(tuple(v for v, _ in loops), TRUE, block))


def _tops(block: Block) -> tuple[Stmt, ...]:
    """The statements directly in a block."""
    body = block.body
    found: Iterable[Stmt] = getattr(body, "seq", (body,))
    return tuple(found)


def _top(state: State, scope: BlockRealize, realize: BlockRealize) -> Stmt:
    """The statement directly in a block that another block is in."""
    tops = {id(s): s for s in _tops(scope.block)}
    return next(tops[id(a)] for a in [realize, *state.ancestors(realize)] if id(a) in tops)


def _insert(
    state: State, scope: BlockRealize, at: int, copy: Stmt, made: Buffer, changes: Mapping[Stmt, Stmt | None]
) -> State:
    """The state after some changes, with a statement at a position directly in a block, which allocates a buffer."""

    def inserted(block: Stmt) -> Stmt:
        assert isinstance(block, Block)
        children = _tops(block)
        body = seq(*children[:at], copy, *children[at:])
        return block.replace(body=body, alloc_buffers=(*block.alloc_buffers, made))

    return state.replace(changes, {scope.block: inserted})
