"""What a binding computes with."""

from __future__ import annotations

from relaxlang.ir import relax


def operands(value: relax.Expr) -> list[relax.Expr]:
    """The operands of what a variable is bound to, in order; fields of tuples among them are taken one by one."""
    found: list[relax.Expr] = []
    work: list[relax.Expr] = list(reversed(value.args)) if isinstance(value, relax.Call) else [value]
    while work:
        node = work.pop()
        if isinstance(node, relax.Tuple):
            work += reversed(node.fields)
        elif isinstance(node, relax.TupleGetItem):
            work.append(node.tuple_value)
        elif not isinstance(node, (relax.GlobalVar, relax.ExternFunc)):
            found.append(node)
    return found
