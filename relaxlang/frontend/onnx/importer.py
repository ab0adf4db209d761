"""A model as a module: parameters from the graph's inputs, `main` from its nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from relaxlang.base.diagnostics import fail
from relaxlang.base.suggest import did_you_mean
from relaxlang.builder.block_builder import BlockBuilder
from relaxlang.frontend.onnx.functions import Library, versions_of
from relaxlang.frontend.onnx.graph import Graph, legal_name
from relaxlang.frontend.onnx.model import read_model
from relaxlang.frontend.onnx.operators import OPERATORS
from relaxlang.frontend.onnx.types import element_type
from relaxlang.frontend.onnx.values import Known, Sequence, Value
from relaxlang.ir import relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.prim import INT64, IntImm
from relaxlang.ir.struct_info import tensor_info
from relaxlang.passes.relax.convert_to_dataflow import ConvertToDataflow
from relaxlang.passes.relax.dead_code_elimination import DeadCodeElimination
from relaxlang.syntax.inputs import Inputs

Shapes = Mapping[str, tuple[int | str, ...]]
NUM_INPUT = "num_input"


def import_model(
    model: Any, shapes: Shapes | None, constants: Mapping[str, Any] | None, keep_params_in_input: bool, files: Inputs
) -> tuple[IRModule, dict[str, np.ndarray[Any, Any]]]:
    """The module of `relaxlang.frontend.onnx.from_onnx`, and the weights that became parameters, by their names;
    `files` is told the files that were read."""
    read, shown = read_model(model, files)
    versions = versions_of(read)
    own = {(f.domain, f.name): f for f in read.functions}
    library = Library(OPERATORS, own)
    library.check(read.graph, versions)
    graph = Graph(BlockBuilder(), versions, library, keep_params_in_input)
    names = _input_names(read.graph)
    fixed = {name: np.asarray(value) for name, value in (constants or {}).items()}
    _check_names({**(shapes or {}), **fixed}, names, shown)
    values = [value for name, value in names.items() if name not in fixed]
    inputs = [_parameter(graph, value, (shapes or {}).get(value.name)) for value in values]
    bb = graph.bb
    with bb.function("main", attrs={NUM_INPUT: len(inputs)} if keep_params_in_input else {}):
        for value, var in zip(values, inputs):
            bb.get_unique_name(var.name)
            graph.values[value.name] = var
        for name, data in fixed.items():
            graph.values[name] = _fixed(names[name], data)
        graph.initialize(read.graph.initializer)
        graph.run(read.graph.node)
        results = [_result(graph, value) for value in graph.outputs_of(read.graph)]
        if not results:
            fail("RLX8003", f"{shown} has no outputs")
        params = (*inputs, *graph.parameters)
        bb.emit_func_output(results[0] if len(results) == 1 else tuple(results), params)
    module = bb.finalize()
    weights = {var.name: data for var, data in graph.parameters.items()}
    return DeadCodeElimination()(ConvertToDataflow()(module)), weights


def _input_names(graph: Any) -> dict[str, Any]:
    """The graph's inputs that are no initializers, by name."""
    initialized = {tensor.name for tensor in graph.initializer}
    if graph.sparse_initializer:
        fail("RLX8006", "sparse initializers are not supported")
    found: dict[str, Any] = {}
    for value in graph.input:
        if value.name in found:
            fail("RLX8003", f"two inputs of the model are called `{value.name}`")
        if value.name not in initialized:
            found[value.name] = value
    return found


def _check_names(given: Mapping[str, Any], names: Mapping[str, Any], shown: str) -> None:
    for name in given:
        if name not in names:
            near = did_you_mean(name, names)
            known = ", ".join(f"`{n}`" for n in names)
            fail("RLX8005", f"{shown} has no input `{name}`",
                 help=f"did you mean `{near}`?" if near else f"its inputs: {known}")  # fmt: skip


def _fixed(value: Any, data: np.ndarray[Any, Any]) -> Known:
    """The value of an input that is a constant; RLX8005 when it is not what the model takes."""
    what, tensor = f"the input `{value.name}`", value.type.tensor_type
    of = element_type(tensor.elem_type, what)
    stated = [_stated(d) for d in tensor.shape.dim] if tensor.HasField("shape") else None
    if data.dtype != of.numpy:
        fail("RLX8005", f"{what} is `{of}`, and the constant given for it `{data.dtype}`")
    _merged(what, stated, data.shape)
    return Known(data, of)


def _parameter(graph: Graph, value: Any, given: tuple[int | str, ...] | None) -> relax.Var:
    """The parameter that an input of the graph becomes."""
    what = f"the input `{value.name}`"
    kind = value.type.WhichOneof("value")
    if kind != "tensor_type":
        fail("RLX8006", f"{what} is no tensor but a {str(kind or 'value without a type').removesuffix('_type')}")
    tensor = value.type.tensor_type
    of = element_type(tensor.elem_type, what)
    stated = [_stated(d) for d in tensor.shape.dim] if tensor.HasField("shape") else None
    if given is None and stated is None:
        fail("RLX8005", f"the rank of {what} is not stated in the model",
             help=f'give its shape: `shapes={{"{value.name}": ("n", 3)}}`')  # fmt: skip
    name, dims = legal_name(value.name), _merged(what, stated, given)
    shape = tuple(
        IntImm(INT64, d) if isinstance(d, int) else graph.dim(d) if d else graph.new_dim(f"{name}_{k}")
        for k, d in enumerate(dims)
    )
    graph.learn(shape)
    taken = {v.name for v in graph.values.values() if isinstance(v, relax.Var)}
    while name in taken:
        name += "_"
    return relax.Var(name, tensor_info(shape, of))


def _stated(dim: Any) -> int | str:
    """A dimension as the model states it: a number, a name, or "" for one that it leaves open."""
    if dim.HasField("dim_param") and dim.dim_param not in ("", "?"):
        return str(dim.dim_param)
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return int(dim.dim_value)
    return ""


def _merged(what: str, stated: list[int | str] | None, given: tuple[int | str, ...] | None) -> list[int | str]:
    """The dimensions of an input: those given, which must fit what the model states."""
    if given is None:
        return list(stated or ())
    if not isinstance(given, (tuple, list)) or not all(
        (isinstance(d, (int, np.integer)) and not isinstance(d, bool) and d >= 0) or (isinstance(d, str) and d)
        for d in given
    ):
        fail("RLX8005", f"the shape given for {what} is no tuple of numbers and names: {given!r}")
    given = tuple(d if isinstance(d, str) else int(d) for d in given)
    if stated is None:
        return list(given)
    if len(stated) != len(given):
        fail("RLX8005", f"{what} has {len(stated)} dimensions, the shape given for it {len(given)}")
    for k, (a, b) in enumerate(zip(stated, given)):
        if isinstance(a, int) and a != b:
            fail("RLX8005", f"dimension {k} of {what} is {a} in the model, and given as {b}")
    return list(given)


def _result(graph: Graph, value: Value) -> relax.Expr:
    """An output of the model."""
    if isinstance(value, Sequence):
        return relax.Tuple(tuple(_result(graph, v) for v in value.items))
    if isinstance(value, Known) or value is None:
        return graph.bb.emit(graph.tensor(value))
    return value


__all__ = ["import_model"]
