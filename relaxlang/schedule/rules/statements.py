"""Short forms for rules that write statements: loops, accesses, blocks whose regions are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from relaxlang.base.dtype import DType
from relaxlang.ir import prim
from relaxlang.ir.prim import HANDLE, INT64, BufferLoad, FloatImm, IntImm, PointerType, PrimExpr, Var
from relaxlang.ir.tir import (
    Block,
    BlockRealize,
    Buffer,
    BufferRegion,
    BufferStore,
    For,
    ForKind,
    IterVar,
    Range,
    Stmt,
    seq,
)
from relaxlang.ir.visit import substitute
from relaxlang.schedule.state import TRUE

Size = PrimExpr | int
SIDES = (16, 8, 4)
"""Sides of squares that are transposed in registers."""
Loop = tuple[str, Size] | tuple[str, Size, ForKind]
"""A loop from 0: the name of its variable, its extent, its kind (serial)."""


def buffer(name: str, shape: Sequence[Size], of: DType, scope: str = "global") -> Buffer:
    """A new buffer."""
    data = Var(name, HANDLE, PointerType(of, scope))
    return Buffer(name, tuple(prim.as_prim(d, INT64) for d in shape), of, data, scope=scope)


def load(source: Buffer, *indices: Size) -> BufferLoad:
    """An element."""
    return BufferLoad(source, tuple(prim.as_prim(i, INT64) for i in indices))


def store(to: Buffer, value: PrimExpr, *indices: Size) -> Stmt:
    """An assignment."""
    return BufferStore(to, value, tuple(prim.as_prim(i, INT64) for i in indices))


def zero(of: DType) -> PrimExpr:
    """0."""
    return FloatImm(of, 0.0)


def nest(loops: Sequence[Loop], body: Callable[..., Stmt]) -> Stmt:
    """Loops in each other, the first one outside, around what `body` makes of their variables; nothing when one has no
    iterations."""
    variables = [Var(one[0], INT64) for one in loops]
    made = body(*variables)
    for var, one in zip(reversed(variables), reversed(loops)):
        extent = prim.as_prim(one[1], INT64)
        if isinstance(extent, IntImm) and extent.value == 0:
            return seq()
        made = For(var, IntImm(INT64, 0), extent, one[2] if len(one) == 3 else "serial", made)
    return made


def block(
    name: str,
    outer: Mapping[Var, PrimExpr],
    reads: Sequence[Buffer | BufferRegion],
    writes: Sequence[Buffer | BufferRegion],
    body: Stmt,
    own: Sequence[Buffer] = (),
) -> Stmt:
    """A block with an axis for each of the loops around it, of which `outer` gives the extents. A buffer among those
    that it reads and writes stands for all of it; `own` are its intermediates."""
    axes = {v: Var(f"v_{v.name}", INT64) for v in outer}
    iters = tuple(IterVar(axes[v], Range(IntImm(INT64, 0), e), "spatial") for v, e in outer.items())
    used, made = (tuple(_region(one) for one in given) for given in (reads, writes))
    inside = Block((), used, made, name, body, alloc_buffers=tuple(own))
    inside = substitute(inside, axes).replace(iter_vars=iters)
    return BlockRealize(tuple(outer), TRUE, inside)


def _region(used: Buffer | BufferRegion) -> BufferRegion:
    if isinstance(used, BufferRegion):
        return used
    return BufferRegion(used, tuple(Range(prim.const(0, d.dtype), d) for d in used.shape))


def turned_copies(
    wide: PrimExpr, count: int, lanes: int, copy: Callable[[PrimExpr, PrimExpr], Stmt], *, to_lines: bool
) -> Stmt:
    """Copies of a row between an order in which channels run along memory and one in which its elements do (which is
    written when `to_lines`): in squares that are transposed in registers, as large ones as are left."""
    made: list[Stmt] = []
    at: PrimExpr = IntImm(INT64, 0)
    for side in [s for s in SIDES if s <= lanes]:
        squares, step, covered = _spread(wide - at, side)
        made.append(_squares(at, (squares, step), (count // side, side), copy, to_lines=to_lines))
        made.append(_channels_left(at, covered, (count // side * side, count % side), copy))
        at = at + covered
    whole = count // lanes
    rest = wide - at
    made.append(nest(
        [("w", rest), ("c", whole), ("j", lanes, "vectorized")],
        lambda w, c, j: copy(at + w, c * lanes + j),
    ))  # fmt: skip
    made.append(_channels_left(at, rest, (whole * lanes, count % lanes), copy))
    return seq(*made)


def _spread(wide: PrimExpr, side: int) -> tuple[PrimExpr, int, PrimExpr]:
    """How many squares of a side a row takes, how far apart, and how much of it they cover: all of it, overlapping
    evenly, if that takes no more than one that fits in only partly; else as many as fit lie side by side."""
    squares = wide // side
    if isinstance(wide, IntImm) and wide.value >= side:
        apart = wide.value - side
        steps = -(-apart // side)
        if steps and apart % steps == 0:
            return IntImm(INT64, steps + 1), apart // steps, wide
    return squares, side, squares * side


def _squares(
    at: PrimExpr, along: tuple[PrimExpr, int], channels: tuple[int, int], copy: Callable[[PrimExpr, PrimExpr], Stmt],
    *, to_lines: bool,
) -> Stmt:  # fmt: skip
    """Copies of squares from the column `at` on: how many there are `along` the row and how far apart, how many in the
    channels, and their side."""
    (squares, step), (whole, side) = along, channels
    if to_lines:
        return nest(
            [("c", whole), ("w", squares), ("i", side, "unroll"), ("j", side, "vectorized")],
            lambda c, w, i, j: copy(at + w * step + j, c * side + i),
        )
    return nest(
        [("w", squares), ("c", whole), ("i", side, "unroll"), ("j", side, "vectorized")],
        lambda w, c, i, j: copy(at + w * step + i, c * side + j),
    )


def _channels_left(
    at: PrimExpr, wide: PrimExpr, channels: tuple[int, int], copy: Callable[[PrimExpr, PrimExpr], Stmt]
) -> Stmt:
    """Copies one by one of what no square has: the first such channel and how many there are."""
    first, count = channels
    return nest([("w", wide), ("c", count)], lambda w, c: copy(at + w, c + first))
