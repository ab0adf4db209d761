"""What the names of a text refer to: every place where a name is given a value, and every place where it is used.

Names of functions belong to the module; all others to the function that they stand in. A use belongs to the last
definition before it, or, in a loop or a text that is not finished, to the first one.
"""

from __future__ import annotations

from collections.abc import Iterator

from relaxlang.base.node import Node
from relaxlang.base.record import fresh, record
from relaxlang.base.source import Span
from relaxlang.ir.visit import children
from relaxlang.syntax import tree

NAMESPACES = ("R", "T", "I", "G")


@record(frozen=False)
class Definition:
    """A place where a name is given a value. `kind` is function, parameter, variable or dimension."""

    name: str
    span: Span
    kind: str
    scope: str
    uses: list[Span] = fresh(factory=list)


@record(frozen=False)
class Operator:
    """A place where a name of a namespace stands, such as `R.nn.relu`; `span` is that of the whole name."""

    name: str
    span: Span


class Names:
    """The definitions and the operators of a text."""

    def __init__(self, module: tree.Module) -> None:
        self.definitions: list[Definition] = []
        self.operators: list[Operator] = []
        self._functions: dict[str, Definition] = {}
        self._modules: set[str] = {"cls"}
        _Collector(self).module(module)

    def at(self, offset: int) -> Definition | None:
        """The definition of the name at an offset."""
        for definition in self.definitions:
            if any(s.start <= offset <= s.end for s in (definition.span, *definition.uses)):
                return definition
        return None

    def operator_at(self, offset: int) -> Operator | None:
        """The operator at an offset."""
        return next((o for o in self.operators if o.span.start <= offset <= o.span.end), None)

    def function(self, name: str) -> Definition | None:
        """The definition of a function of the module."""
        return self._functions.get(name)


class _Collector:
    def __init__(self, names: Names) -> None:
        self.names = names
        self.scope = ""
        self.local: dict[str, list[Definition]] = {}

    def module(self, module: tree.Module) -> None:
        for statement in _flat(module.body):
            if isinstance(statement, tree.ClassDef):
                self.names._modules.add(statement.name)
            if isinstance(statement, tree.FunctionDef):
                self.names._functions[statement.name] = self.define(statement.name, _name_span(statement), "function")
        for statement in _flat(module.body):
            if isinstance(statement, tree.FunctionDef):
                self.function(statement)
            elif not isinstance(statement, tree.ClassDef):
                self.local, self.scope = {}, ""
                self.visit(statement)

    def function(self, function: tree.FunctionDef) -> None:
        outer, scope = self.local, self.scope
        self.local, self.scope = {k: list(v) for k, v in outer.items()}, f"{scope}.{function.name}"
        for decorator in function.decorators:
            self.visit(decorator)
        for parameter in function.params:
            if parameter.span is not None:
                at = parameter.span.start + len(parameter.kind)
                self.bind(parameter.name, Span(parameter.span.source, at, at + len(parameter.name)), "parameter")
        for parameter in function.params:
            if parameter.annotation is not None:
                self.dimensions(parameter.annotation)
                self.visit(parameter.annotation)
            if parameter.default is not None:
                self.visit(parameter.default)
        if function.returns is not None:
            self.visit(function.returns)
        for statement in function.body:
            if isinstance(statement, tree.FunctionDef):
                self.bind(statement.name, _name_span(statement), "function")
                self.function(statement)
            else:
                self.visit(statement)
        self.local, self.scope = outer, scope

    def dimensions(self, annotation: tree.Expr) -> None:
        """A name first seen in the annotation of a parameter is a new dimension."""
        for node in _walk(annotation):
            if isinstance(node, tree.Name) and node.id not in (*self.local, *NAMESPACES, *self.names._modules):
                assert node.span is not None
                self.bind(node.id, node.span, "dimension")

    # --- statements and expressions -----------------------------------------------------------------------------------
    def visit(self, node: Node) -> None:
        """Collect what stands in a node, values before the names that they are given."""
        if isinstance(node, tree.Assign):
            self.visit(node.value)
            for target in node.targets:
                self.target(target)
                if isinstance(node.value, tree.Name) and node.value.id in self.names._modules:
                    self.names._modules.update([target.id] if isinstance(target, tree.Name) else [])
        elif isinstance(node, tree.AnnAssign):
            for part in (node.value, node.annotation):
                if part is not None:
                    self.visit(part)
            self.target(node.target)
        elif isinstance(node, tree.For):
            self.visit(node.iterable)
            self.target(node.target)
            for statement in node.body:
                self.visit(statement)
        elif isinstance(node, tree.With):
            for item in node.items:
                self.visit(item.context)
                if item.target is not None:
                    self.target(item.target)
            for statement in node.body:
                self.visit(statement)
        elif isinstance(node, tree.Name):
            self.use(node)
        elif isinstance(node, tree.Attribute):
            self.attribute(node)
        else:
            for child in _below(node):
                self.visit(child)

    def target(self, target: tree.Expr) -> None:
        """What stands left of `=`, or after `for` and `as`."""
        if isinstance(target, tree.Name):
            assert target.span is not None
            self.bind(target.id, target.span, "variable")
        elif isinstance(target, (tree.TupleExpr, tree.ListExpr)):
            for element in target.elements:
                self.target(element)
        else:
            self.visit(target)

    def attribute(self, node: tree.Attribute) -> None:
        path = _path(node)
        assert node.span is not None
        if path and path[0] in NAMESPACES:
            self.names.operators.append(Operator(".".join(path), node.span))
        elif len(path) == 2 and path[0] in self.names._modules:
            self.visit(node.value)
            found = self.names._functions.get(path[1])
            if found is not None:
                found.uses.append(Span(node.span.source, node.span.end - len(path[1]), node.span.end))
        else:
            self.visit(node.value)

    def use(self, node: tree.Name) -> None:
        known = self.local.get(node.id)
        assert node.span is not None
        if known:
            if known[-1].span.start != node.span.start:
                known[-1].uses.append(node.span)
        elif node.id in self.names._functions:
            self.names._functions[node.id].uses.append(node.span)

    # --- definitions --------------------------------------------------------------------------------------------------
    def define(self, name: str, span: Span, kind: str) -> Definition:
        made = Definition(name, span, kind, self.scope)
        self.names.definitions.append(made)
        return made

    def bind(self, name: str, span: Span, kind: str) -> None:
        """A definition in the function at hand."""
        self.local.setdefault(name, []).append(self.define(name, span, kind))


def _flat(body: tuple[tree.Stmt, ...]) -> Iterator[tree.Stmt]:
    """The statements of a module, those of its classes included."""
    for statement in body:
        yield statement
        if isinstance(statement, tree.ClassDef):
            yield from _flat(statement.body)


def _name_span(statement: tree.FunctionDef) -> Span:
    assert isinstance(statement.name_span, Span)
    return statement.name_span


def _path(node: tree.Expr) -> tuple[str, ...]:
    """The names of `a.b.c`; empty for anything else."""
    names: list[str] = []
    while isinstance(node, tree.Attribute):
        names.append(node.attr)
        node = node.value
    return (node.id, *reversed(names)) if isinstance(node, tree.Name) else ()


def _below(node: Node) -> Iterator[Node]:
    return (child for child in children(node) if isinstance(child, (tree.Expr, tree.Stmt, tree.Keyword, tree.WithItem)))


def _walk(node: Node) -> Iterator[Node]:
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one
        if isinstance(one, tree.Attribute):
            continue
        waiting.extend(reversed(list(_below(one))))
