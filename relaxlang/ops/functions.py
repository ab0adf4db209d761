"""Compile-time functions with statements: the bodies of operators and the plain `def`s of the standard library."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from relaxlang.base.source import Span
from relaxlang.ir import prim
from relaxlang.ir.prim import PrimExpr
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import Evaluator, Scope, Value, assign, bind_parameters, error

MAX_DEPTH = 100


class _Nothing:
    """The outcome of statements that did not return."""


NOTHING = _Nothing()


class BodyEvaluator(Evaluator):
    """An evaluator that also runs statements, and collects what must hold at run time.

    `requirements` are (condition, message) pairs: asserts whose condition is known only at run time.
    """

    def __init__(self) -> None:
        super().__init__(fold=True)
        self.requirements: list[tuple[PrimExpr, str]] = []
        self.depth = 0

    def require(self, condition: PrimExpr, message: str) -> None:
        """State what must hold at run time; a condition that is known to hold is dropped."""
        known = isinstance(condition, prim.IntImm) and condition.value
        if not known and not any(condition == old for old, _ in self.requirements):
            self.requirements.append((condition, message))

    def named(self, name: str, value: Any) -> None:
        """Called when a statement gives `value` a name."""

    def define_kernel(self, function: tree.FunctionDef, scope: Scope) -> Any:
        """The value of a `@T.prim_func` inside a body."""
        raise error("RLX0134", "a decorated function has no meaning here", function.span)

    def failed_assert(self, message: str, span: Span | None) -> Exception:
        """The error of an assert that does not hold."""
        return error("RLX0210", message, span)

    def run(self, body: tuple[tree.Stmt, ...], scope: Scope) -> Any:
        """Run statements; the value of the `return` that was reached, else NOTHING."""
        for stmt in body:
            self.steps += 1
            runner = _RUN.get(stmt.__class__)
            if runner is None:
                raise error(
                    "RLX0134", f"a `{stmt.__class__.__name__}` statement has no meaning while compiling", stmt.span
                )
            result = runner(self, stmt, scope)
            if result is not NOTHING:
                return result
        return NOTHING


class CompileTimeFunction(Value):
    """A plain `def`: called while compiling, with compile-time values. `read` gives the function that is called `name`,
    when it is first needed."""

    def __init__(self, name: str, read: Callable[[], tree.Stmt], scope: Scope) -> None:
        self._read = read
        self.scope = scope
        self.kind = f"function `{name}`"

    @staticmethod
    def of(function: tree.FunctionDef, scope: Scope) -> CompileTimeFunction:
        """The one that a statement defines."""
        return CompileTimeFunction(function.name, lambda: function, scope)

    @cached_property
    def function(self) -> tree.FunctionDef:
        """The statement that defines it."""
        read = self._read()
        assert isinstance(read, tree.FunctionDef)
        return read

    def __repr__(self) -> str:
        return f"<{self.kind} at {self.function.span}>"

    def call(self, ev: Evaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
        if not isinstance(ev, BodyEvaluator):
            ev = _Elsewhere()
        bound = bind_parameters(
            ev, self.function.params, args, kwargs, node.span, f"`{self.function.name}`", self.scope
        )
        ev.depth += 1
        if ev.depth > MAX_DEPTH:
            raise error("RLX0120", f"compile-time functions call each other more than {MAX_DEPTH} deep", node.span)
        result = ev.run(self.function.body, Scope(bound, self.scope))
        ev.depth -= 1
        return None if result is NOTHING else result


class _Elsewhere(BodyEvaluator):
    """Runs a compile-time function for the body of a TensorIR function, which has no place for requirements."""

    def require(self, condition: PrimExpr, message: str) -> None:
        raise error("RLX0121", "an assertion here must be known while compiling", condition.span)


# --- statements -------------------------------------------------------------------------------------------------------
def _assign(ev: BodyEvaluator, stmt: tree.Assign, scope: Scope) -> Any:
    value = ev.expr(stmt.value, scope)
    for target in stmt.targets:
        if isinstance(target, tree.Name):
            ev.named(target.id, value)
        assign(ev, target, value, scope)
    return NOTHING


def _annotated(ev: BodyEvaluator, stmt: tree.AnnAssign, scope: Scope) -> Any:
    if stmt.value is not None:
        assign(ev, stmt.target, ev.expr(stmt.value, scope), scope)
    return NOTHING


def _augmented(ev: BodyEvaluator, stmt: tree.AugAssign, scope: Scope) -> Any:
    assign(
        ev, stmt.target, ev.binary(stmt.op, ev.expr(stmt.target, scope), ev.expr(stmt.value, scope), stmt.span), scope
    )
    return NOTHING


def _if(ev: BodyEvaluator, stmt: tree.If, scope: Scope) -> Any:
    return ev.run(stmt.body if ev.truth(ev.expr(stmt.test, scope), stmt.test.span) else stmt.orelse, scope)


def _for(ev: BodyEvaluator, stmt: tree.For, scope: Scope) -> Any:
    for value in ev.iterate(ev.expr(stmt.iterable, scope), stmt.iterable.span):
        assign(ev, stmt.target, value, scope)
        result = ev.run(stmt.body, scope)
        if result is not NOTHING:
            return result
    return NOTHING


def _assert(ev: BodyEvaluator, stmt: tree.Assert, scope: Scope) -> Any:
    condition = ev.expr(stmt.test, scope)
    symbolic = isinstance(condition, PrimExpr) and not isinstance(condition, prim.IntImm)
    if not symbolic and ev.truth(condition, stmt.test.span):
        return NOTHING
    message = "the assertion does not hold" if stmt.message is None else str(ev.expr(stmt.message, scope))
    if not symbolic:
        raise ev.failed_assert(message, stmt.span)
    ev.require(condition, message)
    return NOTHING


def _return(ev: BodyEvaluator, stmt: tree.Return, scope: Scope) -> Any:
    return None if stmt.value is None else ev.expr(stmt.value, scope)


def _expression(ev: BodyEvaluator, stmt: tree.ExprStmt, scope: Scope) -> Any:
    ev.expr(stmt.value, scope)
    return NOTHING


def _define(ev: BodyEvaluator, stmt: tree.FunctionDef, scope: Scope) -> Any:
    scope.names[stmt.name] = ev.define_kernel(stmt, scope) if stmt.decorators else CompileTimeFunction.of(stmt, scope)
    return NOTHING


_RUN: dict[type, Callable[[BodyEvaluator, Any, Scope], Any]] = {
    tree.Assign: _assign,
    tree.AnnAssign: _annotated,
    tree.AugAssign: _augmented,
    tree.If: _if,
    tree.For: _for,
    tree.Assert: _assert,
    tree.Return: _return,
    tree.ExprStmt: _expression,
    tree.FunctionDef: _define,
    tree.Pass: lambda ev, stmt, scope: NOTHING,
}
