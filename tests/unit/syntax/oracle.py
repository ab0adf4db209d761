"""Two trees as comparable data: Python's `ast` and the surface tree, with the place of every expression."""

from __future__ import annotations

import ast
from typing import Any

from relaxlang.syntax import tree

_OPS: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
    ast.USub: "-", ast.UAdd: "+",
    ast.Invert: "~", ast.Not: "not", ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">",
    ast.GtE: ">=", ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in", ast.And: "and", ast.Or: "or",
}  # fmt: skip
_COMPREHENSIONS = {ast.ListComp: "list", ast.SetComp: "set", ast.GeneratorExp: "generator"}


class FromAst:
    """`ast` nodes as (class, fields…, place) tuples in the shape of the surface tree."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line) + 1)

    def offset(self, line: int, column: int) -> int:
        prefix = self.lines[line - 1].encode()[:column] if line <= len(self.lines) else b""
        return self.starts[line - 1] + len(prefix.decode())

    def place(self, node: Any) -> tuple[int, int]:
        return self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset)

    def all(self, nodes: Any) -> tuple[Any, ...]:
        return tuple(self(n) for n in nodes)

    def __call__(self, n: Any) -> Any:
        if n is None:
            return None
        fields = self.fields(n)
        placed = isinstance(n, (ast.expr, ast.stmt)) and not isinstance(
            n, (ast.FunctionDef, ast.ClassDef, ast.GeneratorExp)
        )
        return fields + (self.place(n),) if placed else fields

    def fields(self, n: Any) -> tuple[Any, ...]:
        match n:
            case ast.Module():
                return ("Module", self.all(n.body))
            case ast.Name():
                return ("Name", n.id)
            case ast.Constant():
                return ("Constant", type(n.value).__name__, repr(n.value))
            case ast.Attribute():
                return ("Attribute", self(n.value), n.attr)
            case ast.Call():
                return ("Call", self(n.func), self.all(n.args), self.all(n.keywords))
            case ast.keyword():
                return ("Keyword", n.arg, self(n.value))
            case ast.Subscript():
                return ("Subscript", self(n.value), self(n.slice))
            case ast.Slice():
                return ("Slice", self(n.lower), self(n.upper), self(n.step))
            case ast.Tuple() | ast.List():
                return (type(n).__name__ + "Expr", self.all(n.elts))
            case ast.Dict():
                return ("DictExpr", self.all(n.keys), self.all(n.values))
            case ast.BinOp():
                return ("BinOp", _OPS[type(n.op)], self(n.left), self(n.right))
            case ast.UnaryOp():
                return ("UnaryOp", _OPS[type(n.op)], self(n.operand))
            case ast.BoolOp():
                return ("BoolOp", _OPS[type(n.op)], self.all(n.values))
            case ast.Compare():
                return ("Compare", self(n.left), tuple(_OPS[type(o)] for o in n.ops), self.all(n.comparators))
            case ast.IfExp():
                return ("IfExp", self(n.test), self(n.body), self(n.orelse))
            case ast.Lambda():
                return ("Lambda", self.params(n.args), self(n.body))
            case ast.comprehension():
                return ("Comprehension", self(n.target), self(n.iter), self.all(n.ifs))
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                return ("ComprehensionExpr", _COMPREHENSIONS[type(n)], None, self(n.elt), self.all(n.generators))
            case ast.DictComp():
                return ("ComprehensionExpr", "dict", self(n.key), self(n.value), self.all(n.generators))
            case ast.Starred():
                return ("Starred", self(n.value))
            case _:
                return self.statement(n)

    def statement(self, n: Any) -> tuple[Any, ...]:
        match n:
            case ast.Expr():
                return ("ExprStmt", self(n.value))
            case ast.Assign():
                return ("Assign", self.all(n.targets), self(n.value))
            case ast.AnnAssign():
                return ("AnnAssign", self(n.target), self(n.annotation), self(n.value))
            case ast.AugAssign():
                return ("AugAssign", self(n.target), _OPS[type(n.op)], self(n.value))
            case ast.Return():
                return ("Return", self(n.value))
            case ast.Pass() | ast.Break() | ast.Continue():
                return (type(n).__name__,)
            case ast.Assert():
                return ("Assert", self(n.test), self(n.msg))
            case ast.If():
                return ("If", self(n.test), self.all(n.body), self.all(n.orelse))
            case ast.For():
                return ("For", self(n.target), self(n.iter), self.all(n.body))
            case ast.While():
                return ("While", self(n.test), self.all(n.body))
            case ast.With():
                items = tuple(("WithItem", self(i.context_expr), self(i.optional_vars)) for i in n.items)
                return ("With", items, self.all(n.body))
            case ast.FunctionDef():
                head = (n.name, self.params(n.args), self(n.returns))
                return ("FunctionDef", *head, self.all(n.body), self.all(n.decorator_list))
            case ast.ClassDef():
                return ("ClassDef", n.name, self.all(n.bases), self.all(n.body), self.all(n.decorator_list))
            case ast.Import() | ast.ImportFrom():
                return ("Import",)
        raise TypeError(n)

    def params(self, a: ast.arguments) -> tuple[Any, ...]:
        plain = a.posonlyargs + a.args
        defaults = [None] * (len(plain) - len(a.defaults)) + a.defaults
        made = [("Parameter", p.arg, self(p.annotation), self(d), "") for p, d in zip(plain, defaults, strict=True)]
        if a.vararg is not None:
            made.append(("Parameter", a.vararg.arg, self(a.vararg.annotation), None, "*"))
        elif a.kwonlyargs:
            made.append(("Parameter", "", None, None, "*"))
        made += [
            ("Parameter", p.arg, self(p.annotation), self(d), "")
            for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True)
        ]
        if a.kwarg is not None:
            made.append(("Parameter", a.kwarg.arg, self(a.kwarg.annotation), None, "**"))
        return tuple(made)


def from_tree(n: Any) -> Any:
    """The surface tree in the same form."""
    if isinstance(n, tuple):
        return tuple(from_tree(x) for x in n)
    if not isinstance(n, tree.Node):
        return n
    name = type(n).__name__
    match n:
        case tree.Constant():
            fields: tuple[Any, ...] = (type(n.value).__name__, repr(n.value))
        case tree.Import():
            fields = ()
        case tree.Module():
            fields = (from_tree(n.body),)
        case tree.FunctionDef():
            fields = tuple(from_tree(x) for x in (n.name, n.params, n.returns, n.body, n.decorators))
        case tree.ClassDef():
            fields = tuple(from_tree(x) for x in (n.name, n.bases, n.body, n.decorators))
        case _:
            fields = tuple(from_tree(getattr(n, f)) for f in n.FIELDS)
    placed = isinstance(n, (tree.Expr, tree.Stmt)) and not isinstance(n, (tree.FunctionDef, tree.ClassDef))
    if isinstance(n, tree.ComprehensionExpr) and n.kind == "generator":
        placed = False  # Python counts the brackets of a call as the generator's
    if placed:
        assert n.span is not None
        return (name, *fields, (n.span.start, n.span.end))
    return (name, *fields)
