"""Products that follow one another (attention): what lies between them is never there as a whole.

Where a sum of products is used, row by row, by others down to the result, a block of rows is computed from the first
product to the last before the next one begins: what it passes on stays in the cache, and takes memory for a block of
rows only, whatever the number of rows. All axes that the stages have in common are taken apart; the largest of those
that leave one factor of each product as it is gives the rows. The stages of one block of rows are a function of their
own, to which the other rules apply; each row is computed as it would be without this rule (but see `online_softmax`).
What is left when the rows are no multiple of a block is code of its own. Factors that many blocks read, but whose lines
lie far from each other, are copied once in the order in which they are read.
"""

from __future__ import annotations

from relaxlang.ir.module import IRModule
from relaxlang.ir.prim import HANDLE, INT64, BufferLoad, IntImm, PointerType, PrimExpr, Var
from relaxlang.ir.tir import (
    Block,
    BlockRealize,
    Buffer,
    BufferStore,
    For,
    IfThenElse,
    IterVar,
    PrimFunc,
    Range,
    Stmt,
    seq,
)
from relaxlang.ir.visit import Substitute, free_vars
from relaxlang.schedule.access import fill_regions
from relaxlang.schedule.rules.analysis import UNKNOWN, constant, loads_of
from relaxlang.schedule.rules.inline import inline_all
from relaxlang.schedule.rules.online_softmax import Scheduler, online_stages, takes_columns
from relaxlang.schedule.rules.row_stages import (
    Loads,
    Place,
    Serial,
    Stages,
    buffers_of_block,
    find_stages,
    function_of,
    is_product,
    loops_over,
    nest,
    stored,
)
from relaxlang.schedule.schedule import Schedule
from relaxlang.schedule.state import TRUE, State

BLOCK_BYTES = 1 << 20
"""What a block of rows may pass on at once: a usual second-level cache."""
ROWS = (32, 128)
"""The fewest and the most rows of a block. With few rows, bringing the other factor in costs more than it gives."""
FEWEST_BLOCKS = 8
"""With fewer blocks of rows threads had better share the tiles of each product."""
FEW_COLUMNS = 128
"""Up to so many columns, when their number is not known, all rows are computed stage by stage: scores of so few stay in
the cache, and blocks of an unknown number of rows are slower."""
MANY_BLOCKS = 4
"""Blocks of rows from which on a copy in a better order is worth it."""
UNKNOWN_ROWS = 128
"""The rows of a block when the length of a row is not known."""


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


def compute_in_row_blocks(state: State, rule: Scheduler, lines: Scheduler) -> PrimFunc | None:
    """The function with its stages computed a block of rows at a time, each scheduled by `rule`, those of a single line
    by `lines`; None when it has no such stages. The blocks before the first stage stay as they are."""
    stages = find_stages(state)
    size = None if stages is None else rows_of_block(stages)
    if stages is None or size is None:
        return None
    gathered = _gathered(state, stages, size)
    if gathered is not None:
        state, stages = gathered, find_stages(gathered)
        assert stages is not None
    at = {k: Var(f"at_{a.var.name}", INT64) for k, a in stages.axes.items() if k != stages.row}
    total = constant(stages.axes[stages.row].dom.extent)
    start = Var("start", INT64)
    counts: list[PrimExpr] = [IntImm(INT64, size)]
    if total is None or total % size:  # what is left is code of its own: tiles of an unknown number of rows are slower
        counts.append(Var("count", INT64) if total is None else IntImm(INT64, total % size))
    blocks = [_block(state, stages, Place(at, start, count), rule, lines) for count in counts]
    return _embedded(state, stages, blocks, Place(at, start, counts[-1]), size)


def takes_pieces(func: PrimFunc) -> bool:
    """Whether a kernel is computed some rows and columns at a time, in memory that does not depend on their number."""
    sch = Schedule(IRModule({"main": func}))
    inline_all(sch)
    stages = find_stages(sch.state)
    return stages is not None and rows_of_block(stages) is not None and takes_columns(stages) is not None


def few_columns(state: State) -> PrimExpr | None:
    """When a function whose rows are of unknown length had better be computed stage by stage; None when never."""
    stages = find_stages(state)
    online = None if stages is None else takes_columns(stages)
    return None if online is None or constant(online.extent) is not None else online.extent <= FEW_COLUMNS


def _block(state: State, stages: Stages, place: Place, rule: Scheduler, lines: Scheduler) -> Block:
    """The stages of a block of rows."""
    online = online_stages(state, stages, place, rule, lines)
    if online is not None:
        body, made = online
        return Block((), None, None, "row_block", body, alloc_buffers=made)
    buffers = buffers_of_block(stages, place.count)
    nests = [nest(b, stages, place, buffers) for b in stages.blocks]
    inner = function_of(state, nests, [b for b, _ in buffers.values()], [*place.at.values(), place.start, place.count])
    scheduled = rule(inner).body
    assert isinstance(scheduled, BlockRealize)
    return scheduled.block


def _gathered(state: State, stages: Stages, size: int) -> State | None:
    """The state with copies of the factors that every block of rows reads again, in the order in which it does; None
    when that is how they lie, or too few blocks read them. Lines far from each other would cost more each time."""
    made: dict[Buffer, Buffer] = {}
    nests: list[Stmt] = []
    changes: dict[Stmt, Stmt | None] = {}
    for block, of_axis in zip(stages.blocks, stages.of_axis):
        loads = {}
        for load in loads_of(stored(block).value) if is_product(block) and _read_often(stages, size, block) else []:
            outer = [k for k, index in enumerate(load.indices) if set(free_vars(index)) <= of_axis.keys()]
            order = [*outer, *(k for k in range(load.buffer.ndim) if k not in outer)]
            kept = [k for k in order if constant(load.buffer.shape[k]) != 1]
            own = load.buffer not in stages.of_dim and load.buffer is not stored(block).buffer
            if not own or kept == sorted(kept) or any(of_axis.get(v) == stages.row for v in free_vars(load.indices)):
                continue
            if load.buffer not in made:
                made[load.buffer], stage = _permuted(load.buffer, order)
                nests.append(stage)
            loads[load] = BufferLoad(made[load.buffer], tuple(load.indices[k] for k in order))
        if loads:
            body = Loads(loads)(block.block.body)
            changes[block] = block.replace(block=block.block.replace(reads=None, writes=None, body=body))
    if not made:
        return None
    first = stages.blocks[0].block.name_hint
    changed = state.replace(changes)
    begin = changed.loops_around(changed.blocks[first])[0]
    changed = changed.replace({begin: seq(*nests, begin)})
    changed = changed.with_buffers(changed.root, add=tuple(made.values()))
    return State(changed.func.replace(body=fill_regions(changed.func.body)), changed.name)


def _read_often(stages: Stages, size: int, block: BlockRealize) -> bool:
    """Whether many blocks of rows read what a product goes through; as many rows as columns are enough."""
    rows = stages.axes[stages.row].dom.extent
    total = constant(rows)
    if total is not None:
        return total >= MANY_BLOCKS * size
    of_axis = stages.of_axis[stages.blocks.index(block)]
    return any(a.dom.extent == rows for a in block.block.iter_vars if a.var not in of_axis)


def _permuted(buffer: Buffer, order: list[int]) -> tuple[Buffer, Stmt]:
    """A copy of a buffer with its dimensions in another order, and the stage that makes it."""
    data = Var(f"{buffer.name}_lines", HANDLE, PointerType(buffer.dtype))
    copy = Buffer(data.name, tuple(buffer.shape[k] for k in order), buffer.dtype, data)
    axes = [IterVar(Var(f"v_{k}", INT64), Range(IntImm(INT64, 0), d), "spatial") for k, d in enumerate(copy.shape)]
    at = tuple(a.var for a in axes)
    value = BufferLoad(buffer, tuple(at[order.index(k)] for k in range(buffer.ndim)))
    return copy, loops_over(data.name, axes, BufferStore(copy, value, at))


def _embedded(state: State, stages: Stages, scheduled: list[Block], place: Place, size: int) -> PrimFunc:
    """The function with a parallel loop over all blocks of rows where its stages were: `scheduled` for a full block,
    and for what is left."""
    rows = stages.axes[stages.row].dom.extent
    total = constant(rows)
    blocks = (rows + (size - 1)) // size if total is None else IntImm(INT64, -(-total // size))
    order = [*place.at, stages.row]
    extents = [blocks if k == stages.row else stages.axes[k].dom.extent for k in order]
    own = [*place.at.values(), Var("block", INT64)]
    axes = [IterVar(v, Range(IntImm(INT64, 0), e), "spatial") for v, e in zip(own, extents)]
    task = Var("task", INT64)
    values: list[PrimExpr] = []
    whole: PrimExpr = IntImm(INT64, 1)
    for extent in reversed(extents):
        rest = task // whole if constant(whole) != 1 else task
        values.insert(0, rest % extent if len(values) + 1 < len(extents) else rest)
        whole = whole * extent
    first = axes[-1].var * size
    mapping: dict[Var, PrimExpr] = {place.start: first}
    if isinstance(place.count, Var):
        mapping[place.count] = rows - first
    block, *last = (Substitute(mapping)(Serial()(one)).replace(reads=None, writes=None) for one in scheduled)
    block = block.replace(name_hint=state.unique("row_block"))
    if last:
        ways = [BlockRealize((), TRUE, one) for one in (block, last[0].replace(name_hint=state.unique("last_rows")))]
        block = Block((), None, None, state.unique("rows"), IfThenElse(first + size <= rows, *ways))
    block = block.replace(iter_vars=tuple(axes))
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
