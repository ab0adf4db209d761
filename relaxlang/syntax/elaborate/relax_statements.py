"""The statements of a Relax function: bindings, dataflow blocks, conditionals, closures."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from relaxlang.base.diagnostics import Diagnostic, DiagnosticError, Label
from relaxlang.base.source import Span
from relaxlang.ir import prim, relax
from relaxlang.ir.prim import PrimExpr
from relaxlang.ir.struct_info import (
    OBJECT,
    VOID_TUPLE,
    ObjectStructInfo,
    PrimStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import Scope, assign, describe, error, literal, silent
from relaxlang.syntax.elaborate.annotations import struct_info
from relaxlang.syntax.elaborate.places import head, targets_of
from relaxlang.syntax.elaborate.relax_body import COMPOUND, Frame, RelaxElaborator
from relaxlang.syntax.elaborate.relax_closures import closure
from relaxlang.syntax.elaborate.relax_dataflow import dataflow_block
from relaxlang.syntax.elaborate.relax_names import CastValue
from relaxlang.syntax.elaborate.scalars import Fresh
from relaxlang.syntax.elaborate.tir_names import Meta
from relaxlang.syntax.elaborate.unit import poison
from relaxlang.syntax.struct_info import BaseCheck, base_check, least_upper_bound, may_declare

if TYPE_CHECKING:
    from relaxlang.syntax.elaborate.relax_function import FunctionElaborator


def contradiction(
    what: str, declared: StructInfo, inferred: StructInfo, span: Span | None, at: Span | None
) -> DiagnosticError:
    """The error of an annotation that says something else than what was inferred."""
    labels = [Label(at, f"declared as `{declared}`")] if at is not None else []
    text = f"{what} is `{inferred}`, which contradicts the annotation `{declared}`"
    return DiagnosticError([Diagnostic("RLX0201", text, span, label=f"this is `{inferred}`", labels=labels)])


class Body:
    """The statements of a function's body, or of a branch of it."""

    def __init__(self, ev: RelaxElaborator, function: FunctionElaborator) -> None:
        self.ev = ev
        self.function = function
        self.result: relax.Expr | None = None
        self.returned: Span | None = None
        self.depth = 0
        self.ahead: dict[str, tuple[StructInfo, Span | None]] = {}
        self.finals: dict[str, tree.Stmt] = {}
        ev.run_statements = self.run

    def is_local(self, target: tree.Expr, stmt: tree.Stmt) -> bool:
        """Whether what a statement binds ends with the dataflow block around it."""
        if isinstance(target, tree.TupleExpr):
            return not any(self.finals.get(t.id) is stmt for t in target.elements if isinstance(t, tree.Name))
        return not (isinstance(target, tree.Name) and self.finals.get(target.id) is stmt)

    def function_body(self, scope: Scope) -> relax.SeqExpr | None:
        """The body as one expression; None when its result is faulty."""
        self.run(self.function.node.body, scope)
        ev = self.ev
        ev.frame.close()
        if self.returned is None:
            declared = self.function.declared
            if (
                (declared is not None and declared != VOID_TUPLE and not _is_unit(declared))
                or not self.function.node.body
                or (declared is None and _binds(self.function.node.body[-1]))
            ):
                self.ev.unit.report(
                    error(
                        "RLX0410",
                        "the function returns nothing",
                        self._header_span(),
                        help="end it with `return value`",
                    )
                )
                return None
            self.result = relax.Tuple((), span=self.function.node.span)
        return (
            None if self.result is None else relax.SeqExpr(tuple(ev.frame.blocks), self.result, span=self.result.span)
        )

    def _header_span(self) -> Span | None:
        return head(self.function.node)

    def run(self, stmts: tuple[tree.Stmt, ...], scope: Scope) -> None:
        """Elaborate statements; a faulty one is reported, and the names it binds are silent from then on."""
        for stmt in stmts:
            self.ev.here = scope
            try:
                if self.returned is not None and not isinstance(stmt, tree.Pass):
                    labels = [Label(self.returned, "the function returns here")]
                    raise DiagnosticError([Diagnostic("RLX0411", "this is never reached", head(stmt), labels=labels)])
                STATEMENTS[stmt.__class__](self, stmt, scope)
            except DiagnosticError as fault:
                self.ev.unit.report(fault)
                self.function.faulty = True
                poison(targets_of(stmt), scope)
                if isinstance(stmt, tree.Return) and self.depth == 0:
                    self.returned = stmt.span

    # --- binding ------------------------------------------------------------------------------------------------------
    def bind(
        self,
        target: tree.Expr,
        value: Any,
        scope: Scope,
        info: StructInfo | None = None,
        at: Span | None = None,
        *,
        local: bool = True,
        where: Span | None = None,
    ) -> None:
        """`target = value`; `where` is the place of the value, `at` that of the annotation `info`."""
        ev = self.ev
        if not isinstance(target, tree.Name):
            self._unpack(target, value, scope, local)
            return
        name = target.id
        if isinstance(value, Fresh):
            scope.names[name] = ev.declare(name, value, target.span)
        elif isinstance(value, Meta):
            scope.names[name] = value.value
        elif isinstance(value, (relax.Expr, CastValue)) or _is_tuple_value(value):
            if not isinstance(value, (relax.Expr, CastValue)):
                value = ev.lift(value, target.span)
            if info is not None and ev.check:
                value = self.declared_as(f"`{name}`", info, value, at, where)
            scope.names[name] = ev.emit(value, name, info, local=local, span=target.span)
        elif info is not None and isinstance(value, (PrimExpr, bool, int, float, str)):
            if isinstance(info, PrimStructInfo) and isinstance(value, (bool, int, float)):
                value = literal(info.dtype, value, where or target.span)
            lifted = ev.lift(value, target.span)
            if ev.check:
                lifted = self.declared_as(f"`{name}`", info, lifted, at, where)
            scope.names[name] = ev.emit(lifted, name, info, local=local, span=target.span)
        else:
            scope.names[name] = value

    def declared_as(self, what: str, info: StructInfo, value: Any, at: Span | None, where: Span | None) -> Any:
        """The value that is declared so; an annotation that says more than is known is checked at run time, as by
        `R.match_cast`."""
        inferred = value.info if isinstance(value, CastValue) else value.struct_info
        if inferred is None or may_declare(info, inferred):
            return value
        if base_check(info, inferred) is not BaseCheck.NEVER:
            span = where or value.span
            return CastValue(self.ev.lift(value, span), info, span)
        self.ev.unit.require(contradiction(what, info, inferred, where or value.span, at))
        return value

    def _unpack(self, target: tree.Expr, value: Any, scope: Scope, local: bool) -> None:
        """`a, b = value`: the fields of a tuple, one after the other."""
        if not isinstance(value, (relax.Expr, CastValue)):
            if isinstance(target, (tree.TupleExpr, tree.ListExpr)) and not any(
                isinstance(t, tree.Starred) for t in target.elements
            ):
                values = self.ev.iterate(value, target.span)
                if len(values) != len(target.elements):
                    raise error("RLX0127", f"{len(target.elements)} names for {len(values)} values", target.span)
                for part, element in zip(target.elements, values):
                    self.bind(part, element, scope, local=local)
                return
            assign(self.ev, target, value, scope)
            return
        if not isinstance(target, (tree.TupleExpr, tree.ListExpr)):
            raise error("RLX0126", "only names and tuples of names can be bound here", target.span,
                        help="values of Relax are never changed: bind the result to a new name")  # fmt: skip
        whole = self.ev.lift(value, target.span)
        info = whole.struct_info
        if self.ev.check and not isinstance(info, (TupleStructInfo, ObjectStructInfo)):
            raise error("RLX0127", f"a value that is `{info}` cannot be taken apart", target.span)
        if isinstance(info, TupleStructInfo) and len(info.fields) != len(target.elements):
            raise error("RLX0127", f"{len(target.elements)} names for {len(info.fields)} values", target.span)
        for k, part in enumerate(target.elements):
            field = whole.fields[k] if isinstance(whole, relax.Tuple) else relax.TupleGetItem(whole, k, span=part.span)
            self.bind(part, field, scope, local=local)

    # --- branches -----------------------------------------------------------------------------------------------------
    def branch(self, stmts: tuple[tree.Stmt, ...], scope: Scope) -> tuple[str, relax.SeqExpr] | None:
        """A branch of a conditional and the name of its last binding; None when it is faulty."""
        ev = self.ev
        outer, ev.frame = ev.frame, Frame()
        inner = Scope({}, scope)
        self.depth += 1
        faulty, self.function.faulty = self.function.faulty, False
        try:
            self.run(stmts[:-1], inner)
            name = self._last(stmts[-1], inner) if stmts else None
        finally:
            self.depth -= 1
            frame, ev.frame = ev.frame, outer
            failed = self.function.faulty
            self.function.faulty = faulty or failed
        if name is None or failed:
            return None
        frame.close()
        value = self.value
        blocks = frame.blocks
        return name, relax.SeqExpr(tuple(blocks), value, span=value.span)

    value: relax.Expr

    def _last(self, stmt: tree.Stmt, scope: Scope) -> str | None:
        """The binding that is a branch's value: a leaf is the value itself, anything else is bound as usual."""
        if isinstance(stmt, tree.With):
            return self._last_block(stmt, scope)
        if isinstance(stmt, tree.Assign) and len(stmt.targets) == 1 and isinstance(stmt.targets[0], tree.Name):
            return self._last_assignment(stmt, stmt.targets[0], scope)
        # A conditional names its result in both branches.
        words = {t.id if isinstance(t, tree.Name) else "_" for t in targets_of(stmt)}
        name = words.pop() if len(words) == 1 else "_"
        self.run((stmt,), scope)
        if self.function.faulty:
            return name
        bound = self.value if isinstance(stmt, tree.ExprStmt) else scope.names.get(name)
        if not isinstance(bound, relax.Expr):
            self.ev.unit.report(
                error(
                    "RLX0402",
                    "a branch ends with a binding, whose value is the branch's",
                    head(stmt),
                    help="end both branches with `name = value`, with the same name",
                )
            )
            self.function.faulty = True
            return None
        self.value = bound
        return name

    def _last_assignment(self, stmt: tree.Assign, target: tree.Name, scope: Scope) -> str:
        try:
            value = self.ev.evaluate(stmt.value, scope)
            if isinstance(value, (*COMPOUND, CastValue)):
                self.bind(target, value, scope)
                value = scope.names[target.id]
            self.value = self.ev.lift(value, stmt.value.span)
        except DiagnosticError as fault:
            self.ev.unit.report(fault)
            self.function.faulty = True
        return target.id

    def _last_block(self, stmt: tree.With, scope: Scope) -> str | None:
        """A branch that ends with a dataflow block: the block's only output is its value."""
        self.run((stmt,), scope)
        outputs = [v for v in self.ev.outputs or () if isinstance(v, relax.Var)]
        if self.function.faulty:
            return "_"
        if len(outputs) != 1:
            text = "a branch ends with a binding, whose value is the branch's"
            self.ev.unit.report(error("RLX0402", text, head(stmt)))
            self.function.faulty = True
            return None
        name = next(n for n, v in scope.names.items() if isinstance(v, relax.Var) and v.name == outputs[0].name)
        self.value = scope.names[name]
        return name


def _binds(stmt: tree.Stmt) -> bool:
    """Whether a statement gives a value a name: who does that last has forgotten to return it."""
    return isinstance(stmt, (tree.Assign, tree.AnnAssign)) and any(
        isinstance(t, tree.Name) and not t.id.startswith("_") for t in targets_of(stmt)
    )


def _is_unit(info: StructInfo) -> bool:
    return isinstance(info, TupleStructInfo) and not info.fields


def _is_tuple_value(value: Any) -> bool:
    """A Python tuple or list that holds values of Relax; one of plain values stays a compile-time value."""
    if not isinstance(value, (tuple, list)):
        return False
    return any(isinstance(v, relax.Expr) or _is_tuple_value(v) for v in value)


# --- one function per statement ---------------------------------------------------------------------------------------
def _assign(body: Body, node: tree.Assign, scope: Scope) -> None:
    value = body.ev.evaluate(node.value, scope)
    for target in node.targets:
        body.bind(target, value, scope, local=body.is_local(target, node))
        if len(node.targets) > 1 and isinstance(target, tree.Name):
            value = scope.names[target.id]


def _ann_assign(body: Body, node: tree.AnnAssign, scope: Scope) -> None:
    ev = body.ev
    if node.value is None:
        # A conditional's result may be declared ahead of it: `y: R.Tensor(…)`.
        if isinstance(node.target, tree.Name):
            body.ahead[node.target.id] = (
                struct_info(ev.expr(node.annotation, scope), node.annotation.span),
                node.annotation.span,
            )
        return
    value = ev.evaluate(node.value, scope)
    if isinstance(value, Fresh):
        body.bind(node.target, value, scope)
        return
    info = struct_info(ev.expr(node.annotation, scope), node.annotation.span)
    local = body.is_local(node.target, node)
    body.bind(node.target, value, scope, info, node.annotation.span, local=local, where=node.value.span)


def _aug_assign(body: Body, node: tree.AugAssign, scope: Scope) -> None:
    if not isinstance(node.target, tree.Name):
        raise error(
            "RLX0126", "a part of a tensor cannot be changed", node.span, help="values of Relax are never changed"
        )
    value = body.ev.binary(node.op, body.ev.expr(node.target, scope), body.ev.expr(node.value, scope), node.span)
    body.bind(node.target, value, scope, local=body.is_local(node.target, node))


def _expr_stmt(body: Body, node: tree.ExprStmt, scope: Scope) -> None:
    if isinstance(node.value, tree.Constant) and (isinstance(node.value.value, str) or node.value.value is ...):
        return
    value = body.ev.evaluate(node.value, scope)
    if isinstance(value, (relax.Expr, CastValue)):
        _check_used(body, value, node.span)
        body.value = body.ev.emit(value, "_", span=node.span)
    elif value is not None:
        raise error("RLX0315", f"{describe(value)} alone is no statement", node.span)


def _check_used(body: Body, value: Any, span: Span | None) -> None:
    """A statement that only computes a value does nothing."""
    if not body.ev.check or isinstance(value, CastValue):
        return
    info = value.struct_info
    if not isinstance(value, relax.Call) or (
        body.ev.is_pure_operator(value) and not (info is not None and _is_unit(info))
    ):
        raise error("RLX0315", "the value of this expression is not used", span, help="bind it to a name, or return it")


def _if(body: Body, node: tree.If, scope: Scope) -> None:
    ev = body.ev
    condition = ev.expr(node.test, scope)
    if not isinstance(condition, (relax.Expr, PrimExpr)):
        body.run(node.body if ev.truth(condition, node.test.span) else node.orelse, scope)
        return
    if ev.frame.dataflow:
        raise error("RLX0403", "a dataflow block has no conditionals", head(node), help="end the block before it")
    test = ev.lift(condition, node.test.span)
    _check_condition(test, node.test.span)
    if not node.orelse:
        raise error(
            "RLX0402",
            "a conditional of Relax needs both branches",
            head(node),
            help="add `else:` and bind the same name there",
        )
    then, orelse = body.branch(node.body, scope), body.branch(node.orelse, scope)
    if then is None or orelse is None:
        raise silent()
    if then[0] != orelse[0]:
        text = f"the branches end with different names, `{then[0]}` and `{orelse[0]}`"
        raise error("RLX0402", text, head(node.orelse[-1]),
                    help="the last binding of both branches is the conditional's result and has one name")  # fmt: skip
    info = None
    if ev.check:
        info = least_upper_bound(then[1].struct_info or OBJECT, orelse[1].struct_info or OBJECT)
    made = relax.If(test, then[1], orelse[1], info, span=head(node))
    declared, at = body.ahead.pop(then[0], (None, None))
    body.bind(tree.Name(then[0], span=head(node)), made, scope, declared, at)


def _check_condition(test: relax.Expr, span: Span | None) -> None:
    info = test.struct_info
    if isinstance(info, TensorStructInfo):
        one = info.ndim in (-1, 0) or (
            info.dims is not None and all(isinstance(d, prim.IntImm) and d.value == 1 for d in info.dims)
        )
        fine = one and (info.dtype is None or info.dtype.is_bool)
    else:
        fine = (
            info is None
            or isinstance(info, ObjectStructInfo)
            or (isinstance(info, PrimStructInfo) and info.dtype.is_bool)
        )
    if not fine:
        raise error("RLX0226", f'a condition is a bool, `R.Tensor((), "bool")`, and not `{info}`', span)


def _return(body: Body, node: tree.Return, scope: Scope) -> None:
    if body.depth:
        raise error(
            "RLX0412",
            "a branch cannot return",
            node.span,
            help="bind the value in both branches and return it after them",
        )
    if node.value is None:
        body.result = relax.Tuple((), span=node.span)
    else:
        body.result = body.ev.lift(body.ev.evaluate(node.value, scope), node.value.span)
        declared, returns = body.function.declared, body.function.node.returns
        if declared is not None and body.ev.check:
            at = returns.span if returns is not None else None
            body.result = body.ev.lift(
                body.declared_as("the result", declared, body.result, at, node.span), node.value.span
            )
    body.returned = body.function.returned = node.span


def _for(body: Body, node: tree.For, scope: Scope) -> None:
    """A loop over what is known while compiling: its body once for each element."""
    ev = body.ev
    over = ev.expr(node.iterable, scope)
    if isinstance(over, (relax.Expr, PrimExpr)):
        raise _no_loops(node)
    before = body.function.faulty
    body.function.faulty = False
    for value in ev.iterate(over, node.iterable.span):
        assign(ev, node.target, value, scope)
        body.run(node.body, scope)
        if body.function.faulty or body.returned is not None:
            break
    body.function.faulty = body.function.faulty or before


def _while(body: Body, node: tree.While, scope: Scope) -> None:
    raise _no_loops(node)


def _no_loops(node: tree.Stmt) -> DiagnosticError:
    return error(
        "RLX0413",
        "a Relax function has no loops at run time",
        head(node),
        help="write the loop in a `T.prim_func` and call it with `R.call_tir`, or write a recursive function",
    )


def _assert(body: Body, node: tree.Assert, scope: Scope) -> None:
    condition = body.ev.expr(node.test, scope)
    if isinstance(condition, (relax.Expr, PrimExpr)):
        raise error("RLX0414", "`assert` is decided while compiling", node.span, help="write `R.assert_op(condition)`")
    if not body.ev.truth(condition, node.test.span):
        text = body.ev.expr(node.message, scope) if node.message is not None else "the assertion fails"
        raise error("RLX0140", str(text), node.span)


def _refuse(body: Body, node: tree.Stmt, scope: Scope) -> None:
    raise error("RLX0320", "this statement has no place in a Relax function", head(node))


def _nothing(body: Body, node: tree.Stmt, scope: Scope) -> None:
    """`pass` and import lines say nothing."""


STATEMENTS: dict[type, Callable[[Body, Any, Scope], None]] = {
    tree.Assign: _assign, tree.AnnAssign: _ann_assign, tree.AugAssign: _aug_assign, tree.ExprStmt: _expr_stmt,
    tree.If: _if, tree.With: dataflow_block, tree.FunctionDef: closure, tree.Return: _return, tree.For: _for,
    tree.While: _while, tree.Assert: _assert, tree.Pass: _nothing, tree.Import: _nothing, tree.Break: _refuse,
    tree.Continue: _refuse, tree.ClassDef: _refuse, tree.PythonDef: _refuse,
}  # fmt: skip
