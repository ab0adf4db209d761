"""Workloads, and how peers run them: each peer takes the form of a workload that it understands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Call = Callable[[], object]


@dataclass(frozen=True)
class Workload:
    """One operator, or a few: `body` are lines of a dataflow block over the names of `arrays`, the last one the result.

    `arrays_form` computes it with numpy or jax.numpy as its first argument, `torch_form` with torch, `nodes` are ONNX
    nodes over the same names, the last one's output the result. `constants` are known when a program is built. `flops`
    are the operations of it, `bytes` what it must move between the processor and memory at least. `fixed` are sizes
    that stay numbers in its symbolic form, besides those of constants.
    """

    name: str
    arrays: dict[str, Array]
    body: Sequence[str]
    arrays_form: Callable[..., Any] | None = None
    torch_form: Callable[..., Any] | None = None
    nodes: Sequence[tuple[str, Sequence[str], str, dict[str, Any]]] = ()
    constants: frozenset[str] = frozenset()
    flops: int = 0
    bytes: int = field(default=0)
    fixed: frozenset[int] = frozenset()

    def program(self, symbolic: bool = False) -> str:
        """The workload as a module; where it is symbolic, each size of its inputs is a variable."""
        known = {1, *self.fixed}.union(*(self.arrays[n].shape for n in self.constants))

        def shape(array: Array) -> str:
            sizes = [f"n{s}" if symbolic and s not in known else str(s) for s in array.shape]
            return f"({', '.join(sizes)},)"

        params = ", ".join(f'{n}: R.Tensor({shape(a)}, "{a.dtype}")' for n, a in self.arrays.items())
        result = self.body[-1].split("=")[0].strip()
        lines = "\n".join(f"            {line}" for line in self.body)
        head = f"@I.ir_module\nclass Work:\n    @R.function\n    def main({params}):\n        with R.dataflow():\n"
        return f"{head}{lines}\n            R.output({result})\n        return {result}\n"


def with_numpy(work: Workload, threads: int) -> Call | None:
    """numpy, with its BLAS."""
    form = work.arrays_form
    args = list(work.arrays.values())
    return None if form is None else lambda: form(np, *args)


def with_torch(work: Workload, threads: int) -> Call | None:
    """PyTorch, eager."""
    import torch

    form = work.torch_form
    if form is None:
        return None
    torch.set_num_threads(threads)
    args = [torch.from_numpy(a) for a in work.arrays.values()]

    def call() -> object:
        with torch.inference_mode():
            return form(torch, *args)

    return call


def with_jax(work: Workload, threads: int) -> Call | None:
    """JAX, compiled."""
    import jax
    import jax.numpy as jnp

    form = work.arrays_form
    if form is None:
        return None
    run = jax.jit(lambda *args: form(jnp, *args))
    args = [jnp.asarray(a) for a in work.arrays.values()]
    return lambda: run(*args).block_until_ready()


def _onnx_model(work: Workload) -> bytes | None:
    from onnx import TensorProto, helper, numpy_helper

    if not work.nodes:
        return None
    nodes = [helper.make_node(op, list(inputs), [output], **attrs) for op, inputs, output, attrs in work.nodes]
    of = {np.dtype("float32"): TensorProto.FLOAT, np.dtype("int64"): TensorProto.INT64}
    inputs = [
        helper.make_tensor_value_info(n, of[a.dtype], a.shape)
        for n, a in work.arrays.items()
        if n not in work.constants
    ]
    constants = [numpy_helper.from_array(a, n) for n, a in work.arrays.items() if n in work.constants]
    result = helper.make_tensor_value_info(work.nodes[-1][2], TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "work", inputs, [result], constants)
    made: bytes = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10
    ).SerializeToString()
    return made


def with_onnxruntime(work: Workload, threads: int) -> Call | None:
    """ONNX Runtime."""
    import onnxruntime

    model = _onnx_model(work)
    if model is None:
        return None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    feed = {n: a for n, a in work.arrays.items() if n not in work.constants}
    return lambda: session.run(None, feed)[0]


def with_openvino(work: Workload, threads: int) -> Call | None:
    """OpenVINO."""
    import openvino

    model = _onnx_model(work)
    if model is None:
        return None
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(model), "CPU", {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1,
                                  "INFERENCE_PRECISION_HINT": "f32"})  # fmt: skip
    request = compiled.create_infer_request()
    args = [a for n, a in work.arrays.items() if n not in work.constants]
    for k, array in enumerate(args):
        request.set_input_tensor(k, openvino.Tensor(array, shared_memory=True))

    def call() -> object:
        request.infer()
        return request.get_output_tensor(0).data

    return call


PEERS: dict[str, Callable[[Workload, int], Call | None]] = {
    "numpy": with_numpy, "onnxruntime": with_onnxruntime, "torch": with_torch, "openvino": with_openvino,
    "jax": with_jax,
}  # fmt: skip
