"""The lines of a formatted file: one for each simple statement, header and decorator, with its place in the source."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from relaxlang.base.source import Source
from relaxlang.syntax import tree
from relaxlang.syntax.document import Doc, bracket, concat
from relaxlang.syntax.expr_actions import place
from relaxlang.syntax.format.expressions import expression, joined, parameter, several, target

_TYPE_PARAMETERS = re.compile(r"\s*(\[[^\]]*\])")
_WORD = re.compile(r"\b(?:else|elif)\b")


class Line(NamedTuple):
    """A logical line: its `indent` in steps, its document, and the offset where it begins in the source.

    `kind` is "function" for the first line of a function or class, be it a decorator; "header" for a line that goes on
    with the line or block above it (`def` below a decorator, `else:`); "" for any other.
    """

    indent: int
    doc: Doc
    start: int
    kind: str = ""


class Layout:
    """Collects the lines of a tree, in the order of the text."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.lines: list[Line] = []
        self.indent = 0

    def put(self, doc: Doc, start: int, kind: str = "") -> None:
        """Append a line."""
        self.lines.append(Line(self.indent, doc, start, kind))

    def block(self, body: Sequence[tree.Stmt]) -> None:
        """The statements below a header."""
        self.indent += 1
        self.body(body)
        self.indent -= 1

    def body(self, body: Sequence[tree.Stmt]) -> None:
        """Statements at the current indentation."""
        for stmt in body:
            _STATEMENTS[stmt.__class__](self, stmt)


def lines_of(module: tree.Module, source: Source) -> list[Line]:
    """The lines of a file, without its comments."""
    layout = Layout(source)
    layout.body(module.body)
    return layout.lines


# --- simple statements ------------------------------------------------------------------------------------------------
def _simple(write: Callable[[Any], Doc]) -> Callable[[Layout, Any], None]:
    return lambda layout, stmt: layout.put(write(stmt), place(stmt).start)


def _assign(stmt: tree.Assign) -> Doc:
    parts: list[Doc] = []
    for one in stmt.targets:
        parts += [target(one), " = "]
    return concat(*parts, several(stmt.value))


def _annotated(stmt: tree.AnnAssign) -> Doc:
    head = concat(expression(stmt.target), ": ", expression(stmt.annotation))
    return head if stmt.value is None else concat(head, " = ", several(stmt.value))


def _assert(stmt: tree.Assert) -> Doc:
    parts: list[Doc] = ["assert ", expression(stmt.test)]
    return concat(*parts) if stmt.message is None else concat(*parts, ", ", expression(stmt.message))


def _return(stmt: tree.Return) -> Doc:
    return "return" if stmt.value is None else concat("return ", several(stmt.value))


def _import(layout: Layout, stmt: tree.Import) -> None:
    layout.put(" ".join(stmt.text.replace("\\\n", " ").split()), place(stmt).start)


# --- compound statements ----------------------------------------------------------------------------------------------
def _if(layout: Layout, stmt: tree.If) -> None:
    word, current = "if ", stmt
    while True:
        kind = "header" if word == "elif " else ""
        layout.put(concat(word, expression(current.test), ":"), place(current).start, kind)
        layout.block(current.body)
        if not current.orelse:
            return
        start = _else_start(layout.source, current)
        inner = current.orelse[0]
        if len(current.orelse) == 1 and isinstance(inner, tree.If) and place(inner).start == start:
            word, current = "elif ", inner
            continue
        layout.put("else:", start, "header")
        layout.block(current.orelse)
        return


def _else_start(source: Source, stmt: tree.If) -> int:
    """Where the `else` or `elif` of a statement begins: the first such word behind its body, comments left out."""
    at = place(stmt.body[-1]).end
    while True:
        found = _WORD.search(source.text, at)
        if found is None:
            raise ValueError("an `else` that the text has not")
        line = source.text.rfind("\n", 0, found.start()) + 1
        if "#" not in source.text[max(line, at) : found.start()]:
            return found.start()
        at = found.end()


def _for(layout: Layout, stmt: tree.For) -> None:
    layout.put(concat("for ", target(stmt.target), " in ", several(stmt.iterable), ":"), place(stmt).start)
    layout.block(stmt.body)


def _while(layout: Layout, stmt: tree.While) -> None:
    layout.put(concat("while ", expression(stmt.test), ":"), place(stmt).start)
    layout.block(stmt.body)


def _with(layout: Layout, stmt: tree.With) -> None:
    items = [_item(item) for item in stmt.items]
    layout.put(concat("with ", *joined(items, ", "), ":"), place(stmt).start)
    layout.block(stmt.body)


def _item(item: tree.WithItem) -> Doc:
    context = expression(item.context)
    return context if item.target is None else concat(context, " as ", target(item.target))


def _decorators(layout: Layout, decorators: Sequence[tree.Expr]) -> str:
    """The decorators; the kind of the line that follows."""
    for at, decorator in enumerate(decorators):
        start = layout.source.text.rindex("@", 0, place(decorator).start)
        layout.put(concat("@", expression(decorator)), start, "header" if at else "function")
    return "header" if decorators else "function"


def _function(layout: Layout, stmt: tree.FunctionDef) -> None:
    kind = _decorators(layout, stmt.decorators)
    name: Any = stmt.name_span
    types = ""
    if stmt.type_params:
        found = _TYPE_PARAMETERS.match(layout.source.text, name.end)
        types = " ".join(found[1].split()) if found else f"[{', '.join(stmt.type_params)}]"
    params = bracket("(", [parameter(p) for p in stmt.params], ")", trailing=_takes_comma(stmt.params))
    returns: Doc = "" if stmt.returns is None else concat(" -> ", expression(stmt.returns))
    layout.put(concat(f"def {stmt.name}{types}", params, returns, ":"), _word_before(layout.source, name.start), kind)
    layout.block(stmt.body)


def _takes_comma(params: Sequence[tree.Parameter]) -> bool:
    return not params or not params[-1].kind


def _word_before(source: Source, name: int) -> int:
    """Where the `def` or `class` before a name begins."""
    text = source.text[:name].rstrip(" \t\\\n")
    return len(text) - len("def") if text.endswith("def") else len(text) - len("class")


def _class(layout: Layout, stmt: tree.ClassDef) -> None:
    kind = _decorators(layout, stmt.decorators)
    name: Any = stmt.name_span
    bases = bracket("(", [expression(b) for b in stmt.bases], ")") if stmt.bases else ""
    layout.put(concat(f"class {stmt.name}", bases, ":"), _word_before(layout.source, name.start), kind)
    layout.block(stmt.body)


def _python(layout: Layout, stmt: tree.PythonDef) -> None:
    layout.put(stmt.text, place(stmt).start, "function")  # a line that is kept as it is written


_STATEMENTS: dict[type, Callable[[Layout, Any], None]] = {
    tree.ExprStmt: _simple(lambda s: several(s.value)),
    tree.Assign: _simple(_assign),
    tree.AnnAssign: _simple(_annotated),
    tree.AugAssign: _simple(lambda s: concat(expression(s.target), f" {s.op}= ", several(s.value))),
    tree.Return: _simple(_return),
    tree.Pass: _simple(lambda s: "pass"),
    tree.Break: _simple(lambda s: "break"),
    tree.Continue: _simple(lambda s: "continue"),
    tree.Assert: _simple(_assert),
    tree.Import: _import,
    tree.If: _if,
    tree.For: _for,
    tree.While: _while,
    tree.With: _with,
    tree.FunctionDef: _function,
    tree.ClassDef: _class,
    tree.PythonDef: _python,
}
