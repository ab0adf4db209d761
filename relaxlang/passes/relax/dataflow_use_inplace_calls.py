"""DataflowUseInplaceCalls: results are written over arguments that nobody needs any more."""

from __future__ import annotations

from collections.abc import Iterable

from relaxlang.analysis.alias import FOREIGN, Aliases
from relaxlang.analysis.in_place import overwritable
from relaxlang.analysis.liveness import last_uses
from relaxlang.base.record import record
from relaxlang.ir import relax
from relaxlang.ir.attrs import Attrs
from relaxlang.ir.fresh import Renew
from relaxlang.ir.module import IRModule, function_info
from relaxlang.ir.struct_info import OBJECT, TensorStructInfo, TupleStructInfo
from relaxlang.ir.tir import PrimFunc
from relaxlang.ir.visit import on
from relaxlang.ops import Operators, default_operators
from relaxlang.passes.base import Pass, PassContext
from relaxlang.passes.relax.legalize_ops import OperatorLowering
from relaxlang.syntax.core_ops import CORE_OPS
from relaxlang.syntax.struct_info import BaseCheck, base_check


@record
class DataflowUseInplaceCalls(Pass):
    """In dataflow blocks, let an elementwise kernel write its result over an argument of the same shape and dtype.

    The argument's memory must have been made by the same sequence of bindings, must not be used afterwards under any
    name (views by reshape, tuple fields, branches count), and no other argument may lie in it. So the memory of
    parameters and constants is never written to. Operators that are rewritten so are lowered to kernels.

    Before:

        @I.ir_module
        class Module:
            @T.prim_func(private=True)
            def double(A: T.Buffer((n,), "float32"), B: T.Buffer((n,), "float32")):
                for i in range(n):
                    with T.block("double"):
                        vi = T.axis.spatial(n, i)
                        B[vi] = A[vi] + A[vi]

            @R.function
            def main(x: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
                cls = Module
                with R.dataflow():
                    a = R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((n,), "float32"))
                    b = R.call_tir(cls.double, (a,), out_sinfo=R.Tensor((n,), "float32"))
                    R.output(b)
                return b

    After:

        @I.ir_module
        class Module:
            @T.prim_func(private=True)
            def double(A: T.Buffer((n,), "float32"), B: T.Buffer((n,), "float32")):
                for i in range(n):
                    with T.block("double"):
                        vi = T.axis.spatial(n, i)
                        B[vi] = A[vi] + A[vi]

            @R.function
            def main(x: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
                cls = Module
                with R.dataflow():
                    a = R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((n,), "float32"))
                    b = R.call_tir_inplace(
                        cls.double_inplace, (a,), inplace_indices=[0], out_sinfo=R.Tensor((n,), "float32")
                    )
                    R.output(b)
                return b

            @T.prim_func(private=True)
            def double_inplace(A: T.Buffer((n,), "float32")):
                for i in range(n):
                    with T.block("double"):
                        vi = T.axis.spatial(n, i)
                        A[vi] = A[vi] + A[vi]
    """

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        operators = default_operators(mod)
        rewrite = _InPlace(mod, operators)
        for name, func in mod.relax_functions():
            rewrite.aliases = Aliases(func, mod, operators)
            rewrite.functions[name] = rewrite(func)
        return mod.with_functions(rewrite.functions)


class _InPlace(OperatorLowering):
    """`last_of` says when each memory is used last, within the sequence that is being rewritten; `at` is the number of
    the current binding in it."""

    aliases: Aliases

    def __init__(self, mod: IRModule, operators: Operators) -> None:
        super().__init__(mod, operators)
        self.last_of: dict[int, int] = {}
        self.sequence_id = 0
        self.at = 0

    @on(relax.SeqExpr)
    def sequence(self, node: relax.SeqExpr) -> relax.SeqExpr:
        """A sequence: how long are the memories used in it needed?"""
        outer = (self.last_of, self.sequence_id, self.at)
        self.last_of, self.sequence_id, self.at = {}, id(node), 0
        for var, last in last_uses(node).items():
            for memory in self.aliases.of(var):
                self.last_of[memory] = max(last, self.last_of.get(memory, 0))
        made = self.below(node)
        self.last_of, self.sequence_id, self.at = outer
        return made

    def binding(self, binding: relax.Binding) -> Iterable[relax.Binding]:
        at, self.at = self.at, self.at + 1
        call = binding.value
        if not self.in_dataflow or not isinstance(binding, relax.VarBinding) or not isinstance(call, relax.Call):
            return (binding,)
        if not isinstance(call.op, relax.Op) or not self._worth_a_look(call, at):
            return (binding,)
        if call.op.name != "call_tir":
            pending = list(self.pending)
            lowered = self.lower(call)
            if not isinstance(lowered, relax.Call) or lowered.op != relax.Op("call_tir") or self.pending != pending:
                self.pending = pending
                return (binding,)
            call = lowered
        made = self._rewritten(call, at)
        return (binding,) if made is None else (binding.replace(value=made),)

    def _worth_a_look(self, call: relax.Call, at: int) -> bool:
        """Whether some argument could be overwritten, and the call is one of a kernel."""
        assert isinstance(call.op, relax.Op)
        if call.op.name == "call_tir":
            args: tuple[relax.Expr, ...] = call.args[1].fields if isinstance(call.args[1], relax.Tuple) else ()
            return any(self._is_free(args, k, call.sinfo_args[0], at) for k in range(len(args)))
        if call.op.name in CORE_OPS or self.operators.find(call.op.name) is None:
            return False
        return any(self._is_free(call.args, k, call.struct_info, at) for k in range(len(call.args)))

    def _is_free(self, args: tuple[relax.Expr, ...], k: int, out: object, at: int) -> bool:
        """Whether argument `k` is a tensor like the result whose memory nobody needs after binding `at`."""
        arg = args[k]
        if not isinstance(arg, relax.Var) or not isinstance(out, TensorStructInfo) or out.dims is None:
            return False
        have = arg.struct_info
        if not isinstance(have, TensorStructInfo) or have.dims is None or have.dtype is not out.dtype:
            return False
        memories = self.aliases.of(arg)
        if not memories or FOREIGN in memories or any(self.last_of.get(m, 0) > at for m in memories):
            return False
        if any(self.aliases.owner[m] != self.sequence_id for m in memories):
            return False
        if any(memories & self.aliases.of(other) for i, other in enumerate(args) if i != k):
            return False
        return base_check(out, have) is BaseCheck.HOLDS

    def _rewritten(self, call: relax.Call, at: int) -> relax.Call | None:
        """The call in place, or None."""
        callee, args = call.args[0], call.args[1]
        func = self.functions.get(callee.name) if isinstance(callee, relax.GlobalVar) else None
        if not isinstance(func, PrimFunc) or not isinstance(callee, relax.GlobalVar):
            return None
        if not isinstance(args, relax.Tuple) or isinstance(call.sinfo_args[0], TupleStructInfo):
            return None
        for k in overwritable(func):
            if k < len(args.fields) and self._is_free(args.fields, k, call.sinfo_args[0], at):
                made = written_in_place(func, k)
                name = self.add_kernel(f"{callee.name}_inplace", made)
                values = (relax.GlobalVar(name, function_info(made)), *call.args[1:])
                info = call.struct_info or OBJECT
                attrs = Attrs({"inplace_indices": (k,)})
                return relax.Call(relax.Op("call_tir_inplace"), values, attrs, call.sinfo_args, info, span=call.span)
        return None


def written_in_place(func: PrimFunc, k: int) -> PrimFunc:
    """The kernel whose result, its last buffer, is written over its parameter `k`; the output parameter is gone."""
    handles = [p for p in func.params if p in func.buffer_map]
    out, source = handles[-1], func.buffer_map[func.params[k]]
    short = func.replace(
        params=tuple(p for p in func.params if p is not out),
        buffer_map={p: b for p, b in func.buffer_map.items() if p is not out},
    )
    renew = Renew()
    renew.buffers[func.buffer_map[out]] = renew(source)
    made: PrimFunc = renew(short)
    return made
