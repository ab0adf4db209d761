"""BindTarget: kernels get the target of the functions that call them."""

from __future__ import annotations

from collections.abc import Mapping

from relaxlang.base.record import record
from relaxlang.ir import relax, tir
from relaxlang.ir.configuration.compiler_config import CompilerConfig
from relaxlang.ir.configuration.function_targets import ATTRIBUTE, called, function_target, states_targets
from relaxlang.ir.configuration.target import Target
from relaxlang.ir.module import AnyFunc, IRModule
from relaxlang.ir.visit import Rewriter, on
from relaxlang.passes.base import Pass, PassContext


@record
class BindTarget(Pass):
    """Give every PrimFunc that states no target the one of the Relax functions that call it; where these differ, each
    target gets a copy. PrimFuncs that only functions without a target call stay for the module's default.

    Before:

        @I.ir_module
        class Module:
            @R.function
            def main(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
                R.func_attr({"target": "llvm -mcpu=x86-64-v3"})
                return R.call_tir(Module.double, (x,), out_sinfo=R.Tensor((8,), "float32"))

            @T.prim_func(private=True)
            def double(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
                for i in range(8):
                    B[i] = A[i] * T.float32(2)

    After:

        @I.ir_module
        class Module:
            @R.function
            def main(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
                R.func_attr({"target": "llvm -mcpu=x86-64-v3"})
                return R.call_tir(Module.double, (x,), out_sinfo=R.Tensor((8,), "float32"))

            @T.prim_func(private=True)
            def double(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
                T.func_attr({"target": {"kind": "llvm", "mcpu": "x86-64-v3"}})
                for i in range(8):
                    B[i] = A[i] * T.float32(2)
    """

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        if not states_targets(mod):
            return mod
        targets = CompilerConfig.of(mod).targets
        wanted = _Wanted(mod, targets)
        return mod.with_functions(wanted.bound())


class _Wanted:
    """Which kernels are wanted for which targets."""

    def __init__(self, mod: IRModule, targets: Mapping[str, Target]) -> None:
        self.mod = mod
        self.callers: dict[str, Target | None] = {}
        for name, func in mod.relax_functions():
            own = function_target(func, targets)
            self.callers[name] = None if own is None else own.target
        self.kernels: dict[str, list[Target | None]] = {}
        for name, target in self.callers.items():
            waiting = called(mod.functions[name], mod)
            while waiting:
                kernel = waiting.pop()
                callee = mod.functions[kernel]
                known = self.kernels.setdefault(kernel, [])
                if isinstance(callee, tir.PrimFunc) and ATTRIBUTE not in callee.attrs and target not in known:
                    known.append(target)
                    waiting += called(callee, mod)

    def bound(self) -> dict[str, AnyFunc]:
        """The functions of the module, each kernel once for every target."""
        names: dict[tuple[str, Target | None], str] = {}
        taken = self.mod
        for kernel, targets in self.kernels.items():
            for at, target in enumerate(targets):
                names[kernel, target] = name = kernel if at == 0 else taken.unique_name(kernel)
                taken = taken.with_function(name, self.mod.functions[kernel])
        made: dict[str, AnyFunc] = {}
        for name, func in self.mod.functions.items():
            made[name] = _renamed(func, names, self.callers[name]) if name in self.callers else func
            for target in self.kernels.get(name, ()):
                made[names[name, target]] = _bound(_renamed(func, names, target), names[name, target], target)
        return made


def _bound(func: AnyFunc, name: str, target: Target | None) -> AnyFunc:
    assert isinstance(func, tir.PrimFunc)
    attrs = func.attrs if target is None else func.attrs.set(ATTRIBUTE, target.to_attrs())
    return func.replace(attrs=attrs.set("global_symbol", name) if "global_symbol" in attrs else attrs)


def _renamed(func: AnyFunc, names: Mapping[tuple[str, Target | None], str], target: Target | None) -> AnyFunc:
    changed = {kernel: name for (kernel, of), name in names.items() if of == target and kernel != name}
    made: AnyFunc = _Rename(changed)(func) if changed else func
    return made


class _Rename(Rewriter):
    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names

    @on(relax.GlobalVar)
    def global_var(self, node: relax.GlobalVar) -> relax.GlobalVar:
        return node.replace(name=self.names.get(node.name, node.name))
