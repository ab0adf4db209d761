"""Schedules for processors, chosen by what a program does: no rule looks at names or exact sizes.

`schedule_function` is the way in. Loops that are marked in no way become one an axis. It inlines what is cheap,
decomposes convolutions for which Winograd's algorithm is faster, makes words of bytes that are multiplied, then looks
for a contraction (a matmul, a convolution) and computes what follows in its tiles; else it runs stages over the same
rows together; what is left is scheduled block by block. Where the best way depends on a number of rows that is not
known, there are versions for one and for few. Contractions that follow one another are computed a block of rows at a
time, and over long lines with an online softmax. Reading order: `analysis`, `processor`, `plain_loops`, `inline`,
`convolution`, `winograd`, `dot_products`, `contraction`, `few_rows`, `turned`, `row_stages`, `online_softmax`,
`row_blocks`, `lanes`, `rows`, `windows`, `reduction`, `spatial`.

A rule that meets what a primitive refuses leaves the program as it was: the primitives' preconditions are part of the
question whether the rule applies.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.ir.module import IRModule
from relaxlang.ir.prim import EQ, HANDLE, Add, IntImm, PrimExpr, Var
from relaxlang.ir.tir import Block, BlockRealize, IfThenElse, PrimFunc, Stmt
from relaxlang.schedule.access import regions
from relaxlang.schedule.rules.analysis import is_plain, update_of, work
from relaxlang.schedule.rules.contraction import PANEL_ROWS, schedule_contraction
from relaxlang.schedule.rules.convolution import find_convolution
from relaxlang.schedule.rules.dot_products import words_of_bytes
from relaxlang.schedule.rules.few_rows import OneRow, unknown_rows
from relaxlang.schedule.rules.inline import inline_all
from relaxlang.schedule.rules.lanes import try_in_lanes
from relaxlang.schedule.rules.online_softmax import Instead
from relaxlang.schedule.rules.plain_loops import with_plain_loops
from relaxlang.schedule.rules.processor import Processor
from relaxlang.schedule.rules.reduction import schedule_reduction
from relaxlang.schedule.rules.row_blocks import compute_in_row_blocks, few_columns
from relaxlang.schedule.rules.rows import schedule_row_stages, schedule_rows
from relaxlang.schedule.rules.spatial import schedule_spatial
from relaxlang.schedule.rules.turned import schedule_turned
from relaxlang.schedule.schedule import Schedule
from relaxlang.schedule.state import TRUE, normalized
from relaxlang.schedule.stmts import walk_stmts

__all__ = ["Processor", "schedule_function"]

Rule = Callable[[Schedule, str, Processor], bool]
PER_BLOCK: tuple[Rule, ...] = (schedule_reduction, schedule_spatial)


def schedule_function(func: PrimFunc, processor: Processor, least: int = 0, winograd: bool = True) -> PrimFunc:
    """The function, scheduled for a processor; itself when no rule has anything to say, or it does fewer operations
    than `least`. Without `winograd` convolutions are summed up as they are written."""
    if not _schedulable(func):
        return func
    plain = with_plain_loops(func)
    made = _scheduled(plain, processor, least, winograd)
    return func if made is plain else made


def _scheduled(func: PrimFunc, processor: Processor, least: int, winograd: bool) -> PrimFunc:
    """As `schedule_function`, of a function in plain loops."""
    sch = Schedule(IRModule({"main": func}))
    if work(sch.state) < least:
        return func
    inline_all(sch)
    for name in _sums(sch) if winograd else ():
        _try_winograd(sch, name, processor)
    for name in _sums(sch):
        _try(sch, words_of_bytes, name, processor)
    rules = (
        lambda f: _stage_by_stage(Schedule.of_sound(f), processor),
        lambda f: _in_lanes(Schedule.of_sound(f), processor),
    )
    made = compute_in_row_blocks(sch.state, *rules)
    if made is None:
        return _by_rows(sch, processor)
    few = few_columns(sch.state)
    blocked = Schedule.of_sound(made)
    _each(blocked, [b.block.name_hint for b in blocked.state.blocks_under(blocked.state.root)], processor)
    if few is None:
        return _function(blocked)
    plain = sch.state.func
    return _first_of(plain, (few, "few", _stage_by_stage(sch, processor)), (TRUE, "many", _function(blocked)))


def _by_rows(sch: Schedule, processor: Processor) -> PrimFunc:
    """The function scheduled stage by stage, with versions for one row and for few where their number matters."""
    plain, found = sch.state.func, unknown_rows(sch.state, processor)
    if found is None:
        return _stage_by_stage(sch, processor)
    rows, few = found
    one = OneRow(plain, rows)
    single = one.restored(_stage_by_stage(Schedule.of_sound(one.func), processor))
    ways: list[tuple[PrimExpr, str, PrimFunc]] = [(EQ(rows, IntImm(rows.dtype, 1)), "one_row", single)]
    if few:
        ways.append((rows <= PANEL_ROWS, "few_rows", _stage_by_stage(sch.copy(), processor, few=rows)))
    return _first_of(plain, *ways, (TRUE, "many_rows", _stage_by_stage(sch, processor)))


def _try_winograd(sch: Schedule, name: str, processor: Processor) -> None:
    if find_convolution(sch.state.blocks[name]) is not None:
        from relaxlang.schedule.rules.winograd import schedule_winograd  # most programs have no convolution

        _try(sch, schedule_winograd, name, processor)


def _first_of(plain: PrimFunc, *ways: tuple[PrimExpr, str, PrimFunc]) -> PrimFunc:
    """A function that does what the first one does whose condition holds, or else the last one. All of them, which have
    names, do what `plain` does."""
    assert isinstance(plain.body, BlockRealize)
    reads, writes = regions(plain.body.block)
    chosen: Stmt | None = None
    for condition, name, func in reversed(ways):
        assert isinstance(func.body, BlockRealize)
        block = func.body.block
        # Each way has memory of its own for what several of them compute first.
        own = {b: b.replace(data=Var(b.data.name, HANDLE, b.data.pointer)) for b in block.alloc_buffers}
        way = Instead(own)(func.body.replace(block=block.replace(name_hint=name, reads=reads, writes=writes)))
        chosen = way if chosen is None else IfThenElse(condition, way, chosen)
    assert chosen is not None
    return normalized(plain.replace(body=BlockRealize((), TRUE, Block((), (), (), "root", chosen))))


def _stage_by_stage(sch: Schedule, processor: Processor, few: Var | None = None) -> PrimFunc:
    """The function with each stage scheduled, or several together that run over the same rows, of which `few` is a
    small number."""
    rules: tuple[Rule, ...] = (schedule_turned, partial(schedule_contraction, few=few))
    sums = _sums(sch)
    anchors = [n for n in sums if n in sch.state.blocks and any(_try(sch, rule, n, processor) for rule in rules)]
    if not anchors:
        _try(sch, schedule_rows, "root", processor)
    for names in _between(sch) if anchors else []:
        trial = sch.copy()
        if schedule_row_stages(trial, names, processor):
            sch.adopt(trial)
    _each(sch, [n for n in sch.state.blocks if n != "root"], processor)
    return _function(sch)


def _sums(sch: Schedule) -> list[str]:
    """The blocks that add something up: no others are contractions or convolutions."""
    updates = {name: update_of(realize) for name, realize in sch.state.blocks.items()}
    return [name for name, update in updates.items() if update is not None and update.kind is Add]


def _in_lanes(sch: Schedule, processor: Processor) -> PrimFunc:
    """The function with each stage, all of which go through one line, in vectors."""
    for name in [n for n in sch.state.blocks if n != "root"]:
        try_in_lanes(sch, name, processor)
    return _function(sch)


def _between(sch: Schedule) -> list[list[str]]:
    """The runs of blocks that nobody has scheduled yet."""
    runs: list[list[str]] = [[]]
    for name, realize in sch.state.blocks.items():
        if name != "root" and is_plain(sch.state, realize):
            runs[-1].append(name)
        elif name != "root" and runs[-1]:
            runs.append([])
    return runs


def _each(sch: Schedule, names: list[str], processor: Processor) -> None:
    """Schedule blocks one by one, those that are still there."""
    for name in names:
        if name in sch.state.blocks:
            any(_try(sch, rule, name, processor) for rule in PER_BLOCK)


def _function(sch: Schedule) -> PrimFunc:
    made = sch.mod["main"]
    assert isinstance(made, PrimFunc)
    return made


def _schedulable(func: PrimFunc) -> bool:
    """Whether a function has blocks in loops, and nobody has scheduled it."""
    from relaxlang.ir.tir import For

    found = False
    for stmt in walk_stmts(func.body):
        if isinstance(stmt, For) and (stmt.kind != "serial" or stmt.annotations):
            return False
        if isinstance(stmt, Block) and (stmt.match_buffers or stmt.annotations):
            return False
        found = found or (isinstance(stmt, Block) and bool(stmt.iter_vars))
    return found and not func.attrs.get("tir.is_scheduled")


def _try(sch: Schedule, rule: Rule, name: str, processor: Processor) -> bool:
    """Apply a rule on a copy; keep it when it applies."""
    trial = sch.copy()
    try:
        applied = rule(trial, name, processor)
    except DiagnosticError:
        return False
    if applied:
        sch.adopt(trial)
    return applied
