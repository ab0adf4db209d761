"""A node as converters see it: inputs as values, attributes as Python values, faults with the place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

import numpy as np
from onnx import AttributeProto

from relaxlang.base.diagnostics import Diagnostic, DiagnosticError, fail
from relaxlang.frontend.onnx.values import Value

_FIELDS = {
    AttributeProto.INT: "i", AttributeProto.FLOAT: "f", AttributeProto.STRING: "s", AttributeProto.INTS: "ints",
    AttributeProto.FLOATS: "floats", AttributeProto.STRINGS: "strings", AttributeProto.TENSOR: "t",
    AttributeProto.GRAPH: "g",
}  # fmt: skip


class Node:
    """One node of a graph. `version` is that of the operator set of its domain; `inputs` may end early."""

    def __init__(self, proto: Any, version: int, inputs: Iterable[Value]) -> None:
        self.proto = proto
        self.op: str = proto.op_type
        self.domain: str = proto.domain
        self.version = version
        self.inputs = tuple(inputs)
        self.attributes: dict[str, Any] = {a.name: a for a in proto.attribute}

    def __str__(self) -> str:
        return describe(self.proto, self.version)

    def input(self, k: int) -> Value:
        """Input k; None where it is left out."""
        return self.inputs[k] if k < len(self.inputs) else None

    @property
    def outputs(self) -> list[str]:
        """The names of the outputs; empty where one is left out."""
        return list(self.proto.output)

    def wants(self, k: int) -> bool:
        """Whether output k is used by name."""
        return k < len(self.proto.output) and bool(self.proto.output[k])

    def has(self, name: str) -> bool:
        """Whether the attribute is given."""
        return name in self.attributes

    def _get(self, name: str, kind: Any, default: Any) -> Any:
        found = self.attributes.get(name)
        if found is None:
            if default is None:
                fail("RLX8003", f"{self} lacks its attribute `{name}`")
            return default
        if found.type != kind:
            fail("RLX8003", f"the attribute `{name}` of {self} is of a wrong kind")
        return getattr(found, _FIELDS[kind])

    def int(self, name: str, default: int | None = None) -> int:
        """An integer attribute; RLX8003 when it is missing and has no default."""
        return int(self._get(name, AttributeProto.INT, default))

    def flag(self, name: str, default: bool = False) -> bool:
        """An integer attribute that is 0 or 1."""
        return bool(self.int(name, int(default)))

    def float(self, name: str, default: float | None = None) -> float:
        """A float attribute: the shortest number that is its float32."""
        return _short(self._get(name, AttributeProto.FLOAT, default))

    def string(self, name: str, default: str | None = None) -> str:
        """A string attribute."""
        found = self._get(name, AttributeProto.STRING, default)
        return found.decode("utf-8", "replace") if isinstance(found, bytes) else found

    def ints(self, name: str, default: Iterable[Any] | None = None) -> tuple[Any, ...]:
        """A list of integers."""
        return tuple(int(v) for v in self._get(name, AttributeProto.INTS, default))

    def floats(self, name: str, default: Iterable[Any] | None = None) -> tuple[Any, ...]:
        """A list of floats."""
        return tuple(_short(v) for v in self._get(name, AttributeProto.FLOATS, default))

    def strings(self, name: str, default: Iterable[str] | None = None) -> tuple[str, ...]:
        """A list of strings."""
        return tuple(
            v.decode("utf-8", "replace") if isinstance(v, bytes) else v
            for v in self._get(name, AttributeProto.STRINGS, default)
        )

    def tensor(self, name: str) -> Any:
        """A tensor attribute, as a `TensorProto`."""
        return self._get(name, AttributeProto.TENSOR, None)

    def graph(self, name: str) -> Any:
        """A graph attribute, as a `GraphProto`."""
        return self._get(name, AttributeProto.GRAPH, None)

    def unsupported(self, what: str, help: str = "") -> NoReturn:
        """RLX8006: `what` is a use of the operator that the converter lacks."""
        fail("RLX8006", f"`{self.op}` {what}", help=help)


def _short(value: float) -> float:
    return float(str(np.float32(value)))


def describe(proto: Any, version: int) -> str:
    """A node in words: its operator, name, and first output."""
    domain = f"{proto.domain}." if proto.domain not in ("", "ai.onnx") else ""
    name = f" `{proto.name}`" if proto.name else ""
    output = next((o for o in proto.output if o), "")
    gives = f", which gives `{output}`" if output else ""
    return f"the {domain}{proto.op_type} node{name} (opset {version}){gives}"


def at_node(fault: DiagnosticError, node: Node) -> DiagnosticError:
    """The same diagnostics, each with a note that says which node it is about (the innermost one)."""
    note = f"at {node}"

    def placed(d: Diagnostic) -> Diagnostic:
        if any(n.startswith("at the ") for n in d.notes):
            return d
        return Diagnostic(
            d.code, d.message, d.span, level=d.level, label=d.label, labels=d.labels, notes=(*d.notes, note),
            help=d.help, fixes=d.fixes, node=d.node,
        )  # fmt: skip

    return DiagnosticError([placed(d) for d in fault.diagnostics])
