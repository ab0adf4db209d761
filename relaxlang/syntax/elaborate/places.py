"""Statements from outside: where a finding about one points (at its head, not at the lines below it), what it binds."""

from __future__ import annotations

from relaxlang.base.source import Span
from relaxlang.syntax import tree


def head(node: tree.Stmt) -> Span | None:
    """The span of a statement's head: the name of a function or class, a loop or condition without its body."""
    span = node.span
    if isinstance(node, (tree.FunctionDef, tree.ClassDef)):
        return node.name_span if isinstance(node.name_span, Span) else span
    if span is None:
        return None
    last: tree.Expr | None = None
    if isinstance(node, (tree.If, tree.While)):
        last = node.test
    elif isinstance(node, tree.For):
        last = node.iterable
    elif isinstance(node, tree.With):
        last = node.items[-1].target or node.items[-1].context
    return span if last is None or last.span is None else span.to(last.span)


def targets_of(stmt: tree.Stmt) -> list[tree.Expr]:
    """The targets that a statement binds; of a block, those of its statements."""
    if isinstance(stmt, tree.Assign):
        return list(stmt.targets)
    if isinstance(stmt, (tree.AnnAssign, tree.AugAssign)):
        return [stmt.target]
    if isinstance(stmt, tree.FunctionDef):
        return [tree.Name(stmt.name, span=head(stmt))]
    if isinstance(stmt, tree.If):
        return [t for body in (stmt.body, stmt.orelse) if body for t in targets_of(body[-1])]
    if isinstance(stmt, (tree.With, tree.For)):
        return [t for s in stmt.body for t in targets_of(s)]
    return []
