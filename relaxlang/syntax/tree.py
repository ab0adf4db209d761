"""The surface tree: what a `.rlx` file says, before it means anything. Python's own grammar, on two screens.

Every node has a `span`. Statement bodies are tuples. The parser builds these directly in its callbacks.
"""

from __future__ import annotations

from collections.abc import Iterator

from relaxlang.base.node import Node, node


class Expr(Node):
    """An expression."""

    __slots__ = ()


class Stmt(Node):
    """A statement."""

    __slots__ = ()


# --- expressions ------------------------------------------------------------------------------------------------------
@node
class Name(Expr):
    """A bare name."""

    id: str


@node
class Constant(Expr):
    """A literal: int, float, bool, str, None or Ellipsis. `text` is how it was written."""

    value: object
    text: str


@node
class Attribute(Expr):
    """`value.attr`."""

    value: Expr
    attr: str


@node
class Keyword(Node):
    """`name=value` in a call; `**value` when name is None."""

    name: str | None
    value: Expr


@node
class Call(Expr):
    """`func(args, keywords)`; an argument may be `Starred`."""

    func: Expr
    args: tuple[Expr, ...]
    keywords: tuple[Keyword, ...]


@node
class Subscript(Expr):
    """`value[index]`; `index` is a `TupleExpr` for `a[i, j]`, and may hold `Slice`."""

    value: Expr
    index: Expr


@node
class Slice(Expr):
    """`lower:upper:step` inside a subscript."""

    lower: Expr | None
    upper: Expr | None
    step: Expr | None


@node
class TupleExpr(Expr):
    """`(a, b)`, `a, b` or `()`."""

    elements: tuple[Expr, ...]


@node
class ListExpr(Expr):
    """`[a, b]`."""

    elements: tuple[Expr, ...]


@node
class DictExpr(Expr):
    """`{k: v}`; a key of None is `**v`."""

    keys: tuple[Expr | None, ...]
    values: tuple[Expr, ...]


@node
class BinOp(Expr):
    """`left op right`, op one of + - * / // % ** @ & | ^ << >>."""

    op: str
    left: Expr
    right: Expr


@node
class UnaryOp(Expr):
    """`op operand`, op one of + - ~ not."""

    op: str
    operand: Expr


@node
class BoolOp(Expr):
    """`a and b and c` / `a or b`."""

    op: str
    values: tuple[Expr, ...]


@node
class Compare(Expr):
    """`left op1 c1 op2 c2 …`, ops of == != < <= > >= is, is not, in, not in."""

    left: Expr
    ops: tuple[str, ...]
    comparators: tuple[Expr, ...]


@node
class IfExp(Expr):
    """`body if test else orelse`."""

    test: Expr
    body: Expr
    orelse: Expr


@node
class Parameter(Node):
    """A parameter of a function or lambda. `kind` is "", "*" or "**"."""

    name: str
    annotation: Expr | None = None
    default: Expr | None = None
    kind: str = ""


@node
class Lambda(Expr):
    """`lambda params: body`."""

    params: tuple[Parameter, ...]
    body: Expr


@node
class Comprehension(Node):
    """`for target in iterable if conditions`."""

    target: Expr
    iterable: Expr
    conditions: tuple[Expr, ...]


@node
class ComprehensionExpr(Expr):
    """`[element for …]` (kind "list"), `(…)` ("generator"), `{…}` ("set") or `{key: element for …}` ("dict")."""

    kind: str
    key: Expr | None
    element: Expr
    generators: tuple[Comprehension, ...]


@node
class Starred(Expr):
    """`*value`."""

    value: Expr


# --- statements -------------------------------------------------------------------------------------------------------
@node
class ExprStmt(Stmt):
    """An expression on a line of its own (a call, a docstring)."""

    value: Expr


@node
class Assign(Stmt):
    """`target = value`, `a, b = value`, `a = b = value` (several targets)."""

    targets: tuple[Expr, ...]
    value: Expr


@node
class AnnAssign(Stmt):
    """`target: annotation = value`; value None for a bare declaration."""

    target: Expr
    annotation: Expr
    value: Expr | None


@node
class AugAssign(Stmt):
    """`target op= value`; op without the `=`."""

    target: Expr
    op: str
    value: Expr


@node
class Return(Stmt):
    """`return value`."""

    value: Expr | None


@node
class Pass(Stmt):
    """`pass`."""


@node
class Break(Stmt):
    """`break`."""


@node
class Continue(Stmt):
    """`continue`."""


@node
class Assert(Stmt):
    """`assert test, message`."""

    test: Expr
    message: Expr | None


@node
class If(Stmt):
    """`if test: body else: orelse`; an `elif` is an `If` alone in `orelse`."""

    test: Expr
    body: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...]


@node
class For(Stmt):
    """`for target in iterable: body`."""

    target: Expr
    iterable: Expr
    body: tuple[Stmt, ...]


@node
class While(Stmt):
    """`while test: body`."""

    test: Expr
    body: tuple[Stmt, ...]


@node
class WithItem(Node):
    """`context as target`."""

    context: Expr
    target: Expr | None


@node
class With(Stmt):
    """`with items: body`."""

    items: tuple[WithItem, ...]
    body: tuple[Stmt, ...]


@node
class FunctionDef(Stmt):
    """`@decorators def name[type_params](params) -> returns: body`.

    `type_params` are PEP 695 names; `name_span` the place of the name.
    """

    name: str
    params: tuple[Parameter, ...]
    returns: Expr | None
    body: tuple[Stmt, ...]
    decorators: tuple[Expr, ...]
    type_params: tuple[str, ...] = ()
    name_span: object = None


@node
class ClassDef(Stmt):
    """`@decorators class name(bases): body`."""

    name: str
    bases: tuple[Expr, ...]
    body: tuple[Stmt, ...]
    decorators: tuple[Expr, ...]
    name_span: object = None


@node
class PythonDef(Stmt):
    """A function under `@I.pyfunc`: `text` is Python, at the margin, decorators included."""

    name: str
    text: str


@node
class Import(Stmt):
    """An import line; it is read and ignored. `text` is the line as written."""

    text: str


@node
class Comment(Node):
    """A comment, from its `#` to the end of the line. It belongs to no node; its span says where it stands."""

    text: str


@node
class Module(Node):
    """A whole file."""

    body: tuple[Stmt, ...]
    comments: tuple[Comment, ...] = ()


def parts_of(node: Expr) -> Iterator[Node]:
    """An expression and all that is in it."""
    stack: list[object] = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, tuple):
            stack.extend(part)
        elif isinstance(part, Node):
            yield part
            stack.extend(getattr(part, field) for field in part.FIELDS)
