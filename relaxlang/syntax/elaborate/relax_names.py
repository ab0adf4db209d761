"""`R.…` apart from operators and annotations: constants, shapes, casts, dataflow, memory, devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from relaxlang.base.dtype import DType, dtype
from relaxlang.base.source import Span
from relaxlang.base.stored_array import StoredArray
from relaxlang.base.suggest import place_of
from relaxlang.ir import prim, relax
from relaxlang.ir.attrs import EMPTY, Attrs
from relaxlang.ir.module import VDevice
from relaxlang.ir.prim import PrimExpr
from relaxlang.ir.struct_info import (
    FuncStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    shape_info,
    tensor_info,
)
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import Value, as_dtype, describe, error
from relaxlang.syntax.core_ops import CORE_OPS, CoreOp
from relaxlang.syntax.elaborate.annotations import device_of, dimension, struct_info
from relaxlang.syntax.elaborate.native import Names, attributes
from relaxlang.syntax.struct_info import BaseCheck, base_check

if TYPE_CHECKING:
    from relaxlang.syntax.elaborate.relax_body import RelaxElaborator

names = Names("R")


class DataflowHead(Value):
    """`R.dataflow()`, after `with`."""

    kind = "dataflow block"


class CastValue(Value):
    """`R.match_cast(value, info)`, until it is bound."""

    kind = "match_cast"

    def __init__(self, value: relax.Expr, info: StructInfo, span: Span | None) -> None:
        self.value = value
        self.info = info
        self.span = span


# --- constants --------------------------------------------------------------------------------------------------------
@names("const")
def _const(ev: RelaxElaborator, node: tree.Call, value: Any, dtype: Any = None) -> relax.Expr:
    return constant(value, dtype, node.span)


def constant(value: Any, dtype: Any, span: Span | None) -> relax.Expr:
    """A constant from numbers, nested lists of them or an array; `dtype` None: the one that the numbers have."""
    import numpy as np

    if isinstance(value, relax.Constant):
        return value
    if isinstance(value, StoredArray):
        if dtype is None or as_dtype(dtype, span).numpy == value.dtype:
            return relax.Constant(value, span=span)
        value = value.read()
    if isinstance(value, np.ndarray):
        data = value if dtype is None else value.astype(as_dtype(dtype, span).numpy)
    else:
        of = as_dtype(dtype, span) if dtype is not None else _natural(value)
        plain = _plain(value, of, span)
        try:
            with np.errstate(over="ignore"):  # 1e39 as float32 is inf
                data = np.array(plain, dtype=of.numpy)
        except (ValueError, TypeError):
            raise error("RLX0128", "the rows of a constant have different lengths", span) from None
        except OverflowError:
            raise error("RLX0129", f"a number is out of range for `{of}`", span) from None
    data.flags.writeable = False
    return relax.Constant(data, span=span)


def _natural(value: Any) -> DType:
    """The type of constants without one: float32 when any number is a float, int32 for integers, bool."""
    found, stack = "bool", [value]
    while stack:
        item = stack.pop()
        if isinstance(item, (list, tuple)):
            stack.extend(item)
        elif isinstance(item, (prim.IntImm, prim.FloatImm)):
            return item.dtype
        elif isinstance(item, (float, str)):
            return dtype("float32")
        elif isinstance(item, int) and not isinstance(item, bool):
            found = "int32"
    return dtype(found if value != [] else "float32")


def _plain(value: Any, of: DType, span: Span | None) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(v, of, span) for v in value]
    if isinstance(value, (prim.IntImm, prim.FloatImm)):
        return value.value
    if isinstance(value, str) and of.is_float:
        from relaxlang.syntax.scalars import parse_float

        try:
            return parse_float(value)
        except ValueError:
            raise error("RLX0128", f"{value!r} is not a number", span) from None
    if isinstance(value, (bool, int, float)):
        if of.is_integer and isinstance(value, float) and not value.is_integer():
            raise error("RLX0128", f"`{value}` is no `{of}`", span)
        return int(value) if of.is_integer else value
    raise error("RLX0128", f"a constant is made of numbers, not {describe(value)}", span)


@names("shape")
def _shape(ev: RelaxElaborator, node: tree.Call, values: Any) -> relax.Expr:
    if isinstance(values, relax.ShapeExpr):
        return values
    if isinstance(values, relax.Expr):
        raise error("RLX0221", "`R.shape` takes a list of dimensions", node.span)
    dims = tuple(dimension(ev, v, node.span) for v in ev.iterate(values, node.span))
    return relax.ShapeExpr(dims, span=node.span)


@names("prim_value")
def _prim_value(ev: RelaxElaborator, node: tree.Call, value: Any) -> relax.Expr:
    if isinstance(value, relax.Expr) and isinstance(value.struct_info, PrimStructInfo):
        return value
    if not isinstance(value, (bool, int, float, PrimExpr)):
        raise error("RLX0116", f"`R.prim_value` takes a scalar, not {describe(value)}", node.span)
    return prim_value(value, node.span)


def prim_value(value: Any, span: Span | None) -> relax.Expr:
    """A scalar as a value of Relax; plain integers are int64, plain floats float64."""
    if isinstance(value, bool):
        value = prim.const(value, prim.BOOL)
    elif isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 63:
            raise error("RLX0129", f"`{value}` is out of range for `int64`", span)
        value = prim.const(value, prim.INT64)
    elif isinstance(value, float):
        value = prim.const(value, "float64")
    return relax.PrimValue(value, span=span)


@names("str")
def _str(ev: RelaxElaborator, node: tree.Call, value: Any) -> relax.Expr:
    if not isinstance(value, str):
        raise error("RLX0116", f"`R.str` takes a string, not {describe(value)}", node.span)
    return relax.StringImm(value, span=node.span)


@names("dtype")
def _dtype(ev: RelaxElaborator, node: tree.Call, value: Any) -> relax.Expr:
    return relax.DataTypeImm(as_dtype(value, node.span), span=node.span)


@names("tuple")
def _tuple(ev: RelaxElaborator, node: tree.Call, *fields: Any) -> relax.Expr:
    return relax.Tuple(tuple(ev.lift(f, node.span) for f in fields), span=node.span)


@names("ExternFunc")
def _extern(ev: Any, node: tree.Call, name: Any, info: Any = None, *, symbol: Any = None) -> relax.Expr:
    # `symbol` is what the module calls the function when that is no identifier; `elaborate.module` reads it.
    if not isinstance(name, str):
        raise error("RLX0116", f"`R.ExternFunc` takes a name, not {describe(name)}", node.span)
    if info is None:
        return relax.ExternFunc(name, span=node.span)
    return relax.ExternFunc(name, struct_info(info, node.span), span=node.span)


@names("ShapeExpr")
def _shape_expr(ev: RelaxElaborator, node: tree.Call, values: Any) -> Any:
    return _shape(ev, node, values)


@names("emit")
def _emit(ev: RelaxElaborator, node: tree.Call, value: Any) -> Any:
    """Binding is what an assignment does anyway."""
    return value


@names("emit_with_ty", "emit_with_sinfo")
def _emit_with_info(ev: RelaxElaborator, node: tree.Call, op: Any, args: Any, infos: Any = ()) -> relax.Expr:
    """A call by the name of the operator, with the struct info that is stated for it."""
    name = str(op).removeprefix("relax.")
    if name not in CORE_OPS:
        raise error("RLX0103", f"there is no operator `R.{name}` with stated struct info", node.span)
    values = tuple(ev.lift(a, node.span) for a in ev.iterate(args, node.span))
    stated = tuple(struct_info(i, node.span) for i in ev.iterate(infos, node.span))
    plain = CORE_OPS[name].params is not None  # what it states is what its arguments say
    return ev.core(name, values, EMPTY, () if plain else stated, node.span)


@names("emit_match_cast")
def _emit_match_cast(ev: RelaxElaborator, node: tree.Call, value: Any, info: Any) -> CastValue:
    return CastValue(ev.lift(value, node.span), struct_info(info, node.span), node.span)


@names("TupleGetItem")
def _item(ev: RelaxElaborator, node: tree.Call, value: Any, index: Any) -> relax.Expr:
    return relax.TupleGetItem(ev.lift(value, node.span), int(index), span=node.span)


# --- casts, dataflow, function ----------------------------------------------------------------------------------------
@names("match_cast")
def _match_cast(ev: RelaxElaborator, node: tree.Call, value: Any, struct_info_: Any = None, **words: Any) -> CastValue:
    given = words.get("struct_info", words.get("ty", struct_info_))
    return _cast(ev, ev.lift(value, node.span), struct_info(given, node.span), node.span)


def _cast(ev: RelaxElaborator, value: relax.Expr, info: StructInfo, span: Span | None) -> CastValue:
    known = value.struct_info
    if ev.check and known is not None and base_check(info, known) is BaseCheck.NEVER:
        raise error("RLX0201", f"a `{known}` can't be cast to `{info}`", span)
    return CastValue(value, info, span)


@names("match_shape")
def _match_shape(ev: RelaxElaborator, node: tree.Call, value: Any, shape: Any) -> CastValue:
    """The cast of 2022: a tensor to a shape, or a shape to a pattern, which stood first in 2021."""
    if isinstance(value, (tuple, list, relax.ShapeExpr)):
        value, shape = shape, value
    dims = (
        shape.values
        if isinstance(shape, relax.ShapeExpr)
        else tuple(dimension(ev, d, node.span) for d in ev.iterate(shape, node.span))
    )
    subject = ev.lift(value, node.span)
    known = subject.struct_info
    if isinstance(known, ShapeStructInfo):
        return _cast(ev, subject, shape_info(dims), node.span)
    of = known.dtype if isinstance(known, TensorStructInfo) else None
    return _cast(ev, subject, tensor_info(dims, of), node.span)


@names("dataflow")
def _dataflow(ev: RelaxElaborator, node: tree.Call) -> DataflowHead:
    return DataflowHead()


@names("output", "outputs")
def _output(ev: RelaxElaborator, node: tree.Call, *values: Any) -> None:
    flat: list[Any] = []
    for value in values:
        flat.extend(value) if isinstance(value, (tuple, list)) else flat.append(value)
    ev.output(flat, node)


@names("func_attr", "func_attrs")
def _func_attr(ev: RelaxElaborator, node: tree.Call, attrs: Any) -> None:
    ev.attrs.update(attributes(attrs, "R.func_attr", node))


# --- memory, shapes, devices ------------------------------------------------------------------------------------------
def _structural(row: CoreOp, params: tuple[str, ...]) -> None:
    """A structural operator that is called in the plain way, with positional and keyword arguments."""
    known = [p.rstrip("?=") for p in params]

    def make(ev: RelaxElaborator, node: tree.Call, *args: Any, **words: Any) -> relax.Expr:
        given = dict(zip(known, args))
        for word in ("sinfo_args", "ty_args"):  # TVM's memory planning states what is inferred here
            words.pop(word, None)
        for word, value in words.items():
            if word not in known or word in given:
                text = f"got `{word}` twice" if word in given else f"has no parameter `{word}`"
                raise error(
                    "RLX0114",
                    f"`R.{row.name}` {text}",
                    place_of(word, node.span),
                    help=f"it takes {', '.join(known)}" if known else "",
                )
            given[word] = value
        if len(args) > len(known):
            raise error("RLX0113", f"`R.{row.name}` takes {len(known)} arguments, {len(args)} were given", node.span)
        values: list[relax.Expr] = []
        for param, name in zip(params, known):
            if given.get(name) is not None:
                values.append(_argument(ev, name, given[name], node))
            elif param.endswith("="):
                values.append(relax.Tuple((), span=node.span))
            elif not param.endswith("?"):
                raise error("RLX0113", f"`R.{row.name}` lacks its argument `{name}`", node.span)
        return ev.core(row.name, tuple(values), EMPTY, (), node.span)

    names(row.name)(make)


def _argument(ev: RelaxElaborator, name: str, value: Any, node: tree.Call) -> relax.Expr:
    if name == "dtype" and isinstance(value, (str, DType)):
        return relax.DataTypeImm(as_dtype(value, node.span), span=node.span)
    return ev.lift(value, node.span, shape=name in ("shape", "size"))


for _row in CORE_OPS.values():
    if _row.params is not None:
        _structural(_row, _row.params)


def _memory(name: str, ev: RelaxElaborator, node: tree.Call, *args: Any) -> relax.Expr:
    made: relax.Expr = names.table[f"memory.{name}"].call(ev, list(args), {}, node)
    return made


# The memory of RFC 0089, which had other names and another order of arguments.
@names("runtime.builtin.alloc_storage")
def _alloc_storage(
    ev: RelaxElaborator, node: tree.Call, size: Any, device: Any = 0, dtype: Any = "uint8"
) -> relax.Expr:
    return _memory("alloc_storage", ev, node, size, device, "global", dtype)


@names("runtime.builtin.alloc_tensor")
def _alloc_tensor(
    ev: RelaxElaborator, node: tree.Call, storage: Any, shape: Any, offset: Any = 0, dtype: Any = "float32"
) -> relax.Expr:
    return _memory("alloc_tensor", ev, node, storage, offset, shape, dtype)


@names("runtime.builtin.free_storage")
def _free_storage(ev: RelaxElaborator, node: tree.Call, storage: Any) -> relax.Expr:
    return _memory("kill_storage", ev, node, storage)


@names("runtime.builtin.free_tensor")
def _free_tensor(ev: RelaxElaborator, node: tree.Call, tensor: Any) -> relax.Expr:
    return _memory("kill_tensor", ev, node, tensor)


@names("to_vdevice")
def _to_vdevice(ev: RelaxElaborator, node: tree.Call, data: Any, dst_vdevice: Any) -> relax.Expr:
    device = device_of(ev, dst_vdevice, node.span)
    return ev.core("to_vdevice", (ev.lift(data, node.span),), Attrs({"dst_vdevice": device}), (), node.span)


@names("hint_on_device")
def _hint(
    ev: RelaxElaborator, node: tree.Call, data: Any, dst_vdevice: Any, memory_scope: Any = "global"
) -> relax.Expr:
    attrs = Attrs({"device_type": dst_vdevice[0], "index": dst_vdevice[1], "memory_scope": memory_scope})
    return ev.core("hint_on_device", (ev.lift(data, node.span),), attrs, (), node.span)


def _device(kind: str) -> None:
    def make(ev: RelaxElaborator, node: tree.Call, index: Any = 0) -> tuple[str, int]:
        return kind, int(index)

    names(kind)(make)


for _kind in "cpu cuda gpu rocm vulkan opencl metal webgpu vpi ext_dev hexagon".split():
    _device(_kind)


@names("device")
def _any_device(ev: RelaxElaborator, node: tree.Call, dev_type: Any, dev_id: Any = 0) -> tuple[str, int]:
    return str(dev_type), int(dev_id)


def vdevice(target: Any, vdevice_id: Any = 0, memory_scope: Any = "global") -> VDevice:
    """A virtual device from the arguments of `I.vdevice`."""
    return VDevice(target, int(vdevice_id), str(memory_scope))


FunctionInfo = FuncStructInfo
