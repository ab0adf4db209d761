"""The models that are measured, as ONNX graphs with random weights, so that every contender reads the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]
Feeds = dict[str, Array]
WIDTH, HEADS, HIDDEN = 768, 12, 3072
"""Of an encoder or decoder layer."""
VOCABULARY = 50257


class Graph:
    """Makes an ONNX graph node by node."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.random = np.random.default_rng(0)

    def add(self, operator: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Append a node; the name of its output, or a list of them when there are several."""
        names = [f"v{len(self.nodes)}_{k}" for k in range(outputs)]
        self.nodes.append(helper.make_node(operator, list(inputs), names, **attributes))
        return names if outputs > 1 else names[0]

    def constant(self, value: Any, dtype: str = "float32") -> str:
        """A constant."""
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def weight(self, *shape: int, scale: float = 0.02) -> str:
        """A constant of normally distributed numbers."""
        return self.constant(self.random.standard_normal(shape, np.float32) * np.float32(scale))

    def input(self, name: str, shape: Sequence[int | str], kind: int = TensorProto.FLOAT) -> str:
        """A parameter; dimensions with names are symbolic."""
        self.inputs.append(helper.make_tensor_value_info(name, kind, list(shape)))
        return name

    def model(self, *results: str) -> bytes:
        """The finished model."""
        outputs = [helper.make_tensor_value_info(r, TensorProto.FLOAT, None) for r in results]
        graph = helper.make_graph(self.nodes, "model", self.inputs, outputs, self.constants)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
        data: bytes = made.SerializeToString()
        return data


def normal(*shape: int, seed: int = 1) -> Array:
    """Normally distributed numbers."""
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def mlp(batch: int) -> tuple[bytes, Feeds]:
    """784 → 512 → 512 → 10 with relu."""
    graph = Graph()
    value = graph.input("x", (batch, 784))
    for last, (wide, narrow) in enumerate(((784, 512), (512, 512), (512, 10))):
        value = graph.add("Add", graph.add("MatMul", value, graph.weight(wide, narrow)), graph.weight(narrow))
        value = graph.add("Relu", value) if last < 2 else value
    return graph.model(value), {"x": normal(batch, 784)}


def _normalized(graph: Graph, value: str) -> str:
    weights = graph.weight(WIDTH, scale=1), graph.weight(WIDTH)
    made: str = graph.add("LayerNormalization", value, *weights, axis=-1, epsilon=1e-5)
    return made


def _dense(graph: Graph, value: str, wide: int, narrow: int) -> str:
    made: str = graph.add("Add", graph.add("MatMul", value, graph.weight(wide, narrow)), graph.weight(narrow))
    return made


def _gelu(graph: Graph, x: str) -> str:
    """In the elementwise operators that exporters write it with."""
    cube = graph.add("Mul", graph.add("Mul", x, x), x)
    inner = graph.add("Add", x, graph.add("Mul", cube, graph.constant(0.044715)))
    bent = graph.add("Add", graph.add("Tanh", graph.add("Mul", inner, graph.constant(0.7978845608))),
                     graph.constant(1))  # fmt: skip
    made: str = graph.add("Mul", graph.add("Mul", x, bent), graph.constant(0.5))
    return made


def layer(graph: Graph, x: str, mask: str = "", past: tuple[str, str] | None = None) -> tuple[str, str, str]:
    """A layer of a transformer that normalises first, and its keys and values; `past` are those of earlier tokens."""
    width = WIDTH // HEADS
    both = _dense(graph, _normalized(graph, x), WIDTH, 3 * WIDTH)
    parts = graph.add("Split", both, graph.constant([WIDTH] * 3, "int64"), outputs=3, axis=-1)
    shape = graph.constant([0, 0, HEADS, width], "int64")
    q, k, v = (graph.add("Transpose", graph.add("Reshape", p, shape), perm=[0, 2, 1, 3]) for p in parts)
    if past is not None:
        k, v = (graph.add("Concat", old, new, axis=2) for old, new in zip(past, (k, v), strict=True))
    product = graph.add("MatMul", q, graph.add("Transpose", k, perm=[0, 1, 3, 2]))
    scores = graph.add("Mul", product, graph.constant(width**-0.5))
    if mask:
        scores = graph.add("Add", scores, mask)
    mixed = graph.add("Transpose", graph.add("MatMul", graph.add("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    mixed = graph.add("Reshape", mixed, graph.constant([0, 0, WIDTH], "int64"))
    x = graph.add("Add", x, _dense(graph, mixed, WIDTH, WIDTH))
    hidden = _gelu(graph, _dense(graph, _normalized(graph, x), WIDTH, HIDDEN))
    return graph.add("Add", x, _dense(graph, hidden, HIDDEN, WIDTH)), k, v


def encoder(length: int, layers: int = 1, dynamic: bool = False) -> tuple[bytes, Feeds]:
    """Layers of an encoder over `length` tokens, which is a symbolic dimension when `dynamic`."""
    graph = Graph()
    value = graph.input("x", (1, "n" if dynamic else length, WIDTH))
    for _ in range(layers):
        value, _, _ = layer(graph, value)
    return graph.model(value), {"x": normal(1, length, WIDTH)}


def gpt2(tokens: int, past: int = 0, layers: int = 12) -> tuple[bytes, Feeds]:
    """GPT-2 small: logits of the last of `tokens` tokens behind `past` cached ones, and the grown caches."""
    graph = Graph()
    feeds: Feeds = {"ids": np.random.default_rng(3).integers(0, VOCABULARY, (1, tokens))}
    ids = graph.input("ids", (1, tokens), TensorProto.INT64)
    value = graph.add("Gather", graph.weight(VOCABULARY, WIDTH), ids)
    value = graph.add("Add", value, graph.weight(1, tokens, WIDTH))
    mask = graph.constant(np.triu(np.full((1, 1, tokens, tokens), -1e9), 1)) if tokens > 1 else ""
    caches: list[str] = []
    for number in range(layers):
        names = (f"k{number}", f"v{number}")
        shape = (1, HEADS, past, WIDTH // HEADS)
        if past:
            feeds.update({n: normal(*shape, seed=number) for n in names})
            names = (graph.input(names[0], shape), graph.input(names[1], shape))
        value, k, v = layer(graph, value, mask, names if past else None)
        caches += [k, v]
    if tokens > 1:
        bounds = (graph.constant([b], "int64") for b in (tokens - 1, tokens, 1))
        value = graph.add("Slice", value, *bounds)
    logits = graph.add("MatMul", _normalized(graph, value), graph.weight(WIDTH, VOCABULARY))
    return graph.model(logits, *caches), feeds


def resnet18() -> tuple[bytes, Feeds]:
    """ResNet-18 for one picture of 224 × 224."""
    graph = Graph()

    def convolved(x: str, wide: int, narrow: int, window: int, stride: int) -> str:
        weight = graph.weight(narrow, wide, window, window, scale=(2 / (wide * window * window)) ** 0.5)
        value = graph.add("Conv", x, weight, strides=[stride] * 2, pads=[window // 2] * 4)
        ones = graph.constant(np.ones(narrow)), graph.constant(np.ones(narrow))
        made: str = graph.add("BatchNormalization", value, ones[0], graph.weight(narrow), graph.weight(narrow), ones[1])
        return made

    x = graph.add("Relu", convolved(graph.input("x", (1, 3, 224, 224)), 3, 64, 7, 2))
    x = graph.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    wide = 64
    for narrow, first in ((64, 1), (128, 2), (256, 2), (512, 2)):
        for stride in (first, 1):
            rest = x if wide == narrow else convolved(x, wide, narrow, 1, stride)
            x = graph.add("Relu", convolved(x, wide, narrow, 3, stride))
            x = graph.add("Relu", graph.add("Add", convolved(x, narrow, narrow, 3, 1), rest))
            wide = narrow
    x = graph.add("Flatten", graph.add("GlobalAveragePool", x), axis=1)
    return graph.model(_dense(graph, x, 512, 1000)), {"x": normal(1, 3, 224, 224)}


MODELS: dict[str, Callable[[], tuple[bytes, Feeds]]] = {
    "mlp_1": lambda: mlp(1), "mlp_8": lambda: mlp(8), "mlp_128": lambda: mlp(128),
    "encoder_128": lambda: encoder(128), "encoder_dynamic": lambda: encoder(128, dynamic=True),
    "gpt2_prefill_128": lambda: gpt2(128), "gpt2_decode_128": lambda: gpt2(1, 128),
    "resnet18": resnet18,
}  # fmt: skip
BUILT: dict[str, Callable[[], tuple[bytes, Feeds]]] = {
    "mlp_1": lambda: mlp(1), "encoder_128": lambda: encoder(128), "encoder_128_12_layers": lambda: encoder(128, 12),
    "gpt2_prefill_128": lambda: gpt2(128), "resnet18": resnet18,
}  # fmt: skip
"""The models whose compile time is measured."""
LENGTHS = (512, 256, 128, 64, 7, 1)
"""Of sequences that the dynamic encoder runs on. OpenVINO 2026 gives wrong values for longer ones when the first has
length 1, so that comes last."""
