"""Products that follow one another (attention): what lies between them is never there as a whole.

Where a sum of products is used, row by row, by others down to the result, a block of rows is computed from the first
product to the last before the next one begins: what it passes on stays in the cache, and takes memory for a block of
rows only, whatever the number of rows. All axes that the stages have in common are taken apart; the largest of those
that leave one factor of each product as it is gives the rows. The stages of one block of rows are a function of their
own, to which the other rules apply; each row is computed as it would be without this rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from relaxlang.ir import prim
from relaxlang.ir.prim import HANDLE, INT64, BufferLoad, IntImm, PrimExpr, Var
from relaxlang.ir.tir import Block, BlockRealize, Buffer, BufferStore, For, IterVar, PrimFunc, Range, Stmt, seq
from relaxlang.ir.visit import Rewriter, Substitute, free_vars, on
from relaxlang.schedule.access import fill_regions
from relaxlang.schedule.checks import is_output
from relaxlang.schedule.rules.analysis import UNKNOWN, constant, is_plain, loads_of, update_of
from relaxlang.schedule.state import TRUE, State

BLOCK_BYTES = 1 << 20
"""What a block of rows may pass on at once: a usual second-level cache."""
ROWS = (32, 128)
"""The fewest and the most rows of a block. With few rows, bringing the other factor in costs more than it gives."""
FEWEST_BLOCKS = 8
"""With fewer blocks of rows threads had better share the tiles of each product."""
UNKNOWN_ROWS = 128
"""The rows of a block when the length of a row is not known."""


@dataclass(frozen=True)
class Stages:
    """The blocks from the first product on, in order; for each the common axis (a number) that its own axes are, and
    for what they pass on, that its dimensions are. `axes` are the common ones as the last block has them, `row` the one
    that gives the rows."""

    blocks: tuple[BlockRealize, ...]
    of_axis: tuple[Mapping[Var, int], ...]
    of_dim: Mapping[Buffer, tuple[int | None, ...]]
    axes: Mapping[int, IterVar]
    row: int


def find_stages(state: State) -> Stages | None:
    """The stages of a function that can be computed a block of rows at a time; None when there are none."""
    blocks = [b for b in state.blocks.values() if b is not state.root]
    products = [b for b in blocks if _factors(b) is not None]
    if len(products) < 2 or not all(is_plain(state, b) and isinstance(b.block.body, BufferStore) for b in blocks):
        return None
    first = blocks.index(products[0])
    made = {_stored(products[0]).buffer}
    stages = [products[0]]
    for block in blocks[first + 1 :]:
        if made & {one.buffer for one in loads_of(block.block.body)}:
            stages.append(block)
            made.add(_stored(block).buffer)
    if [b for b in blocks if is_output(state, b)] != [stages[-1]] or not all(p in stages for p in products):
        return None
    if blocks[-1] is not stages[-1] or len(made) != len(stages):
        return None
    return _with_axes(stages, products, made - {_stored(stages[-1]).buffer})


def _with_axes(stages: list[BlockRealize], products: list[BlockRealize], inner: set[Buffer]) -> Stages | None:
    """The stages with the axes that all of them have."""
    of_dim: dict[Buffer, tuple[int | None, ...]] = {}
    of_axis: list[dict[Var, int]] = []
    for block in reversed(stages):
        store = _stored(block)
        if block is stages[-1]:
            mine = {a.var: k for k, a in enumerate(block.block.iter_vars) if a.kind == "spatial"}
        else:
            dims = of_dim.get(store.buffer, ())
            mine = {v: k for v, k in zip(store.indices, dims) if isinstance(v, Var) and k is not None}
        of_axis.insert(0, mine)
        for load in loads_of(store.value):
            if load.buffer in inner and load.buffer is not store.buffer:
                found = tuple(mine.get(v) if isinstance(v, Var) else None for v in load.indices)
                before = of_dim.get(load.buffer, found)
                of_dim[load.buffer] = tuple(a if a == b else None for a, b in zip(found, before))
    if set(of_dim) != inner:
        return None
    common = set.intersection(*(set(mine.values()) for mine in of_axis))
    axes = {k: a for k, a in enumerate(stages[-1].block.iter_vars) if k in common}
    rows = [k for k in common if all(_is_row(p, of_axis[stages.index(p)], k) for p in products)]
    if not rows:
        return None
    row = max(rows, key=lambda k: constant(axes[k].dom.extent) or UNKNOWN)
    kept = {b: tuple(k if k in common else None for k in dims) for b, dims in of_dim.items()}
    if any(sorted(k for k in dims if k is not None) != sorted(common) for dims in kept.values()):
        return None  # one that stands in two dimensions
    own = tuple({v: k for v, k in mine.items() if k in common} for mine in of_axis)
    return Stages(tuple(stages), own, kept, axes, row)


def _factors(block: BlockRealize) -> list[BufferLoad] | None:
    """The two factors of a sum of products."""
    update = update_of(block)
    if update is None or update.kind is not prim.Add or not isinstance(update.value, prim.Mul):
        return None
    factors = [loads_of(update.value.a), loads_of(update.value.b)]
    return [f[0] for f in factors] if all(len(f) == 1 for f in factors) else None


def _is_row(product: BlockRealize, of_axis: Mapping[Var, int], axis: int) -> bool:
    """Whether one factor of a product, and only one, is the same for all of an axis."""
    var = next(v for v, k in of_axis.items() if k == axis)
    return sum(var in free_vars(f.indices) for f in _factors(product) or ()) == 1


def _stored(block: BlockRealize) -> BufferStore:
    assert isinstance(block.block.body, BufferStore)
    return block.block.body


def rows_of_block(stages: Stages) -> int | None:
    """How many rows a block has; None when there are too few rows to take apart."""
    line, itemsize = 0, 1
    for buffer, dims in stages.of_dim.items():
        own = [constant(d) for d, k in zip(buffer.shape, dims) if k is None]
        length = 1
        for d in own:
            length *= UNKNOWN if d is None else d
        if length > line:
            line, itemsize = length, buffer.dtype.itemsize
    least, most = ROWS
    wanted = UNKNOWN_ROWS if line >= UNKNOWN else max(least, min(most, BLOCK_BYTES // max(1, line * itemsize)))
    rows = constant(stages.axes[stages.row].dom.extent)
    if rows is None:
        return wanted
    size = next((r for r in range(min(wanted, rows), wanted // 2, -1) if rows % r == 0), min(wanted, rows))
    blocks = -(-rows // max(1, size))
    for k, axis in stages.axes.items():
        if k != stages.row:
            extent = constant(axis.dom.extent)
            blocks *= UNKNOWN if extent is None else extent
    return size if rows >= least and blocks >= FEWEST_BLOCKS else None


class _Local(Rewriter):
    """A stage's accesses within a block of rows: `mapping` gives the place of its axes in the whole; buffers that the
    stages pass on have the dimensions of a block alone."""

    def __init__(self, mapping: Mapping[Var, PrimExpr], buffers: Mapping[Buffer, tuple[Buffer, list[int]]]) -> None:
        self.mapping = mapping
        self.buffers = buffers

    @on(prim.Var)
    def var(self, node: Var) -> PrimExpr:
        """An axis where it stands in the whole."""
        return self.mapping.get(node, node)

    @on(BufferLoad, BufferStore)
    def access(self, node: BufferLoad | BufferStore) -> BufferLoad | BufferStore:
        """An access; to what is passed on in dimensions of its own."""
        if node.buffer not in self.buffers:
            return self.below(node)
        made, kept = self.buffers[node.buffer]
        indices = tuple(node.indices[k] for k in kept)
        if isinstance(node, BufferStore):
            return node.replace(buffer=made, indices=indices, value=self.visit(node.value))
        return node.replace(buffer=made, indices=indices)


def compute_in_row_blocks(state: State, rule: Callable[[PrimFunc], PrimFunc]) -> PrimFunc | None:
    """The function with its stages computed a block of rows at a time, each scheduled by `rule`; None when it has no
    such stages. The blocks before the first stage stay as they are."""
    stages = find_stages(state)
    size = None if stages is None else rows_of_block(stages)
    if stages is None or size is None:
        return None
    places = {k: Var(f"at_{a.var.name}", INT64) for k, a in stages.axes.items() if k != stages.row}
    start = Var("start", INT64)
    total = constant(stages.axes[stages.row].dom.extent)
    whole = total is not None and total % size == 0
    count: PrimExpr = IntImm(INT64, size) if whole else Var("count", INT64)
    buffers = _buffers(stages, count)
    nests = [_nest(b, mine, stages, places, start, count, buffers) for b, mine in zip(stages.blocks, stages.of_axis)]
    inner = _function(state, nests, [b for b, _ in buffers.values()], [*places.values(), start, count])
    scheduled = rule(inner).body
    assert isinstance(scheduled, BlockRealize)
    return _embedded(state, stages, scheduled, places, start, count, size)


def _buffers(stages: Stages, count: PrimExpr) -> dict[Buffer, tuple[Buffer, list[int]]]:
    """For each buffer that is passed on, the one of a block of rows, and which dimensions it keeps."""
    made = {}
    for buffer, dims in stages.of_dim.items():
        kept = [k for k, axis in enumerate(dims) if axis is None or axis == stages.row]
        shape = tuple(count if dims[k] == stages.row else buffer.shape[k] for k in kept)
        data = Var(buffer.name, HANDLE, buffer.data.pointer)
        made[buffer] = (buffer.replace(shape=shape, data=data), kept)
    return made


def _nest(
    realize: BlockRealize, of_axis: Mapping[Var, int], stages: Stages, places: Mapping[int, Var], start: Var,
    count: PrimExpr, buffers: Mapping[Buffer, tuple[Buffer, list[int]]],
) -> Stmt:  # fmt: skip
    """The loops of a stage for one block of rows."""
    mapping: dict[Var, PrimExpr] = {}
    axes: list[IterVar] = []
    for axis in realize.block.iter_vars:
        common = of_axis.get(axis.var)
        if common is None:
            axes.append(axis)
        elif common == stages.row:
            mapping[axis.var] = start + axis.var
            axes.append(axis.replace(dom=Range(IntImm(INT64, 0), count)))
        else:
            mapping[axis.var] = places[common]
    local = _Local(mapping, buffers)
    block = realize.block
    init = None if block.init is None else local(block.init)
    made = Block(tuple(axes), None, None, block.name_hint, local(block.body), init)
    loops = [Var(a.var.name.removeprefix("v_"), a.var.dtype) for a in axes]
    body: Stmt = BlockRealize(tuple(loops), TRUE, made)
    for loop, axis in zip(reversed(loops), reversed(axes)):
        body = For(loop, axis.dom.min, axis.dom.extent, "serial", body)
    return body


def _function(state: State, nests: Sequence[Stmt], made: list[Buffer], scalars: Sequence[PrimExpr]) -> PrimFunc:
    """The stages of one block of rows as a function; what was computed before is a parameter."""
    before = state.root.block.alloc_buffers
    params = [*state.func.params, *(Var(b.name, HANDLE) for b in before)]
    buffer_map = {**state.func.buffer_map, **dict(zip(params[len(state.func.params) :], before))}
    body = BlockRealize((), TRUE, Block((), (), (), "root", seq(*nests), alloc_buffers=tuple(made)))
    numbers = [v for v in scalars if isinstance(v, Var)]
    return state.func.replace(params=(*params, *numbers), buffer_map=buffer_map, body=body)


class _Serial(Rewriter):
    """Loops within an iteration of a parallel one are not shared again."""

    @on(For)
    def loop(self, node: For) -> For:
        """A loop."""
        made: For = self.below(node)
        return made.replace(kind="serial") if made.kind == "parallel" else made


def _embedded(
    state: State, stages: Stages, scheduled: BlockRealize, places: Mapping[int, Var], start: Var, count: PrimExpr,
    size: int,
) -> PrimFunc:  # fmt: skip
    """The function with a parallel loop over all blocks of rows where its stages were."""
    rows = stages.axes[stages.row].dom.extent
    total = constant(rows)
    blocks = (rows + (size - 1)) // size if total is None else IntImm(INT64, -(-total // size))
    order = [*places, stages.row]
    extents = [blocks if k == stages.row else stages.axes[k].dom.extent for k in order]
    own = [*places.values(), Var("block", INT64)]
    axes = [IterVar(v, Range(IntImm(INT64, 0), e), "spatial") for v, e in zip(own, extents)]
    task = Var("task", INT64)
    values: list[PrimExpr] = []
    whole: PrimExpr = IntImm(INT64, 1)
    for extent in reversed(extents):
        place = task // whole if constant(whole) != 1 else task
        values.insert(0, place % extent if len(values) + 1 < len(extents) else place)
        whole = whole * extent
    first = axes[-1].var * size
    mapping: dict[Var, PrimExpr] = {start: first}
    if isinstance(count, Var):
        mapping[count] = prim.Min(IntImm(INT64, size), rows - first)
    inner = Substitute(mapping)(_Serial()(scheduled.block))
    block = inner.replace(iter_vars=tuple(axes), reads=None, writes=None, name_hint=state.unique("row_block"))
    body = For(task, IntImm(INT64, 0), whole, "parallel", BlockRealize(tuple(values), TRUE, block))
    return _replaced(state, stages, body)


def _replaced(state: State, stages: Stages, body: Stmt) -> PrimFunc:
    """The function with a statement where its stages were."""
    nests = [state.loops_around(b)[0] for b in stages.blocks]
    changed = state.replace({**dict.fromkeys(nests[:-1]), nests[-1]: body})
    root = changed.root.block
    kept = tuple(b for b in root.alloc_buffers if b not in stages.of_dim)
    realize = changed.root.replace(block=root.replace(alloc_buffers=kept))
    return state.func.replace(body=fill_regions(realize))
