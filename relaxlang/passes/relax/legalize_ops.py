"""LegalizeOps: operators become calls of kernels made from their definitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from functools import cached_property
from typing import TypeAlias

from relaxlang.base.diagnostics import fail
from relaxlang.base.record import record
from relaxlang.base.suggest import suggestion
from relaxlang.ir import prim, relax
from relaxlang.ir.attrs import EMPTY
from relaxlang.ir.equal_functions import EqualFunctions
from relaxlang.ir.module import AnyFunc, IRModule, function_info
from relaxlang.ir.struct_info import OBJECT, TupleStructInfo
from relaxlang.ir.tir import PrimFunc
from relaxlang.ops import Operators, default_operators
from relaxlang.ops.kernel import Kernel
from relaxlang.passes.base import Pass, PassContext
from relaxlang.passes.bindings import BindingRewriter

Legalize: TypeAlias = Callable[..., relax.Expr]
"""`f(bb, call)`, with a `BlockBuilder`: what stands for an operator call; what it needs before is emitted with `bb`."""


@record
class LegalizeOps(Pass):
    """Turn every call of an operator into `call_tir` of a kernel made from its definition; equal kernels are shared.

    `skip` names operators to leave as they are, `only` (when given) the ones to lower: both leave a module that runs.
    `customize_legalize_map` gives some operators another lowering: `{"nn.relu": lambda bb, call: …}`, where the
    function returns the expression that takes the call's place (`bb.call_te(…)`, a call of another operator, the call
    itself). RLX3104 for a name that is no operator.

    Before:

        @I.ir_module
        class Module:
            @R.function
            def main(x: R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32"):
                y = R.nn.relu(x)
                return y

    After:

        @I.ir_module
        class Module:
            @T.prim_func(private=True)
            def relu(data: T.Buffer((n, T.int64(4)), "float32"), relu: T.Buffer((n, T.int64(4)), "float32")):
                T.func_attr({"tir.noalias": True})
                for i0, i1 in T.grid(n, T.int64(4)):
                    with T.block("relu"):
                        v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
                        T.reads(data[v_i0, v_i1])
                        T.writes(relu[v_i0, v_i1])
                        relu[v_i0, v_i1] = T.max(data[v_i0, v_i1], T.float32(0))

            @R.function
            def main(x: R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32"):
                cls = Module
                y = R.call_tir(cls.relu, (x,), out_sinfo=R.Tensor((n, 4), "float32"))
                return y
    """

    skip: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    customize_legalize_map: Mapping[str, Legalize] | None = None

    def __hash__(self) -> int:
        return hash((self.skip, self.only))  # mappings have no hash

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        operators = default_operators(mod)
        skip, only = self._names(self.skip, operators, "skip"), self._names(self.only, operators, "only")
        given = self.customize_legalize_map or {}
        custom = dict(zip(self._names(given, operators, "customize_legalize_map"), given.values()))
        lowering = OperatorLowering(mod, operators, lambda n: n not in skip and (not only or n in only), custom)
        for name, func in mod.relax_functions():
            lowering.functions[name] = lowering(func)
        return mod.with_functions(lowering.functions)

    def _names(self, names: Iterable[str], operators: Operators, option: str) -> list[str]:
        """The names of operators in an option, without TVM's prefix; RLX3104 for one that is none."""
        found = [name.removeprefix("relax.") for name in names]
        for name in found:
            if operators.find(name) is None:
                hint = suggestion(name, operators.names())
                fail("RLX3104", f"`{option}` of `{self.name}`: there is no operator `{name}`", **hint)
        return found


class OperatorLowering(BindingRewriter):
    """Rewrites operator calls; the kernels it makes are in `functions`, beside the module's own.

    `wanted` says which operators (default: all), `custom` what stands for some.
    """

    def __init__(
        self,
        mod: IRModule,
        operators: Operators,
        wanted: Callable[[str], bool] = lambda name: True,
        custom: Mapping[str, Legalize] | None = None,
    ) -> None:
        super().__init__()
        self.mod = mod
        self.operators = operators
        self.wanted = wanted
        self.custom = custom or {}
        self.functions: dict[str, AnyFunc] = dict(mod.functions)
        self._named: dict[PrimFunc, str] = {}
        self._callees: dict[str, relax.GlobalVar] = {}

    @cached_property
    def _equal(self) -> EqualFunctions:
        """The kernels by what they do: at first, of the module's own."""
        found = EqualFunctions()
        for name, func in self.mod.prim_funcs():
            if func.is_private:
                found.add(name, func)
        return found

    def binding(self, binding: relax.Binding) -> Iterable[relax.Binding]:
        call = binding.value
        if not isinstance(call, relax.Call) or not isinstance(call.op, relax.Op):
            return (binding,)
        if self.operators.find(call.op.name) is None or not self.wanted(call.op.name):
            return (binding,)
        custom = self.custom.get(call.op.name)
        return (binding.replace(value=self.lower(call) if custom is None else self.customized(call, custom)),)

    def customized(self, call: relax.Call, custom: Legalize) -> relax.Expr:
        """What `custom` puts in the place of a call; what it emits stands before, the functions it adds are kept."""
        from relaxlang.builder.block_builder import BlockBuilder

        bb = BlockBuilder(self.mod.with_functions(self.functions), self.operators)
        name = bb.get_unique_name("legalized")
        with bb.function(name, [], private=True):
            with bb.dataflow() if self.in_dataflow else nullcontext():
                value = custom(bb, call)
                if not isinstance(value, relax.Expr):
                    kind = type(value).__name__
                    fail("RLX3105", f"the lowering of `{call.op}` gave a value of type `{kind}`", call.span)
                out = bb.emit_output(value) if self.in_dataflow else bb.emit(value)
            bb.emit_func_output(out)
        made = bb.finalize()
        function = made[name]
        assert isinstance(function, relax.Function)
        *before, last = [b for block in function.body.blocks for b in block.bindings]
        self.pending += before
        for added in made.functions:
            if added != name and added not in self.functions:
                self.functions[added] = made[added]
        return last.value

    def lower(self, call: relax.Call) -> relax.Expr:
        """The `call_tir` (or packed call) that computes an operator call."""
        assert isinstance(call.op, relax.Op)
        lowered = self.operators.lower(call)
        if isinstance(lowered, relax.Expr):
            return lowered.replace(struct_info=call.struct_info) if isinstance(lowered, relax.Call) else lowered
        args = self.cast_args(lowered)
        made = self.kernel_call(self.add_kernel(call.op.name, lowered.func), lowered, args, call)
        return made if lowered.finish is None else self.finished(lowered, lowered.finish, made, call)

    def finished(self, kernel: Kernel, finish: relax.Expr, made: relax.Call, call: relax.Call) -> relax.Expr:
        """What a kernel computes, bound before, in the packed call that makes the operator's result of it."""
        computed = self.computed(made)
        parts: tuple[relax.Expr, ...] = computed.fields if isinstance(computed, relax.Tuple) else ()
        if not parts:
            whole = self.emit("computed", computed, kernel.out, call.span)
            items = [relax.TupleGetItem(whole, k) for k in range(len(kernel.handed))]
            several = isinstance(kernel.out, TupleStructInfo)
            parts = tuple(self.emit("item", i, i.struct_info or OBJECT) for i in items) if several else (whole,)
        self.replaced.update(zip(kernel.handed, parts))
        value: relax.Expr = self(finish)
        return value.replace(struct_info=call.struct_info) if isinstance(value, relax.Call) else value

    def computed(self, call: relax.Call) -> relax.Expr:
        """The value of the `call_tir` of a kernel whose outputs are handed on."""
        return call

    def kernel_call(self, name: str, kernel: Kernel, args: tuple[relax.Expr, ...], call: relax.Call) -> relax.Call:
        """The `call_tir` of a kernel in the place of an operator call."""
        callee = self._callees.get(name)
        if callee is None:
            callee = self._callees[name] = relax.GlobalVar(name, function_info(kernel.func))
        values: tuple[relax.Expr, ...] = (callee, relax.Tuple(args))
        if kernel.tir_vars:
            values += (relax.ShapeExpr(tuple(prim.cast(v, prim.INT64) for v in kernel.tir_vars)),)
        return relax.Call(relax.Op("call_tir"), values, EMPTY, (kernel.out,), kernel.out, span=call.span)

    def cast_args(self, kernel: Kernel) -> tuple[relax.Expr, ...]:
        """The kernel's arguments; those whose dimensions were unknown are given names for them first."""
        renamed: dict[relax.Expr, relax.Expr] = {}
        for expr, info in kernel.casts:
            kind = relax.DataflowVar if self.in_dataflow else relax.Var
            hint = expr.name if isinstance(expr, relax.Var) else "arg"
            var = kind(hint, info, span=expr.span)
            self.pending.append(relax.MatchCast(var, expr, info, span=expr.span))
            renamed[expr] = var
        args = []
        for arg in kernel.args:
            arg = renamed.get(arg, arg)
            if isinstance(arg, relax.TupleGetItem):
                arg = self.emit("item", arg, arg.struct_info or OBJECT, arg.span)
            args.append(arg)
        return tuple(args)

    def add_kernel(self, operator: str, func: PrimFunc) -> str:
        """The name of a function equal to `func`: one that is there, or a new one named after the operator."""
        known = self._named.get(func)  # calls of one signature share their kernel
        if known is None:
            known = self._named[func] = self._equal.find(func) or self._added(operator.rsplit(".", 1)[-1], func)
        return known

    def _added(self, hint: str, func: PrimFunc) -> str:
        """The name of a new function, like `hint`."""
        name, n = hint, 0
        while name in self.functions:
            n += 1
            name = f"{hint}{n}" if not hint[-1].isdigit() else f"{hint}_{n}"
        self.functions[name] = func
        self._equal.add(name, func)
        return name
