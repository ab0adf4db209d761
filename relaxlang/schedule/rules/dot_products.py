"""Sums of products of bytes, on processors that add up four of them in one instruction.

That instruction (`T.dp4a`) takes unsigned bytes of one factor and signed ones of the other. So four elements along the
sum become one 32-bit word of each factor (zeros after the last), and the sum of products is one over words, which the
rule of contractions schedules like any other. A factor of the wrong sign is moved by 128, which flips the highest bit
of each byte, and what that adds to the result is taken away again: 128 times the sum of the other factor's elements.
All of it is exact modulo 2³², as the sum of 32-bit products is. The words of a constant are made beforehand, with a
last row that holds these sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.base.dtype import dtype
from relaxlang.base.record import record
from relaxlang.ir import prim
from relaxlang.ir.attrs import EMPTY, Attrs
from relaxlang.ir.prim import INT32, BufferLoad, Call, IntImm, PrimExpr, Var
from relaxlang.ir.tir import Block, BlockRealize, Buffer, BufferStore, For, IterVar, Range, Stmt, seq
from relaxlang.ir.visit import substitute
from relaxlang.schedule.access import fill_regions, written_buffers
from relaxlang.schedule.checks import consumers, is_output
from relaxlang.schedule.rules.analysis import LAYOUT_REWRITE, constant, is_plain, update_of
from relaxlang.schedule.rules.processor import Processor
from relaxlang.schedule.rules.statements import buffer
from relaxlang.schedule.schedule import Schedule
from relaxlang.schedule.state import TRUE, State

UINT8, UINT32 = dtype("uint8"), dtype("uint32")
BYTES = 4
"""Products that are added up at once."""
FEWEST_TERMS = 16
"""Products of a sum from which on words pay."""
FEWEST_ROWS = 9
"""How often a factor that is not constant is used at least, so that it pays to make words of it."""


@record
class _Factor:
    """A factor: where it is loaded, its axes in the order in which its words lie, whether it is moved by 128, and
    whether it is the same in every call."""

    load: BufferLoad
    order: tuple[Var, ...]
    moved: bool
    known: bool

    @property
    def signed(self) -> bool:
        """Whether the bytes of its words are signed."""
        return self.load.dtype.is_int is not self.moved


@record
class _Product:
    """A sum of products of bytes: its store, its axes with their extents, the one it is a sum along, its factors (the
    second one has the last axis of the result), and how often the second one is used (None: not known)."""

    store: BufferStore
    extents: dict[Var, PrimExpr]
    along: Var
    factors: tuple[_Factor, _Factor]
    uses: int | None

    @property
    def words(self) -> dict[Var, PrimExpr]:
        """The extents of the axes in words."""
        count = (self.extents[self.along] + (BYTES - 1)) // BYTES
        return {**self.extents, self.along: count}


def words_of_bytes(sch: Schedule, name: str, processor: Processor) -> bool:
    """Have the block multiply words of four bytes when it is a sum of products of bytes and the processor adds these
    up in one instruction; whether it does."""
    state = sch.state
    realize = state.blocks[name]
    found = _find(realize, processor) if processor.dots and is_plain(state, realize) else None
    if found is None or not _pays(found):
        return False
    out, words = found.store.buffer, [_buffer_of(f, found) for f in found.factors]
    made = [_words(state, found, f, w) for f, w in zip(found.factors, words)]
    at, term = found.store.indices, dp4a(*(BufferLoad(w, f.order) for f, w in zip(found.factors, words)))
    if found.factors[0].moved:
        total = buffer(f"{out.name}_products", out.shape, INT32)
        sums = _sums(state, found, words[1])
        made += [
            *sums.before,
            _sum(name, total, at, found.words, found.along, term),
            _moved_back(state, found, total, sums),
        ]
        words += [*sums.buffers, total]
    else:
        made.append(_sum(name, out, at, found.words, found.along, term))
    _replace(sch, realize, made, words)
    if found.factors[0].moved:
        _inline(sch, out)
    return True


def dp4a(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """The sum of the products of the bytes of two words."""
    return Call(INT32, "dp4a", (a, b, IntImm(INT32, 0)))


# --- what it is -------------------------------------------------------------------------------------------------------
def _find(realize: BlockRealize, processor: Processor) -> _Product | None:
    update, axes = update_of(realize), realize.block.iter_vars
    if update is None or update.kind is not prim.Add or not isinstance(update.value, prim.Mul):
        return None
    start, store = realize.block.init, update.store
    if not isinstance(start, BufferStore) or not isinstance(start.value, IntImm) or start.value.value != 0:
        return None
    spatial = [a.var for a in axes if a.kind == "spatial"]
    summed = [a.var for a in axes if a.kind == "reduce"]
    if store.buffer.dtype is not INT32 or len(summed) != 1 or any(constant(a.dom.min) != 0 for a in axes):
        return None
    along, loads = summed[0], [_bytes(f) for f in (update.value.a, update.value.b)]
    if not spatial or not _are_axes(store.indices, spatial) or len(store.indices) != len(spatial):
        return None
    last = store.indices[-1]
    first, second = loads if loads[1] is not None and last in loads[1].indices else reversed(loads)
    if first is None or second is None or last in first.indices or last not in second.indices:
        return None
    if any(not _are_axes(f.indices, [*spatial, along]) or along not in f.indices for f in (first, second)):
        return None
    if first.buffer is second.buffer or store.buffer in (first.buffer, second.buffer):
        return None
    extents = {a.var: prim.cast(a.dom.extent, a.var.dtype) for a in axes}
    uses: int | None = 1
    for v in spatial:
        if v not in second.indices:
            extent = constant(extents[v])
            uses = None if uses is None or extent is None else uses * extent
    moved = first.dtype is second.dtype
    known = [f.buffer in processor.constants and all(isinstance(d, IntImm) for d in f.buffer.shape)
             for f in (first, second)]  # fmt: skip
    order = _order(second, along, last) if known[1] else _axes(second)
    factors = _Factor(first, _axes(first), moved, False), _Factor(second, order, False, known[1])
    return _Product(store, extents, along, factors, uses)


def _bytes(value: PrimExpr) -> BufferLoad | None:
    """The load of a byte that a factor is."""
    load = value.value if isinstance(value, prim.Cast) else None
    if not isinstance(load, BufferLoad) or value.dtype is not INT32 or load.buffer.strides:
        return None
    of = load.dtype
    return load if of.is_integer and of.bits == 8 and of.lanes == 1 else None


def _are_axes(indices: Sequence[PrimExpr], axes: Sequence[Var]) -> bool:
    return all(isinstance(i, Var) and i in axes for i in indices) and len(set(indices)) == len(indices)


def _axes(load: BufferLoad) -> tuple[Var, ...]:
    return tuple(i for i in load.indices if isinstance(i, Var))


def _order(load: BufferLoad, along: Var, last: PrimExpr) -> tuple[Var, ...]:
    """The order of a constant: vectors of the result along memory."""
    return tuple(sorted(_axes(load), key=lambda v: (v is last, v is along)))


def _pays(found: _Product) -> bool:
    terms = constant(found.extents[found.along])
    if terms is not None and terms < FEWEST_TERMS:
        return False
    return found.factors[1].known or found.uses is None or found.uses >= FEWEST_ROWS


# --- what becomes of it -----------------------------------------------------------------------------------------------
def _buffer_of(factor: _Factor, found: _Product) -> Buffer:
    """Memory for the words of a factor, and for the sums of its elements where these are made with them."""
    rows = found.words[found.along] + 1 if _with_sums(factor, found) else found.words[found.along]
    shape = [rows if v is found.along else found.words[v] for v in factor.order]
    return buffer(f"{factor.load.buffer.name}_words", shape, INT32 if factor.signed else UINT32)


def _with_sums(factor: _Factor, found: _Product) -> bool:
    return factor.known and found.factors[0].moved


def _ones(factor: _Factor) -> PrimExpr:
    """A word whose products with those of a factor are the sums of their bytes."""
    return IntImm(UINT32 if factor.signed else INT32, 0x01010101)


@record
class _Sums:
    """The sums of the second factor's elements: one of them, the blocks that make them, and their memory."""

    value: PrimExpr
    before: tuple[Stmt, ...] = ()
    buffers: tuple[Buffer, ...] = ()


def _sums(state: State, found: _Product, words: Buffer) -> _Sums:
    """The sums of the second factor's elements: made of its words, or with them."""
    second = found.factors[1]
    if _with_sums(second, found):
        last = tuple(found.words[v] if v is found.along else v for v in second.order)
        return _Sums(prim.cast(BufferLoad(words, last), INT32))
    kept = tuple(v for v in second.order if v is not found.along)
    sums = buffer(f"{second.load.buffer.name}_sums", [found.words[v] for v in kept], INT32)
    axes = {v: e for v, e in found.words.items() if v in second.order}
    term = dp4a(BufferLoad(words, second.order), _ones(second))
    made = _sum(state.unique(sums.name), sums, kept, axes, found.along, term)
    return _Sums(BufferLoad(sums, kept), (made,), (sums,))


def _moved_back(state: State, found: _Product, total: Buffer, sums: _Sums) -> Stmt:
    """The block that takes what moving the first factor added away from the `total`."""
    out, at = found.store.buffer, found.store.indices
    spatial = {v: e for v, e in found.words.items() if v is not found.along}
    value = BufferLoad(total, at) + sums.value * IntImm(INT32, -128 if found.factors[1].signed else 128)
    return _block(state.unique(f"{out.name}_moved"), spatial, BufferStore(out, value, at))


def _words(state: State, found: _Product, factor: _Factor, words: Buffer) -> Stmt:
    """The block that makes words of a factor."""
    end, along = found.extents[found.along], found.along
    whole = isinstance(end, IntImm) and end.value % BYTES == 0

    def byte(k: int) -> PrimExpr:
        at = along * BYTES + k
        value: PrimExpr = BufferLoad(factor.load.buffer, tuple(at if i is along else i for i in factor.load.indices))
        value = prim.cast(prim.cast(value, UINT8), UINT32)
        if not whole and k:
            value = Call(UINT32, "if_then_else", (at < end, value, IntImm(UINT32, 0)))
        return value if k == 0 else Call(UINT32, "shift_left", (value, IntImm(UINT32, 8 * k)))

    value = byte(0)
    for k in range(1, BYTES):
        value = Call(UINT32, "bitwise_or", (value, byte(k)))
    if factor.moved:
        value = Call(UINT32, "bitwise_xor", (value, IntImm(UINT32, 0x80808080)))
    if factor.signed:
        value = Call(INT32, "reinterpret", (value,))
    if _with_sums(factor, found):
        return _words_and_sums(state, found, factor, words, value)
    axes = {v: found.words[v] for v in factor.order}
    marks = Attrs({LAYOUT_REWRITE: True}) if factor.known else EMPTY
    return _block(state.unique(words.name), axes, BufferStore(words, value, factor.order), marks=marks)


def _words_and_sums(state: State, found: _Product, factor: _Factor, words: Buffer, value: PrimExpr) -> Stmt:
    """The block that makes words of a constant, of which `value` is one, and after the last the sums of its bytes."""
    along, of, zero = found.along, words.dtype, prim.const(0, found.along.dtype)
    word, total = buffer("word", (1,), of, "local"), buffer("total", (1,), INT32, "local")
    k = Var("k", along.dtype)
    added = BufferLoad(total, (zero,)) + dp4a(BufferLoad(word, (zero,)), _ones(factor))
    each = seq(
        BufferStore(word, substitute(value, {along: k}), (zero,)),
        BufferStore(words, BufferLoad(word, (zero,)), tuple(k if v is along else v for v in factor.order)),
        BufferStore(total, added, (zero,)),
    )
    count = found.words[along]
    body = seq(
        BufferStore(total, IntImm(INT32, 0), (zero,)),
        For(k, zero, count, "serial", each),
        BufferStore(words, prim.cast(BufferLoad(total, (zero,)), of),
                    tuple(count if v is along else v for v in factor.order)),
    )  # fmt: skip
    axes = {v: found.words[v] for v in factor.order if v is not along}
    marks = Attrs({LAYOUT_REWRITE: True})
    return _block(state.unique(words.name), axes, body, marks=marks, own=(word, total))


def _sum(
    name: str, out: Buffer, at: tuple[PrimExpr, ...], extents: dict[Var, PrimExpr], along: Var, term: PrimExpr
) -> Stmt:
    """The block that sums up terms along an axis."""
    start = BufferStore(out, IntImm(INT32, 0), at)
    return _block(name, extents, BufferStore(out, BufferLoad(out, at) + term, at), along, start)


def _block(
    name: str, extents: dict[Var, PrimExpr], body: Stmt, along: Var | None = None,
    start: BufferStore | None = None, marks: Mapping[str, object] = EMPTY, own: tuple[Buffer, ...] = (),
) -> Stmt:  # fmt: skip
    """A block in loops of its own, one an axis; `along` is the one it reduces."""
    fresh = {v: Var(v.name, v.dtype) for v in extents}
    loops = {v: Var(v.name.removeprefix("v_"), v.dtype) for v in extents}
    iters = tuple(
        IterVar(fresh[v], Range(prim.const(0, v.dtype), e), "reduce" if v is along else "spatial")
        for v, e in extents.items()
    )
    block = Block(iters, None, None, name, substitute(body, fresh), None if start is None else substitute(start, fresh),
                  alloc_buffers=own, annotations=marks)  # fmt: skip
    made: Stmt = BlockRealize(tuple(loops.values()), TRUE, block)
    for v, e in reversed(extents.items()):
        made = For(loops[v], prim.const(0, v.dtype), e, "serial", made)
    return made


def _replace(sch: Schedule, realize: BlockRealize, made: list[Stmt], added: list[Buffer]) -> None:
    """Put blocks in the place of one."""
    state = sch.state
    scope = state.scope(realize)
    changes: dict[Stmt, Stmt | None] = {state.loops_around(realize)[0]: seq(*made)}
    changed = state.with_buffers(scope, add=tuple(added), changes=changes)
    func = changed.func.replace(body=fill_regions(changed.func.body))
    sch.adopt(Schedule.of_sound(func))


def _inline(sch: Schedule, out: Buffer) -> None:
    """What takes the moves away is part of what follows, where that is elementwise."""
    state = sch.state
    realize = next(r for r in state.blocks.values() if out in written_buffers(r) and r.block.init is None)
    if is_output(state, realize) or len(consumers(state, realize)) != 1:
        return
    trial = sch.copy()
    try:
        trial.compute_inline(realize.block.name_hint)
    except DiagnosticError:  # its preconditions are the question here
        return
    sch.adopt(trial)
