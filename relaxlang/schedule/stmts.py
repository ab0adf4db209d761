"""Statements in statements: what is directly below one, and all that is below it; expressions are not looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from relaxlang.ir import tir
from relaxlang.ir.tir import SeqStmt, Stmt

_Below = Callable[[Any], tuple[Stmt, ...]]
_Rebuild = Callable[[Any, Sequence[Stmt | None]], Stmt]
_BODY: tuple[type[Stmt], ...] = (
    tir.For, tir.While, tir.LetStmt, tir.AttrStmt, tir.AssertStmt, tir.Allocate, tir.AllocConst, tir.DeclBuffer,
    tir.BufferRealize,
)  # fmt: skip
_BELOW: dict[type, tuple[_Below, _Rebuild]] = {
    **dict.fromkeys(_BODY, (lambda stmt: (stmt.body,), lambda stmt, made: stmt.replace(body=made[0]))),
    SeqStmt: (lambda stmt: stmt.seq, lambda stmt, made: stmt.replace(seq=tuple(made))),
    tir.BlockRealize: (lambda stmt: (stmt.block,), lambda stmt, made: stmt.replace(block=made[0])),
    tir.Block: (
        lambda stmt: (stmt.body,) if stmt.init is None else (stmt.init, stmt.body),
        lambda stmt, made: stmt.replace(init=made[0] if len(made) > 1 else None, body=made[-1]),
    ),
    tir.IfThenElse: (
        lambda stmt: (stmt.then_case,) if stmt.else_case is None else (stmt.then_case, stmt.else_case),
        lambda stmt, made: stmt.replace(then_case=made[0], else_case=made[1] if len(made) > 1 else None),
    ),
}
"""For each class of statements with others below: these, and the statement with others in their place."""


def child_stmts(stmt: Stmt) -> tuple[Stmt, ...]:
    """The statements directly below a statement, in order."""
    found = _BELOW.get(stmt.__class__)
    return () if found is None else found[0](stmt)


def walk_stmts(root: Stmt) -> Iterator[Stmt]:
    """Every statement below `root` and itself, parents first, in order."""
    stack = [root]
    while stack:
        stmt = stack.pop()
        yield stmt
        stack += child_stmts(stmt)[::-1]


def with_child_stmts(stmt: Stmt, made: Sequence[Stmt | None]) -> Stmt:
    """The statement with others directly below it, as many as `child_stmts` gives; None for an init or an `else` that
    goes."""
    return _BELOW[stmt.__class__][1](stmt, made)
