"""Graphs: programs of static shape as a list of kernel calls over numbered storage, with JSON as their outside form.

A *storage* is a run of bytes that one tensor or several, one after the other, lie in. A *tensor* has a shape, a dtype
and its place in a storage. A *node* calls a kernel (or a packed function) on tensors, outputs last, and on literals.

    {"format": "relaxlang.graph", "version": 1,
     "functions": {
      "main": {
       "arguments": [["x", 0]],
       "parameters": [["p0", 1]],
       "storage": [128, 512, 64],
       "tensors": [
        {"name": "x", "shape": [4, 8], "dtype": "float32", "storage": 0, "offset": 0},
        …],
       "nodes": [
        {"name": "lv", "kernel": "fused_matmul_relu", "args": [0, 1, 2], "outputs": [2]}],
       "result": 2}}}

Arguments and the result are trees of tensors: a number, or a list of trees for a tuple.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn, TypeAlias

from relaxlang.base.diagnostics import fail
from relaxlang.base.record import record

FORMAT, VERSION = "relaxlang.graph", 1
MAX_DEPTH = 64
Tree: TypeAlias = "int | tuple[Tree, ...]"
"""A tensor by its number, or a tuple of trees."""


@record
class GraphTensor:
    """A tensor: its name for people, shape and dtype, and where it lies: `offset` bytes into a storage."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    storage: int
    offset: int = 0


@record
class Literal:
    """An argument of a node that is no tensor: a number, a truth value, a text or a shape."""

    value: bool | int | float | str | tuple[int, ...]


@record
class GraphNode:
    """A call: `function` is a kernel, or when `packed` a packed function; `args` are tensors by number and literals;
    `outputs` are the tensors that it writes. `name` is that of the binding that it computes."""

    name: str
    function: str
    args: tuple[int | Literal, ...]
    outputs: tuple[int, ...]
    packed: bool = False


@record
class Graph:
    """A function: `arguments` by name, `parameters` (constants by name), the bytes of each storage, tensors, nodes in
    the order of execution, and the result."""

    name: str
    arguments: tuple[tuple[str, Tree], ...]
    parameters: tuple[tuple[str, int], ...]
    storage: tuple[int, ...]
    tensors: tuple[GraphTensor, ...]
    nodes: tuple[GraphNode, ...]
    result: Tree

    @property
    def inputs(self) -> tuple[int, ...]:
        """The tensors of the arguments, in order."""
        return tuple(t for _, tree in self.arguments for t in leaves(tree))

    @property
    def outputs(self) -> tuple[int, ...]:
        """The tensors of the result, in order."""
        return tuple(leaves(self.result))

    @property
    def workspace(self) -> tuple[int, ...]:
        """The storages that hold neither arguments nor parameters."""
        held = {self.tensors[t].storage for t in (*self.inputs, *(t for _, t in self.parameters))}
        return tuple(s for s in range(len(self.storage)) if s not in held)

    @property
    def workspace_bytes(self) -> int:
        """The bytes of the storages that hold neither arguments nor parameters."""
        return sum(self.storage[s] for s in self.workspace)


def leaves(tree: Tree) -> Iterator[int]:
    """The tensors of a tree, in order."""
    waiting = [tree]
    while waiting:
        part = waiting.pop()
        if isinstance(part, tuple):
            waiting.extend(reversed(part))
        else:
            yield part


# --- JSON -------------------------------------------------------------------------------------------------------------
def to_json(graphs: Mapping[str, Graph]) -> str:
    """Graphs as JSON: a line for each tensor and each node."""
    functions = ",\n".join(f"  {json.dumps(name)}: {_function(graph)}" for name, graph in graphs.items())
    return f'{{"format": "{FORMAT}", "version": {VERSION},\n "functions": {{\n{functions}}}}}\n'


def _function(graph: Graph) -> str:
    tensors = [
        {"name": t.name, "shape": t.shape, "dtype": t.dtype, "storage": t.storage, "offset": t.offset}
        for t in graph.tensors
    ]
    nodes = [
        {
            "name": n.name,
            ("packed" if n.packed else "kernel"): n.function,
            "args": [{"value": a.value} if isinstance(a, Literal) else a for a in n.args],
            "outputs": n.outputs,
        }
        for n in graph.nodes
    ]
    return (
        f'{{\n   "arguments": {json.dumps(graph.arguments)},\n   "parameters": {json.dumps(graph.parameters)},\n'
        f'   "storage": {json.dumps(graph.storage)},\n   "tensors": {_rows(tensors)},\n   "nodes": {_rows(nodes)},\n'
        f'   "result": {json.dumps(graph.result)}}}'
    )


def _rows(rows: list[dict[str, Any]]) -> str:
    return "[" + ",".join(f"\n    {json.dumps(row)}" for row in rows) + "]"


def from_json(text: str, name: str = "<graph>") -> dict[str, Graph]:
    """The graphs in JSON, by name. RLX6021 for a text that is none or whose numbers lead nowhere, RLX6012 for one that
    a newer relaxlang wrote. Nothing is run."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        fail("RLX6021", f"`{name}` is no graph: {str(error).lower() or 'nested too deeply'}")
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        fail("RLX6021", f"`{name}` is no graph", help=f'a graph begins with `{{"format": "{FORMAT}"`')
    if type(data.get("version")) is not int or data["version"] > VERSION:
        fail("RLX6012", f"`{name}` has version {data.get('version')}, and this relaxlang reads {VERSION}")
    reader = _Reader(name)
    functions = reader.want(data.get("functions"), dict, "functions")
    return {str(key): reader.graph(str(key), value) for key, value in functions.items()}


class _Reader:
    """Takes JSON data apart, trusting nothing."""

    def __init__(self, name: str) -> None:
        self.name = name

    def bad(self, what: str) -> NoReturn:
        fail("RLX6021", f"`{self.name}` is no graph: {what}")

    def want(self, value: Any, kind: type, what: str) -> Any:
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            self.bad(f"`{what}` is no {'object' if kind is dict else kind.__name__}")
        return value

    def number(self, value: Any, limit: int, what: str) -> int:
        made: int = self.want(value, int, what)
        if not 0 <= made < limit:
            self.bad(f"`{what}` is {made}, and there are {limit}")
        return made

    def numbers(self, value: Any, limit: int, what: str) -> tuple[int, ...]:
        return tuple(self.number(v, limit, what) for v in self.want(value, list, what))

    def graph(self, name: str, data: Any) -> Graph:
        fields = self.want(data, dict, name)
        storage = self.numbers(fields.get("storage"), 1 << 62, "storage")
        tensors = tuple(self.tensor(t, len(storage)) for t in self.want(fields.get("tensors"), list, "tensors"))
        count = len(tensors)
        made = Graph(
            name,
            tuple(self.named(a, count, "arguments") for a in self.want(fields.get("arguments"), list, "arguments")),
            tuple(self.parameter(p, count) for p in self.want(fields.get("parameters"), list, "parameters")),
            storage,
            tensors,
            tuple(self.node(n, count) for n in self.want(fields.get("nodes"), list, "nodes")),
            self.tree(fields.get("result"), count, 0),
        )
        held = [tensors[t].storage for t in (*made.inputs, *(t for _, t in made.parameters))]
        if len(set(held)) != len(held):
            self.bad(f"two arguments or parameters of `{name}` lie in one storage")
        return made

    def tensor(self, data: Any, storages: int) -> GraphTensor:
        fields = self.want(data, dict, "tensor")
        return GraphTensor(
            self.want(fields.get("name"), str, "name"),
            self.numbers(fields.get("shape"), 1 << 62, "shape"),
            self.want(fields.get("dtype"), str, "dtype"),
            self.number(fields.get("storage"), storages, "storage"),
            self.number(fields.get("offset", 0), 1 << 62, "offset"),
        )

    def node(self, data: Any, count: int) -> GraphNode:
        fields = self.want(data, dict, "node")
        packed = "packed" in fields
        args = tuple(self.arg(a, count) for a in self.want(fields.get("args"), list, "args"))
        return GraphNode(
            self.want(fields.get("name"), str, "name"),
            self.want(fields.get("packed" if packed else "kernel"), str, "kernel"),
            args,
            self.numbers(fields.get("outputs"), count, "outputs"),
            packed,
        )

    def arg(self, data: Any, count: int) -> int | Literal:
        if not isinstance(data, dict):
            return self.number(data, count, "args")
        value = data.get("value")
        if isinstance(value, list):
            return Literal(self.numbers(value, 1 << 62, "value"))
        if not isinstance(value, (bool, int, float, str)):
            self.bad("a literal is no number, text or shape")
        return Literal(value)

    def named(self, data: Any, count: int, what: str) -> tuple[str, Tree]:
        pair = self.want(data, list, what)
        if len(pair) != 2:
            self.bad(f"`{what}` are no pairs")
        return self.want(pair[0], str, what), self.tree(pair[1], count, 0)

    def parameter(self, data: Any, count: int) -> tuple[str, int]:
        name, tree = self.named(data, count, "parameters")
        return (name, tree) if isinstance(tree, int) else self.bad("a parameter is a tuple")

    def tree(self, data: Any, count: int, depth: int) -> Tree:
        if depth > MAX_DEPTH:
            self.bad(f"tuples are nested more than {MAX_DEPTH} deep")
        if isinstance(data, list):
            return tuple(self.tree(part, count, depth + 1) for part in data)
        return self.number(data, count, "tensor")
