"""What each statement of a TensorIR function does: one function per kind of statement, in the table `STATEMENTS`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.base.dtype import DType
from relaxlang.base.source import Span
from relaxlang.ir import prim, tir
from relaxlang.ir.intrinsics import CARRIED_WITH
from relaxlang.ir.prim import PrimExpr
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import Scope, assign, describe, error, silent
from relaxlang.syntax.elaborate.carried import is_carried
from relaxlang.syntax.elaborate.places import head as place
from relaxlang.syntax.elaborate.scalars import Fresh, scalar
from relaxlang.syntax.elaborate.tir_loops import loop_with
from relaxlang.syntax.elaborate.tir_names import let_of
from relaxlang.syntax.elaborate.tir_values import (
    TRUE,
    BlockHead,
    BlockState,
    InitHead,
    Loop,
    Pending,
    SuffixHead,
    close,
)
from relaxlang.syntax.elaborate.unit import poison
from relaxlang.syntax.elaborate.variables import declare_variable, refuse_shadowing, scalar_variable

if TYPE_CHECKING:
    from relaxlang.syntax.elaborate.tir_body import BodyElaborator


def _expr_stmt(ev: BodyElaborator, node: tree.ExprStmt, scope: Scope) -> None:
    if isinstance(node.value, tree.Constant):
        if isinstance(node.value.value, str) or node.value.value is ...:
            return
    value = ev.expr(node.value, scope)
    if value is None:
        return
    if isinstance(value, tir.Stmt):
        if isinstance(value, (tir.Break, tir.Continue)):
            _check_in_loop(ev, type(value).__name__.lower(), node.span)
        ev.items.append(value)
    elif isinstance(value, Pending):
        value.declare(ev, "v", node.span)
    elif isinstance(value, PrimExpr):
        ev.items.append(tir.Evaluate(value, span=node.span))
    else:
        raise error("RLX0315", f"{describe(value)} alone is no statement", node.span)


def _assign(ev: BodyElaborator, node: tree.Assign, scope: Scope) -> None:
    value = ev.expr(node.value, scope)
    for target in node.targets:
        if isinstance(target, tree.Name):
            refuse_shadowing(target, node.value, scope)
        ev.bind(target, value, scope, node.value.span)


def _ann_assign(ev: BodyElaborator, node: tree.AnnAssign, scope: Scope) -> None:
    of, shape = _variable_type(ev, node.annotation, scope)
    if shape is not None and node.value is None and isinstance(node.target, tree.Name):
        name, span = node.target.id, node.target.span
        if shape == ():
            scope.names[name] = scalar_variable(ev, name, of, span)
        else:
            scope.names[name] = declare_variable(ev, name, of, shape, span)
        return
    pointer: prim.PointerType | None = None
    size = False
    if shape:
        raise error("RLX0315", "an array is declared without a value", node.span,
                    help="declare it, then store its elements: `a: T.f32[4]`, `a[0] = …`")  # fmt: skip
    if isinstance(of, Fresh):
        pointer, size, of = of.pointer, of.size, of.of
    if node.value is None or not isinstance(node.target, tree.Name):
        raise error("RLX0315", "a declaration needs a name and a value", node.span)
    value = ev.expr(node.value, scope)
    if isinstance(value, (Pending, Fresh)) or not isinstance(of, DType):
        ev.bind(node.target, value, scope)
        return
    name, made = node.target.id, scalar(value, node.value.span, of if not of.is_handle else None)
    if shape is not None and ev.is_variable(name, scope):
        ev.store(node.target, made, scope)
        return
    if shape is not None and ev.variable_type(name, prim.const(0, of)) is not None:
        scope.names[name] = scalar_variable(ev, name, of, node.target.span)
        ev.store(node.target, made, scope)
        return
    var = (prim.SizeVar if size else prim.Var)(name, of, pointer, span=node.target.span)
    scope.names[name] = let_of(made, of, node.span, var).declare(ev, name, node.target.span)


def _variable_type(ev: BodyElaborator, node: tree.Expr, scope: Scope) -> tuple[Any, tuple[PrimExpr, ...] | None]:
    """What an annotation says: a type, and the shape of the variables that it makes, () for `T.int32`, (4,) for
    `T.f32[4]`; None for another annotation, as `T.let[T.int32]`."""
    if isinstance(node, tree.Subscript):
        of = ev.expr(node.value, scope)
        if isinstance(of, DType):
            extents = ev.expr(node.index, scope)
            return of, tuple(scalar(e, node.span) for e in (extents if isinstance(extents, tuple) else (extents,)))
    of = ev.expr(node, scope)
    numbers = isinstance(of, DType) and of.lanes == 1 and not of.is_handle and not isinstance(node, tree.Subscript)
    return of, () if numbers else None


def _aug_assign(ev: BodyElaborator, node: tree.AugAssign, scope: Scope) -> None:
    is_variable = isinstance(node.target, tree.Name) and ev.is_variable(node.target.id, scope)
    if not isinstance(node.target, tree.Subscript) and not is_variable:
        raise error(
            "RLX0316", "a scalar variable cannot be changed", node.span, help="store to a buffer, or bind a new name"
        )
    place = ev.expr(node.target, scope)
    ev.store(node.target, ev.binary(node.op, scalar(place, node.span), ev.expr(node.value, scope), node.span), scope)


def _if(ev: BodyElaborator, node: tree.If, scope: Scope) -> None:
    condition = ev.expr(node.test, scope)
    if isinstance(condition, (bool, int, str, type(None), list, tuple, dict)):
        ev.run(node.body if ev.truth(condition, node.test.span) else node.orelse, scope)
        return
    test = scalar(condition, node.test.span)
    then = ev.body(node.body, Scope({}, scope))
    orelse = ev.body(node.orelse, Scope({}, scope)) if node.orelse else None
    ev.items.append(tir.IfThenElse(test, then, orelse, span=place(node)))


def _while(ev: BodyElaborator, node: tree.While, scope: Scope) -> None:
    condition = scalar(ev.expr(node.test, scope), node.test.span, prim.BOOL)
    ev.loop_depth += 1
    try:
        body = ev.body(node.body, Scope({}, scope))
    finally:
        ev.loop_depth -= 1
    ev.items.append(tir.While(condition, body, span=place(node)))


def _loop_of(ev: BodyElaborator, node: tree.Expr, scope: Scope) -> Any:
    """The value of a `for`'s iterable; `range` with run-time bounds is a serial loop here."""
    if (
        isinstance(node, tree.Call)
        and isinstance(node.func, tree.Name)
        and node.func.id == "range"
        and scope.find("range") is None
    ):
        words = {k.name: ev.expr(k.value, scope) for k in node.keywords if k.name is not None}
        return loop_with("serial", tuple(ev.expr(a, scope) for a in node.args), node, words)
    return ev.expr(node, scope)


def _for(ev: BodyElaborator, node: tree.For, scope: Scope) -> None:
    inner = Scope({}, scope)
    try:
        loop = _loop_of(ev, node.iterable, scope)
    except DiagnosticError as fault:
        ev.unit.report(fault)
        poison((node.target,), inner)
        ev.body(node.body, inner)
        raise silent() from None
    if not isinstance(loop, Loop):
        for value in ev.iterate(loop, node.iterable.span):
            once = Scope({}, scope)
            assign(ev, node.target, value, once)
            ev.run(node.body, once)
        return
    made = _loop_vars(ev, node.target, loop.domains, inner)
    ev.loop_depth += 1
    try:
        body = ev.body(node.body, inner)
    finally:
        ev.loop_depth -= 1
    for var, dom in zip(reversed(made), reversed(loop.domains)):
        body = _one_loop(loop, var, dom, body, place(node))
    ev.items.append(body)


def _loop_vars(ev: BodyElaborator, target: tree.Expr, domains: list[tir.Range], scope: Scope) -> list[prim.Var]:
    """A variable for each loop, bound in `scope`; one starred name takes the loops that the others leave, as a
    tuple, and a single name all of them."""
    targets = list(target.elements) if isinstance(target, (tree.TupleExpr, tree.ListExpr)) else [target]
    if targets == [target] and len(domains) != 1:
        targets = [tree.Starred(target, span=target.span)]
    star = next((k for k, t in enumerate(targets) if isinstance(t, tree.Starred)), None)
    rest = len(domains) - len(targets) + 1
    if (star is None and rest != 1) or rest < 0:
        raise error("RLX0127", f"{len(targets)} loop variables for {len(domains)} loops", target.span)
    made: list[prim.Var] = []
    for k, part in enumerate(targets):
        name = part.value if isinstance(part, tree.Starred) and k == star else part
        if not isinstance(name, tree.Name):
            raise error("RLX0126", "a loop variable is a name", part.span)
        hints = [name.id] if name is part else [f"{name.id}{n}" for n in range(rest)]
        new = [prim.Var(h, d.extent.dtype, span=part.span) for h, d in zip(hints, domains[len(made) :])]
        ev.loop_domains.update(zip(new, domains[len(made) :]))
        scope.names[name.id] = new[0] if name is part else tuple(new)
        made += new
    return made


def _one_loop(loop: Loop, var: prim.Var, dom: tir.Range, body: tir.Stmt, span: Span | None) -> tir.For:
    binding = None
    if loop.thread is not None:
        binding = tir.IterVar(prim.Var(loop.thread, var.dtype), dom, "thread", loop.thread)
    made: tir.For = tir.For(var, dom.min, dom.extent, loop.of, body, loop.annotations, binding, span=span)
    return made if loop.step is None else made.replace(step=loop.step)


def _with(ev: BodyElaborator, node: tree.With, scope: Scope) -> None:
    _with_item(ev, node, 0, Scope({}, scope))


def _with_item(ev: BodyElaborator, node: tree.With, at: int, scope: Scope) -> None:
    if at == len(node.items):
        ev.run(node.body, scope)
        return
    item = node.items[at]
    head = ev.expr(item.context, scope)
    before = ev.items
    if isinstance(head, BlockHead):
        _block(ev, head, node, at, scope)
        return
    if isinstance(head, SuffixHead):
        outer, ev.suffix = ev.suffix, head.suffix
        try:
            _with_item(ev, node, at + 1, scope)
        finally:
            ev.suffix = outer
        return
    ev.items = []
    try:
        if isinstance(head, Pending):
            name = item.target.id if isinstance(item.target, tree.Name) else "v"
            value = head.declare(ev, name, item.target.span if item.target else item.context.span)
            if isinstance(item.target, tree.Name):
                scope.names[name] = value
        elif isinstance(head, prim.Call) and is_carried(head):
            ev.wrap(lambda rest: tir.AttrStmt(head, CARRIED_WITH, prim.const(0, prim.INT32), rest, span=place(node)))
        elif not isinstance(head, InitHead):
            raise error("RLX0317", f"`with` does not take {describe(head)}", item.context.span)
        _with_item(ev, node, at + 1, scope)
        stmt = close(ev.items)
    finally:
        ev.items = before
    if isinstance(head, InitHead):
        block = ev.open_block(place(node))
        if block.init is not None:
            raise error("RLX0318", "the block has an init already", place(node))
        block.init = stmt
    else:
        ev.items.append(stmt)


def _block(ev: BodyElaborator, head: BlockHead, node: tree.With, at: int, scope: Scope) -> None:
    outer, before = ev.block, ev.items
    name = head.name + ev.suffix if head.name else ""
    ev.block, ev.items, ev.has_block = BlockState(name, realized=not head.no_realize), [], True
    block, target = ev.block, node.items[at].target
    try:
        targets = (
            target.elements if isinstance(target, (tree.TupleExpr, tree.ListExpr)) else (target,) if target else ()
        )
        if head.domains and len(targets) != len(head.domains):
            raise error("RLX0127", f"{len(targets)} names for {len(head.domains)} axes", place(node))
        for axis, (kind, dom) in zip(targets, head.domains):
            if isinstance(axis, tree.Name):
                scope.names[axis.id] = ev.add_axis(axis.id, dom.extent.dtype, dom, kind, None, axis.span)
        _with_item(ev, node, at + 1, scope)
        made = block.block(close(ev.items), place(node))
    finally:
        ev.block, ev.items = outer, before
    ev.items.append(made if head.no_realize else _realize(block, made, place(node)))


def _realize(block: BlockState, made: tir.Block, span: Span | None) -> tir.Stmt:
    """The block at its axes' values; axes without one run over loops made here."""
    loops: list[tuple[prim.Var, tir.Range]] = []
    values: list[PrimExpr] = []
    for iter_var, value in zip(block.iter_vars, block.iter_values):
        if value is None:
            value = prim.Var(f"i{len(values)}", iter_var.var.dtype)
            loops.append((value, iter_var.dom))
        values.append(value)
    stmt: tir.Stmt = tir.BlockRealize(
        tuple(values), TRUE if block.predicate is None else block.predicate, made, span=span
    )
    for var, dom in reversed(loops):
        stmt = tir.For(var, dom.min, dom.extent, "serial", stmt, span=span)
    return stmt


def _assert(ev: BodyElaborator, node: tree.Assert, scope: Scope) -> None:
    condition = scalar(ev.expr(node.test, scope), node.test.span, prim.BOOL)
    message = "" if node.message is None else ev.expr(node.message, scope)
    if isinstance(message, (tuple, list)):  # since TVM 0.26 `"TypeError", ["expected ", "1"]`
        message = ": ".join("".join(map(str, m)) if isinstance(m, (tuple, list)) else str(m) for m in message)
    ev.wrap(lambda rest: tir.AssertStmt(condition, str(message), rest, span=node.span))


def _return(ev: BodyElaborator, node: tree.Return, scope: Scope) -> None:
    if node.value is None:
        return
    value = ev.expr(node.value, scope)
    if value is not None:
        result = scalar(value, node.span)
        ev.items.append(tir.Evaluate(prim.Call(result.dtype, "ret", (result,), span=node.span), span=node.span))


def _leave(kind: type[tir.Stmt], word: str) -> Callable[[BodyElaborator, tree.Stmt, Scope], None]:
    def make(ev: BodyElaborator, node: tree.Stmt, scope: Scope) -> None:
        _check_in_loop(ev, word, node.span)
        ev.items.append(kind(span=node.span))

    return make


def _check_in_loop(ev: BodyElaborator, word: str, span: Span | None) -> None:
    if ev.loop_depth == 0:
        raise error("RLX0319", f"`{word}` stands only inside a loop", span)


def _function(ev: BodyElaborator, node: tree.FunctionDef, scope: Scope) -> None:
    """A definition inside a function is a macro, which sees what is around it."""
    from relaxlang.syntax.elaborate.macros import define_macro

    scope.names[node.name] = define_macro(ev, node, scope)


def _refuse(ev: BodyElaborator, node: tree.Stmt, scope: Scope) -> None:
    raise error("RLX0320", "this statement has no place in a TensorIR function", place(node))


def _nothing(ev: BodyElaborator, node: tree.Stmt, scope: Scope) -> None:
    """`pass` and import lines say nothing."""


STATEMENTS: dict[type, Callable[[BodyElaborator, Any, Scope], None]] = {
    tree.ExprStmt: _expr_stmt, tree.Assign: _assign, tree.AnnAssign: _ann_assign, tree.AugAssign: _aug_assign,
    tree.If: _if, tree.While: _while, tree.For: _for, tree.With: _with, tree.Assert: _assert, tree.Return: _return,
    tree.Break: _leave(tir.Break, "break"), tree.Continue: _leave(tir.Continue, "continue"), tree.Pass: _nothing,
    tree.Import: _nothing, tree.FunctionDef: _function, tree.ClassDef: _refuse,
    tree.PythonDef: _refuse,
}  # fmt: skip
