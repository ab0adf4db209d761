"""The operators that belong to the IR and not to the library: calls of kernels and packed functions, closures, memory.

One table says of each what the struct info of its result is and whether it is pure; parser, normaliser and analyses
read it. `call_packed` is no operator: such a call has the packed function as its callee.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from relaxlang.base.diagnostics import fail
from relaxlang.base.node import Node, node
from relaxlang.ir import prim, relax
from relaxlang.ir.struct_info import (
    OBJECT,
    VOID_TUPLE,
    FuncStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    shape_info,
    tensor_info,
)
from relaxlang.ir.visit import free_vars
from relaxlang.syntax.struct_info import bound_vars, dims_of, erase, replaced, unify

Rule = Callable[[relax.Call], StructInfo]


@node
class CoreOp(Node):
    """A structural operator: its name, the rule for its result, whether it is free of side effects.

    `params` are its parameters by name, for those that are called in the plain way; "?" ends the name of one that may
    be left out, "=" of one whose place a unit tuple takes. None: the call has a form of its own. `quiet` operators
    manage memory: nothing outside sees that they ran, so they may stand in pure functions and dataflow blocks, and yet
    two of them are never merged and none is dropped at will.
    """

    name: str
    infer: Rule
    pure: bool
    params: tuple[str, ...] | None = None
    quiet: bool = False


def _stated(call: relax.Call) -> StructInfo:
    """What the call states."""
    if not call.sinfo_args:
        return OBJECT
    return call.sinfo_args[0] if len(call.sinfo_args) == 1 else TupleStructInfo(call.sinfo_args)


def _object(call: relax.Call) -> StructInfo:
    return OBJECT


def _void(call: relax.Call) -> StructInfo:
    return VOID_TUPLE


def _first(call: relax.Call) -> StructInfo:
    return call.args[0].struct_info or OBJECT


def _closure(call: relax.Call) -> StructInfo:
    """The function without the parameters that are bound, in terms of the values that they are bound to."""
    of, bound = call.args[0].struct_info, call.args[1]
    if not isinstance(of, FuncStructInfo) or of.params is None or not isinstance(bound, relax.Tuple):
        return OBJECT
    count = len(of.params) - len(bound.fields)
    mapping: dict[prim.Var, prim.PrimExpr] = {}
    for param, value in zip(of.params[count:], bound.fields):
        unify(param, value.struct_info or OBJECT, mapping)
    kept = tuple(replaced(p, mapping) for p in of.params[:count])
    lost = set(bound_vars(of.params[count:])) - mapping.keys() - set(bound_vars(of.params[:count]))
    ret = erase(of.ret, [v for v in free_vars(of.ret) if v not in lost])
    return FuncStructInfo(kept, replaced(ret, mapping), of.purity)


def _shape_of(call: relax.Call) -> StructInfo:
    of = call.args[0].struct_info
    if not isinstance(of, TensorStructInfo):
        if of is None or of is OBJECT:
            return shape_info()
        fail("RLX0206", "`R.shape_of` takes a tensor", call.args[0].span or call.span)
    return shape_info(dims_of(of), of.ndim)


def _tensor_to_shape(call: relax.Call) -> StructInfo:
    dims = dims_of(call.args[0].struct_info)
    length = getattr(dims[0], "value", -1) if dims is not None and len(dims) == 1 else -1
    return shape_info(None, length)


def _tensor_of(shape: relax.Expr, dtype: relax.Expr) -> StructInfo:
    of = dtype.value if isinstance(dtype, relax.DataTypeImm) else None
    info = shape.struct_info
    if isinstance(shape, relax.ShapeExpr):
        return tensor_info(shape.values, of)
    if isinstance(info, ShapeStructInfo):
        return tensor_info(info.values, of, info.ndim) if info.values is not None else tensor_info(shape, of, info.ndim)
    return tensor_info(None, of)


def _view(call: relax.Call) -> StructInfo:
    """The data under another shape or type; a unit tuple stands for what stays."""
    of = call.args[0].struct_info
    if not isinstance(of, TensorStructInfo):
        return tensor_info()
    shape, dtype = call.args[1], call.args[2]
    made = _tensor_of(shape, dtype)
    assert isinstance(made, TensorStructInfo)
    kept = of if isinstance(shape, relax.Tuple) else made
    result = tensor_info(kept.shape, of.dtype if isinstance(dtype, relax.Tuple) else made.dtype, kept.ndim)
    offset = call.args[3] if len(call.args) > 3 else None
    _check_view(of, result, offset.value if isinstance(offset, relax.PrimValue) else None, call)
    return result


def _check_view(of: TensorStructInfo, view: TensorStructInfo, offset: prim.PrimExpr | None, call: relax.Call) -> None:
    """A view must lie inside its tensor, as far as their sizes are known."""
    if view.dtype is prim.VOID:
        fail("RLX0205", "a view cannot be of `void`", call.span)
    first = offset.value if isinstance(offset, prim.IntImm) else 0
    if first < 0:
        fail("RLX0209", f"a view cannot start {-first} bytes before its tensor", call.span)
    whole, part = _bytes(of), _bytes(view)
    same = view.shape is of.shape and view.dtype is of.dtype
    if (of.dtype is None) is not (view.dtype is None):
        whole = None
    if (same and first > 0) or (whole is not None and part is not None and first + part > whole):
        unit = "elements" if of.dtype is None else "bytes"
        known = whole is not None and part is not None
        size = f": it ends after {first + (part or 0)} {unit}, the tensor after {whole}" if known else ""
        fail("RLX0209", f"the view is larger than its tensor{size}", call.span)


def _bytes(info: TensorStructInfo) -> int | None:
    """The size of a tensor in bytes, or in elements when their type is not known; None when it depends on sizes."""
    dims = dims_of(info)
    if dims is None or not all(isinstance(d, prim.IntImm) for d in dims):
        return None
    return prod(d.value for d in dims if isinstance(d, prim.IntImm)) * (info.dtype.itemsize if info.dtype else 1)


def _to_device(call: relax.Call) -> StructInfo:
    of, device = call.args[0].struct_info, call.attrs.get("dst_vdevice")
    return of.replace(vdevice=device) if isinstance(of, TensorStructInfo) and device is not None else of or OBJECT


def _table(*rows: CoreOp) -> dict[str, CoreOp]:
    return {row.name: row for row in rows}


CORE_OPS: dict[str, CoreOp] = _table(
    CoreOp("call_tir", _stated, True),
    CoreOp("call_tir_inplace", _stated, True),
    CoreOp("call_tir_with_grad", _stated, True),
    CoreOp("call_dps_packed", _stated, True),
    CoreOp("call_pure_packed", _stated, True),
    CoreOp("call_inplace_packed", _stated, True),
    CoreOp("call_py_func", _stated, False),
    CoreOp("call_builtin_with_ctx", _stated, False),
    CoreOp("invoke_closure", _stated, False),
    CoreOp("invoke_pure_closure", _stated, True),
    CoreOp("make_closure", _closure, True),
    CoreOp("dist.call_tir", _stated, True),
    CoreOp("dist.call_tir_local_view", _stated, True),
    CoreOp("dist.const", _stated, True),
    CoreOp("null_value", _object, True, ()),
    CoreOp("shape_of", _shape_of, True, ("expr",)),
    CoreOp("tensor_to_shape", _tensor_to_shape, True, ("expr",)),
    CoreOp("builtin.alloc_tensor", lambda c: _tensor_of(c.args[0], c.args[1]), False,
           ("shape", "dtype", "runtime_device_index", "storage_scope?"), quiet=True),
    CoreOp("builtin.stop_lift_params", _first, True, ("x",)),
    CoreOp("memory.alloc_storage", _object, False,
           ("size", "virtual_device_index", "storage_scope", "dtype"), quiet=True),
    CoreOp("memory.alloc_tensor", lambda c: _tensor_of(c.args[2], c.args[3]), False,
           ("storage", "offset", "shape", "dtype", "runtime_device_index?"), quiet=True),
    CoreOp("memory.view", _view, True, ("data", "shape=", "dtype=", "relative_byte_offset=")),
    CoreOp("memory.ensure_zero_offset", _first, True, ("data",)),
    CoreOp("memory.kill_storage", _void, False, ("storage",), quiet=True),
    CoreOp("memory.kill_tensor", _void, False, ("tensor",), quiet=True),
    CoreOp("vm.alloc_storage", _object, False,
           ("shape", "runtime_device_index", "dtype", "storage_scope?"), quiet=True),
    CoreOp("vm.alloc_tensor", lambda c: _tensor_of(c.args[2], c.args[3]), False,
           ("storage", "offset", "shape", "dtype", "runtime_device_index?"), quiet=True),
    CoreOp("vm.call_tir_dyn", _void, False, ("func", "args")),
    CoreOp("vm.kill_object", _void, False, ("obj",), quiet=True),
    CoreOp("to_vdevice", _to_device, True),
    CoreOp("hint_on_device", _first, True),
)  # fmt: skip
