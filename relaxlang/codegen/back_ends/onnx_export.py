"""From Relax functions of plain operators to ONNX models.

`OPERATORS` says for each operator what nodes stand for a call of it; a call that ONNX does not say in the same way
raises `NotInOnnx`, which is how the back end asks whether it may take it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from relaxlang.ir import prim, relax
from relaxlang.ir.struct_info import TensorStructInfo, TupleStructInfo

if TYPE_CHECKING:
    import onnx

OPSET = 20
IR_VERSION = 9
_FLOATS = ("float16", "float32", "float64")
_TYPES = {
    "float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7, "bool": 9, "float16": 10, "float64": 11,
}  # fmt: skip
"""Element types, and what ONNX calls them."""


class NotInOnnx(Exception):
    """A call that ONNX has no nodes for."""


class Writer:
    """The graph of one function under construction; `names` are those of its values."""

    def __init__(self) -> None:
        self.nodes: list[tuple[str, list[str], str, dict[str, Any]]] = []
        self.constants: dict[str, np.ndarray[Any, Any]] = {}
        self.names: dict[relax.Expr, str] = {}

    def name(self, value: relax.Expr) -> str:
        """The name of an operand: a variable's, or a new one for a constant."""
        known = self.names.get(value)
        if known is None:
            if isinstance(value, relax.Constant):
                known = self.constant(np.asarray(value.data))
            elif isinstance(value, relax.Var) and isinstance(value.struct_info, TensorStructInfo):
                known = f"v{len(self.names)}"
            else:
                raise NotInOnnx
            self.names[value] = known
        return known

    def constant(self, value: np.ndarray[Any, Any]) -> str:
        """A constant of the graph."""
        if value.dtype.name not in _TYPES:
            raise NotInOnnx
        name = f"c{len(self.constants)}"
        self.constants[name] = value
        return name

    def integers(self, values: Sequence[int]) -> str:
        """A constant list of integers."""
        return self.constant(np.array(values, np.int64))

    def node(self, op: str, inputs: Sequence[str], **attributes: Any) -> str:
        """A node, and the name of its result."""
        result = f"t{len(self.nodes)}"
        self.nodes.append((op, list(inputs), result, attributes))
        return result


Emit = Callable[[Writer, relax.Call], str]


# --- operators --------------------------------------------------------------------------------------------------------
def _tensor(value: relax.Expr) -> TensorStructInfo:
    info = value.struct_info
    if not isinstance(info, TensorStructInfo) or info.ndim < 0 or info.dtype is None:
        raise NotInOnnx
    return info


def _dtype_name(value: relax.Expr) -> str:
    of = _tensor(value).dtype
    assert of is not None  # `_tensor` lets no other through
    return of.name


def _require(good: bool) -> None:
    if not good:
        raise NotInOnnx


def _floating(call: relax.Call) -> None:
    """Operands and result are of one floating type."""
    names = {_dtype_name(a) for a in (*call.args, call) if isinstance(a.struct_info, TensorStructInfo)}
    _require(len(names) == 1 and names <= set(_FLOATS))


def _plain(op: str, **attributes: Any) -> Emit:
    """A node on the operands, which are of one floating type."""

    def emit(w: Writer, call: relax.Call) -> str:
        _floating(call)
        return w.node(op, [w.name(a) for a in call.args], **attributes)

    return emit


def _matmul(w: Writer, call: relax.Call) -> str:
    _floating(call)
    return w.node("MatMul", [w.name(a) for a in call.args])


def _silu(w: Writer, call: relax.Call) -> str:
    _floating(call)
    x = w.name(call.args[0])
    return w.node("Mul", [x, w.node("Sigmoid", [x])])


def _along_axis(op: str) -> Emit:
    def emit(w: Writer, call: relax.Call) -> str:
        _floating(call)
        return w.node(op, [w.name(call.args[0])], axis=int(call.attrs["axis"]))

    return emit


def _reduce(op: str) -> Emit:
    def emit(w: Writer, call: relax.Call) -> str:
        _floating(call)
        axes, rank = call.attrs["axis"], _tensor(call.args[0]).ndim
        chosen = range(rank) if axes is None else (axes,) if isinstance(axes, int) else axes
        keep = int(bool(call.attrs["keepdims"]))
        return w.node(op, [w.name(call.args[0]), w.integers([a % rank for a in chosen])], keepdims=keep)

    return emit


def _layer_norm(w: Writer, call: relax.Call) -> str:
    _floating(call)
    rank, axes = _tensor(call.args[0]).ndim, call.attrs["axes"]
    chosen = sorted(a % rank for a in ((axes,) if isinstance(axes, int) else axes))
    _require(bool(call.attrs["center"] and call.attrs["scale"]))
    _require(chosen == list(range(chosen[0], rank)))
    inputs = [w.name(a) for a in call.args]
    return w.node("LayerNormalization", inputs, axis=chosen[0], epsilon=float(call.attrs["epsilon"]))


def _conv2d(w: Writer, call: relax.Call) -> str:
    _floating(call)
    attrs = call.attrs
    _require(attrs["data_layout"] == "NCHW" and attrs["kernel_layout"] == "OIHW")
    _require(attrs["out_layout"] in (None, "", "NCHW"))
    return w.node(
        "Conv",
        [w.name(a) for a in call.args],
        strides=_pair(attrs["strides"]),
        pads=_pads(attrs["padding"]),
        dilations=_pair(attrs["dilation"]),
        group=int(attrs["groups"]),
    )


def _pool(op: str) -> Emit:
    def emit(w: Writer, call: relax.Call) -> str:
        _floating(call)
        attrs = call.attrs
        _require(attrs["layout"] == "NCHW" and attrs["out_layout"] in (None, "", "NCHW"))
        _require(not attrs["ceil_mode"] and _pair(attrs["dilation"]) == [1, 1])
        counts = {"count_include_pad": int(bool(attrs["count_include_pad"]))} if op == "AveragePool" else {}
        size, strides = _pair(attrs["pool_size"]), _pair(attrs["strides"])
        inputs = [w.name(call.args[0])]
        return w.node(op, inputs, kernel_shape=size, strides=strides, pads=_pads(attrs["padding"]), **counts)

    return emit


def _pair(value: Any) -> list[int]:
    made = [int(value)] * 2 if isinstance(value, int) else [int(v) for v in value]
    return made * 2 if len(made) == 1 else made


def _pads(value: Any) -> list[int]:
    """Before and after, in ONNX's order."""
    made = _pair(value)
    return made * 2 if len(made) == 2 else made


def _reshape(w: Writer, call: relax.Call) -> str:
    """The new shape may have one dimension that is not known before the program runs."""
    _require(_dtype_name(call.args[0]) in _TYPES)
    dims = _tensor(call).dims
    _require(dims is not None)
    shape = [int(d.value) if isinstance(d, prim.IntImm) else -1 for d in dims or ()]
    _require(shape.count(-1) <= 1 and 0 not in shape)
    return w.node("Reshape", [w.name(call.args[0]), w.integers(shape)])


def _permute_dims(w: Writer, call: relax.Call) -> str:
    rank, axes = _tensor(call.args[0]).ndim, call.attrs["axes"]
    _require(_dtype_name(call) in _TYPES)
    perm = list(range(rank))[::-1] if axes is None else [a % rank for a in axes]
    return w.node("Transpose", [w.name(call.args[0])], perm=perm)


def _concat(w: Writer, call: relax.Call) -> str:
    parts = call.args[0]
    _require(isinstance(parts, relax.Tuple) and _dtype_name(call) in _TYPES)
    assert isinstance(parts, relax.Tuple)
    return w.node("Concat", [w.name(p) for p in parts.fields], axis=int(call.attrs["axis"] or 0))


OPERATORS: Mapping[str, Emit] = {
    "matmul": _matmul, "nn.conv2d": _conv2d, "nn.max_pool2d": _pool("MaxPool"), "nn.avg_pool2d": _pool("AveragePool"),
    "add": _plain("Add"), "subtract": _plain("Sub"), "multiply": _plain("Mul"), "divide": _plain("Div"),
    "maximum": _plain("Max"), "minimum": _plain("Min"), "power": _plain("Pow"), "negative": _plain("Neg"),
    "abs": _plain("Abs"), "exp": _plain("Exp"), "log": _plain("Log"), "sqrt": _plain("Sqrt"), "erf": _plain("Erf"),
    "tanh": _plain("Tanh"), "sigmoid": _plain("Sigmoid"), "nn.relu": _plain("Relu"), "nn.silu": _silu,
    "nn.gelu": _plain("Gelu", approximate="none"), "nn.gelu_tanh": _plain("Gelu", approximate="tanh"),
    "nn.softmax": _along_axis("Softmax"), "nn.log_softmax": _along_axis("LogSoftmax"), "nn.layer_norm": _layer_norm,
    "sum": _reduce("ReduceSum"), "mean": _reduce("ReduceMean"), "max": _reduce("ReduceMax"),
    "min": _reduce("ReduceMin"), "reshape": _reshape, "permute_dims": _permute_dims, "concat": _concat,
}  # fmt: skip
"""What each operator is in ONNX."""


def emit(writer: Writer, call: relax.Expr) -> str:
    """The nodes of a call, and the name of its result. `NotInOnnx` when there are none."""
    if not isinstance(call, relax.Call) or not isinstance(call.op, relax.Op) or call.op.name not in OPERATORS:
        raise NotInOnnx
    wanted = call.attrs.get("out_dtype")
    if wanted is not None and wanted is not _tensor(call.args[0]).dtype:
        raise NotInOnnx
    return OPERATORS[call.op.name](writer, call)


# --- models -----------------------------------------------------------------------------------------------------------
def to_onnx(func: relax.Function) -> bytes:
    """The model of a function of one block; parameters that are no tensors are left out. `NotInOnnx` for what ONNX does
    not say. Equal functions give equal bytes."""
    from onnx import helper, numpy_helper

    writer = Writer()
    params = [p for p in func.params if isinstance(p.struct_info, TensorStructInfo)]
    inputs = [_value_info(f"in{i}", p, f"in{i}") for i, p in enumerate(params)]
    for index, param in enumerate(params):
        writer.names[param] = f"in{index}"
    for block in func.body.blocks:
        for binding in block.bindings:
            _bind(writer, binding)
    results = _results(func)
    nodes = [helper.make_node(op, given, [made], **attrs) for op, given, made, attrs in writer.nodes]
    for index, result in enumerate(results):
        nodes.append(helper.make_node("Identity", [writer.name(result)], [f"out{index}"]))
    outputs = [_value_info(f"out{i}", r, f"out{i}") for i, r in enumerate(results)]
    weights = [
        numpy_helper.from_array(np.ascontiguousarray(v).reshape(v.shape), n) for n, v in writer.constants.items()
    ]
    graph = helper.make_graph(nodes, "relaxlang", inputs, outputs, weights)
    opset = helper.make_opsetid("", OPSET)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION)
    return bytes(model.SerializeToString(deterministic=True))


def _bind(writer: Writer, binding: relax.Binding) -> None:
    """Write the value of a variable; of another variable or a tuple only the name is noted."""
    value = binding.value
    if isinstance(binding, relax.VarBinding) and isinstance(value, (relax.Var, relax.Constant)):
        writer.names[binding.var] = writer.name(value)
    elif not isinstance(value, relax.Tuple):
        if not isinstance(binding, relax.VarBinding):
            raise NotInOnnx
        writer.names[binding.var] = emit(writer, value)


def _results(func: relax.Function) -> list[relax.Expr]:
    """What the function gives: one value, or the fields of a tuple."""
    values = {b.var: b.value for block in func.body.blocks for b in block.bindings}
    result: relax.Expr = func.body.body
    while isinstance(result, relax.Var) and isinstance(values.get(result), (relax.Var, relax.Tuple)):
        result = values[result]
    if isinstance(result.struct_info, TupleStructInfo) and not isinstance(result, relax.Tuple):
        raise NotInOnnx
    return list(result.fields) if isinstance(result, relax.Tuple) else [result]


def _value_info(name: str, value: relax.Expr, place: str) -> onnx.ValueInfoProto:
    """The type of an input or output; a dimension that is not known has the name of its place."""
    from onnx import helper

    info = _tensor(value)
    assert info.dtype is not None
    if info.dtype.name not in _TYPES:
        raise NotInOnnx
    dims = info.dims
    shape = [int(d.value) if isinstance(d, prim.IntImm) else f"{place}_{i}" for i, d in enumerate(dims or ())]
    if dims is None:
        shape = [f"{place}_{i}" for i in range(info.ndim)]
    made: onnx.ValueInfoProto = helper.make_tensor_value_info(name, _TYPES[info.dtype.name], shape)
    return made
