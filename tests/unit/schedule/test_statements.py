"""Copies between two orders of dimensions, in squares."""

import numpy as np
import pytest

from relaxlang.base.dtype import dtype
from relaxlang.interp import run
from relaxlang.ir.module import IRModule
from relaxlang.ir.prim import HANDLE, INT64, IntImm, PrimExpr, Var
from relaxlang.ir.tir import For, PrimFunc, Stmt
from relaxlang.schedule.rules.statements import buffer, load, store, turned_copies
from relaxlang.schedule.stmts import walk_stmts


def turned(wide: int, count: int, to_lines: bool) -> PrimFunc:
    rows, lines = buffer("rows", (wide, count), dtype("float32")), buffer("lines", (count, wide), dtype("float32"))
    a, b = Var("a", HANDLE), Var("b", HANDLE)

    def copy(w: PrimExpr, c: PrimExpr) -> Stmt:
        return store(lines, load(rows, w, c), c, w) if to_lines else store(rows, load(lines, c, w), w, c)

    body = turned_copies(IntImm(INT64, wide), count, 16, copy, to_lines=to_lines)
    return PrimFunc((a, b), body, {a: rows, b: lines} if to_lines else {a: lines, b: rows})


@pytest.mark.parametrize("to_lines", [True, False])
@pytest.mark.parametrize("wide", [1, 6, 9, 30, 33])
def test_every_element_of_a_row_is_copied(wide: int, to_lines: bool) -> None:
    func = turned(wide, 18, to_lines)
    source = np.random.default_rng(wide).random((wide, 18) if to_lines else (18, wide), "float32")
    made = np.full(source.shape[::-1], np.nan, "float32")
    run(IRModule({"main": func}), "main", source, made)
    np.testing.assert_array_equal(made, source.T)


@pytest.mark.parametrize(("wide", "kinds"), [(14, 1), (30, 1), (58, 1), (56, 2)])
def test_squares_of_one_side_cover_a_row_where_they_can(wide: int, kinds: int) -> None:
    loops = [s for s in walk_stmts(turned(wide, 16, True).body) if isinstance(s, For)]
    assert sum(s.kind == "unroll" for s in loops) == kinds
