"""Small models for tests, node by node; and what ONNX's reference evaluator makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np


class Maker:
    """A graph in the making: `m("MatMul", a, b)` adds a node and gives the name of its output."""

    def __init__(self, opset: int = 18) -> None:
        self.opset = opset
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []

    def input(self, name: str, shape: tuple[int | str, ...] | None, dtype: str = "float32") -> str:
        """A parameter of the model."""
        from onnx import helper

        of = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self.inputs.append(helper.make_tensor_value_info(name, of, shape))
        return name

    def constant(self, value: Any, dtype: str | None = None) -> str:
        """An initializer."""
        from onnx import numpy_helper

        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.array(value, dtype=dtype), name))
        return name

    def __call__(self, op: str, *inputs: str, outputs: int = 1, domain: str = "", **attributes: Any) -> Any:
        from onnx import helper

        names = [f"{op.lower()}{len(self.nodes)}" + (f"_{k}" if outputs > 1 else "") for k in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, f"n{len(self.nodes)}", domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def graph(self, *outputs: str) -> Any:
        """A graph, for a branch or a loop."""
        from onnx import helper

        infos = [helper.make_empty_tensor_value_info(o) for o in outputs]
        return helper.make_graph(self.nodes, "inner", self.inputs, infos, self.initializers)

    def model(self, *outputs: str) -> Any:
        """The model with these outputs."""
        from onnx import helper

        imports = [helper.make_opsetid("", self.opset)]
        imports += [helper.make_opsetid(d, 1) for d in sorted({n.domain for n in self.nodes if n.domain})]
        return helper.make_model(self.graph(*outputs), opset_imports=imports, ir_version=9)


def reference(model: Any, *inputs: np.ndarray) -> list[Any]:
    """The outputs by ONNX's reference evaluator."""
    from onnx.reference import ReferenceEvaluator

    names = [value.name for value in model.graph.input]
    return ReferenceEvaluator(model).run(None, dict(zip(names, inputs)))
