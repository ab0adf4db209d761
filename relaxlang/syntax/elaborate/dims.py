"""Symbolic dimensions: which names of a signature are new variables, and what the body says about them.

A name that stands alone as a dimension of a parameter (`R.Tensor((n, 4))`, `T.Buffer((n,))`, also as a string) defines
an int64 variable, unless it has a meaning already. The first lines of the body may declare such a name: `n = T.int32()`
makes it 32 bits wide, `n = T.int64(is_size_var=True)` a `SizeVar`; both then mean one variable.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from relaxlang.base.dtype import DType, dtype
from relaxlang.base.source import Span
from relaxlang.ir import prim
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import Namespace, Scope, error, silent
from relaxlang.syntax.elaborate.unit import Unit
from relaxlang.syntax.parser import parse_quoted

_WORD = re.compile(r"[^\W\d]\w*")
SHAPED = frozenset("Tensor Shape Buffer buffer DTensor DynTensorType TensorType Prim match_buffer".split())


class TypeVariable:
    """`n = TypeVar("n")` at module level: every function that uses the name in its signature has its own variable."""


def type_variables(scope: Scope) -> set[str]:
    """The names that are a `TypeVar` of the file."""
    found: set[str] = set()
    inner: Scope | None = scope
    while inner is not None:
        found |= {name for name, value in inner.names.items() if isinstance(value, TypeVariable)}
        inner = inner.parent
    return found


def lone_names(annotations: Iterable[tree.Expr | None]) -> Iterator[tuple[str, Span | None]]:
    """Names that stand alone as a dimension somewhere in the annotations, in order, with their place."""
    stack = [a for a in annotations if a is not None][::-1]
    while stack:
        node = stack.pop()
        if isinstance(node, tree.Call):
            shaped = _last_name(node.func) in SHAPED
            parts = [*node.args, *(k.value for k in node.keywords)]
        elif isinstance(node, tree.Subscript):
            shaped = _last_name(node.value) in SHAPED
            parts = list(node.index.elements) if isinstance(node.index, tree.TupleExpr) else [node.index]
        elif isinstance(node, (tree.TupleExpr, tree.ListExpr)):
            stack.extend(reversed(node.elements))
            continue
        else:
            continue
        for part in parts if shaped else ():
            yield from _dimensions(part)
        if (
            isinstance(node, tree.Subscript)
            and shaped
            and not any(isinstance(p, (tree.TupleExpr, tree.ListExpr)) for p in parts)
        ):
            for part in parts:  # R.Tensor[n, "float32"] does not occur, R.Shape[n, m] does
                if isinstance(part, tree.Name) and part.id != "_":
                    yield part.id, part.span
        for keyword in node.keywords if isinstance(node, tree.Call) else ():
            if keyword.name == "value":
                yield from _dimension(keyword.value)
        stack.extend(reversed(parts))


def _last_name(node: tree.Expr) -> str:
    return node.attr if isinstance(node, tree.Attribute) else node.id if isinstance(node, tree.Name) else ""


def _dimensions(node: tree.Expr) -> Iterator[tuple[str, Span | None]]:
    if isinstance(node, (tree.TupleExpr, tree.ListExpr)):
        for element in node.elements:
            yield from _dimension(element)


def _dimension(node: tree.Expr) -> Iterator[tuple[str, Span | None]]:
    if isinstance(node, tree.Name) and node.id != "_":
        yield node.id, node.span
    elif isinstance(node, tree.Constant) and isinstance(node.value, str) and node.value.isidentifier():
        yield node.value, node.span


def declarations(body: tuple[tree.Stmt, ...]) -> dict[str, tuple[DType, bool]]:
    """Variables that the body declares (`n = T.int64()`, `m = T.var("int32")`): their type, and whether they are
    sizes."""
    found: dict[str, tuple[DType, bool]] = {}
    for stmt in body:
        if not isinstance(stmt, tree.Assign) or len(stmt.targets) != 1:
            continue
        target, value = stmt.targets[0], stmt.value
        pairs = [(target, value)]
        if isinstance(target, tree.TupleExpr) and isinstance(value, tree.TupleExpr):
            pairs = list(zip(target.elements, value.elements))
        for name, made in pairs:
            of = _declared_type(made)
            if of is not None and isinstance(name, tree.Name):
                found.setdefault(name.id, of)
    return found


def _declared_type(node: tree.Expr) -> tuple[DType, bool] | None:
    if not isinstance(node, tree.Call) or not isinstance(node.func, tree.Attribute):
        return None
    name, strings = node.func.attr, [a.value for a in node.args if isinstance(a, tree.Constant)]
    if name in ("var", "SizeVar", "Var") and strings and isinstance(strings[-1], str):
        name = strings[-1]
        size = node.func.attr == "SizeVar"
    elif node.args:
        return None
    else:
        size = any(
            k.name == "is_size_var" and isinstance(k.value, tree.Constant) and k.value.value is True
            for k in node.keywords
        )
    try:
        of = dtype(name)
    except ValueError:
        return None
    return (of, size) if of.is_integer and of.lanes == 1 else None


def define_dimensions(
    annotations: Iterable[tree.Expr | None],
    declared: dict[str, tuple[DType, bool]],
    scope: Scope,
    alone: Iterable[tree.Expr | None] | None = None,
) -> dict[str, prim.Var]:
    """Define, in `scope`, the variables of a signature; returns them by name. Names define by standing alone in the
    annotations `alone` (None: in all of them), and those that the body declares or that are a `TypeVar` by any mention.
    """
    made: dict[str, prim.Var] = {}
    given = [a for a in annotations if a is not None]
    for name, span in [
        *lone_names(given if alone is None else alone),
        *_mentioned(given, {*declared, *type_variables(scope)}),
    ]:
        if name in made or not is_free(name, scope):
            continue
        of, size = declared.get(name, (prim.INT64, False))
        made[name] = scope.names[name] = (prim.SizeVar if size else prim.Var)(name, of, span=span)
    return made


def _mentioned(annotations: list[tree.Expr], declared: set[str]) -> Iterator[tuple[str, Span | None]]:
    """Declared names that the annotations use, strings included, where they do not stand alone."""
    if not declared:
        return
    for annotation in annotations:
        if annotation.span is not None:
            for word in _WORD.findall(annotation.span.text):
                if word in declared:
                    yield word, annotation.span


def quoted_tree(unit: Unit, text: str, place: tree.Expr) -> tree.Expr:
    """The expression in a string, with its place where `place` is the literal itself."""
    if isinstance(place, tree.Constant) and place.span is not None and place.value == text:
        made = parse_quoted(place, unit.diagnostics)
        if made is None:
            raise silent()
        return made
    if not text.isidentifier():
        raise error("RLX0221", f"the dimension {text!r} must stand as a literal in the shape", place.span)
    return tree.Name(text, span=place.span)


def is_free(name: str, scope: Scope) -> bool:
    """Whether a dimension of that name would be new: no scope has it, or only as a namespace or a `TypeVar`."""
    found = scope.find(name)
    return found is None or isinstance(found.names[name], (Namespace, TypeVariable))
