"""Comments on their way from a source into a text that was printed from its IR.

A comment belongs to a statement: one at the end of a line to what stands before it, one on a line of its own to what
comes next. Nodes of the IR know where in the source they come from, and the printer where in the text they went, so the
comment goes along. Statements that print as nothing (`pass`, a declaration that the release has no need of) pass their
comments on to the next one. A docstring becomes a comment, since no release of TVM has docstrings in every function.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left
from typing import NamedTuple

from relaxlang.base.node import Node
from relaxlang.base.source import Source
from relaxlang.ir import prim, relax, tir
from relaxlang.syntax import tree
from relaxlang.syntax.document import INDENT, Rendered
from relaxlang.syntax.expr_actions import place

_HEAD = re.compile(r"\s*(?:def|class) (\w+)\b")
_IMPORT = re.compile(r"#\s*(?:from tvm|import tvm|from relaxlang)")


class _Remark(NamedTuple):
    """Comment lines that belong to the statement that begins at the offset `anchor`.

    `where`: "above" it, "beside" it, at the end of its line, "below" it, at the end of a block, or "inside", below the
    header of a function.
    """

    lines: tuple[str, ...]
    anchor: int
    where: str


def with_comments(rendered: Rendered, module: tree.Module, source: Source) -> str:
    """The printed text with the comments of the source whose tree `module` is."""
    lines = rendered.text.rstrip("\n").split("\n")
    text = _Text(rendered, lines, module, source)
    above: dict[int, list[str]] = {}
    beside: dict[int, list[str]] = {}
    for remark in _remarks(module, source):
        at, where = text.find(remark)
        if where == "beside" and lines[at].rstrip()[-1:] not in ("(", "[", "{", ","):
            beside.setdefault(at, []).extend(remark.lines)
            continue
        margin = text.margin(at) + (" " * INDENT if where == "inside" else "")
        if where in ("below", "inside"):
            at = text.behind(at)
        above.setdefault(at, []).extend(margin + line for line in remark.lines)
    made: list[str] = []
    for number, line in enumerate(lines):
        made += [*above.get(number, ()), "  ".join([line, *beside.get(number, ())])]
    return "\n".join([*made, *above.get(len(lines), ())]) + "\n"


class _Text:
    """The printed text: from an offset in the source to the line that says what begins there."""

    def __init__(self, rendered: Rendered, lines: list[str], module: tree.Module, source: Source) -> None:
        self.lines = lines
        self.end = len(source.text)
        self.heads: dict[int, int] = {}
        first: dict[int, int] = {}
        starts = Source("", rendered.text)
        # A dataflow block comes from its bindings, so it begins where the first of them does.
        opened = {place(s.body[0]).start: place(s).start for s in _statements(module) if isinstance(s, tree.With)}
        for where in rendered.places:
            origin = getattr(where.node, "span", None)
            if isinstance(where.node, (prim.Var, relax.Var, tir.Buffer)):
                continue  # it has the place of its definition and is printed where it is used
            if origin is not None and origin.source is source:
                line, start = starts.position(where.start)[0] - 1, origin.start
                if isinstance(where.node, relax.DataflowBlock):
                    start = opened.get(start, start)
                first[start] = min(line, first.get(start, line))
        named = {m[1]: number for number, m in reversed(list(enumerate(map(_HEAD.match, lines)))) if m}
        self.extents: list[tuple[int, int]] = []
        for node in definitions(module):
            start = min([place(node).start, *(place(d).start for d in node.decorators)])
            self.extents.append((start, place(node).end))
            if node.name in named:
                number = self.heads[place(node).start] = named[node.name]
                while number and lines[number - 1].lstrip().startswith("@"):
                    number -= 1
                first[place(node).start] = first[start] = number
        for stmt in _statements(module):
            if isinstance(stmt, tree.PythonDef) and stmt.name in named:
                number = named[stmt.name]
                while number and lines[number - 1].lstrip().startswith("@"):
                    number -= 1
                first[place(stmt).start] = number
        first.update(self._assignments(module))
        self.starts = sorted(first)
        self.numbers = [first[start] for start in self.starts]

    def _assignments(self, module: tree.Module) -> dict[int, int]:
        """Statements that bind names, by the line of their function that binds the same names: what an axis or a buffer
        is defined as leaves no node of its own."""
        heads = sorted(self.heads.values())
        found: dict[int, int] = {}
        for node in definitions(module):
            head = self.heads.get(place(node).start)
            if head is None or isinstance(node, tree.ClassDef):
                continue
            stop = next((h for h in heads if h > head), len(self.lines))
            used: dict[str, int] = {}
            for stmt in sorted(_statements(node), key=lambda s: place(s).start):
                names = _bound_names(stmt)
                pattern = re.compile(rf"\s*{re.escape(names)}(?: = |: )")
                lines = range(used.get(names, head) + 1, stop) if names else ()
                number = next((n for n in lines if pattern.match(self.lines[n])), None)
                if number is not None:
                    used[names] = found[place(stmt).start] = number
        return found

    def find(self, remark: _Remark) -> tuple[int, str]:
        """The line that a remark goes to, and where it stands there."""
        anchor, where = remark.anchor, remark.where
        if anchor == self.end:
            return len(self.lines), "above"
        if where in ("beside", "inside") and anchor in self.heads:
            return self.heads[anchor], where
        at = bisect_left(self.starts, anchor)
        begin, end = self._owner(anchor)
        if where != "below" and at < len(self.starts) and self.starts[at] < end:
            return self.numbers[at], "above" if self.starts[at] != anchor and where == "beside" else where
        if at < len(self.starts) and self.starts[at] == anchor:
            return self.numbers[at], where
        if at and self.starts[at - 1] >= begin:  # it prints as nothing, and so does all that follows in its function
            return self.numbers[at - 1], "below"
        return len(self.lines), "above"

    def _owner(self, anchor: int) -> tuple[int, int]:
        """The ends of the innermost definition around a statement."""
        around = [(start, end) for start, end in self.extents if start < anchor < end]
        return max(around, default=(0, sys.maxsize))

    def margin(self, at: int) -> str:
        """The blanks before a line; those of a line that goes on with another are the first one's."""
        line = self.lines[at] if at < len(self.lines) else ""
        return line[: len(line) - len(line.lstrip())]

    def behind(self, at: int) -> int:
        """The number of the first line that does not go on with what a line begins."""
        margin = len(self.margin(at))
        opens = self.lines[at].rstrip()[-1:] in ("(", "[", "{")
        at += 1
        while opens and at < len(self.lines) and len(self.margin(at)) > margin:
            at += 1
        return at + opens


def definitions(module: tree.Module) -> list[tree.FunctionDef | tree.ClassDef]:
    """The functions and classes of a file."""
    found: list[tree.FunctionDef | tree.ClassDef] = []
    pending: list[tree.Stmt] = list(module.body)
    while pending:
        stmt = pending.pop()
        if isinstance(stmt, (tree.FunctionDef, tree.ClassDef)):
            found.append(stmt)
            pending += stmt.body
    return found


def _remarks(module: tree.Module, source: Source) -> list[_Remark]:
    """The comments and docstrings of a file, in order."""
    statements = sorted(place(s).start for s in _statements(module))
    found: list[_Remark] = []
    for comment in module.comments:
        if not _IMPORT.match(comment.text):  # the new text has a header of its own
            found.append(_remark(comment, statements, source))
    for node in definitions(module):
        first = node.body[0] if node.body else None
        if isinstance(first, tree.ExprStmt) and isinstance(first.value, tree.Constant):
            if isinstance(first.value.value, str) and first.value.value.strip():
                rows = [f"# {row.strip()}".rstrip() for row in first.value.value.strip().splitlines()]
                found.append(_Remark(tuple(rows), place(node).start, "inside"))
    return sorted(found, key=lambda remark: remark.anchor)


def _remark(comment: tree.Comment, statements: list[int], source: Source) -> _Remark:
    start = place(comment).start
    line, column = source.position(start)
    own_line = not source.line(line)[: column - 1].strip()
    at = bisect_left(statements, start)
    following = statements[at] if at < len(statements) else None
    words = (comment.text.rstrip(),)
    if not own_line and at:
        return _Remark(words, statements[at - 1], "beside")
    ends_block = following is None or source.position(following)[1] < column
    if ends_block and at and source.position(statements[at - 1])[1] <= column and column > 1:
        return _Remark(words, statements[at - 1], "below")
    return _Remark(words, len(source.text) if following is None else following, "above")


def _bound_names(stmt: Node) -> str:
    """`vi, vj` for `vi, vj = …`; empty for any other statement."""
    target: tree.Expr | None = None
    if isinstance(stmt, tree.Assign) and len(stmt.targets) == 1:
        target = stmt.targets[0]
    elif isinstance(stmt, tree.AnnAssign):
        target = stmt.target
    elements = target.elements if isinstance(target, tree.TupleExpr) else (target,)
    names = [e.id for e in elements if isinstance(e, tree.Name)]
    return ", ".join(names) if len(names) == len(elements) else ""


def _statements(root: Node) -> list[Node]:
    """All statements in a file or in a function."""
    found: list[Node] = []
    pending: list[object] = [root]
    while pending:
        node = pending.pop()
        if isinstance(node, tree.Stmt):
            found.append(node)
        if isinstance(node, (tree.Stmt, tree.Module)):
            pending += [part for field in ("body", "orelse") for part in getattr(node, field, ())]
    return found
