"""Which converter an operator has; and operators that stand for functions, the model's own or those of ONNX itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from onnx import AttributeProto, FunctionProto, NodeProto, TypeProto, defs, helper

from relaxlang.base.diagnostics import Diagnostic, DiagnosticError, fail
from relaxlang.frontend.onnx.node import Node, describe
from relaxlang.frontend.onnx.values import Sequence, Value
from relaxlang.ir.prim import IntImm

if TYPE_CHECKING:
    from relaxlang.frontend.onnx.graph import Converter, Graph

MAX_DEPTH = 32
"""How deep graphs and functions may lie in each other."""


class Library:
    """The operators that a model may use: `converters` by domain and name, and the model's own functions."""

    def __init__(self, converters: Mapping[tuple[str, str], Converter], own: Mapping[tuple[str, str], Any]) -> None:
        self.converters = converters
        self.own = own

    def converter(self, node: Node) -> Converter | None:
        """The converter of a node's operator; None for a function."""
        key = key_of(node.proto)
        return None if key in self.own else self.converters.get(key)

    def check(self, graph: Any, versions: Mapping[str, int]) -> None:
        """RLX8002 with every operator of a graph that is neither known nor a function, and the nodes that use it."""
        missing: dict[tuple[str, str, int], list[str]] = {}
        seen: set[tuple[str, str]] = set()
        todo = [(graph.node, versions)]
        while todo:
            nodes, sets = todo.pop()
            for proto in all_nodes(nodes):
                key = key_of(proto)
                if key in self.own:
                    if key not in seen:
                        seen.add(key)
                        todo.append((self.own[key].node, versions_of(self.own[key])))
                elif key not in self.converters and not _has_function(proto, sets.get(key[0], 1)):
                    missing.setdefault((*key, sets.get(key[0], 1)), []).append(_place(proto))
        if missing:
            raise DiagnosticError([_missing(key, places) for key, places in missing.items()])


def all_nodes(nodes: Any, depth: int = 0) -> Iterator[Any]:
    """Nodes, and those of the graphs in their attributes."""
    if depth > MAX_DEPTH:
        fail("RLX8003", f"the model has graphs or functions nested more than {MAX_DEPTH} deep")
    for proto in nodes:
        yield proto
        for attribute in proto.attribute:
            if attribute.HasField("g"):
                yield from all_nodes(attribute.g.node, depth + 1)


def _missing(key: tuple[str, str, int], places: list[str]) -> Diagnostic:
    domain, name, version = key
    shown = f"{domain or 'ai.onnx'}.{name}"
    count = f"{len(places)} nodes use" if len(places) > 1 else "1 node uses"
    some = places if len(places) <= 10 else [*places[:10], f"and {len(places) - 10} more"]
    return Diagnostic(
        "RLX8002", f"there is no translation of the operator `{shown}` (opset {version}), which {count}",
        notes=some, help="export the model with other operators, or replace these nodes",
    )  # fmt: skip


def _place(proto: Any) -> str:
    named = f"node `{proto.name}`" if proto.name else "a node without a name"
    return f"{named}, which gives " + (", ".join(f"`{o}`" for o in proto.output if o) or "nothing")


def key_of(proto: Any) -> tuple[str, str]:
    """The domain and name of a node's operator."""
    return ("" if proto.domain == "ai.onnx" else proto.domain, proto.op_type)


def versions_of(holder: Any) -> dict[str, int]:
    """The versions of the operator sets that a model or a function imports, by domain."""
    return {("" if o.domain == "ai.onnx" else o.domain): o.version for o in holder.opset_import}


def _schema(proto: Any, version: int) -> Any:
    domain, name = key_of(proto)
    try:
        return defs.get_schema(name, version, domain)
    except defs.SchemaError:
        return None


def _has_function(proto: Any, version: int) -> bool:
    schema = _schema(proto, version)
    return schema is not None and (schema.has_function or schema.has_context_dependent_function)


def call(graph: Graph, node: Node) -> tuple[Value, ...]:
    """The outputs of a node whose operator is a function: its body is imported in the node's place."""
    body = graph.library.own.get(key_of(node.proto)) or _definition(graph, node)
    versions = {"": defs.onnx_opset_version(), **graph.versions, **versions_of(body)}
    inner = graph.inner(versions, sees=False)
    for k, name in enumerate(body.input):
        inner.values[name] = node.input(k)
    schema = _schema(node.proto, node.version)
    given = {a.name: a for a in node.proto.attribute}
    for default in body.attribute_proto:
        given.setdefault(default.name, default)
    if schema is not None:
        for name, attribute in schema.attributes.items():
            if attribute.default_value.type != AttributeProto.UNDEFINED:
                given.setdefault(name, attribute.default_value)
    inner.run([_with_attributes(proto, given) for proto in body.node])
    found = []
    for k, name in enumerate(body.output):
        if name not in inner.values and node.wants(k):
            fail("RLX8003", f"nothing computes the output `{name}` of the function `{node.op}`")
        found.append(inner.values.get(name))
    return tuple(found)


def _definition(graph: Graph, node: Node) -> Any:
    """The body of an operator that ONNX defines as a function, for the types of a node's inputs."""
    schema = _schema(node.proto, node.version)
    if schema is not None and schema.has_function:
        return schema.function_body
    if schema is None or not schema.has_context_dependent_function:
        fail("RLX8002", f"there is no translation of {describe(node.proto, node.version)}")
    types = [_type_of(graph, value).SerializeToString() for value in node.inputs]
    text = schema.get_context_dependent_function(node.proto.SerializeToString(), types)
    body = FunctionProto()
    body.ParseFromString(text)
    if not body.node:
        node.unsupported("with inputs of these types")
    return body


def _type_of(graph: Graph, value: Value) -> Any:
    """A value's type as ONNX's."""
    made = TypeProto()
    if value is None:
        return made
    if isinstance(value, Sequence):
        if value.items:
            made.sequence_type.elem_type.CopyFrom(_type_of(graph, value.items[0]))
        return made
    dims = graph.shape(value)
    number = helper.np_dtype_to_tensor_dtype(graph.dtype(value).numpy)
    sizes = [d.value if isinstance(d, IntImm) else None for d in dims]
    return helper.make_tensor_type_proto(number, sizes)


def _with_attributes(proto: Any, given: Mapping[str, Any]) -> Any:
    """A node of a function's body, with the attributes that refer to those of the call replaced by their values."""
    if not any(a.ref_attr_name or a.HasField("g") for a in proto.attribute):
        return proto
    made = NodeProto()
    made.CopyFrom(proto)
    del made.attribute[:]
    for attribute in proto.attribute:
        if attribute.ref_attr_name:
            value = given.get(attribute.ref_attr_name)
            if value is None:
                continue
            kept = made.attribute.add()
            kept.CopyFrom(value)
            kept.name = attribute.name
        else:
            kept = made.attribute.add()
            kept.CopyFrom(attribute)
            if attribute.HasField("g"):
                for k, inner in enumerate(attribute.g.node):
                    kept.g.node[k].CopyFrom(_with_attributes(inner, given))
    return made
