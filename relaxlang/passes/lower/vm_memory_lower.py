"""VMMemoryLower: memory, shape and closure operators become what the virtual machine has."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

from relaxlang.base.record import record
from relaxlang.ir import prim, relax
from relaxlang.ir.attrs import EMPTY
from relaxlang.ir.module import IRModule
from relaxlang.ir.prim import INT64
from relaxlang.ir.struct_info import OBJECT, StructInfo, TupleStructInfo
from relaxlang.passes.base import FunctionPass, PassContext
from relaxlang.passes.bindings import BindingRewriter, promised_pure
from relaxlang.passes.relax.lambda_lift import LambdaLift


@record
class VMMemoryLower(FunctionPass):
    """Turn `builtin.alloc_tensor`, `memory.*`, `shape_of`, `tensor_to_shape`, closures and purity wrappers into storage
    allocations and calls of the machine's builtins.

    Before:

        @R.function(private=True, pure=False)
        def main(x: R.Tensor((n, 4), "float32")) -> R.Shape(ndim=2):
            s: R.Shape(ndim=2) = R.shape_of(x)
            return s

    After:

        @R.function(private=True, pure=False)
        def main(x: R.Tensor((n, 4), "float32")) -> R.Shape(ndim=2):
            s: R.Shape(ndim=2) = R.call_packed("vm.builtin.shape_of", x, sinfo_args=R.Shape([n, 4]))
            return s
    """

    aliases: ClassVar[tuple[str, ...]] = ("lower-alloc-tensor", "lower-runtime-builtin", "vm-builtin-lower")

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        return super().run(LambdaLift().run(mod, ctx), ctx)  # inner functions become closures

    def run_function(self, func: relax.Function, mod: IRModule, ctx: PassContext) -> relax.Function:
        made: relax.Function = _MemoryLowerer()(func)
        return made if made is func else promised_pure(made)


class _MemoryLowerer(BindingRewriter):
    def binding(self, binding: relax.Binding) -> Iterable[relax.Binding]:
        call = binding.value
        if isinstance(call, relax.Call) and isinstance(call.op, relax.Op):
            lower = _LOWER.get(call.op.name)
            if lower is not None:
                return (binding.replace(value=lower(self, call)),)
        return (binding,)

    def alloc_tensor(self, call: relax.Call) -> relax.Expr:
        """Storage for as many elements, and the tensor on it. The machine multiplies the dimensions, exactly."""
        shape, dtype, device = call.args[:3]
        scope = call.args[3] if len(call.args) > 3 else relax.StringImm("global")
        allocate = relax.Call(
            relax.Op("vm.alloc_storage"), (shape, device, dtype, scope), EMPTY, (), OBJECT, span=call.span
        )
        storage = self.emit("storage", allocate, OBJECT, call.span)
        offset = relax.PrimValue(prim.IntImm(INT64, 0))
        return relax.Call(
            relax.Op("vm.alloc_tensor"), (storage, offset, shape, dtype), EMPTY, (), call.struct_info, span=call.span
        )

    def alloc_storage(self, call: relax.Call) -> relax.Expr:
        """`memory.alloc_storage(size, device, scope, dtype)` in the machine's argument order."""
        size, device, scope, dtype = call.args
        return relax.Call(relax.Op("vm.alloc_storage"), (size, device, dtype, scope), EMPTY, (), OBJECT, span=call.span)

    def alloc_tensor_on(self, call: relax.Call) -> relax.Expr:
        """`memory.alloc_tensor(storage, offset, shape, dtype)`."""
        return call.replace(op=relax.Op("vm.alloc_tensor"), args=call.args[:4])

    def kill(self, call: relax.Call) -> relax.Expr:
        """The end of a tensor or a storage."""
        return call.replace(op=relax.Op("vm.kill_object"))

    def unwrap(self, call: relax.Call) -> relax.Expr:
        """A packed call without its promise of purity; trailing attributes are the compiler's business."""
        callee, *values = call.args
        return relax.Call(callee, tuple(values), EMPTY, call.sinfo_args, call.struct_info, span=call.span)

    def make_closure(self, call: relax.Call) -> relax.Expr:
        """The machine takes captured values one by one."""
        return packed(
            "vm.builtin.make_closure", (call.args[0], *tuple_fields(call.args[1])), call.struct_info or OBJECT, call
        )

    def invoke_closure(self, call: relax.Call) -> relax.Expr:
        """Calling a closure is calling its value."""
        return relax.Call(call.args[0], tuple_fields(call.args[1]), EMPTY, (), call.struct_info, span=call.span)


def packed(name: str, args: tuple[relax.Expr, ...], info: StructInfo, call: relax.Call) -> relax.Call:
    """A call of a builtin that gives a value of that struct info."""
    return relax.Call(relax.ExternFunc(name), args, EMPTY, (info,), info, span=call.span)


def tuple_fields(value: relax.Expr) -> tuple[relax.Expr, ...]:
    """The fields of a tuple, written out or not."""
    if isinstance(value, relax.Tuple):
        return value.fields
    info = value.struct_info
    return (
        tuple(relax.TupleGetItem(value, k) for k in range(len(info.fields)))
        if isinstance(info, TupleStructInfo)
        else (value,)
    )


def _builtin(name: str) -> Callable[[_MemoryLowerer, relax.Call], relax.Expr]:
    return lambda lowerer, call: packed(name, call.args, call.struct_info or OBJECT, call)


_LOWER: dict[str, Callable[[_MemoryLowerer, relax.Call], relax.Expr]] = {
    "builtin.alloc_tensor": _MemoryLowerer.alloc_tensor,
    "builtin.stop_lift_params": lambda lowerer, call: call.args[0],
    "memory.alloc_storage": _MemoryLowerer.alloc_storage,
    "memory.alloc_tensor": _MemoryLowerer.alloc_tensor_on,
    "memory.kill_storage": _MemoryLowerer.kill,
    "memory.kill_tensor": _MemoryLowerer.kill,
    "call_pure_packed": _MemoryLowerer.unwrap,
    "call_inplace_packed": _MemoryLowerer.unwrap,
    "invoke_closure": _MemoryLowerer.invoke_closure,
    "invoke_pure_closure": _MemoryLowerer.invoke_closure,
    "make_closure": _MemoryLowerer.make_closure,
    "shape_of": _builtin("vm.builtin.shape_of"),
    "tensor_to_shape": _builtin("vm.builtin.tensor_to_shape"),
    "null_value": _builtin("vm.builtin.null_value"),
    "to_vdevice": lambda lowerer, call: call.args[0],
    "hint_on_device": lambda lowerer, call: call.args[0],
}
