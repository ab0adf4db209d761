"""CallTIRRewrite: destination passing becomes explicit: outputs are allocated, kernels fill them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from relaxlang.base.diagnostics import fail
from relaxlang.base.record import record
from relaxlang.ir import prim, relax
from relaxlang.ir.attrs import EMPTY
from relaxlang.ir.module import IRModule
from relaxlang.ir.struct_info import OBJECT, VOID_TUPLE, StructInfo, TensorStructInfo, TupleStructInfo
from relaxlang.ir.tir import PrimFunc
from relaxlang.ir.visit import on
from relaxlang.ops import default_operators
from relaxlang.passes.base import Pass, PassContext
from relaxlang.passes.bindings import promised_pure
from relaxlang.passes.relax.legalize_ops import OperatorLowering


@record
class CallTIRRewrite(Pass):
    """Allocate the outputs of `call_tir` and `call_dps_packed` and pass them as arguments.

    An operator that nobody lowered gets a kernel of its own here, so that every module can be built. A pure function
    stays so to its callers (`relax.force_pure`), although it writes to what it allocated.

    Before:

        @R.function(private=True)
        def main(x: R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32"):
            y = R.call_dps_packed("twice", (x,), out_sinfo=R.Tensor((n, 4), "float32"))
            return y

    After:

        @R.function(private=True)
        def main(x: R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32"):
            R.func_attr({"relax.force_pure": True})
            alloc = R.builtin.alloc_tensor(R.shape([n, 4]), R.dtype("float32"), R.prim_value(0), R.str("global"))
            _ = R.call_packed("twice", x, alloc)
            y = alloc
            return y
    """

    aliases: ClassVar[tuple[str, ...]] = ("call-dps-rewrite",)

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        rewrite = _CallTIRRewriter(mod, default_operators(mod))
        for name, func in mod.relax_functions():
            rewrite.functions[name] = rewrite(func)
        return mod.with_functions(rewrite.functions)


class _CallTIRRewriter(OperatorLowering):
    @on(relax.Function)
    def function(self, node: relax.Function) -> relax.Function:
        """A function; once it calls kernels, its purity is a promise that nobody checks any more."""
        made = super().function(node)
        return made if made is node else promised_pure(made)

    def binding(self, binding: relax.Binding) -> Iterable[relax.Binding]:
        (lowered,) = super().binding(binding)
        call = lowered.value
        if not isinstance(call, relax.Call) or not isinstance(call.op, relax.Op):
            return (lowered,)
        if call.op.name in ("call_tir", "call_dps_packed", "call_tir_with_grad"):
            return (lowered.replace(value=self.allocated(call)),)
        if call.op.name == "call_tir_inplace":
            return (lowered.replace(value=self.in_place(call)),)
        return (lowered,)

    def computed(self, call: relax.Call) -> relax.Expr:
        return self.allocated(call)

    def allocated(self, call: relax.Call) -> relax.Expr:
        """Emit the allocations and the call; the value is what was allocated."""
        outputs = [self.allocate(info, call) for info in output_infos(call)]
        self.call_kernel(call, outputs)
        return relax.Tuple(tuple(outputs)) if isinstance(call.sinfo_args[0], TupleStructInfo) else outputs[0]

    def in_place(self, call: relax.Call) -> relax.Expr:
        """The outputs named in `inplace_indices` are arguments themselves; -1 stands for a fresh one."""
        args, infos = call_args(call), output_infos(call)
        outputs: list[relax.Expr] = []
        fresh: list[relax.Expr] = []
        for index, info in zip(call.attrs["inplace_indices"], infos):
            if index >= 0:
                outputs.append(args[index])
            else:
                fresh.append(self.allocate(info, call))
                outputs.append(fresh[-1])
        self.call_kernel(call, fresh)
        return relax.Tuple(tuple(outputs)) if isinstance(call.sinfo_args[0], TupleStructInfo) else outputs[0]

    def call_kernel(self, call: relax.Call, outputs: list[relax.Expr]) -> None:
        """Emit the call itself: arguments, outputs, then the symbolic values that were passed explicitly."""
        extra: tuple[relax.Expr, ...] = ()
        if len(call.args) > 2 and isinstance(call.args[2], relax.ShapeExpr):
            extra = tuple(relax.PrimValue(v) for v in self.scalars(call.args[0], call.args[2].values))
        values = (*call_args(call), *outputs, *extra)
        info = OBJECT if isinstance(call.args[0], relax.ExternFunc) else VOID_TUPLE
        self.emit("_", relax.Call(call.args[0], values, EMPTY, (), info, span=call.span), info, call.span)

    def scalars(self, callee: relax.Expr, values: tuple[prim.PrimExpr, ...]) -> Iterable[prim.PrimExpr]:
        """Symbolic values in the types of the kernel's last parameters; a shape holds them as int64."""
        func = self.functions.get(callee.name) if isinstance(callee, relax.GlobalVar) else None
        if not isinstance(func, PrimFunc):
            return values
        types = [p.dtype for p in func.params[len(func.params) - len(values) :]]
        return [
            v.value if isinstance(v, prim.Cast) and v.value.dtype is of else prim.cast(v, of)
            for v, of in zip(values, types)
        ]

    def allocate(self, info: StructInfo, call: relax.Call) -> relax.Expr:
        """Emit the allocation of one output."""
        if not isinstance(info, TensorStructInfo) or info.dtype is None:
            fail("RLX3110", f"the output of this call can't be allocated: `{info}`", call.span, node=call)
        if info.dims is not None:
            shape: relax.Expr = relax.ShapeExpr(info.dims)
        elif isinstance(info.shape, relax.Expr):
            shape = self(info.shape)
        else:
            what = f"the output of this call can't be allocated: the shape of `{info}` is not known"
            fail("RLX3110", what, call.span, node=call)
        device = relax.PrimValue(prim.IntImm(prim.INT64, 0))
        args = (shape, relax.DataTypeImm(info.dtype), device, relax.StringImm("global"))
        value = relax.Call(relax.Op("builtin.alloc_tensor"), args, EMPTY, (), info, span=call.span)
        return self.emit("alloc", value, info, call.span)


def call_args(call: relax.Call) -> tuple[relax.Expr, ...]:
    """The tensors that a `call_tir`-like call passes."""
    packed = call.args[1]
    if isinstance(packed, relax.Tuple):
        return packed.fields
    info = packed.struct_info
    if isinstance(info, TupleStructInfo):
        return tuple(relax.TupleGetItem(packed, k) for k in range(len(info.fields)))
    return (packed,)


def output_infos(call: relax.Call) -> tuple[StructInfo, ...]:
    """What a `call_tir`-like call computes, one by one."""
    out = call.sinfo_args[0]
    return out.fields if isinstance(out, TupleStructInfo) else (out,)
