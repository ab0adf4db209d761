"""The parser's callbacks for statements; see `expr_actions` for how callbacks work.

One method per callback name in `grammar/rlx.lark`, in the order of the grammar.
"""

from __future__ import annotations

from typing import Any

from relaxlang.base.source import Span
from relaxlang.syntax import tree
from relaxlang.syntax.expr_actions import ExpressionActions
from relaxlang.syntax.lexer import Token
from relaxlang.syntax.python_text import python_def

MAX_ELIFS = 200


class Actions(ExpressionActions):
    """Callbacks of `rlx.lark` and, inherited, of `expr.lark`."""

    def module(self, span: Span, *statements: tree.Stmt | None) -> tree.Module:
        """A whole file."""
        return tree.Module(_read(statements), span=Span(self.source, 0, len(self.source.text)))

    def expression(self, span: Span, value: tree.Expr) -> tree.Expr:
        """The text of an expression."""
        return value

    def block(self, span: Span, *statements: tree.Stmt | None) -> tuple[tree.Stmt, ...]:
        """The statements below a header."""
        return _read(statements)

    def bad_statement(self, span: Span, *parts: Any) -> None:
        """A statement that was reported; the tree goes on without it."""

    bad_rest = bad_statement

    # --- simple statements --------------------------------------------------------------------------------------------
    def expr_statement(self, span: Span, value: tree.Expr) -> tree.Stmt:
        """A value on a line of its own."""
        if isinstance(value, tree.Starred):
            self.lone_star(span, value)
        return tree.ExprStmt(value, span=span)

    def assign(self, span: Span, *values: tree.Expr) -> tree.Stmt:
        """`a = b = value`."""
        *targets, value = values
        for target in targets:
            self.check_target(target)
        return tree.Assign(tuple(targets), value, span=span)

    def annotated(self, span: Span, target: tree.Expr, annotation: tree.Expr, value: tree.Expr | None) -> tree.Stmt:
        """`target: annotation = value`."""
        self._check_single(target, "can have an annotation")
        return tree.AnnAssign(target, annotation, value, span=span)

    def augmented(self, span: Span, target: tree.Expr, op: Token, value: tree.Expr) -> tree.Stmt:
        """`target += value`."""
        self._check_single(target, f"can stand before `{op.text}`")
        return tree.AugAssign(target, op.text[:-1], value, span=span)

    def _check_single(self, target: tree.Expr, what: str) -> None:
        if not isinstance(target, (tree.Name, tree.Attribute, tree.Subscript)):
            self.error("RLX0010", f"only a name, an attribute or an element {what}", target.span)

    def return_(self, span: Span, value: tree.Expr | None) -> tree.Stmt:
        """`return value`."""
        return tree.Return(value, span=span)

    def pass_(self, span: Span) -> tree.Stmt:
        """`pass`."""
        return tree.Pass(span=span)

    def break_(self, span: Span) -> tree.Stmt:
        """`break`."""
        return tree.Break(span=span)

    def continue_(self, span: Span) -> tree.Stmt:
        """`continue`."""
        return tree.Continue(span=span)

    def assert_(self, span: Span, test: tree.Expr, message: tree.Expr | None) -> tree.Stmt:
        """`assert test, message`."""
        return tree.Assert(test, message, span=span)

    def import_(self, span: Span, *names: Token) -> tree.Stmt:
        """An import line."""
        return tree.Import(span.text, span=span)

    # --- compound statements ------------------------------------------------------------------------------------------
    def if_(self, span: Span, test: tree.Expr, body: tuple[tree.Stmt, ...], *rest: Any) -> tree.Stmt:
        """`if … elif … else …`: an `elif` becomes an `if` alone in the `else`."""
        *elifs, orelse = rest
        if len(elifs) > MAX_ELIFS:
            self.error("RLX0009", f"more than {MAX_ELIFS} `elif` branches in one statement", span)
        orelse = orelse or ()
        for clause in reversed(elifs):  # an `elif` is an `if` alone in the `else`; it reaches to the end of the chain
            at = Span(self.source, clause.span.start, span.end)
            orelse = (tree.If(clause.test, clause.body, orelse, span=at),)
        return tree.If(test, body, orelse, span=span)

    def elif_(self, span: Span, test: tree.Expr, body: tuple[tree.Stmt, ...]) -> tree.If:
        """`elif test: body`."""
        return tree.If(test, body, (), span=span)

    def for_(self, span: Span, target: tree.Expr, iterable: tree.Expr, body: tuple[tree.Stmt, ...]) -> tree.Stmt:
        """`for target in iterable: body`."""
        self.check_target(target)
        return tree.For(target, iterable, body, span=span)

    def while_(self, span: Span, test: tree.Expr, body: tuple[tree.Stmt, ...]) -> tree.Stmt:
        """`while test: body`."""
        return tree.While(test, body, span=span)

    def with_(self, span: Span, *parts: Any) -> tree.Stmt:
        """`with items: body`."""
        *items, body = parts
        if len(items) == 1 and items[0].target is None and isinstance(items[0].context, tree.TupleExpr):
            items = list(items[0].context.elements)  # `with (a, b):` has two items, as in Python
        items = [i if isinstance(i, tree.WithItem) else tree.WithItem(i, None, span=i.span) for i in items]
        return tree.With(tuple(items), body, span=span)

    def with_item(self, span: Span, context: tree.Expr, target: tree.Expr | None) -> tree.WithItem:
        """`context as target`."""
        if target is not None:
            self.check_target(target)
        return tree.WithItem(context, target, span=span)

    as_item = with_item

    def function(self, span: Span, *parts: Any) -> tree.Stmt:
        """`@decorator def name[types](params) -> returns: body`."""
        *decorators, name, type_params, params, returns, body = parts
        return tree.FunctionDef(
            name.text,
            params or (),
            returns,
            body,
            tuple(decorators),
            type_params or (),
            Span(self.source, name.start, name.end),
            span=span,
        )

    def class_(self, span: Span, *parts: Any) -> tree.Stmt:
        """`@decorator class name(bases): body`."""
        *decorators, name, arguments, body = parts
        bases: tuple[tree.Expr, ...] = ()
        if arguments is not None:
            bases = arguments.args
            for keyword in arguments.keywords:
                self.error("RLX0011", "a class takes no keyword arguments", keyword.span)
        where = Span(self.source, name.start, name.end)
        return tree.ClassDef(name.text, bases, body, tuple(decorators), where, span=span)

    def python(self, span: Span, text: Token) -> tree.Stmt:
        """A function of Python under `@I.pyfunc`."""
        made = python_def(text.text, Span(self.source, text.start, text.start).column - 1)
        if not made.name:
            self.error("RLX0011", "`@I.pyfunc` stands in front of a function", Span(self.source, text.start, text.end))
        return made.replace(span=span)

    def def_name(self, span: Span, name: Token) -> Token:
        """The name in a header, with its place."""
        return name

    def type_params(self, span: Span, *names: Token) -> tuple[str, ...]:
        """`[n, m: int]`."""
        self.check_names((n.text, Span(self.source, n.start, n.end)) for n in names)
        return tuple(name.text for name in names)

    def type_param(self, span: Span, name: Token, bound: tree.Expr | None) -> Token:
        """`n: int`."""
        if bound is not None and not (isinstance(bound, tree.Name) and bound.id == "int"):
            self.error("RLX0011", "a type parameter is a dimension: its bound can only be `int`", bound.span)
        return name


def _read(statements: tuple[tree.Stmt | None, ...]) -> tuple[tree.Stmt, ...]:
    return tuple(s for s in statements if s is not None)
