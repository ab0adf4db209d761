"""What decorators say, in the spellings of all eras."""

from __future__ import annotations

from relaxlang.syntax import tree
from relaxlang.syntax.spellings import NAMESPACES, canonical_name


def dotted(node: tree.Expr) -> str:
    """`T.prim_func` for that expression, with or without a call; empty for anything that is no dotted name."""
    if isinstance(node, tree.Call):
        node = node.func
    parts: list[str] = []
    while isinstance(node, tree.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, tree.Name):
        return ""
    parts.append(node.id)
    return ".".join(reversed(parts))


def decorator_name(node: tree.Expr) -> str:
    """The canonical name of a decorator: `R.function` for `@rx.script`, `I.ir_module` for `@tvm.script.ir_module`."""
    name = dotted(node)
    head, _, last = name.rpartition(".")
    if canonical_name("", name) != name:
        return canonical_name("", name)
    return canonical_name(NAMESPACES.get(head, head), last) if last else name
