"""The stages of a function that have rows in common, and their loops for some of these rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from relaxlang.base.record import record
from relaxlang.ir import prim
from relaxlang.ir.prim import HANDLE, INT64, BufferLoad, IntImm, PrimExpr, Var
from relaxlang.ir.tir import Block, BlockRealize, Buffer, BufferStore, For, IterVar, PrimFunc, Range, Stmt, seq
from relaxlang.ir.visit import Rewriter, free_vars, on, substitute
from relaxlang.schedule.access import fill_regions
from relaxlang.schedule.checks import is_output
from relaxlang.schedule.rules.analysis import UNKNOWN, constant, is_plain, loads_of, update_of
from relaxlang.schedule.state import TRUE, State


@record
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
    made = {stored(products[0]).buffer}
    stages = [products[0]]
    for block in blocks[first + 1 :]:
        if made & {one.buffer for one in loads_of(block.block.body)}:
            stages.append(block)
            made.add(stored(block).buffer)
    if [b for b in blocks if is_output(state, b)] != [stages[-1]] or not all(p in stages for p in products):
        return None
    if blocks[-1] is not stages[-1] or len(made) != len(stages):
        return None
    return _with_axes(stages, products, made - {stored(stages[-1]).buffer})


def _with_axes(stages: list[BlockRealize], products: list[BlockRealize], inner: set[Buffer]) -> Stages | None:
    """The stages with the axes that all of them have."""
    of_dim: dict[Buffer, tuple[int | None, ...]] = {}
    of_axis: list[dict[Var, int]] = []
    for block in reversed(stages):
        store = stored(block)
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


def is_product(block: BlockRealize) -> bool:
    """Whether a block is a sum of products."""
    return _factors(block) is not None


def _is_row(product: BlockRealize, of_axis: Mapping[Var, int], axis: int) -> bool:
    """Whether one factor of a product, and only one, is the same for all of an axis."""
    var = next(v for v, k in of_axis.items() if k == axis)
    return sum(var in free_vars(f.indices) for f in _factors(product) or ()) == 1


def stored(block: BlockRealize) -> BufferStore:
    """The store of a block that is one."""
    assert isinstance(block.block.body, BufferStore)
    return block.block.body


@record
class Place:
    """Where a block of rows is: the other common axes are `at`, the rows are `count` from `start` on; a single one of
    them, counted from the first, when `row` is given."""

    at: Mapping[int, Var]
    start: Var
    count: PrimExpr
    row: Var | None = None


class _Local(Rewriter):
    """A stage's accesses within a block of rows: `mapping` gives the place of its axes in the whole; buffers that the
    stages pass on have the dimensions of a block alone, in which `own` gives the place of an axis."""

    def __init__(
        self, mapping: Mapping[Var, PrimExpr], buffers: Mapping[Buffer, tuple[Buffer, list[int]]],
        own: Mapping[Var, PrimExpr],
    ) -> None:  # fmt: skip
        self.mapping = mapping
        self.buffers = buffers
        self.own = own

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
        indices = tuple(substitute(node.indices[k], self.own) for k in kept)
        if isinstance(node, BufferStore):
            return node.replace(buffer=made, indices=indices, value=self.visit(node.value))
        return node.replace(buffer=made, indices=indices)


def buffers_of_block(
    stages: Stages, count: PrimExpr, columns: Mapping[Buffer, tuple[int, int]] = MappingProxyType({})
) -> dict[Buffer, tuple[Buffer, list[int]]]:
    """For each buffer that is passed on, the one of a block of `count` rows, and which dimensions it keeps. `columns`:
    dimensions of which a block has so many elements alone."""
    made = {}
    for buffer, dims in stages.of_dim.items():
        kept = [k for k, axis in enumerate(dims) if axis is None or axis == stages.row]
        shape = [count if axis == stages.row else d for d, axis in zip(buffer.shape, dims)]
        if buffer in columns:
            shape[columns[buffer][0]] = IntImm(INT64, columns[buffer][1])
        data = Var(buffer.name, HANDLE, buffer.data.pointer)
        made[buffer] = (buffer.replace(shape=tuple(shape[k] for k in kept), data=data), kept)
    return made


def nest(
    realize: BlockRealize, stages: Stages, place: Place, buffers: Mapping[Buffer, tuple[Buffer, list[int]]],
    column: tuple[Var, Var, PrimExpr] | None = None, of: BlockRealize | None = None,
) -> Stmt:  # fmt: skip
    """The loops of a stage for one block of rows, or of `realize`, a part of the stage `of`. `column`: an axis that
    runs through so many elements from a place on, as the buffers that are passed on do."""
    of_axis = stages.of_axis[stages.blocks.index(of or realize)]
    mapping: dict[Var, PrimExpr] = {}
    own: dict[Var, PrimExpr] = {}
    axes: list[IterVar] = []
    for axis in realize.block.iter_vars:
        common = of_axis.get(axis.var)
        if common == stages.row and place.row is not None:
            mapping[axis.var], own[axis.var] = place.start + place.row, place.row
        elif common == stages.row:
            mapping[axis.var] = place.start + axis.var
            axes.append(axis.replace(dom=Range(IntImm(INT64, 0), place.count)))
        elif common is not None:
            mapping[axis.var] = place.at[common]
        elif column is not None and axis.var is column[0]:
            mapping[axis.var] = column[1] + axis.var
            axes.append(axis.replace(dom=Range(IntImm(INT64, 0), column[2])))
        else:
            axes.append(axis)
    local = _Local(mapping, buffers, own)
    block = realize.block
    init = None if block.init is None else local(block.init)
    made = Block(tuple(axes), None, None, block.name_hint, local(block.body), init)
    loops = [Var(a.var.name.removeprefix("v_"), a.var.dtype) for a in axes]
    body: Stmt = BlockRealize(tuple(loops), TRUE, made)
    for loop, axis in zip(reversed(loops), reversed(axes)):
        body = For(loop, axis.dom.min, axis.dom.extent, "serial", body)
    return body


def function_of(
    state: State, nests: Sequence[Stmt], made: Sequence[Buffer], scalars: Sequence[PrimExpr],
    passed: Sequence[Buffer] = (),
) -> PrimFunc:  # fmt: skip
    """Stages of one block of rows as a function; what was computed before, and what is `passed` on, is a parameter."""
    before = (*state.root.block.alloc_buffers, *passed)
    params = [*state.func.params, *(Var(b.name, HANDLE) for b in before)]
    buffer_map = {**state.func.buffer_map, **dict(zip(params[len(state.func.params) :], before))}
    body = BlockRealize((), TRUE, Block((), (), (), "root", seq(*nests), alloc_buffers=tuple(made)))
    numbers = [v for v in scalars if isinstance(v, Var)]
    return state.func.replace(params=(*params, *numbers), buffer_map=buffer_map, body=fill_regions(body))


class Serial(Rewriter):
    """Loops within an iteration of a parallel one are not shared again."""

    @on(For)
    def loop(self, node: For) -> For:
        """A loop."""
        made: For = self.below(node)
        return made.replace(kind="serial") if made.kind == "parallel" else made


def loops_over(name: str, axes: Sequence[IterVar], body: Stmt) -> Stmt:
    """A block in loops over its axes."""
    loops = [Var(a.var.name.removeprefix("v_"), INT64) for a in axes]
    made: Stmt = BlockRealize(tuple(loops), TRUE, Block(tuple(axes), None, None, name, body))
    for loop, axis in zip(reversed(loops), reversed(axes)):
        made = For(loop, IntImm(INT64, 0), axis.dom.extent, "serial", made)
    return made


class Loads(Rewriter):
    """Puts loads in the place of others."""

    def __init__(self, instead: Mapping[BufferLoad, BufferLoad]) -> None:
        self.instead = instead

    @on(BufferLoad)
    def load(self, node: BufferLoad) -> BufferLoad:
        """A load."""
        made: BufferLoad = self.instead[node] if node in self.instead else self.below(node)
        return made
