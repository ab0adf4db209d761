"""Statements in statements, and states in which some are replaced."""

import pytest
from kernels import module

from relaxlang.arith.index_map import IndexMap
from relaxlang.ir.prim import FLOAT32, HANDLE, INT64, PrimExpr, Var, const
from relaxlang.ir.tir import BlockRealize, Buffer, For, IfThenElse, PrimFunc, SeqStmt, Stmt
from relaxlang.schedule.primitives.transform_layout import rearranged
from relaxlang.schedule.state import State, normalized
from relaxlang.schedule.stmts import child_stmts, walk_stmts, with_child_stmts

CHOICE = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("init"):
            vi = T.axis.spatial(8, i)
            if vi < 4:
                B[vi] = A[vi]
            else:
                B[vi] = T.float32(1)
    for i, k in T.grid(8, 4):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vk]
"""


def state() -> State:
    func = module(CHOICE)["main"]
    assert isinstance(func, PrimFunc)
    return State(normalized(func), "main")


def buffer(*shape: int) -> Buffer:
    return Buffer("B", tuple(const(d, INT64) for d in shape), FLOAT32, Var("B", HANDLE))


def parts(of: State) -> tuple[Stmt, ...]:
    """The statements of the root."""
    return child_stmts(of.root.block.body)


def test_a_statement_with_its_own_children_is_itself() -> None:
    found = list(walk_stmts(state().func.body))
    assert {type(s) for s in found} >= {SeqStmt, For, BlockRealize, IfThenElse}
    for stmt in found:
        below = child_stmts(stmt)
        if below and not isinstance(stmt, SeqStmt):
            assert with_child_stmts(stmt, below) is stmt


def test_what_does_not_change_is_kept() -> None:
    before = state()
    first, second = parts(before)
    after = before.replace({second: second.replace(kind="parallel")})
    kept, changed = parts(after)
    assert isinstance(changed, For) and changed.kind == "parallel" and kept is first
    assert after.blocks["init"] is before.blocks["init"]


def test_what_is_removed_takes_empty_loops_with_it() -> None:
    before = state()
    after = before.replace({before.blocks["init"]: None})
    assert list(after.blocks) == ["root", "sum"] and len(after.loops) == 2
    choice = next(s for s in walk_stmts(before.func.body) if isinstance(s, IfThenElse))
    assert choice.else_case is not None
    short = before.replace({choice.else_case: None})
    assert next(s for s in walk_stmts(short.func.body) if isinstance(s, IfThenElse)).else_case is None
    reduction = before.blocks["sum"].block
    assert reduction.init is not None
    assert before.replace({reduction.init: None}).blocks["sum"].block.init is None


def test_a_statement_is_edited_after_the_changes_below_it() -> None:
    before = state()
    first, second = parts(before)
    start = before.blocks["sum"].block.init
    assert start is not None
    made = before.replace({start: None}, {second: lambda loop: loop.replace(kind="parallel")})
    kept, edited = parts(made)
    assert kept is first and isinstance(edited, For) and edited.kind == "parallel"
    assert made.blocks["sum"].block.init is None
    temporary = buffer(4)
    grown = before.with_buffers(before.root, add=(temporary,), changes={first: None})
    assert grown.root.block.alloc_buffers == (temporary,) and list(grown.blocks) == ["root", "sum"]
    assert grown.with_buffers(grown.root, drop=(temporary,)).root.block.alloc_buffers == ()


# --- layouts that need no proof ---------------------------------------------------------------------------------------
X, Y, Z = (Var(n, INT64) for n in "xyz")


@pytest.mark.parametrize(
    "shape, indices",
    [
        ((6, 4), (Y, X)),
        ((6, 4, 5), (Z, X, Y)),
        ((6, 32), (Y // 8, X, Y % 8)),
        ((24, 32), (Y % 8, X // 6, Y // 8, X % 6)),
    ],
)
def test_shapes_of_layouts_that_are_known(shape: tuple[int, ...], indices: tuple[PrimExpr, ...]) -> None:
    index_map = IndexMap((X, Y, Z)[: len(shape)], indices)
    assert rearranged(buffer(*shape), index_map) == index_map.map_shape(buffer(*shape).shape)


@pytest.mark.parametrize(
    "shape, indices",
    [
        ((6, 30), (Y // 8, X, Y % 8)),  # no multiple: there is padding
        ((6, 32), (Y // 8, X, Y % 4)),  # gaps
        ((6, 32), (Y // 8, X, Y // 8)),
        ((6, 4), (X, X)),
        ((6, 4), (X,)),
        ((6, 4), (X, Y, Y)),
        ((6, 4), (X + Y, Y)),
    ],
)
def test_other_layouts_are_to_be_proved(shape: tuple[int, ...], indices: tuple[PrimExpr, ...]) -> None:
    assert rearranged(buffer(*shape), IndexMap((X, Y), indices)) is None
