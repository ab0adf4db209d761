"""RewriteDataflowReshape: kernels that only reshape become views."""

from __future__ import annotations

from collections.abc import Iterable

from relaxlang.analysis.reshape_pattern import has_reshape_pattern
from relaxlang.base.record import record
from relaxlang.ir import relax
from relaxlang.ir.attrs import EMPTY
from relaxlang.ir.module import IRModule
from relaxlang.ir.struct_info import TensorStructInfo
from relaxlang.ir.tir import PrimFunc
from relaxlang.ir.visit import Visitor, on
from relaxlang.passes.base import FunctionPass, PassContext
from relaxlang.passes.bindings import BindingRewriter


@record
class RewriteDataflowReshape(FunctionPass):
    """Turn a call of a kernel that copies its input in row-major order into a view of the input, without a copy.

    The index arithmetic of the kernel decides (`analysis.reshape_pattern`). Only variables that live within a dataflow
    block become views, so that no result of the function is somebody else's memory, and none that is written in place.

    Before:

        @I.ir_module
        class Module:
            @T.prim_func(private=True)
            def lay(A: T.Buffer((2, 6), "float32"), B: T.Buffer((3, 4), "float32")):
                for i, j in T.grid(3, 4):
                    with T.block("lay"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        B[vi, vj] = A[(vi * 4 + vj) // 6, (vi * 4 + vj) % 6]

            @R.function
            def main(x: R.Tensor((2, 6), "float32")) -> R.Tensor((3, 4), "float32"):
                cls = Module
                with R.dataflow():
                    a = R.call_tir(cls.lay, (x,), out_sinfo=R.Tensor((3, 4), "float32"))
                    b = R.exp(a)
                    R.output(b)
                return b

    After:

        @I.ir_module
        class Module:
            @T.prim_func(private=True)
            def lay(A: T.Buffer((2, 6), "float32"), B: T.Buffer((3, 4), "float32")):
                for i, j in T.grid(3, 4):
                    with T.block("lay"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        B[vi, vj] = A[(vi * 4 + vj) // 6, (vi * 4 + vj) % 6]

            @R.function
            def main(x: R.Tensor((2, 6), "float32")) -> R.Tensor((3, 4), "float32"):
                cls = Module
                with R.dataflow():
                    a = R.call_pure_packed(
                        "vm.builtin.reshape", x, R.shape([3, 4]), sinfo_args=R.Tensor((3, 4), "float32")
                    )
                    b = R.exp(a)
                    R.output(b)
                return b
    """

    def run_function(self, func: relax.Function, mod: IRModule, ctx: PassContext) -> relax.Function:
        kept = _Kept()
        kept(func)
        made: relax.Function = _Views(mod, kept.vars)(func)
        return made


class _Kept(Visitor):
    """`vars`: variables that get another name or stand in a tuple, so that they may leave their block, and those that a
    call writes to."""

    def __init__(self) -> None:
        self.vars: set[relax.Expr] = set()

    @on(relax.VarBinding, relax.MatchCast)
    def binding(self, node: relax.Binding) -> None:
        """A second name, a tuple, a call in place."""
        value = node.value
        if isinstance(value, relax.Tuple):
            self.vars.update(value.fields)
        elif isinstance(value, relax.Var):
            self.vars.add(value)
        elif isinstance(value, relax.Call) and isinstance(value.op, relax.Op):
            if value.op.name == "call_tir_inplace" and isinstance(value.args[1], relax.Tuple):
                self.vars.update(value.args[1].fields)
            elif value.op.name == "call_inplace_packed":
                self.vars.update(value.args)
        self.below(node)


class _Views(BindingRewriter):
    def __init__(self, mod: IRModule, kept: set[relax.Expr]) -> None:
        super().__init__()
        self.mod = mod
        self.kept = kept
        self.known: dict[str, bool] = {}

    def binding(self, binding: relax.Binding) -> Iterable[relax.Binding]:
        call = binding.value
        if not isinstance(binding.var, relax.DataflowVar) or binding.var in self.kept:
            return (binding,)
        if not isinstance(call, relax.Call) or not isinstance(call.op, relax.Op) or call.op.name != "call_tir":
            return (binding,)
        info, args = call.sinfo_args[0], call.args[1]
        if not isinstance(info, TensorStructInfo) or info.dims is None or not isinstance(args, relax.Tuple):
            return (binding,)
        if not args.fields or isinstance(args.fields[0], relax.Constant) or not self.is_reshape(call.args[0]):
            return (binding,)
        values = (relax.ExternFunc("vm.builtin.reshape"), args.fields[0], relax.ShapeExpr(info.dims))
        view = relax.Call(relax.Op("call_pure_packed"), values, EMPTY, (info,), info, span=call.span)
        return (binding.replace(value=view),)

    def is_reshape(self, callee: relax.Expr) -> bool:
        """Whether a kernel only reshapes."""
        if not isinstance(callee, relax.GlobalVar):
            return False
        if callee.name not in self.known:
            func = self.mod.functions.get(callee.name)
            self.known[callee.name] = isinstance(func, PrimFunc) and has_reshape_pattern(func)
        return self.known[callee.name]
