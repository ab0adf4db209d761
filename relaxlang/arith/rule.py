"""Rewrite rules as text, compiled to Python.

    rule("min(x, y) <= x", "True")
    rule("x // c1 // c2", "x // (c1 * c2)", "c1 > 0 and c2 > 0")

A rule is an equation over the mathematical integers: pattern, result, condition. In a pattern `c1`, `c2`, … are
integer constants and every other name is any expression; a name that occurs twice matches equal expressions. `min`,
`max`, `+`, `*`, `==` and `!=` also match with their operands swapped (constants stand on the right, and `and`/`or`
keep their order, because the left side guards the right). Operators are Python's, with `//` and `%` flooring;
`truncdiv`, `truncmod`, `select`, `if_then_else`, `likely`, `shift_left`, … are called. In a result an expression of
constants is computed. A condition is Python over the constants and over the predicates of `PREDICATES`.

Fixed width is the compiler's business, not the rule's: where a pattern looks inside a sum that is an operand of
something else, the sum must be exact (data may wrap around); where the result makes such an operand, the operand must
fit the type.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator
from functools import cache
from math import gcd
from typing import TYPE_CHECKING, Any, NamedTuple

from relaxlang.arith.compare import FALSE, TRUE
from relaxlang.ir import prim
from relaxlang.ir.prim import Call, PrimExpr

if TYPE_CHECKING:
    from relaxlang.arith.simplify import Simplifier

Rewrite = Callable[[Any, "Simplifier"], "PrimExpr | None"]

_OPERATORS: dict[type, str] = {
    ast.Add: "Add", ast.Sub: "Sub", ast.Mult: "Mul", ast.FloorDiv: "FloorDiv", ast.Mod: "FloorMod", ast.Div: "Div",
    ast.Lt: "LT", ast.LtE: "LE", ast.Eq: "EQ", ast.NotEq: "NE", ast.And: "And", ast.Or: "Or", ast.Not: "Not",
}  # fmt: skip
_FUNCTIONS = {"min": "Min", "max": "Max", "truncdiv": "Div", "truncmod": "Mod", "select": "Select"}
_SWAPPED = frozenset({"Add", "Mul", "Min", "Max", "EQ", "NE"})
_TRUTHS = frozenset({"EQ", "NE", "LT", "LE", "And", "Or", "Not"})
_RING = frozenset({"Add", "Sub", "Mul"})
_FIELDS = {"Not": ("a",), "Select": ("condition", "true_value", "false_value")}


class Rule(NamedTuple):
    """`pattern` equals `result` wherever `condition` holds."""

    pattern: str
    result: str
    condition: str = ""


def rule(pattern: str, result: str, condition: str = "") -> Rule:
    """One row of a table."""
    return Rule(pattern, result, condition)


class Variant(NamedTuple):
    """A compiled rule for one order of its operands; `heads` are the classes of its operands (None: any)."""

    heads: tuple[str | None, ...]
    source: str


PREDICATES: dict[str, Callable[..., bool]] = {
    "nonneg": lambda s, x: s.bound(x).min >= 0,
    "positive": lambda s, x: s.bound(x).min > 0,
    "negative": lambda s, x: s.bound(x).max < 0,
    "nonzero": lambda s, x: s.bound(x).min > 0 or s.bound(x).max < 0,
    "ordered": lambda s, x: not x.dtype.is_float,
    "width": lambda s, x, c: 0 <= c < x.dtype.bits,
}


# --- reading ----------------------------------------------------------------------------------------------------------
class Op(NamedTuple):
    """A node of a pattern or result: the class (or the intrinsic's name) and the operands."""

    name: str
    args: tuple[Any, ...]


Tree = Op | str | int | float | ast.expr  # a variable is a str, a computed constant an ast.expr


def _read(tree: ast.expr, computed: bool) -> Tree:
    """The tree of a pattern, or, with `computed`, of a result, where arithmetic on constants stays Python."""
    if isinstance(tree, ast.Name):
        return tree.id
    if isinstance(tree, ast.Constant):
        assert isinstance(tree.value, int | float)
        return tree.value
    if computed and _is_constant(tree):
        return tree
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
        assert isinstance(tree.operand, ast.Constant) and isinstance(tree.operand.value, int | float)
        return -tree.operand.value
    if isinstance(tree, ast.BinOp):
        return Op(_OPERATORS[type(tree.op)], (_read(tree.left, computed), _read(tree.right, computed)))
    if isinstance(tree, ast.Compare):
        return Op(_OPERATORS[type(tree.ops[0])], (_read(tree.left, computed), _read(tree.comparators[0], computed)))
    if isinstance(tree, ast.BoolOp):
        result = _read(tree.values[0], computed)
        for value in tree.values[1:]:
            result = Op(_OPERATORS[type(tree.op)], (result, _read(value, computed)))
        return result
    if isinstance(tree, ast.UnaryOp):
        return Op("Not", (_read(tree.operand, computed),))
    assert isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name), ast.dump(tree)
    name = tree.func.id
    return Op(_FUNCTIONS.get(name, name), tuple(_read(arg, computed) for arg in tree.args))


def _is_constant(tree: ast.expr) -> bool:
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - {"min", "max", "abs", "gcd"}
    return bool(names) and all(_is_constant_name(name) for name in names)


def _is_constant_name(name: object) -> bool:
    return isinstance(name, str) and name[0] == "c" and name[1:].isdigit()


@cache
def _pattern(of: Rule) -> Op:
    """The tree of a rule's pattern."""
    pattern = _read(ast.parse(of.pattern, mode="eval").body, computed=False)
    assert isinstance(pattern, Op)
    return pattern


@cache
def parse(of: Rule) -> tuple[Op, Tree]:
    """The trees of a rule's pattern and result."""
    return _pattern(of), _read(ast.parse(of.result, mode="eval").body, computed=True)


def _orders(tree: Tree) -> Iterator[Tree]:
    """A pattern with the operands of commutative operations in every order."""
    if not isinstance(tree, Op):
        yield tree
        return
    for args in itertools.product(*(list(_orders(arg)) for arg in tree.args)):
        yield Op(tree.name, args)
        last = args[-1]
        if tree.name in _SWAPPED and not isinstance(last, int | float) and not _is_constant_name(last):
            yield Op(tree.name, args[::-1])


# --- compiling --------------------------------------------------------------------------------------------------------
class _Matcher:
    """Writes the code that matches one pattern: `lines` bind names, `tests` must hold."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.late: list[str] = []
        self.hidden: dict[str, bool] = {}
        self.types: dict[str, str] = {}
        self.count = 0

    def match(self, tree: Tree, place: str, visible: bool) -> None:
        """Match what is at `place`; `visible`: it is no operand of a sum."""
        if isinstance(tree, str) and _is_constant_name(tree):
            self.steps.append(f"if {place}.__class__ is not IntImm: return None")
            if tree in self.types:
                self.late.append(f"if {place}.value != {tree}: return None")
            else:
                self.types[tree] = f"{place}.dtype"
                self.steps.append(f"{tree} = {place}.value")
        elif isinstance(tree, str):
            if tree in self.types:
                self.late.append(f"if {place} != {tree}: return None")
                self.hidden[tree] = self.hidden[tree] and not visible
            else:
                self.types[tree] = f"{tree}.dtype"
                self.steps.append(f"{tree} = {place}")
                self.hidden[tree] = not visible
        elif isinstance(tree, float):  # by its text, which tells 0.0 from -0.0
            self.steps.append(f"if {place}.__class__ is not FloatImm or repr({place}.value) != '{tree!r}': return None")
        elif isinstance(tree, int):
            self.steps.append(f"if {place}.__class__ is not IntImm or {place}.value != {int(tree)}: return None")
        else:
            assert isinstance(tree, Op)
            self.count += 1
            name = f"t{self.count}"
            self.steps.append(f"{name} = {place}")
            self.operands(tree, name, visible)

    def operands(self, tree: Op, name: str, visible: bool, root: bool = False) -> None:
        """Match the class and the operands of the node in the variable `name`."""
        known = hasattr(prim, tree.name)
        if not root:
            test = f"{name}.__class__ is not {tree.name}" if known else f"{name}.__class__ is not Call"
            self.steps.append(f"if {test}: return None")
        if not known:
            self.steps.append(f"if {name}.op != {tree.name!r}: return None")
        ring = tree.name in _RING
        if ring and visible and not root:
            self.late.append(f"if not s.exact({name}): return None")
        fields = _FIELDS.get(tree.name, ("a", "b")) if known else tuple(f"args[{i}]" for i in range(len(tree.args)))
        for field, arg in zip(fields, tree.args):
            self.match(arg, f"{name}.{field}", not ring)


class _Maker:
    """Writes the code that makes one result."""

    def __init__(self, matcher: _Matcher) -> None:
        self.matcher = matcher
        self.steps: list[str] = []
        self.count = 0

    def make(self, tree: Tree, dtype: str, visible: bool) -> str:
        """The Python expression for a tree; `dtype` is the code of its type."""
        if isinstance(tree, bool):
            return "TRUE" if tree else "FALSE"
        if isinstance(tree, int):
            return f"IntImm({dtype}, {tree})"
        if isinstance(tree, ast.expr) or (isinstance(tree, str) and _is_constant_name(tree)):
            text = tree if isinstance(tree, str) else ast.unparse(tree)
            name = self._name()
            self.steps.append(f"{name} = s.imm({text}, {dtype})")
            self.steps.append(f"if {name} is None: return None")
            return name
        if isinstance(tree, str):
            if visible and self.matcher.hidden[tree]:
                self.steps.append(f"if not s.visible({tree}): return None")
            return tree
        assert isinstance(tree, Op)
        return self._node(tree, dtype, visible)

    def _node(self, tree: Op, dtype: str, visible: bool) -> str:
        ring = tree.name in _RING
        if tree.name not in ("Select", "if_then_else", "Not", "And", "Or"):
            dtype = next((self.matcher.types[v] for v in _variables(tree)), dtype)
        args = [self.make(arg, dtype, not ring) for arg in tree.args]
        if hasattr(prim, tree.name):
            code = f"{tree.name}({', '.join(args)})"
        else:
            code = f"Call({dtype}, {tree.name!r}, ({', '.join(args)},))"
        if not (ring and visible):
            return code
        name = self._name()
        self.steps.append(f"{name} = {code}")
        self.steps.append(f"if not s.visible({name}): return None")
        return name

    def _name(self) -> str:
        self.count += 1
        return f"r{self.count}"


def _variables(tree: Tree) -> Iterator[str]:
    if isinstance(tree, Op):
        for arg in tree.args:
            yield from _variables(arg)
    elif isinstance(tree, str) and not _is_constant_name(tree):
        yield tree


def _head(tree: Tree) -> str | None:
    if isinstance(tree, Op):
        return tree.name if hasattr(prim, tree.name) else "Call"
    return None if isinstance(tree, str) and not _is_constant_name(tree) else "IntImm"


def _condition(text: str) -> str:
    tree = ast.parse(text, mode="eval").body
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in PREDICATES:
            node.args.insert(0, ast.Name("s"))
    return ast.unparse(tree)


def variants(of: Rule) -> list[Variant]:
    """A rule as Python functions `rewrite(node, s)`, one for each order of operands, each once."""
    pattern, result = parse(of)
    made: dict[str, Variant] = {}
    for order in _orders(pattern):
        assert isinstance(order, Op)
        matcher = _Matcher()
        matcher.operands(order, "node", True, root=True)
        maker = _Maker(matcher)
        first = next(_variables(order), None) if order.name in _TRUTHS else None
        code = maker.make(result, matcher.types[first] if first else "node.dtype", visible=False)
        test = [f"if not ({_condition(of.condition)}): return None"] if of.condition else []
        source = "\n    ".join([*matcher.steps, *matcher.late, *test, *maker.steps, f"return {code}"])
        made.setdefault(source, Variant(tuple(map(_head, order.args)), source))
    return list(made.values())


def compiled(sources: list[Variant]) -> list[Rewrite]:
    """The functions of some variants."""
    text = "\n".join(f"def f{i}(node, s):\n    {variant.source}" for i, variant in enumerate(sources))
    scope: dict[str, Any] = {**vars(prim), **PREDICATES, "TRUE": TRUE, "FALSE": FALSE, "Call": Call, "gcd": gcd}
    exec(compile(text, "<rewrite rules>", "exec"), scope)
    return [scope[f"f{i}"] for i in range(len(sources))]


def root_of(of: Rule) -> str:
    """The class name of the node that a rule rewrites ("Call" for intrinsics)."""
    return _head(_pattern(of)) or ""
