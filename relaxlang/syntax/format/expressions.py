"""How an expression of the surface tree is written: Python's canonical style, with breaks inside brackets only."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from relaxlang.base.node import Node
from relaxlang.syntax import tree
from relaxlang.syntax.document import Doc, bracket, concat
from relaxlang.syntax.expr_actions import place
from relaxlang.syntax.parser import language
from relaxlang.syntax.spellings import (
    AND,
    ATOM,
    BIT_AND,
    BIT_OR,
    BIT_XOR,
    COMPARE,
    NOT,
    OR,
    POWER,
    PRODUCT,
    SHIFT,
    SUM,
    UNARY,
)

_LEVELS = {
    "|": BIT_OR, "^": BIT_XOR, "&": BIT_AND, "<<": SHIFT, ">>": SHIFT, "+": SUM, "-": SUM,
    "*": PRODUCT, "/": PRODUCT, "//": PRODUCT, "%": PRODUCT, "@": PRODUCT, "**": POWER,
    "or": OR, "and": AND, "not": NOT, "~": UNARY,
}  # fmt: skip
_CHOICE = 0  # `a if b else c` and lambdas bind loosest
_CLOSING = re.compile(r"[\s)]*")
_PLAIN = re.compile(r"'([^'\"\\\n]*)'\Z")
_POSTFIX = (tree.Attribute, tree.Call, tree.Subscript)
_COMPOUND = (tree.BinOp, tree.UnaryOp, tree.BoolOp, tree.Compare, tree.IfExp, tree.Lambda)


def expression(node: tree.Expr) -> Doc:
    """An expression where nothing binds tighter."""
    return _WRITERS[node.__class__](node)


def several(node: tree.Expr) -> Doc:
    """The value of a statement, where a tuple needs no parentheses: `a, b`, `x: int = a, b`, `return a, b`."""
    if isinstance(node, tree.TupleExpr) and node.elements and not _in_parentheses(node):
        return _open_tuple(node)
    return expression(node)


def target(node: tree.Expr) -> Doc:
    """What stands left of `=` or after `for`: a tuple has no parentheses, except where they are written."""
    if isinstance(node, tree.TupleExpr) and node.elements and not _in_parentheses(node):
        return _open_tuple(node)
    return expression(node)


def level(node: tree.Expr) -> int:
    """How tightly the outermost operator of an expression binds."""
    if isinstance(node, (tree.BinOp, tree.BoolOp, tree.UnaryOp)):
        return UNARY if isinstance(node, tree.UnaryOp) and node.op != "not" else _LEVELS[node.op]
    if isinstance(node, tree.Compare):
        return COMPARE
    return _CHOICE if isinstance(node, (tree.IfExp, tree.Lambda)) else ATOM


def _open_tuple(node: tree.TupleExpr) -> Doc:
    parts = [expression(e) for e in node.elements]
    if len(parts) == 1:
        return concat(parts[0], ",")
    return concat(*joined(parts, ", "))


# --- parentheses ------------------------------------------------------------------------------------------------------
def _in_parentheses(node: tree.Expr) -> bool:
    """Whether a tuple's own text has parentheses: `(a, b)` and not `a, b` or `(a), (b)`."""
    text = place(node).text
    if not text.startswith("("):
        return False
    first = node.elements[0] if isinstance(node, tree.TupleExpr) and node.elements else node
    return place(first).start > place(node).start and not _wrapped(first, place(node).start)


def _wrapped(node: tree.Expr, outer: int) -> bool:
    """Whether the parenthesis at the offset `outer` is that of `node` alone: `(a)`, as in `(a), b`."""
    span = place(node)
    source = span.source.text
    depth = source[outer : span.start].count("(")
    closing = _CLOSING.match(source, span.end)
    return closing is not None and closing[0].count(")") >= depth


def _written_parentheses(node: tree.Expr) -> bool:
    """Whether an operand stands in parentheses of its own: what they make clear to a reader, they keep on doing."""
    span = place(node)
    text = span.source.text
    before, after = span.start - 1, span.end
    while before >= 0 and text[before] in " \t\n":
        before -= 1
    while after < len(text) and text[after] in " \t\n":
        after += 1
    return before >= 0 and text[before] == "(" and after < len(text) and text[after] == ")"


def _operand(node: tree.Expr, least: int) -> Doc:
    """An operand of an operator: in parentheses where it must be, or where it is."""
    doc = expression(node)
    if level(node) < least or (isinstance(node, _COMPOUND) and _written_parentheses(node)):
        return concat("(", doc, ")")
    return doc


# --- atoms ------------------------------------------------------------------------------------------------------------
def _constant(node: tree.Constant) -> Doc:
    if not isinstance(node.value, str):
        return node.text
    parts: list[Doc] = [_double_quoted(part) for part in _string_pattern().findall(node.text)]
    return parts[0] if len(parts) == 1 else concat(*joined(parts, " "))


@cache
def _string_pattern() -> re.Pattern[str]:
    """The grammar's terminal for one literal, of the several that may stand side by side."""
    return re.compile(dict(language()[0].patterns)["STRING"])


def _double_quoted(text: str) -> str:
    plain = _PLAIN.match(text)
    return f'"{plain[1]}"' if plain else text


def joined(parts: Sequence[Doc], separator: Doc) -> list[Doc]:
    """Documents with a separator between them."""
    made: list[Doc] = []
    for at, part in enumerate(parts):
        made += [separator, part] if at else [part]
    return made


def _postfix(node: tree.Expr) -> Doc:
    """`a.b(c)[d]…`, however long, without recursion along the chain."""
    chain: list[tree.Expr] = []
    while isinstance(node, _POSTFIX):
        chain.append(node)
        node = node.func if isinstance(node, tree.Call) else node.value
    head = expression(node)
    number = isinstance(node, tree.Constant) and isinstance(node.value, int) and isinstance(chain[-1], tree.Attribute)
    parts: list[Doc] = [concat("(", head, ")") if level(node) < ATOM or number else head]
    for link in reversed(chain):
        if isinstance(link, tree.Attribute):
            parts.append("." + link.attr)
        elif isinstance(link, tree.Call):
            parts.append(_arguments(link))
        elif isinstance(link, tree.Subscript):
            parts.append(_index(link.index))
    return concat(*parts)


def _arguments(node: tree.Call) -> Doc:
    items: list[Node] = sorted([*node.args, *node.keywords], key=lambda n: place(n).start)
    if len(items) == 1 and isinstance(items[0], tree.ComprehensionExpr) and items[0].kind == "generator":
        return bracket("(", [_comprehension_inside(items[0])], ")", trailing=False)
    return bracket("(", [_argument(item) for item in items], ")")


def _argument(node: Any) -> Doc:
    if isinstance(node, tree.Keyword):
        return concat("**" if node.name is None else f"{node.name}=", expression(node.value))
    return expression(node)


def _index(node: tree.Expr) -> Doc:
    if isinstance(node, tree.TupleExpr) and node.elements and not _in_parentheses(node):
        lone_star = len(node.elements) == 1 and isinstance(node.elements[0], tree.Starred)
        return bracket("[", [expression(e) for e in node.elements], "]", lone_comma=not lone_star)
    return bracket("[", [expression(node)], "]", trailing=False)


def _slice(node: tree.Slice) -> Doc:
    """`a:b`, with blanks around the colon when a bound is more than a name or a number, as in `i * 4 : i * 4 + 4`."""
    bounds = [b for b in (node.lower, node.upper, node.step) if b is not None]
    colon = " : " if any(isinstance(b, _COMPOUND) and not isinstance(b, tree.UnaryOp) for b in bounds) else ":"
    parts: list[Doc] = [] if node.lower is None else [expression(node.lower)]
    parts.append(colon.lstrip() if node.lower is None else colon.rstrip() if node.upper is None else colon)
    if node.upper is not None:
        parts.append(expression(node.upper))
    if node.step is not None:
        parts += [colon, expression(node.step)]
    return concat(*parts)


# --- operators --------------------------------------------------------------------------------------------------------
def _binary(node: tree.BinOp) -> Doc:
    """A chain of operators of one strength, which leans left and may have thousands of links."""
    strength = level(node)
    if node.op == "**":
        return concat(_operand(node.left, strength + 1), "**", _operand(node.right, UNARY))
    links: list[tuple[str, tree.Expr]] = []
    left: tree.Expr = node
    while isinstance(left, tree.BinOp) and level(left) == strength and (left is node or not _written_parentheses(left)):
        links.append((left.op, left.right))
        left = left.left
    parts: list[Doc] = [_operand(left, strength)]
    for op, right in reversed(links):
        parts += [f" {op} ", _operand(right, strength + 1)]
    return concat(*parts)


def _bool_op(node: tree.BoolOp) -> Doc:
    return concat(*joined([_operand(value, level(node) + 1) for value in node.values], f" {node.op} "))


def _unary(node: tree.UnaryOp) -> Doc:
    return concat("not " if node.op == "not" else node.op, _operand(node.operand, level(node)))


def _compare(node: tree.Compare) -> Doc:
    parts: list[Doc] = [_operand(node.left, COMPARE + 1)]
    for op, right in zip(node.ops, node.comparators):
        parts += [f" {op} ", _operand(right, COMPARE + 1)]
    return concat(*parts)


def _if_exp(node: tree.IfExp) -> Doc:
    body, test = _operand(node.body, OR), _operand(node.test, OR)
    return concat(body, " if ", test, " else ", expression(node.orelse))


def _lambda(node: tree.Lambda) -> Doc:
    head = concat(*joined([parameter(p) for p in node.params], ", "))
    return concat("lambda", " " if node.params else "", head, ": ", expression(node.body))


def parameter(node: tree.Parameter) -> Doc:
    """`x: T = default`, `*rest`, `*`, `**options`."""
    parts: list[Doc] = [node.kind + node.name]
    if node.annotation is not None:
        parts += [": ", expression(node.annotation)]
    if node.default is not None:
        parts += ["=" if node.annotation is None else " = ", expression(node.default)]
    return concat(*parts)


# --- brackets ---------------------------------------------------------------------------------------------------------
def _tuple(node: tree.TupleExpr) -> Doc:
    return bracket("(", [expression(e) for e in node.elements], ")", lone_comma=True)


def _list(node: tree.ListExpr) -> Doc:
    return bracket("[", [expression(e) for e in node.elements], "]")


def _dict(node: tree.DictExpr) -> Doc:
    items = [
        concat("**", _operand(value, BIT_OR)) if key is None else concat(expression(key), ": ", expression(value))
        for key, value in zip(node.keys, node.values)
    ]
    return bracket("{", items, "}")


_BRACKETS = {"list": ("[", "]"), "generator": ("(", ")"), "set": ("{", "}"), "dict": ("{", "}")}


def _comprehension(node: tree.ComprehensionExpr) -> Doc:
    opening, closing = _BRACKETS[node.kind]
    return bracket(opening, [_comprehension_inside(node)], closing, trailing=False)


def _comprehension_inside(node: tree.ComprehensionExpr) -> Doc:
    parts: list[Doc] = [expression(node.element)]
    if node.key is not None:
        parts = [expression(node.key), ": ", *parts]
    for clause in node.generators:
        parts += [" for ", target(clause.target), " in ", _operand(clause.iterable, OR)]
        for condition in clause.conditions:
            parts += [" if ", _operand(condition, OR)]
    return concat(*parts)


_WRITERS: dict[type, Callable[[Any], Doc]] = {
    tree.Name: lambda node: node.id,
    tree.Constant: _constant,
    tree.Attribute: _postfix,
    tree.Call: _postfix,
    tree.Subscript: _postfix,
    tree.Slice: _slice,
    tree.TupleExpr: _tuple,
    tree.ListExpr: _list,
    tree.DictExpr: _dict,
    tree.BinOp: _binary,
    tree.UnaryOp: _unary,
    tree.BoolOp: _bool_op,
    tree.Compare: _compare,
    tree.IfExp: _if_exp,
    tree.Lambda: _lambda,
    tree.ComprehensionExpr: _comprehension,
    tree.Starred: lambda node: concat("*", _operand(node.value, BIT_OR)),
}
