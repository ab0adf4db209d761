"""Dataflow blocks: what they bind, and what of it lives on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from relaxlang.ir import relax
from relaxlang.ir.visit import Rewriter, on
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import Scope, error
from relaxlang.syntax.elaborate.places import head, targets_of
from relaxlang.syntax.elaborate.relax_names import DataflowHead

if TYPE_CHECKING:
    from relaxlang.syntax.elaborate.relax_statements import Body


def dataflow_block(body: Body, node: tree.With, scope: Scope) -> None:
    """`with R.dataflow():` and its body. What `R.output` names stays visible after it."""
    ev = body.ev
    for item in node.items:
        if not isinstance(ev.expr(item.context, scope), DataflowHead):
            raise error(
                "RLX0317",
                "`with` in a Relax function opens a dataflow block",
                item.context.span,
                help="write `with R.dataflow():`",
            )
    if ev.frame.dataflow:
        raise error("RLX0401", "dataflow blocks are not nested", head(node))
    ev.frame.close()
    ev.frame.dataflow, ev.outputs = True, None
    body.finals = _final_bindings(node.body)
    inner = Scope({}, scope)
    try:
        body.run(node.body, inner)
        names, bindings = _exported(body, inner, node)
    finally:
        ev.frame.dataflow, body.finals = False, {}
    ev.frame.bindings = bindings
    ev.frame.close(relax.DataflowBlock)
    scope.names.update(names)


def _exported(body: Body, inner: Scope, node: tree.With) -> tuple[dict[str, Any], list[relax.Binding]]:
    """What outlives a dataflow block, by name, and the block's bindings with outputs as plain variables."""
    ev, names = body.ev, {}
    renamed: dict[relax.Var, relax.Var] = {}
    bound = {binding.var for binding in ev.frame.bindings}
    for value in ev.outputs or ():
        if not isinstance(value, relax.Var):
            raise error("RLX0401", "`R.output` takes variables of the block", head(node))
        if value not in bound:
            raise error("RLX0401", f"`R.output` names `{value.name}`, which the block does not bind", head(node))
        if isinstance(value, relax.DataflowVar):
            renamed[value] = relax.Var(value.name, value.struct_info, span=value.span)
    for name, value in inner.names.items():
        if isinstance(value, relax.DataflowVar):
            if value in renamed:
                names[name] = renamed[value]
            else:
                ev.local_names.add(name)
        elif not isinstance(value, relax.Var) or any(value is o for o in ev.outputs or ()):
            names[name] = value
    return names, [_renamed(b, renamed) for b in ev.frame.bindings] if renamed else ev.frame.bindings


def _renamed(binding: relax.Binding, mapping: dict[relax.Var, relax.Var]) -> relax.Binding:

    class Rename(Rewriter):
        @on(relax.DataflowVar)
        def var(self, node: relax.DataflowVar) -> relax.Var:
            return mapping.get(node, node)

    made: relax.Binding = Rename()(binding)
    return made


def _final_bindings(stmts: tuple[tree.Stmt, ...]) -> dict[str, tree.Stmt]:
    """For each name of the block's `R.output`, the statement that binds it last."""
    outputs: set[str] = set()
    for stmt in stmts:
        if isinstance(stmt, tree.ExprStmt) and isinstance(stmt.value, tree.Call):
            func = stmt.value.func
            if (func.attr if isinstance(func, tree.Attribute) else getattr(func, "id", "")) in ("output", "outputs"):
                outputs |= {a.id for a in stmt.value.args if isinstance(a, tree.Name)}
    finals: dict[str, tree.Stmt] = {}
    for stmt in stmts:
        for target in targets_of(stmt):
            for name in target.elements if isinstance(target, tree.TupleExpr) else (target,):
                if isinstance(name, tree.Name) and name.id in outputs:
                    finals[name.id] = stmt
    return finals
