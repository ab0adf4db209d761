"""Where a finding about a whole statement points: at its head, not at the lines below it."""

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
