"""The parser's callbacks: from the parts of a rule to a node of the surface tree.

One method per callback name in `grammar/rlx.lark` and `grammar/expr.lark`, in the order of the grammar. Each gets
the span of the rule and its values: tokens, nodes, and None for an absent `[x]`. What the grammar cannot say (only
some expressions can be assigned to, a parameter has one name) is checked here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from relaxlang.base.diagnostics import Diagnostic, Label
from relaxlang.base.source import Source, Span
from relaxlang.syntax import literals, tree
from relaxlang.syntax.lexer import Token

MAX_ELIFS = 200


class Arguments:
    """What stands between the parentheses of a call."""

    __slots__ = ("args", "keywords")

    def __init__(self, args: tuple[tree.Expr, ...], keywords: tuple[tree.Keyword, ...]) -> None:
        self.args = args
        self.keywords = keywords


class Expressions:
    """Callbacks of `expr.lark`."""

    def __init__(self, source: Source, report: Callable[[Diagnostic], None]) -> None:
        self.source = source
        self.report = report

    def error(self, code: str, message: str, span: Span | None, **more: Any) -> None:
        """Report; the tree is still built, so that one run finds every error."""
        self.report(Diagnostic(code, message, span, **more))

    # --- operators ----------------------------------------------------------------------------------------------------
    def if_exp(self, span: Span, body: tree.Expr, test: tree.Expr, orelse: tree.Expr) -> tree.Expr:
        return tree.IfExp(test, body, orelse, span=span)

    def lambda_(self, span: Span, params: tuple[tree.Parameter, ...] | None, body: tree.Expr) -> tree.Expr:
        return tree.Lambda(params or (), body, span=span)

    def or_(self, span: Span, *values: tree.Expr) -> tree.Expr:
        return tree.BoolOp("or", values, span=span)

    def and_(self, span: Span, *values: tree.Expr) -> tree.Expr:
        return tree.BoolOp("and", values, span=span)

    def not_(self, span: Span, operand: tree.Expr) -> tree.Expr:
        return tree.UnaryOp("not", operand, span=span)

    def compare(self, span: Span, left: tree.Expr, *rest: Any) -> tree.Expr:
        return tree.Compare(left, rest[::2], rest[1::2], span=span)

    def compare_op(self, span: Span, *words: Token) -> str:
        return " ".join(word.text for word in words)

    def binary(self, span: Span, left: tree.Expr, op: Token, right: tree.Expr) -> tree.Expr:
        return tree.BinOp(op.text, left, right, span=span)

    def unary_op(self, span: Span, op: Token, operand: tree.Expr) -> tree.Expr:
        return tree.UnaryOp(op.text, operand, span=span)

    # --- after a value ------------------------------------------------------------------------------------------------
    def attribute(self, span: Span, value: tree.Expr, attr: Token) -> tree.Expr:
        return tree.Attribute(value, attr.text, span=span)

    def call(self, span: Span, func: tree.Expr, arguments: Arguments | None) -> tree.Expr:
        if arguments is None:
            return tree.Call(func, (), (), span=span)
        return tree.Call(func, arguments.args, arguments.keywords, span=span)

    def arguments(self, span: Span, *items: Any) -> Arguments:
        args: list[tree.Expr] = []
        keywords: list[tree.Keyword] = []
        seen: dict[str, tree.Keyword] = {}
        for item in items:
            if isinstance(item, tree.Keyword):
                keywords.append(item)
                if item.name is not None and item.name in seen:
                    first = Label(_of(seen[item.name]), "given here first")
                    self.error("RLX0015", f"keyword argument `{item.name}` is given twice", item.span, labels=[first])
                elif item.name is not None:
                    seen[item.name] = item
                continue
            if keywords and (not isinstance(item, tree.Starred) or any(k.name is None for k in keywords)):
                before = Label(_of(keywords[-1]), "this is a keyword argument")
                self.error("RLX0014", "a positional argument follows a keyword argument", item.span, labels=[before])
            args.append(item)
            if len(items) > 1 and isinstance(item, tree.ComprehensionExpr) and item.kind == "generator":
                if self.source.text[_of(item).start] != "(":
                    self.error("RLX0014", "a generator beside other arguments needs parentheses", item.span)
        return Arguments(tuple(args), tuple(keywords))

    def keyword(self, span: Span, name: Token, value: tree.Expr) -> tree.Keyword:
        return tree.Keyword(name.text, value, span=span)

    def keywords(self, span: Span, value: tree.Expr) -> tree.Keyword:
        return tree.Keyword(None, value, span=span)

    def starred(self, span: Span, value: tree.Expr) -> tree.Expr:
        return tree.Starred(value, span=span)

    def subscript(self, span: Span, value: tree.Expr, index: tree.Expr) -> tree.Expr:
        return tree.Subscript(value, index, span=span)

    def indices(self, span: Span, *elements: tree.Expr) -> tree.Expr:
        return tree.TupleExpr(elements, span=span)

    def slice(
        self, span: Span, lower: tree.Expr | None, upper: tree.Expr | None, step: tree.Expr | None = None
    ) -> tree.Expr:
        return tree.Slice(lower, upper, step, span=span)

    # --- atoms --------------------------------------------------------------------------------------------------------
    def name(self, span: Span, token: Token) -> tree.Expr:
        return tree.Name(token.text, span=span)

    def integer(self, span: Span, token: Token) -> tree.Expr:
        return tree.Constant(literals.integer(token.text, span, self.report), token.text, span=span)

    def real(self, span: Span, token: Token) -> tree.Expr:
        return tree.Constant(float(token.text), token.text, span=span)

    def string(self, span: Span, *tokens: Token) -> tree.Expr:
        parts = [literals.string(token.text, self.source, token.start, self.report) for token in tokens]
        return tree.Constant("".join(parts), span.text, span=span)

    def none(self, span: Span) -> tree.Expr:
        return tree.Constant(None, "None", span=span)

    def true(self, span: Span) -> tree.Expr:
        return tree.Constant(True, "True", span=span)

    def false(self, span: Span) -> tree.Expr:
        return tree.Constant(False, "False", span=span)

    def ellipsis(self, span: Span) -> tree.Expr:
        return tree.Constant(..., "...", span=span)

    def empty_tuple(self, span: Span) -> tree.Expr:
        return tree.TupleExpr((), span=span)

    def several(self, span: Span, *elements: tree.Expr) -> tuple[tree.Expr, ...]:
        return elements

    def tuple_(self, span: Span, elements: tuple[tree.Expr, ...]) -> tree.Expr:
        return tree.TupleExpr(elements, span=span)

    def lone_star(self, span: Span, value: tree.Expr) -> tree.Expr:
        self.error("RLX0010", "`*` unpacks into a call, a list or a tuple only", span, help="for a tuple, add a comma")
        return value

    def empty_list(self, span: Span) -> tree.Expr:
        return tree.ListExpr((), span=span)

    def list_(self, span: Span, *elements: tree.Expr) -> tree.Expr:
        return tree.ListExpr(elements, span=span)

    def empty_dict(self, span: Span) -> tree.Expr:
        return tree.DictExpr((), (), span=span)

    def dict_(self, span: Span, *items: tuple[tree.Expr | None, tree.Expr]) -> tree.Expr:
        return tree.DictExpr(tuple(k for k, _ in items), tuple(v for _, v in items), span=span)

    def pair(self, span: Span, key: tree.Expr, value: tree.Expr) -> tuple[tree.Expr | None, tree.Expr]:
        return key, value

    def unpacked(self, span: Span, value: tree.Expr) -> tuple[tree.Expr | None, tree.Expr]:
        return None, value

    def set_(self, span: Span, *elements: tree.Expr) -> tree.Expr:
        self.error("RLX0011", "set literals are not part of the language", span, help="write a list or a tuple")
        return tree.ListExpr(elements, span=span)

    # --- comprehensions and targets -----------------------------------------------------------------------------------
    def generator(self, span: Span, element: tree.Expr, *clauses: tree.Comprehension) -> tree.Expr:
        return tree.ComprehensionExpr("generator", None, element, clauses, span=span)

    def list_comprehension(self, span: Span, element: tree.Expr, *clauses: tree.Comprehension) -> tree.Expr:
        return tree.ComprehensionExpr("list", None, element, clauses, span=span)

    def set_comprehension(self, span: Span, element: tree.Expr, *clauses: tree.Comprehension) -> tree.Expr:
        return tree.ComprehensionExpr("set", None, element, clauses, span=span)

    def dict_comprehension(
        self, span: Span, key: tree.Expr, value: tree.Expr, *clauses: tree.Comprehension
    ) -> tree.Expr:
        return tree.ComprehensionExpr("dict", key, value, clauses, span=span)

    def comprehension(
        self, span: Span, target: tree.Expr, iterable: tree.Expr, *conditions: tree.Expr
    ) -> tree.Comprehension:
        self.check_target(target)
        return tree.Comprehension(target, iterable, conditions, span=span)

    def tuple_target(self, span: Span, *elements: tree.Expr) -> tree.Expr:
        return tree.TupleExpr(elements, span=span)

    def check_target(self, target: tree.Expr) -> None:
        """Report what cannot be assigned to: `f(x) = 1`. A list or tuple is looked into, a lone `*a` is refused."""
        if isinstance(target, tree.Starred):
            self.error("RLX0010", "a starred name stands only in a list or tuple of names", target.span)
            return
        pending = [target]
        while pending:
            item = pending.pop()
            if isinstance(item, (tree.TupleExpr, tree.ListExpr)):
                stars = [e for e in item.elements if isinstance(e, tree.Starred)]
                if len(stars) > 1:
                    self.error("RLX0010", "only one name can be starred", stars[1].span)
                pending += [e.value if isinstance(e, tree.Starred) else e for e in item.elements]
            elif not isinstance(item, (tree.Name, tree.Attribute, tree.Subscript)):
                what = _KINDS.get(type(item), "an expression")
                self.error("RLX0010", f"cannot assign to {what}", item.span, help="`==` compares two values")

    # --- parameters ---------------------------------------------------------------------------------------------------
    def plain_param(self, span: Span, name: Token, default: tree.Expr | None) -> tree.Parameter:
        return tree.Parameter(name.text, None, default, span=span)

    def param(
        self, span: Span, name: Token, annotation: tree.Expr | None, default: tree.Expr | None
    ) -> tree.Parameter:
        return tree.Parameter(name.text, annotation, default, span=span)

    def star_param(self, span: Span, name: Token, annotation: tree.Expr | None = None) -> tree.Parameter:
        return tree.Parameter(name.text, annotation, None, "*", span=span)

    def bare_star(self, span: Span) -> tree.Parameter:
        return tree.Parameter("", None, None, "*", span=span)

    def double_star_param(self, span: Span, name: Token, annotation: tree.Expr | None = None) -> tree.Parameter:
        return tree.Parameter(name.text, annotation, None, "**", span=span)

    def params(self, span: Span, *params: tree.Parameter) -> tuple[tree.Parameter, ...]:
        """Check names and order. A lambda may have plain names after `*b`: `lambda *b, i, j:` names the last two."""
        self.check_names((p.name, _of(p)) for p in params)
        star: tree.Parameter | None = None
        optional: tree.Parameter | None = None
        for at, param in enumerate(params):
            if param.kind == "*":
                if star is not None:
                    self.error("RLX0016", "only one parameter can have a `*`", param.span, labels=[Label(_of(star), "the first")])
                star = param
                if not param.name and (at + 1 == len(params) or params[at + 1].kind):
                    self.error("RLX0016", "a name must follow `*` alone", param.span)
            elif param.kind == "**" and at + 1 < len(params):
                self.error("RLX0016", "no parameter can follow `**`", params[at + 1].span, labels=[Label(_of(param), "`**` is here")])
            elif not param.kind and star is None and param.default is None and optional is not None:
                label = Label(_of(optional), "this one has a default")
                self.error("RLX0016", f"parameter `{param.name}` without a default follows one with a default", param.span, labels=[label])
            if param.default is not None:
                optional = param
        return params

    lambda_params = params

    def check_names(self, names: Iterable[tuple[str, Span]]) -> None:
        """Report a name that occurs twice."""
        seen: dict[str, Span] = {}
        for name, span in names:
            if name and name in seen:
                self.error("RLX0016", f"duplicate parameter `{name}`", span, labels=[Label(seen[name], "first here")])
            seen.setdefault(name, span)


_KINDS: dict[type, str] = {
    tree.Call: "a call", tree.Constant: "a literal", tree.BinOp: "an operation", tree.UnaryOp: "an operation", tree.BoolOp: "an operation",
    tree.Compare: "a comparison", tree.Lambda: "a lambda", tree.IfExp: "a conditional expression", tree.DictExpr: "a dictionary",
    tree.ComprehensionExpr: "a comprehension",
}  # fmt: skip


def _of(node: tree.Node) -> Span:
    """The span of a node that this parser made, which has one."""
    if node.span is None:
        raise ValueError("a surface node without a span")
    return node.span


class Actions(Expressions):
    """Callbacks of `rlx.lark`: statements and modules."""

    def module(self, span: Span, *statements: tree.Stmt | None) -> tree.Module:
        return tree.Module(_read(statements), span=Span(self.source, 0, len(self.source.text)))

    def expression(self, span: Span, value: tree.Expr) -> tree.Expr:
        return value

    def block(self, span: Span, *statements: tree.Stmt | None) -> tuple[tree.Stmt, ...]:
        return _read(statements)

    def bad_statement(self, span: Span, *parts: Any) -> None:
        """A statement that was reported; the tree goes on without it."""

    bad_rest = bad_statement

    # --- simple statements --------------------------------------------------------------------------------------------
    def expr_statement(self, span: Span, value: tree.Expr) -> tree.Stmt:
        if isinstance(value, tree.Starred):
            self.lone_star(span, value)
        return tree.ExprStmt(value, span=span)

    def assign(self, span: Span, *values: tree.Expr) -> tree.Stmt:
        *targets, value = values
        for target in targets:
            self.check_target(target)
        return tree.Assign(tuple(targets), value, span=span)

    def annotated(self, span: Span, target: tree.Expr, annotation: tree.Expr, value: tree.Expr | None) -> tree.Stmt:
        self._check_single(target, "can have an annotation")
        return tree.AnnAssign(target, annotation, value, span=span)

    def augmented(self, span: Span, target: tree.Expr, op: Token, value: tree.Expr) -> tree.Stmt:
        self._check_single(target, f"can stand before `{op.text}`")
        return tree.AugAssign(target, op.text[:-1], value, span=span)

    def _check_single(self, target: tree.Expr, what: str) -> None:
        if not isinstance(target, (tree.Name, tree.Attribute, tree.Subscript)):
            self.error("RLX0010", f"only a name, an attribute or an element {what}", target.span)

    def return_(self, span: Span, value: tree.Expr | None) -> tree.Stmt:
        return tree.Return(value, span=span)

    def pass_(self, span: Span) -> tree.Stmt:
        return tree.Pass(span=span)

    def break_(self, span: Span) -> tree.Stmt:
        return tree.Break(span=span)

    def continue_(self, span: Span) -> tree.Stmt:
        return tree.Continue(span=span)

    def assert_(self, span: Span, test: tree.Expr, message: tree.Expr | None) -> tree.Stmt:
        return tree.Assert(test, message, span=span)

    def import_(self, span: Span, *names: Token) -> tree.Stmt:
        return tree.Import(span.text, span=span)

    # --- compound statements ------------------------------------------------------------------------------------------
    def if_(self, span: Span, test: tree.Expr, body: tuple[tree.Stmt, ...], *rest: Any) -> tree.Stmt:
        *elifs, orelse = rest
        if len(elifs) > MAX_ELIFS:
            self.error("RLX0009", f"more than {MAX_ELIFS} `elif` branches in one statement", span)
        orelse = orelse or ()
        for clause in reversed(elifs):  # an `elif` is an `if` alone in the `else`; it reaches to the end of the chain
            at = Span(self.source, clause.span.start, span.end)
            orelse = (tree.If(clause.test, clause.body, orelse, span=at),)
        return tree.If(test, body, orelse, span=span)

    def elif_(self, span: Span, test: tree.Expr, body: tuple[tree.Stmt, ...]) -> tree.If:
        return tree.If(test, body, (), span=span)

    def for_(self, span: Span, target: tree.Expr, iterable: tree.Expr, body: tuple[tree.Stmt, ...]) -> tree.Stmt:
        self.check_target(target)
        return tree.For(target, iterable, body, span=span)

    def while_(self, span: Span, test: tree.Expr, body: tuple[tree.Stmt, ...]) -> tree.Stmt:
        return tree.While(test, body, span=span)

    def with_(self, span: Span, *parts: Any) -> tree.Stmt:
        *items, body = parts
        return tree.With(tuple(items), body, span=span)

    def with_item(self, span: Span, context: tree.Expr, target: tree.Expr | None) -> tree.WithItem:
        if target is not None:
            self.check_target(target)
        return tree.WithItem(context, target, span=span)

    def function(self, span: Span, *parts: Any) -> tree.Stmt:
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
        *decorators, name, arguments, body = parts
        bases: tuple[tree.Expr, ...] = ()
        if arguments is not None:
            bases = arguments.args
            for keyword in arguments.keywords:
                self.error("RLX0011", "a class takes no keyword arguments", keyword.span)
        where = Span(self.source, name.start, name.end)
        return tree.ClassDef(name.text, bases, body, tuple(decorators), where, span=span)

    def def_name(self, span: Span, name: Token) -> Token:
        return name

    def type_params(self, span: Span, *names: Token) -> tuple[str, ...]:
        self.check_names((n.text, Span(self.source, n.start, n.end)) for n in names)
        return tuple(name.text for name in names)

    def type_param(self, span: Span, name: Token, bound: tree.Expr | None) -> Token:
        if bound is not None and not (isinstance(bound, tree.Name) and bound.id == "int"):
            self.error("RLX0011", "a type parameter is a dimension: its bound can only be `int`", bound.span)
        return name


def _read(statements: tuple[tree.Stmt | None, ...]) -> tuple[tree.Stmt, ...]:
    return tuple(s for s in statements if s is not None)
