"""Variables of a kernel: scalars that are changed after they were bound, `x = 0` and then `x = x + 1`.

A scalar that is bound once is a let. One that is bound again, in the same body or below it, is memory of one element,
as it is in TVM 0.27 and in Python; assigning to its name stores there. (Before TVM 0.26 the second binding was an error
in the same body, and a new scalar, lost at the body's end, below it.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from relaxlang.base.dtype import DType
from relaxlang.base.source import Span
from relaxlang.ir import prim, tir
from relaxlang.ir.prim import PrimExpr
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import Scope, error
from relaxlang.syntax.elaborate.tir_values import TRUE

if TYPE_CHECKING:
    from relaxlang.syntax.elaborate.tir_body import BodyElaborator


def last_assignments(stmts: Sequence[tree.Stmt]) -> dict[str, int]:
    """For each name that statements assign, at any depth: which of them is the last to do so."""
    last: dict[str, int] = {}
    for k, stmt in enumerate(stmts):
        stack = [stmt]
        while stack:
            one = stack.pop()
            if isinstance(one, tree.Assign):
                last.update({t.id: k for t in one.targets if isinstance(t, tree.Name)})
            elif isinstance(one, (tree.AnnAssign, tree.AugAssign)):
                if isinstance(one.target, tree.Name):
                    last[one.target.id] = k
            elif isinstance(one, (tree.For, tree.While, tree.With)):
                stack.extend(one.body)
            elif isinstance(one, tree.If):
                stack.extend((*one.body, *one.orelse))
    return last


def declare_variable(
    ev: BodyElaborator, name: str, of: DType, shape: Sequence[PrimExpr], span: Span | None
) -> tir.Buffer:
    """Memory for a variable, from here to the end of the body."""
    dims = tuple(shape)
    data = prim.Var(f"{name}_ptr", prim.HANDLE, prim.PointerType(of, "local"), span=span)
    buffer = tir.Buffer(name, dims, of, data, scope="local", span=span)
    ev.wrap(lambda rest: tir.Allocate(data, of, dims, TRUE, rest, span=span))
    ev.wrap(lambda rest: tir.DeclBuffer(buffer, rest, span=span))
    return buffer


def scalar_variable(ev: BodyElaborator, name: str, of: DType, span: Span | None) -> PrimExpr:
    """What the name of a new variable means: the value in its memory."""
    buffer = declare_variable(ev, name, of, (prim.const(1, prim.INT32),), span)
    ev.variables.add(buffer)
    value: PrimExpr = prim.BufferLoad(buffer, (prim.const(0, prim.INT32),), span=span)
    return value


def refuse_shadowing(target: tree.Name, node: tree.Expr, scope: Scope) -> None:
    """`n = n + 1` below the body in which `n` was bound would change nothing there; RLX0316 when `n` is no variable."""
    place = scope.find(target.id)
    if place is None or place is scope or not isinstance(place.names[target.id], prim.Var):
        return
    if any(isinstance(part, tree.Name) and part.id == target.id for part in tree.parts_of(node)):
        raise error("RLX0316", f"`{target.id}` cannot be changed here", target.span,
                    help=f"bind a variable to change first, above: `value = {target.id}`")  # fmt: skip
