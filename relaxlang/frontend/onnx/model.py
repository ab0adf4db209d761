"""Reading a model: the file, its weights in further files, its versions; what is wrong with any of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import chain
from typing import Any

import onnx
from google.protobuf.message import DecodeError
from onnx import defs, external_data_helper

from relaxlang.base.diagnostics import fail
from relaxlang.base.suggest import did_you_mean
from relaxlang.syntax.inputs import Inputs

OLDEST = 7
"""The first version of the operator set (of December 2017) that converters know the operators of."""
MAX_NESTING = 32
"""How deep graphs may lie in each other."""

Model = Any  # onnx.ModelProto, which has no types of its own


def read_model(model: Any, inputs: Inputs) -> tuple[Model, str]:
    """A model from the path of a file, the bytes of one, or a `ModelProto`; and what to call it.

    Weights in further files are read where the model is given as a path. `inputs` is told the files. Raises RLX8001 and
    RLX8004.
    """
    if isinstance(model, onnx.ModelProto):
        check_versions(model, "the model")
        return model, "the model"
    if isinstance(model, (str, os.PathLike)):
        name = os.fspath(model)
        from relaxlang.driver import read_file

        inputs.note_side_file(name)
        made = parse_model(read_file(name), f"`{name}`")
        _read_external(made, os.path.dirname(os.path.abspath(name)), name, inputs)
        return made, f"`{name}`"
    if isinstance(model, bytes):
        return parse_model(model, "the model"), "the model"
    fail("RLX8001", f"a model is a path, bytes or a `ModelProto`, not `{type(model).__name__}`")


def parse_model(data: bytes, shown: str) -> Model:
    """The model in the bytes of a file."""
    made = onnx.ModelProto()
    try:
        made.ParseFromString(data)
    except DecodeError:
        fail("RLX8001", f"{shown} is damaged, or no ONNX model", help="export or download it again")
    check_versions(made, shown)
    texts = chain(_texts(made.graph), *(_function_texts(f) for f in made.functions))
    if not all(isinstance(text, str) for text in texts):
        fail("RLX8001", f"{shown} is damaged: it has names that are no text", help="export or download it again")
    return made


def _texts(graph: Any, depth: int = 0) -> Iterator[Any]:
    """Every name in a graph; one whose bytes are no UTF-8 comes as bytes."""
    for named in (*graph.initializer, *graph.input, *graph.output):
        yield named.name
    for value in graph.input:
        for dim in value.type.tensor_type.shape.dim:
            yield dim.dim_param
    yield from _node_texts(graph.node, depth)


def _node_texts(nodes: Any, depth: int) -> Iterator[Any]:
    if depth > MAX_NESTING:
        fail("RLX8003", f"the model has graphs nested more than {MAX_NESTING} deep")
    for node in nodes:
        yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
        for attribute in node.attribute:
            yield from (attribute.name, attribute.ref_attr_name)
            if attribute.HasField("t"):
                yield attribute.t.name
            if attribute.HasField("g"):
                yield from _texts(attribute.g, depth + 1)


def _function_texts(function: Any) -> Iterator[Any]:
    """Every name in a function of the model."""
    yield from (function.name, function.domain, *function.input, *function.output, *function.attribute)
    yield from (opset.domain for opset in function.opset_import)
    yield from _node_texts(function.node, 0)


def check_versions(model: Model, shown: str) -> None:
    """RLX8001 for what is no model, and for versions that nobody here knows."""
    if not model.HasField("graph") or not model.opset_import:
        fail("RLX8001", f"{shown} has no graph or no operator set: it is damaged, or no ONNX model")
    if model.ir_version > onnx.IR_VERSION:
        fail(
            "RLX8001",
            f"{shown} has the format of IR version {model.ir_version}; the package `onnx` {onnx.__version__} knows "
            f"those up to {onnx.IR_VERSION}",
            help="a newer `onnx` may know it",
        )
    newest = defs.onnx_opset_version()
    for opset in model.opset_import:
        if not isinstance(opset.domain, str) or not 0 < opset.version < 1 << 31:
            fail("RLX8001", f"{shown} is damaged: it has a set of operators without a version")
        if opset.domain in ("", "ai.onnx") and not OLDEST <= opset.version <= newest:
            fail(
                "RLX8001",
                f"{shown} uses version {opset.version} of ONNX's operators; known are {OLDEST} to {newest}",
                help="`onnx.version_converter.convert_version` changes it",
            )


def tensors_of(graph: Any, depth: int = 0) -> Iterator[Any]:
    """Every tensor that a graph holds: initializers and attributes, of inner graphs too."""
    if depth > MAX_NESTING:
        fail("RLX8003", f"the model has graphs nested more than {MAX_NESTING} deep")
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            for inner in (*((attribute.g,) if attribute.HasField("g") else ()), *attribute.graphs):
                yield from tensors_of(inner, depth + 1)


def _read_external(model: Model, folder: str, name: str, inputs: Inputs) -> None:
    """Read the weights that lie in further files, which must be below the model's folder: where it was asked for, or
    where it really lies, as in stores whose names are links to contents."""
    root = os.path.realpath(folder)
    roots = (root, os.path.dirname(os.path.realpath(name)))
    noted: set[str] = set()
    for tensor in tensors_of(model.graph):
        if not external_data_helper.uses_external_data(tensor):
            continue
        info = {entry.key: entry.value for entry in tensor.external_data}
        place = info.get("location", "")
        if "\0" in place:
            fail("RLX8004", f"the weight `{tensor.name}` of `{name}` lies in {place!r}, which no file is called")
        asked = os.path.join(root, place)
        path = os.path.realpath(asked)
        if not place or not any(os.path.commonpath((allowed, path)) == allowed for allowed in roots):
            fail("RLX8004", f"the weight `{tensor.name}` of `{name}` lies outside of the model's folder: `{place}`")
        if asked not in noted:
            noted.add(asked)
            inputs.note_side_file(asked)  # not what it leads to: a link may be changed
        tensor.raw_data = _slice_of(path, info, tensor, name)
        tensor.data_location = onnx.TensorProto.DEFAULT
        del tensor.external_data[:]


def _slice_of(path: str, info: dict[str, str], tensor: Any, name: str) -> bytes:
    """The bytes of one weight in a further file."""
    what = f"the weight `{tensor.name}` of `{name}`"
    shown = info["location"]
    try:
        offset = int(info.get("offset", "0"))
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            length = int(info["length"]) if "length" in info else size - offset
            if offset < 0 or length < 0:
                fail("RLX8004", f"{what} has the place {offset} and the length {length} in `{shown}`")
            if offset + length > size:
                fail("RLX8004", f"{what} ends after byte {offset + length} of `{shown}`, which has {size}",
                     help="the file is truncated; export or download it again")  # fmt: skip
            file.seek(offset)
            return file.read(length)
    except FileNotFoundError:
        near = did_you_mean(os.path.basename(path), _files_in(os.path.dirname(path)))
        fail("RLX8004", f"{what} lies in `{shown}`, which is missing",
             help=f"did you mean `{near}`?" if near else "put the file beside the model")  # fmt: skip
    except OSError as fault:
        fail("RLX8004", f"{what} lies in `{shown}`, which can't be read: {(fault.strerror or str(fault)).lower()}")
    except ValueError:
        fail("RLX8004", f"{what} has a place in `{shown}` that is no number")


def _files_in(folder: str) -> list[str]:
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []
