"""The parser's callbacks for expressions: from the parts of a rule to a node of the surface tree.

One method per callback name in `grammar/expr.lark`, in the order of the grammar. Each gets the span of the rule and
its values: tokens, nodes, and None for an absent `[x]`. What the grammar cannot say (only some expressions can be
assigned to, a parameter has one name) is checked here. An error is reported and the node built all the same, so that
one run finds every error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from relaxlang.base.diagnostics import Diagnostic, Label
from relaxlang.base.node import Node
from relaxlang.base.source import Source, Span
from relaxlang.syntax import literals, tree
from relaxlang.syntax.lexer import Token


class Arguments:
    """What stands between the parentheses of a call."""

    __slots__ = ("args", "keywords")

    def __init__(self, args: tuple[tree.Expr, ...], keywords: tuple[tree.Keyword, ...]) -> None:
        self.args = args
        self.keywords = keywords


class ExpressionActions:
    """Callbacks of `expr.lark`."""

    def __init__(self, source: Source, report: Callable[[Diagnostic], None]) -> None:
        self.source = source
        self.report = report

    def error(self, code: str, message: str, span: Span | None, **more: Any) -> None:
        """Report; `more` are further fields of the diagnostic."""
        self.report(Diagnostic(code, message, span, **more))

    # --- operators ----------------------------------------------------------------------------------------------------
    def if_exp(self, span: Span, body: tree.Expr, test: tree.Expr, orelse: tree.Expr) -> tree.Expr:
        """`body if test else orelse`."""
        return tree.IfExp(test, body, orelse, span=span)

    def lambda_(self, span: Span, params: tuple[tree.Parameter, ...] | None, body: tree.Expr) -> tree.Expr:
        """`lambda params: body`."""
        return tree.Lambda(params or (), body, span=span)

    def or_(self, span: Span, *values: tree.Expr) -> tree.Expr:
        """`a or b or c`."""
        return tree.BoolOp("or", values, span=span)

    def and_(self, span: Span, *values: tree.Expr) -> tree.Expr:
        """`a and b and c`."""
        return tree.BoolOp("and", values, span=span)

    def not_(self, span: Span, operand: tree.Expr) -> tree.Expr:
        """`not a`."""
        return tree.UnaryOp("not", operand, span=span)

    def compare(self, span: Span, left: tree.Expr, *rest: Any) -> tree.Expr:
        """`a < b <= c`: operators and operands alternate."""
        return tree.Compare(left, rest[::2], rest[1::2], span=span)

    def compare_op(self, span: Span, *words: Token) -> str:
        """`<`, `is not`, `not in`, …"""
        return " ".join(word.text for word in words)

    def binary(self, span: Span, left: tree.Expr, op: Token, right: tree.Expr) -> tree.Expr:
        """`left op right`."""
        return tree.BinOp(op.text, left, right, span=span)

    def unary_op(self, span: Span, op: Token, operand: tree.Expr) -> tree.Expr:
        """`-a`, `+a`, `~a`."""
        return tree.UnaryOp(op.text, operand, span=span)

    # --- after a value ------------------------------------------------------------------------------------------------
    def attribute(self, span: Span, value: tree.Expr, attr: Token) -> tree.Expr:
        """`value.attr`."""
        return tree.Attribute(value, attr.text, span=span)

    def call(self, span: Span, func: tree.Expr, arguments: Arguments | None) -> tree.Expr:
        """`func(…)`."""
        if arguments is None:
            return tree.Call(func, (), (), span=span)
        return tree.Call(func, arguments.args, arguments.keywords, span=span)

    def arguments(self, span: Span, *items: Any) -> Arguments:
        """What stands in a call's parentheses; checks order and repetition."""
        args: list[tree.Expr] = []
        keywords: list[tree.Keyword] = []
        seen: dict[str, tree.Keyword] = {}
        for item in items:
            if isinstance(item, tree.Keyword):
                keywords.append(item)
                if item.name is not None and item.name in seen:
                    first = Label(place(seen[item.name]), "given here first")
                    self.error("RLX0015", f"keyword argument `{item.name}` is given twice", item.span, labels=[first])
                elif item.name is not None:
                    seen[item.name] = item
                continue
            if keywords and (not isinstance(item, tree.Starred) or any(k.name is None for k in keywords)):
                before = Label(place(keywords[-1]), "this is a keyword argument")
                self.error("RLX0014", "a positional argument follows a keyword argument", item.span, labels=[before])
            args.append(item)
            if len(items) > 1 and isinstance(item, tree.ComprehensionExpr) and item.kind == "generator":
                if self.source.text[place(item).start] != "(":
                    self.error("RLX0014", "a generator beside other arguments needs parentheses", item.span)
        return Arguments(tuple(args), tuple(keywords))

    def keyword(self, span: Span, name: Token, value: tree.Expr) -> tree.Keyword:
        """`name=value`."""
        return tree.Keyword(name.text, value, span=span)

    def keywords(self, span: Span, value: tree.Expr) -> tree.Keyword:
        """`**value`."""
        return tree.Keyword(None, value, span=span)

    def starred(self, span: Span, value: tree.Expr) -> tree.Expr:
        """`*value`."""
        return tree.Starred(value, span=span)

    def subscript(self, span: Span, value: tree.Expr, index: tree.Expr) -> tree.Expr:
        """`value[index]`."""
        return tree.Subscript(value, index, span=span)

    def indices(self, span: Span, *elements: tree.Expr) -> tree.Expr:
        """`i, j` inside a subscript."""
        return tree.TupleExpr(elements, span=span)

    def slice(
        self, span: Span, lower: tree.Expr | None, upper: tree.Expr | None, step: tree.Expr | None = None
    ) -> tree.Expr:
        """`lower:upper:step`."""
        return tree.Slice(lower, upper, step, span=span)

    # --- atoms --------------------------------------------------------------------------------------------------------
    def name(self, span: Span, token: Token) -> tree.Expr:
        """A name."""
        return tree.Name(token.text, span=span)

    def integer(self, span: Span, token: Token) -> tree.Expr:
        """`42`, `0x2a`, `1_000`."""
        return tree.Constant(literals.integer(token.text, span, self.report), token.text, span=span)

    def real(self, span: Span, token: Token) -> tree.Expr:
        """`1.5`, `1e-3`."""
        return tree.Constant(float(token.text), token.text, span=span)

    def string(self, span: Span, *tokens: Token) -> tree.Expr:
        """One or more literals side by side."""
        parts = [literals.string(token.text, self.source, token.start, self.report) for token in tokens]
        return tree.Constant("".join(parts), span.text, span=span)

    def none(self, span: Span) -> tree.Expr:
        """`None`."""
        return tree.Constant(None, "None", span=span)

    def true(self, span: Span) -> tree.Expr:
        """`True`."""
        return tree.Constant(True, "True", span=span)

    def false(self, span: Span) -> tree.Expr:
        """`False`."""
        return tree.Constant(False, "False", span=span)

    def ellipsis(self, span: Span) -> tree.Expr:
        """`...`."""
        return tree.Constant(..., "...", span=span)

    def empty_tuple(self, span: Span) -> tree.Expr:
        """`()`."""
        return tree.TupleExpr((), span=span)

    def several(self, span: Span, *elements: tree.Expr) -> tuple[tree.Expr, ...]:
        """`a, b`: the elements of a tuple."""
        return elements

    def tuple_(self, span: Span, elements: tuple[tree.Expr, ...]) -> tree.Expr:
        """`(a, b)` or `a, b`."""
        return tree.TupleExpr(elements, span=span)

    def lone_star(self, span: Span, value: tree.Expr) -> tree.Expr:
        """`(*a)`, which is nothing."""
        self.error("RLX0010", "`*` unpacks into a call, a list or a tuple only", span, help="for a tuple, add a comma")
        return value

    def empty_list(self, span: Span) -> tree.Expr:
        """`[]`."""
        return tree.ListExpr((), span=span)

    def list_(self, span: Span, *elements: tree.Expr) -> tree.Expr:
        """`[a, b]`."""
        return tree.ListExpr(elements, span=span)

    def empty_dict(self, span: Span) -> tree.Expr:
        """`{}`."""
        return tree.DictExpr((), (), span=span)

    def dict_(self, span: Span, *items: tuple[tree.Expr | None, tree.Expr]) -> tree.Expr:
        """`{k: v, **d}`."""
        return tree.DictExpr(tuple(k for k, _ in items), tuple(v for _, v in items), span=span)

    def pair(self, span: Span, key: tree.Expr, value: tree.Expr) -> tuple[tree.Expr | None, tree.Expr]:
        """`k: v`."""
        return key, value

    def unpacked(self, span: Span, value: tree.Expr) -> tuple[tree.Expr | None, tree.Expr]:
        """`**d` in a dictionary."""
        return None, value

    def set_(self, span: Span, *elements: tree.Expr) -> tree.Expr:
        """`{a, b}`, which Python has and this language has not."""
        self.error("RLX0011", "set literals are not part of the language", span, help="write a list or a tuple")
        return tree.ListExpr(elements, span=span)

    # --- comprehensions and targets -----------------------------------------------------------------------------------
    def generator(self, span: Span, element: tree.Expr, *clauses: tree.Comprehension) -> tree.Expr:
        """`(element for …)`."""
        return tree.ComprehensionExpr("generator", None, element, clauses, span=span)

    def list_comprehension(self, span: Span, element: tree.Expr, *clauses: tree.Comprehension) -> tree.Expr:
        """`[element for …]`."""
        return tree.ComprehensionExpr("list", None, element, clauses, span=span)

    def set_comprehension(self, span: Span, element: tree.Expr, *clauses: tree.Comprehension) -> tree.Expr:
        """`{element for …}`."""
        return tree.ComprehensionExpr("set", None, element, clauses, span=span)

    def dict_comprehension(
        self, span: Span, key: tree.Expr, value: tree.Expr, *clauses: tree.Comprehension
    ) -> tree.Expr:
        """`{key: value for …}`."""
        return tree.ComprehensionExpr("dict", key, value, clauses, span=span)

    def comprehension(
        self, span: Span, target: tree.Expr, iterable: tree.Expr, *conditions: tree.Expr
    ) -> tree.Comprehension:
        """`for target in iterable if condition`."""
        self.check_target(target)
        return tree.Comprehension(target, iterable, conditions, span=span)

    def tuple_target(self, span: Span, *elements: tree.Expr) -> tree.Expr:
        """`for i, j in …`."""
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
        """`name=default` of a lambda."""
        return tree.Parameter(name.text, None, default, span=span)

    def param(self, span: Span, name: Token, annotation: tree.Expr | None, default: tree.Expr | None) -> tree.Parameter:
        """`name: annotation = default`."""
        return tree.Parameter(name.text, annotation, default, span=span)

    def star_param(self, span: Span, name: Token, annotation: tree.Expr | None = None) -> tree.Parameter:
        """`*name`."""
        return tree.Parameter(name.text, annotation, None, "*", span=span)

    def bare_star(self, span: Span) -> tree.Parameter:
        """`*` alone: keyword-only parameters follow."""
        return tree.Parameter("", None, None, "*", span=span)

    def double_star_param(self, span: Span, name: Token, annotation: tree.Expr | None = None) -> tree.Parameter:
        """`**name`."""
        return tree.Parameter(name.text, annotation, None, "**", span=span)

    def params(self, span: Span, *params: tree.Parameter) -> tuple[tree.Parameter, ...]:
        """Check names and order. A lambda may have plain names after `*b`: `lambda *b, i, j:` names the last two."""
        self.check_names((p.name, place(p)) for p in params)
        star: tree.Parameter | None = None
        optional: tree.Parameter | None = None
        for at, param in enumerate(params):
            if param.kind == "*":
                if star is not None:
                    self.error(
                        "RLX0016",
                        "only one parameter can have a `*`",
                        param.span,
                        labels=[Label(place(star), "the first")],
                    )
                star = param
                if not param.name and (at + 1 == len(params) or params[at + 1].kind):
                    self.error("RLX0016", "a name must follow `*` alone", param.span)
            elif param.kind == "**" and at + 1 < len(params):
                self.error(
                    "RLX0016",
                    "no parameter can follow `**`",
                    params[at + 1].span,
                    labels=[Label(place(param), "`**` is here")],
                )
            elif not param.kind and star is None and param.default is None and optional is not None:
                label = Label(place(optional), "this one has a default")
                self.error(
                    "RLX0016",
                    f"parameter `{param.name}` without a default follows one with a default",
                    param.span,
                    labels=[label],
                )
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
    tree.Call: "a call",
    tree.Constant: "a literal",
    tree.BinOp: "an operation",
    tree.UnaryOp: "an operation",
    tree.BoolOp: "an operation",
    tree.Compare: "a comparison",
    tree.Lambda: "a lambda",
    tree.IfExp: "a conditional expression",
    tree.DictExpr: "a dictionary",
    tree.ComprehensionExpr: "a comprehension",
}


def place(node: Node) -> Span:
    """The span of a node that this parser made, which has one."""
    if node.span is None:
        raise ValueError("a surface node without a span")
    return node.span
