"""The graph of a Relax function drawn in text: a line for each value, and rails along which values go to their users.

    ● a = matmul   n×64   with x, w
    ├─╮
    │ ● b = nn.sigmoid   n×64
    ├─╯
    ● c = multiply   n×64

What is given from outside (parameters, constants) stands in words behind the value that uses it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import zip_longest

from relaxlang.cli.html.graph import Node, graph_of
from relaxlang.ir import relax

MOST_RAILS = 12
"""Values that are drawn as rails at one place; others go by their names."""


def drawn(function: relax.Function, width: int) -> str:
    """The graph of a function, in lines of at most `width` characters."""
    nodes = graph_of(function, {})
    params = [n for n in nodes if n.kind == "param"]
    rails = _Rails(nodes)
    lines = [line for node in nodes if node.kind != "param" for line in rails.node(node)]
    given = ", ".join(f"{n.detail} {n.shape}".rstrip() for n in params)
    head = textwrap.wrap(f"from outside: {given}", width, subsequent_indent="  ") if given else []
    return "\n".join([*head, *(line if len(line) <= width else line[: width - 1] + "…" for line in lines)])


class _Rails:
    """What is drawn so far: `columns` are the values whose rails run, `left` how many users wait for each."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.columns: list[Node | None] = []
        self.left = {n.key: 0 for n in nodes}
        for node in nodes:
            for source in dict.fromkeys(node.inputs):
                self.left[source.key] += 1

    def node(self, node: Node) -> list[str]:
        """The lines of a value: how its inputs come together, if they do, and the value itself."""
        sources = list(dict.fromkeys(node.inputs))
        inputs = [k for k, n in enumerate(self.columns) if n is not None and n in sources]
        named = [n.detail for n in sources if n not in self.columns]
        for source in sources:
            self.left[source.key] -= 1
        ended = [k for k in inputs if self.left[_key(self.columns[k])] == 0]
        at = ended[0] if ended else self._free()
        lines = []
        if any(k != at for k in inputs):
            lines.append(self._joined(at, inputs, ended))
        for k in ended:
            self.columns[k] = None
        text = node.title if node.kind == "result" else f"{node.detail} = {node.title}"
        shape = f"   {node.shape}" if node.shape else ""
        lines.append(f"{self._marked(at)} {text}{shape}" + (f"   with {', '.join(named)}" if named else ""))
        while len(self.columns) <= at:
            self.columns.append(None)
        self.columns[at] = node if self.left[node.key] and at < MOST_RAILS else None
        while self.columns and self.columns[-1] is None:
            self.columns.pop()
        return lines

    def _free(self) -> int:
        return next((k for k, n in enumerate(self.columns) if n is None), len(self.columns))

    def _marked(self, at: int) -> str:
        """The rails with a mark in one column."""
        marks = ["│" if n is not None else " " for n in self.columns]
        marks += [" "] * (at + 1 - len(marks))
        marks[at] = "●"
        return " ".join(marks).rstrip()

    def _joined(self, at: int, inputs: list[int], ended: list[int]) -> str:
        """A line from the columns of the inputs to that of their user."""
        low, high = min(at, *inputs), max(at, *inputs)
        cells = []
        for k, node in zip_longest(range(max(high + 1, len(self.columns))), self.columns):
            if not low <= k <= high:
                cells.append("│ " if node is not None else "  ")
                continue
            above = k in inputs or (node is not None and k != at)
            below = k == at or (node is not None and k not in ended)
            crossing = node is not None and k != at and k not in inputs
            cells.append((_CROSSING if crossing else _corner(above, below, k > low, k < high)) + "─" * (k < high))
        return "".join(cell.ljust(2) for cell in cells).rstrip()


_CROSSING = "│"
_CORNERS = {
    (True, True, True, True): "┼", (True, True, True, False): "┤", (True, True, False, True): "├",
    (True, False, True, True): "┴", (True, False, True, False): "╯", (True, False, False, True): "╰",
    (False, True, True, True): "┬", (False, True, True, False): "╮", (False, True, False, True): "╭",
}  # fmt: skip
"""The corner by where lines leave it: above, below, to the left, to the right."""


def _corner(above: bool, below: bool, left: bool, right: bool) -> str:
    return _CORNERS.get((above, below, left, right), "─")


def _key(node: Node | None) -> int:
    assert node is not None  # columns of inputs are taken
    return node.key


def as_dot(function: relax.Function, name: str) -> str:
    """The graph of a function in the language of Graphviz."""
    lines = [f"digraph {_quoted(name)} {{", '  node [shape=box, fontname="monospace"];']
    nodes = graph_of(function, {})
    for node in nodes:
        label = node.title if node.kind == "result" else f"{node.detail}\n{node.title}"
        shape = ", style=rounded" if node.kind == "param" else ""
        lines.append(f"  v{node.key} [label={_quoted(label)}{shape}];")
    for node in nodes:
        for source in dict.fromkeys(node.inputs):
            lines.append(f"  v{source.key} -> v{node.key} [label={_quoted(source.shape)}];")
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
