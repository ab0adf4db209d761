"""The calls that are part of Relax itself: kernels, packed functions, closures, shapes as values, explicit memory.

They exist at different stages of lowering; the interpreter runs them all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from relaxlang.base.diagnostics import fail
from relaxlang.base.dtype import DType, dtype
from relaxlang.interp.evaluate import OPERATIONS, Evaluator, leaves, no_output, outputs_for
from relaxlang.interp.memory import fresh
from relaxlang.interp.values import Scope
from relaxlang.ir import relax
from relaxlang.ir.struct_info import StructInfo, TupleStructInfo
from relaxlang.runtime import builtins
from relaxlang.runtime.memory import Storage, allocate
from relaxlang.runtime.ndarray import ShapeTuple

if TYPE_CHECKING:
    from relaxlang.interp.interpreter import Interpreter

PACKED: dict[str, Callable[..., Any]] = {}
"""Builtins of the virtual machine that need other values here."""


def _operation(*names: str) -> Callable[[Evaluator], Evaluator]:
    def enter(function: Evaluator) -> Evaluator:
        OPERATIONS.update(dict.fromkeys(names, function))
        return function

    return enter


def _values(interp: Interpreter, scope: Scope, e: relax.Expr) -> list[Any]:
    """The arguments that a tuple holds; a value that is none is the only one."""
    value = interp.evaluate(scope, e)
    return list(value) if isinstance(value, tuple) and not isinstance(value, ShapeTuple) else [value]


def _out_info(call: relax.Call) -> StructInfo:
    """The struct info of the result; several stand for a tuple."""
    if not call.sinfo_args:
        fail("RLX6034", "the call does not state its result", call.span)
    return call.sinfo_args[0] if len(call.sinfo_args) == 1 else TupleStructInfo(call.sinfo_args)


# --- kernels ----------------------------------------------------------------------------------------------------------
@_operation("call_tir", "call_tir_with_grad")
def _call_tir(interp: Interpreter, scope: Scope, call: relax.Call) -> Any:
    outputs = outputs_for(interp, scope, _out_info(call))
    _run_kernel(interp, scope, call, _values(interp, scope, call.args[1]), leaves(outputs))
    return outputs


@_operation("call_tir_inplace")
def _call_tir_inplace(interp: Interpreter, scope: Scope, call: relax.Call) -> Any:
    """Result `k` is argument `inplace_indices[k]`, written to; -1 asks for a fresh tensor."""
    args, info = _values(interp, scope, call.args[1]), _out_info(call)
    infos = info.fields if isinstance(info, TupleStructInfo) else (info,)
    places = call.attrs["inplace_indices"]
    if isinstance(places, int):
        places = (places,)
    if len(places) != len(infos) or any(not -1 <= p < len(args) for p in places):
        fail("RLX6034", "`inplace_indices` must name an argument, or -1, for each result", call.span)
    results = [outputs_for(interp, scope, i) if p < 0 else args[p] for p, i in zip(places, infos)]
    _run_kernel(interp, scope, call, args, [r for r, p in zip(results, places) if p < 0])
    return tuple(results) if isinstance(info, TupleStructInfo) else results[0]


def _run_kernel(interp: Interpreter, scope: Scope, call: relax.Call, args: list[Any], outputs: list[Any]) -> None:
    callee = call.args[0]
    extra = list(interp.evaluate(scope, call.args[2])) if len(call.args) > 2 else []
    given = [*args, *outputs, *extra]
    if isinstance(callee, relax.GlobalVar):
        interp.call_global(callee, given, scope.depth + 1, call.span)
    else:
        interp.apply(interp.evaluate(scope, callee), given, scope, call.span)


@_operation("call_dps_packed")
def _call_dps_packed(interp: Interpreter, scope: Scope, call: relax.Call) -> Any:
    outputs = outputs_for(interp, scope, _out_info(call))
    function = interp.evaluate(scope, call.args[0])
    interp.apply(function, [*_values(interp, scope, call.args[1]), *leaves(outputs)], scope, call.span)
    return outputs


@_operation("vm.call_tir_dyn")
def _call_tir_dyn(interp: Interpreter, scope: Scope, call: relax.Call) -> Any:
    """The last of the arguments is a shape: the kernel's scalars."""
    *args, scalars = _values(interp, scope, call.args[1])
    return interp.apply(interp.evaluate(scope, call.args[0]), [*args, *scalars], scope, call.span)


# --- functions --------------------------------------------------------------------------------------------------------
@_operation("call_packed", "call_pure_packed", "call_inplace_packed")
def _call_packed(interp: Interpreter, scope: Scope, call: relax.Call) -> Any:
    function, *args = [interp.evaluate(scope, a) for a in call.args]
    if isinstance(function, str):
        function = interp.packed_func(function, call.span)
    return interp.apply(function, args, scope, call.span)


@_operation("call_builtin_with_ctx")
def _call_builtin(interp: Interpreter, scope: Scope, call: relax.Call) -> Any:
    """A packed function that takes the machine, here the interpreter, before its arguments."""
    function, args = call.args[0], _values(interp, scope, call.args[1])
    return interp.apply(interp.evaluate(scope, function), [interp, *args], scope, call.span)


@_operation("make_closure")
def _make_closure(interp: Interpreter, scope: Scope, call: relax.Call) -> Any:
    return interp.evaluate(scope, call.args[0]).capture(_values(interp, scope, call.args[1]))


@_operation("invoke_closure", "invoke_pure_closure", "call_py_func")
def _invoke_closure(interp: Interpreter, scope: Scope, call: relax.Call) -> Any:
    function = interp.evaluate(scope, call.args[0])
    return interp.apply(function, _values(interp, scope, call.args[1]), scope, call.span)


# --- values -----------------------------------------------------------------------------------------------------------
def _plain(function: Callable[..., Any]) -> Evaluator:
    """An operation on the values of its arguments."""

    def run(interp: Interpreter, scope: Scope, call: relax.Call) -> Any:
        return function(*[interp.evaluate(scope, a) for a in call.args])

    return run


def _first(value: Any, *rest: Any) -> Any:
    return value


OPERATIONS.update({
    "shape_of": _plain(builtins.shape_of),
    "tensor_to_shape": _plain(builtins.tensor_to_shape),
    "null_value": _plain(builtins.null_value),
    "builtin.stop_lift_params": _plain(_first),
    "to_vdevice": _plain(_first),
    "hint_on_device": _plain(_first),
})  # fmt: skip


# --- memory -----------------------------------------------------------------------------------------------------------
@_operation("builtin.alloc_tensor")
def _alloc_tensor(interp: Interpreter, scope: Scope, call: relax.Call) -> Any:
    shape, of = interp.evaluate(scope, call.args[0]), interp.evaluate(scope, call.args[1])
    if not isinstance(of, DType):
        no_output(call.struct_info or relax.StringImm(str(of)).struct_info, call.span)
    return fresh(shape, of)


@_operation("memory.alloc_storage", "vm.alloc_storage")
def _alloc_storage(interp: Interpreter, scope: Scope, call: relax.Call) -> Any:
    """Memory: a shape, then, in an order that differs, a device, a scope, and the type of what the shape counts."""
    shape, *rest = [interp.evaluate(scope, a) for a in call.args]
    of = next((v for v in rest if isinstance(v, DType)), dtype("uint8"))
    return _storage(shape, of)


def _storage(shape: ShapeTuple, of: DType) -> Storage:
    storage = allocate(math.prod(shape) * of.itemsize)
    storage.fill(0xFF)  # NaN, or -1
    return storage


@_operation("memory.alloc_tensor", "vm.alloc_tensor")
def _tensor_on_storage(interp: Interpreter, scope: Scope, call: relax.Call) -> Any:
    storage, offset, shape, of = [interp.evaluate(scope, a) for a in call.args[:4]]
    return builtins.alloc_tensor(storage, offset, shape, of)


@_operation("memory.kill_storage", "memory.kill_tensor", "vm.kill_object")
def _kill(interp: Interpreter, scope: Scope, call: relax.Call) -> Any:
    """Nothing: memory lives as long as something refers to it."""
    return ()


# --- builtins with other values ---------------------------------------------------------------------------------------
def _alloc_shape_heap(vm: Any, size: int) -> Any:
    return np.zeros(size, np.int64)


def _make_shape(heap: Any, ndim: int, *rest: int) -> ShapeTuple:
    return ShapeTuple([heap[r] if code else r for code, r in zip(rest[::2], rest[1::2])])


def _alloc_storage_builtin(vm: Any, shape: ShapeTuple, *rest: Any) -> Storage:
    of = next((v for v in rest if isinstance(v, DType)), dtype("uint8"))
    return _storage(shape, of)


PACKED.update({
    "vm.builtin.null_value": builtins.null_value,
    "vm.builtin.alloc_shape_heap": _alloc_shape_heap,
    "vm.builtin.make_shape": _make_shape,
    "vm.builtin.alloc_storage": _alloc_storage_builtin,
})  # fmt: skip
