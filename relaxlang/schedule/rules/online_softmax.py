"""Softmax between products a piece of a line at a time (attention over long sequences): no line of scores as a whole.

Where the stages of a block of rows contain `exp(x - max(x))` along their columns, and what follows only adds these
powers up (plainly, and times the other factor of the second product), the sums may be kept for the columns seen so far:
when the largest number grows, they are scaled by `exp(old - new)`. A block of rows then takes memory for some columns
alone, which stay in the second-level cache, however many there are (Milakov and Gimelshein, 2018).

For a row that has seen only minus infinity the powers are those of minus infinity itself, so nothing is added; when
that is all there is, the quotient of the sums is NaN, as it is without this rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set

from relaxlang.base.record import record, replace
from relaxlang.ir import prim
from relaxlang.ir.prim import HANDLE, INT64, BufferLoad, FloatImm, IntImm, PrimExpr, Var, const
from relaxlang.ir.structural import structural_equal
from relaxlang.ir.tir import Block, BlockRealize, Buffer, BufferStore, For, IterVar, PrimFunc, Range, Stmt, seq
from relaxlang.ir.visit import Rewriter, free_vars, on, substitute
from relaxlang.schedule.rules.analysis import UNKNOWN, constant, loads_of, update_of
from relaxlang.schedule.rules.row_stages import (
    Loads,
    Place,
    Serial,
    Stages,
    buffers_of_block,
    function_of,
    is_product,
    loops_over,
    nest,
    stored,
)
from relaxlang.schedule.state import TRUE, State
from relaxlang.schedule.stmts import walk_stmts

COLUMNS = 512
"""The columns of a piece: with 128 rows, their scores and powers take half of a usual second-level cache."""
NARROW = 64
"""The columns of a piece of what is left, when that may be any number: those that do not exist are computed too."""
FEWEST_COLUMNS = COLUMNS
"""Up to so many columns a line is computed at once."""
ZERO, ONE = IntImm(INT64, 0), IntImm(INT64, 1)

Scheduler = Callable[[PrimFunc], PrimFunc]


@record
class Online:
    """The stages of a block of rows by what becomes of them: `before` make the scores that `top` finds the largest of
    and `powers` is the exponential of, less that; `sums` add powers up; `after` use the finished sums. `column` is the
    axis of each stage that runs through the columns, `column_dim` the dimension of what is passed on, `extent` how many
    columns there are."""

    stages: Stages
    before: tuple[BlockRealize, ...]
    top: BlockRealize
    powers: BlockRealize
    sums: tuple[BlockRealize, ...]
    after: tuple[BlockRealize, ...]
    column: Mapping[BlockRealize, Var]
    column_dim: Mapping[Buffer, int]
    extent: PrimExpr


def find_online(stages: Stages) -> Online | None:
    """How stages can be computed some columns at a time; None when they can't."""
    return _find(_divided_last(stages))


def takes_columns(stages: Stages) -> Online | None:
    """The same for stages with many columns, or nobody knows how many; None for few."""
    online = find_online(stages)
    return None if online is None or (constant(online.extent) or UNKNOWN) <= FEWEST_COLUMNS else online


def _find(stages: Stages) -> Online | None:
    columns = _columns(stages)
    if columns is None:
        return None
    column, dims, extent = columns
    tops = [b for b in stages.blocks if b in column and (u := update_of(b)) is not None and u.kind is prim.Max]
    powers = [b for b in stages.blocks if b in column and len(tops) == 1 and _is_power(b, tops[0], column)]
    if len(powers) != 1:
        return None
    top, power = tops[0], powers[0]
    made = stored(power).buffer
    sums = [b for b in stages.blocks if b in column and _adds_up(b, made, column[b])]
    before: list[BlockRealize] = []
    after: list[BlockRealize] = []
    for block in stages.blocks:
        if block in column and block not in (top, power, *sums):
            before.append(block)
        elif block not in column:
            after.append(block)
    late = {stored(b).buffer for b in (top, power, *sums, *after)}
    if any(
        one.buffer in late
        for b in (*before, top)
        for one in loads_of(b.block.body)
        if one.buffer is not stored(b).buffer
    ):
        return None
    if any(one.buffer in dims for b in after for one in loads_of(b.block.body)):
        return None  # a line of powers is used as it is
    return Online(stages, tuple(before), top, power, tuple(sums), tuple(after), column, dims, extent)


def _divided_last(stages: Stages) -> Stages:
    """The stages with the sum of powers that are divided by their total, each, divided instead: powers are at most 1,
    and so is the quotient. Other stages stay as they are."""
    product = next((b for b in reversed(stages.blocks) if is_product(b)), None)
    if product is None:
        return stages
    loads = {one.buffer: one for one in loads_of(stored(product).value) if one.buffer in stages.of_dim}
    for block in stages.blocks:
        store, value = stored(block), stored(block).value
        users = [
            b for b in stages.blocks if b is not block and store.buffer in {o.buffer for o in loads_of(stored(b).value)}
        ]
        if store.buffer not in loads or users != [product] or not isinstance(value, (prim.Mul, prim.Div)):
            continue
        power, total = value.a, value.b
        if isinstance(power, BufferLoad) and _is_exp(stages, power.buffer) and _is_share(stages, power.buffer, value):
            at = {v: index for v, index in zip(store.indices, loads[store.buffer].indices) if isinstance(v, Var)}
            divide = type(value), substitute(total, at)
            return _with_quotient(stages, block, product, {loads[store.buffer]: substitute(power, at)}, divide)
    return stages


def _is_exp(stages: Stages, buffer: Buffer) -> bool:
    made = [stored(b).value for b in stages.blocks if stored(b).buffer is buffer]
    return len(made) == 1 and isinstance(made[0], prim.Call) and made[0].op == "exp"


def _is_share(stages: Stages, powers: Buffer, value: prim.Mul | prim.Div) -> bool:
    """Whether powers are divided by their sum: `p / total`, or `p * (1 / total)`."""
    by = value.b
    if isinstance(value, prim.Mul):
        if not isinstance(by, prim.Div) or not isinstance(by.a, FloatImm) or by.a.value != 1.0:
            return False
        by = by.b
    made = [b for b in stages.blocks if isinstance(by, BufferLoad) and stored(b).buffer is by.buffer]
    found = update_of(made[0]) if made else None
    return found is not None and found.kind is prim.Add and [one.buffer for one in loads_of(found.value)] == [powers]


def _with_quotient(
    stages: Stages, gone: BlockRealize, product: BlockRealize, loads: Mapping[BufferLoad, BufferLoad],
    divide: tuple[type[prim.Mul] | type[prim.Div], PrimExpr],
) -> Stages:  # fmt: skip
    """The stages without one; the product reads something else, and what it gives is divided by a number."""
    store, block = stored(product), product.block
    whole = _alike("sum", store.buffer)
    assert isinstance(block.init, BufferStore)
    value = Loads({BufferLoad(store.buffer, store.indices): BufferLoad(whole, store.indices), **loads})(store.value)
    changed = block.replace(body=store.replace(buffer=whole, value=value), init=block.init.replace(buffer=whole))
    spatial = [a for a in block.iter_vars if a.kind == "spatial"]
    own = {a.var: Var(a.var.name, INT64) for a in spatial}
    indices = substitute(store.indices, own)
    quotient = store.replace(value=divide[0](BufferLoad(whole, indices), substitute(divide[1], own)), indices=indices)
    last = Block(tuple(a.replace(var=own[a.var]) for a in spatial), None, None, "divided", quotient)
    pairs: list[tuple[BlockRealize, Mapping[Var, int]]] = []
    for one, of_axis in zip(stages.blocks, stages.of_axis):
        if one is product:
            pairs.append((product.replace(block=changed), of_axis))
            pairs.append((BlockRealize(tuple(own.values()), TRUE, last), {own[v]: k for v, k in of_axis.items()}))
        elif one is not gone:
            pairs.append((one, of_axis))
    of_axis = stages.of_axis[stages.blocks.index(product)]
    dims = tuple(of_axis.get(v) if isinstance(v, Var) else None for v in store.indices)
    of_dim = {b: d for b, d in stages.of_dim.items() if b is not stored(gone).buffer}
    blocks, axes = zip(*pairs)
    return replace(stages, blocks=blocks, of_axis=axes, of_dim={**of_dim, whole: dims})


def _columns(stages: Stages) -> tuple[dict[BlockRealize, Var], dict[Buffer, int], PrimExpr] | None:
    """The axis of each stage that runs through the columns, which dimension of what is passed on that is, and how many
    there are: the last reduction tells."""
    column: dict[BlockRealize, Var] = {}
    dims: dict[Buffer, int] = {}
    extent: PrimExpr | None = None
    for block in reversed(stages.blocks):
        store = stored(block)
        loads = [one for one in loads_of(store.value) if one.buffer in stages.of_dim and one.buffer is not store.buffer]
        reduced = [a for a in block.block.iter_vars if a.kind == "reduce"]
        if store.buffer in dims:
            var = store.indices[dims[store.buffer]]
        elif reduced and loads:
            if len(reduced) != 1:
                return None
            var = reduced[0].var
        else:
            continue
        if not isinstance(var, Var):
            return None
        column[block] = var
        axis = next(a for a in block.block.iter_vars if a.var is var)
        if constant(axis.dom.min) != 0 or (extent is not None and extent != axis.dom.extent):
            return None
        extent = axis.dom.extent
        for one in loads:
            places = [k for k, index in enumerate(one.indices) if index is var]
            if places and dims.setdefault(one.buffer, places[0]) != places[0]:
                return None
            if len(places) > 1 or (not places and one.buffer in dims):
                return None
    return None if extent is None else (column, dims, extent)


def _is_power(block: BlockRealize, top: BlockRealize, column: Mapping[BlockRealize, Var]) -> bool:
    """Whether a stage is `exp(x - top)`, where `top` is the largest `x` of the line."""
    value, found = stored(block).value, update_of(top)
    assert found is not None
    if not isinstance(value, prim.Call) or value.op != "exp" or not isinstance(value.args[0], prim.Sub):
        return False
    less = value.args[0].b
    if not isinstance(less, BufferLoad) or less.buffer is not found.store.buffer:
        return False
    places = {v: index for v, index in zip(found.store.indices, less.indices) if isinstance(v, Var)}
    same = substitute(found.value, {**places, column[top]: column[block]})
    return structural_equal(same, value.args[0].a)


def _adds_up(block: BlockRealize, powers: Buffer, column: Var) -> bool:
    """Whether a stage adds powers up along the columns, each once and times what does not depend on them."""
    found = update_of(block)
    if found is None or found.kind is not prim.Add:
        return False
    loads = [one for one in loads_of(found.value) if one.buffer is powers]
    if len(loads) != 1 or not any(a.var is column and a.kind == "reduce" for a in block.block.iter_vars):
        return False
    if isinstance(found.value, prim.Mul):
        return found.value.a is loads[0] or found.value.b is loads[0]
    return found.value is loads[0]


@record
class _Piece:
    """The columns of a piece: `width` of them from `first` on; `end`: those from there on do not exist."""

    first: Var
    width: int
    end: PrimExpr | None = None


class _Writer:
    """Writes the stages of a block of rows so that they take some columns at a time. `buffers` are what is passed on,
    `scale` is what the sums so far are multiplied by."""

    def __init__(self, state: State, online: Online, place: Place, rule: Scheduler, lines: Scheduler) -> None:
        self.state = state
        self.online = online
        self.place = place
        self.rule = rule
        self.lines = lines
        columns = {b: (k, COLUMNS) for b, k in online.column_dim.items()}
        self.buffers = buffers_of_block(online.stages, place.count, columns)
        self.top = self.buffers[stored(online.top).buffer]
        self.scale = _alike("scale", self.top[0])
        self.passed = [*(b for b, _ in self.buffers.values()), self.scale]
        self.same: dict[Buffer, Buffer] = {}

    def run(self) -> Stmt:
        """The statements for a block of rows."""
        o = self.online
        begin = self.scheduled([self.cleared(b) for b in (o.top, *o.sums)])
        end = self.scheduled([nest(b, o.stages, self.place, self.buffers) for b in o.after])
        made: Stmt = Instead(self.same)(seq(begin, *self.pieces(), end))
        return made

    def pieces(self) -> list[Stmt]:
        """The loops over all columns: as wide pieces as possible, and one of what is left, or some narrow ones."""
        extent, first = self.online.extent, Var("first", INT64)
        total = constant(extent)
        if total is None:
            few = isinstance(self.place.count, Var)  # what is left of the rows is not worth more code
            whole = ZERO if few else extent // COLUMNS * COLUMNS
            rest = (extent - whole + (NARROW - 1)) // NARROW
            wide = [] if few else [self.columns(_Piece(first, COLUMNS), ZERO, extent // COLUMNS)]
            return [*wide, self.columns(_Piece(first, NARROW, extent), whole, rest)]
        made = [self.columns(_Piece(first, COLUMNS), ZERO, IntImm(INT64, total // COLUMNS))] if total >= COLUMNS else []
        if total % COLUMNS:
            rest = IntImm(INT64, total - total % COLUMNS)
            made.append(self.columns(_Piece(first, total % COLUMNS), rest, ONE))
        return made

    def columns(self, piece: _Piece, begin: PrimExpr, count: PrimExpr) -> Stmt:
        """A loop over pieces of one width."""
        o = self.online
        lines = [b for b in o.sums if self._is_line(b)]
        stages = [self.scheduled([one for b in o.before for one in self.nest(b, piece)], piece.first)]
        stages.append(self.each_row(lines, piece))
        stages += [self.scheduled(*self.added(b, piece)) for b in o.sums if b not in lines]
        loop, own = Var("columns", INT64), Var("v_columns", INT64)
        body = substitute(seq(*stages), {piece.first: begin + own * piece.width})
        block = Block((IterVar(own, Range(ZERO, count), "opaque"),), None, None, "columns", body)
        return For(loop, ZERO, count, "serial", BlockRealize((loop,), TRUE, block))

    def _is_line(self, block: BlockRealize) -> bool:
        """Whether a sum is one number for each row."""
        shape = self.buffers[stored(block).buffer][0].shape
        at = self._dim_of_row(block)
        return len(shape) == self.top[0].ndim and all(k == at or constant(d) == 1 for k, d in enumerate(shape))

    def nest(
        self,
        block: BlockRealize,
        piece: _Piece,
        place: Place | None = None,
        instead: tuple[Buffer, Buffer] | None = None,
    ) -> list[Stmt]:
        """The loops of a stage for some columns; `instead`: a buffer, and which one stands for it."""
        column = self.online.column[block]
        buffers = {
            b: (instead[1] if instead and instead[0] is made else made, kept)
            for b, (made, kept) in self.buffers.items()
        }
        at = (column, piece.first, IntImm(INT64, piece.width))
        made = nest(block, self.online.stages, place or self.place, buffers, at)
        if piece.end is None:
            return [made]
        inside = piece.first + column < piece.end
        if block in (self.online.top, self.online.powers):
            return [_Hidden(inside).visit(made)]
        return _with_copies(made, column, inside, {*self.passed, *([instead[1]] if instead else [])})

    def scheduled(
        self, nests: Sequence[Stmt], first: Var | None = None, made: Sequence[Buffer] = (), row: Var | None = None
    ) -> Stmt:
        """Stages as a function of their own, scheduled: the block that stands in the place of its root."""
        scalars = (*self.place.at.values(), self.place.start, self.place.count, first, row)
        numbers = [v for v in scalars if v is not None]
        known = {*self.passed, *made, *self.state.func.buffer_map.values()}
        local = [b for b in _stored_to(nests) if b not in known]
        func = function_of(self.state, nests, [*made, *local], numbers, [*self.passed, *self.same])
        root = Serial()((self.rule if row is None else self.lines)(func).body)
        assert isinstance(root, BlockRealize)
        return root.replace(block=root.block.replace(reads=None, writes=None, name_hint="piece"))

    def cleared(self, block: BlockRealize) -> Stmt:
        """A stage that stores what a reduction begins with."""
        init = block.block.init
        axes = tuple(a for a in block.block.iter_vars if a.kind == "spatial")
        assert init is not None
        begin = block.block.replace(iter_vars=axes, body=init, init=None, name_hint=f"{block.block.name_hint}_begin")
        return nest(block.replace(block=begin), self.online.stages, self.place, self.buffers, of=block)

    def added(self, block: BlockRealize, piece: _Piece) -> tuple[list[Stmt], Var, list[Buffer]]:
        """The stages that add what some columns give to a sum, which is scaled first, and the buffer between them."""
        target, _ = self.buffers[stored(block).buffer]
        part, old = _alike("part", target), _alike("old", target)
        self.same[old] = target
        axes = [IterVar(Var(f"v_{k}", INT64), Range(ZERO, d), "spatial") for k, d in enumerate(target.shape)]
        at = tuple(a.var for a in axes)
        scale = BufferLoad(self.scale, self._at_row(at[self._dim_of_row(block)]))
        value = BufferLoad(old, at) * scale + BufferLoad(part, at)
        loops = loops_over("scaled", axes, BufferStore(target, value, at))
        return [*self.nest(block, piece, instead=(target, part)), loops], piece.first, [part]

    def _dim_of_row(self, block: BlockRealize) -> int:
        buffer = stored(block).buffer
        dims = self.online.stages.of_dim[buffer]
        return self.buffers[buffer][1].index(dims.index(self.online.stages.row))

    def _at_row(self, row: PrimExpr) -> tuple[PrimExpr, ...]:
        """The indices of a row in what is one number for each row."""
        at = self._dim_of_row(self.online.top)
        return tuple(row if k == at else ZERO for k in range(self.top[0].ndim))

    def each_row(self, sums: Sequence[BlockRealize], piece: _Piece) -> Stmt:
        """For each row: its largest number so far, how that scales what was added up, the powers and their sums."""
        o, row = self.online, Var("row", INT64)
        place = Place(self.place.at, self.place.start, self.place.count, row)
        top, at = self.top[0], self._at_row(row)
        best, base = _alike("best", top), _alike("base", top)
        made = [best, base]

        def number(name: str, buffer: Buffer, value: PrimExpr) -> Stmt:
            return loops_over(
                name, [IterVar(Var("u", INT64), Range(ZERO, ONE), "spatial")], BufferStore(buffer, value, at)
            )

        lowest = FloatImm(top.dtype, -math.inf)
        old, now = BufferLoad(top, at), BufferLoad(best, at)
        stages = [
            *self.nest(o.top, piece, place, (top, best)),
            number("best", best, prim.Max(old, now)),
            number("base", base, prim.Select(prim.EQ(now, lowest), FloatImm(top.dtype, 0.0), now)),
            number("scale", self.scale, prim.Call(top.dtype, "exp", (old - BufferLoad(base, at),))),
            *self.nest(o.powers, piece, place, (top, base)),
        ]
        for block in sums:
            target, _ = self.buffers[stored(block).buffer]
            part = _alike("part", target)
            made.append(part)
            scaled = BufferLoad(target, at) * BufferLoad(self.scale, at) + BufferLoad(part, at)
            stages += [*self.nest(block, piece, place, (target, part)), number("scaled", target, scaled)]
        stages.append(number("top", top, now))
        body = self.scheduled(stages, piece.first, made, row)
        own = Var("v_row", INT64)
        axis = IterVar(own, Range(ZERO, self.place.count), "spatial")
        one = Block((axis,), None, None, "row", substitute(body, {row: own}))
        return For(row, ZERO, self.place.count, "serial", BlockRealize((row,), TRUE, one))


def _with_copies(made: Stmt, column: Var, inside: PrimExpr, passed: Set[Buffer]) -> list[Stmt]:
    """A stage that reads no column that does not exist: zeros stand in copies of what it reads along the columns."""
    block = next(n for n in walk_stmts(made) if isinstance(n, Block))
    copies: dict[BufferLoad, BufferLoad] = {}
    nests: list[Stmt] = []
    for load in loads_of(block.body):
        used = free_vars(load.indices)
        if load.buffer in passed or column not in used or load in copies:
            continue
        axes = [a for a in block.iter_vars if a.var in used]
        data = Var(f"{load.buffer.name}_piece", HANDLE, load.buffer.data.pointer)
        copy = Buffer(data.name, tuple(a.dom.extent for a in axes), load.buffer.dtype, data)
        own = {a.var: Var(a.var.name, INT64) for a in axes}
        zero = const(0, load.dtype)
        value = prim.Call(load.dtype, "if_then_else", (substitute(inside, own), substitute(load, own), zero))
        at = tuple(own.values())
        spatial = [a.replace(var=v, kind="spatial") for a, v in zip(axes, at)]
        nests.append(loops_over(data.name, spatial, BufferStore(copy, value, at)))
        copies[load] = BufferLoad(copy, tuple(a.var for a in axes))
    return [*nests, Loads(copies).visit(made)]


def _stored_to(nests: Sequence[Stmt]) -> list[Buffer]:
    """The buffers that stages write, each once."""
    return list(dict.fromkeys(n.buffer for one in nests for n in walk_stmts(one) if isinstance(n, BufferStore)))


class _Hidden(Rewriter):
    """Scores of columns that do not exist are minus infinity: in the largest of a line, and in what powers are of."""

    def __init__(self, inside: PrimExpr) -> None:
        self.inside = inside

    def hidden(self, score: PrimExpr) -> PrimExpr:
        """A score where there is one."""
        lowest = FloatImm(score.dtype, -math.inf)
        return prim.Call(score.dtype, "if_then_else", (self.inside, score, lowest))

    @on(Block)
    def block(self, node: Block) -> Block:
        """The block of the largest, or of the powers."""
        store = node.body
        assert isinstance(store, BufferStore)
        value = store.value
        if isinstance(value, prim.Call) and isinstance(value.args[0], prim.Sub):
            less = value.args[0]
            value = value.replace(args=(less.replace(a=self.hidden(less.a)),))
        else:
            assert isinstance(value, prim.Max)
            old = isinstance(value.a, BufferLoad) and value.a.buffer is store.buffer
            value = value.replace(b=self.hidden(value.b)) if old else value.replace(a=self.hidden(value.a))
        return node.replace(body=store.replace(value=value))


def _alike(name: str, buffer: Buffer) -> Buffer:
    return buffer.replace(name=name, data=Var(name, HANDLE, buffer.data.pointer))


class Instead(Rewriter):
    """Puts buffers in the places of others."""

    def __init__(self, same: Mapping[Buffer, Buffer]) -> None:
        self.same = same

    @on(Buffer)
    def buffer(self, node: Buffer) -> Buffer:
        """A buffer."""
        return self.same.get(node, node)


def online_stages(
    state: State, stages: Stages, place: Place, rule: Scheduler, lines: Scheduler
) -> tuple[Stmt, tuple[Buffer, ...]] | None:
    """The stages of a block of rows, some columns at a time, each piece scheduled by `rule`, a line of it by `lines`,
    and the buffers that these pass on; None when the stages or the few columns do not allow or want it."""
    online = takes_columns(stages)
    if online is None:
        return None
    writer = _Writer(state, online, place, rule, lines)
    return writer.run(), tuple(writer.passed)
