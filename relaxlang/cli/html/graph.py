"""The graph of a Relax function as a drawing: values in layers from top to bottom, shapes on the edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from relaxlang.base.record import fresh, record
from relaxlang.ir import prim, relax
from relaxlang.ir.struct_info import StructInfo, TensorStructInfo
from relaxlang.ir.visit import walk

WIDTH, HEIGHT, GAP_X, GAP_Y = 7.2, 34, 26, 46
"""Pixels: of a character, of a box, between boxes of a layer, between layers."""
SWEEPS = 8
MOST_NODES = 3000


@record(frozen=False, eq=False)
class Node:
    """A value: `title` and `detail` stand in its box, `line` is where its binding stands in the text, `shape`
    what goes along the edges from it."""

    key: int
    title: str
    detail: str
    kind: str
    line: int
    shape: str
    inputs: list[Node] = fresh(factory=list)
    layer: int = 0
    place: float = 0.0
    x: float = 0.0

    @property
    def width(self) -> float:
        """Pixels."""
        return max(len(self.title), len(self.detail)) * WIDTH + 18


def graph_of(func: relax.Function, lines: Mapping[int, int]) -> list[Node]:
    """The values of a function; `lines` gives the line of a binding, or a parameter, by identity."""
    nodes: dict[relax.Var, Node] = {}

    def add(var: relax.Var, title: str, kind: str, line: int) -> Node:
        nodes[var] = Node(len(nodes), title, var.name, kind, line, label(var.struct_info))
        return nodes[var]

    for param in func.params:
        add(param, "parameter", "param", lines.get(id(param), 0))
    for binding in walk(func.body):
        if not isinstance(binding, (relax.VarBinding, relax.MatchCast)) or binding.var.name.startswith("_"):
            continue
        title, used = describe(binding.value)
        if title == "" and len(used) == 1 and used[0] in nodes:
            nodes[binding.var] = nodes[used[0]]  # another name for the same value
            continue
        node = add(binding.var, title or "tuple", "op", lines.get(id(binding), 0))
        node.inputs += [nodes[var] for var in used if var in nodes]
    result = Node(len(nodes) + 1, "result", func.body.body.__class__.__name__.lower(), "result", 0, "")
    result.inputs += [nodes[v] for v in walk(func.body.body) if isinstance(v, relax.Var) and v in nodes]
    return [*dict.fromkeys(nodes.values()), result]


def describe(value: relax.Expr) -> tuple[str, list[relax.Var]]:
    """What a value is computed by, and the variables it is computed from."""
    used = list(dict.fromkeys(v for v in walk(value) if isinstance(v, relax.Var)))
    if isinstance(value, relax.If):
        return "if", used
    if not isinstance(value, relax.Call):
        return ("", used) if isinstance(value, relax.Var) else (value.__class__.__name__.lower(), used)
    op = value.op
    if (
        isinstance(op, relax.Op)
        and op.name.startswith("call_")
        and value.args
        and isinstance(value.args[0], (relax.GlobalVar, relax.ExternFunc))
    ):
        return value.args[0].name, used
    if isinstance(op, (relax.Op, relax.GlobalVar, relax.ExternFunc)):
        return op.name.removeprefix("vm.builtin."), used
    return "call", used


def label(info: StructInfo | None) -> str:
    """The shape of a value in few characters."""
    if isinstance(info, TensorStructInfo) and info.dims is not None:
        return "×".join(str(d.value if isinstance(d, prim.IntImm) else d) for d in info.dims) or "scalar"
    return ""


# --- layout -----------------------------------------------------------------------------------------------------------
def lay_out(nodes: Sequence[Node]) -> list[list[Node]]:
    """Give each node a layer and a place: below its inputs, near them, in the order with few crossings."""
    for node in nodes:
        node.layer = max((source.layer + 1 for source in node.inputs), default=0)
    for node in nodes:  # a parameter stands just above what needs it first
        users = [n.layer for n in nodes for source in n.inputs if source is node]
        if node.kind == "param" and users:
            node.layer = min(users) - 1
    layers: list[list[Node]] = [[] for _ in range(max(n.layer for n in nodes) + 1)]
    for node in nodes:
        layers[node.layer].append(node)
    users_of: dict[int, list[Node]] = {n.key: [] for n in nodes}
    for node in nodes:
        for source in node.inputs:
            users_of[source.key].append(node)
    for layer in layers:
        _number(layer)
    for sweep in range(SWEEPS):
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            for node in layer:
                near = node.inputs if sweep % 2 == 0 else users_of[node.key]
                node.place = sum(n.place for n in near) / len(near) if near else node.place
            layer.sort(key=lambda n: n.place)
            _number(layer)
    widest = max(_extent(layer) for layer in layers)
    for layer in layers:
        x = (widest - _extent(layer)) / 2
        for node in layer:
            node.x = x
            x += node.width + GAP_X
    return layers


def _number(layer: Sequence[Node]) -> None:
    for k, node in enumerate(layer):
        node.place = k - (len(layer) - 1) / 2


def _extent(layer: Sequence[Node]) -> float:
    return sum(n.width + GAP_X for n in layer) - GAP_X


# --- drawing ----------------------------------------------------------------------------------------------------------
def graph_svg(name: str, nodes: Sequence[Node]) -> str:
    """The drawing; a box links to the line of its binding (`data-line`)."""
    if len(nodes) > MOST_NODES:
        return f"<p>The function has {len(nodes)} values, too many for a drawing.</p>"
    layers = lay_out(nodes)
    width = max(_extent(layer) for layer in layers) + 40
    height = len(layers) * (HEIGHT + GAP_Y) + 20
    edges, boxes = [], []
    for node in nodes:
        x, y = node.x + 20, node.layer * (HEIGHT + GAP_Y) + 10
        boxes.append(
            f'<g class="box {node.kind}" data-line="{node.line}" data-key="{node.key}" tabindex="0">'
            f"<title>{escape(node.title)}: {escape(node.detail)}</title>"
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{node.width:.1f}" height="{HEIGHT}" rx="5"/>'
            f'<text x="{x + node.width / 2:.1f}" y="{y + 14:.1f}">{escape(node.title)}</text>'
            f'<text class="detail" x="{x + node.width / 2:.1f}" y="{y + 28:.1f}">{escape(node.detail)}</text></g>'
            f'<text class="shape" x="{x + node.width / 2:.1f}" y="{y + HEIGHT + 12:.1f}">{escape(node.shape)}</text>'
        )
        for k, source in enumerate(node.inputs):
            x1 = source.x + 20 + source.width / 2
            y1 = source.layer * (HEIGHT + GAP_Y) + 10 + HEIGHT
            x2 = x + node.width * (k + 1) / (len(node.inputs) + 1)
            middle = (y1 + y) / 2
            edges.append(
                f'<path d="M{x1:.1f} {y1} C{x1:.1f} {middle:.1f} {x2:.1f} {middle:.1f} {x2:.1f} {y}"'
                f' data-from="{source.key}" data-to="{node.key}"/>'
            )
    return (
        f'<svg class="graph" data-function="{escape(name)}" viewBox="0 0 {width:.0f} {height}" '
        f'data-width="{width:.0f}" data-height="{height}">{"".join(edges)}{"".join(boxes)}</svg>'
    )
