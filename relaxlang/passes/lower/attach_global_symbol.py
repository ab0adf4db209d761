"""AttachGlobalSymbol: public functions get the symbol that the linker sees."""

from __future__ import annotations

from relaxlang.base.record import record
from relaxlang.ir.module import AnyFunc, IRModule
from relaxlang.ir.relax import ExternFunc
from relaxlang.passes.base import Pass, PassContext


@record
class AttachGlobalSymbol(Pass):
    """Give every public function its name as `global_symbol`, and (with `prefix`) that name a prefix.

    A function is public when it has a `global_symbol` already; private ones, which have none, stay so.

    Before:

        @I.ir_module
        class Module:
            @R.function
            def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
                return x

    After:

        @I.ir_module
        class Module:
            @R.function
            def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
                return x
    """

    prefix: str = ""

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        changed: dict[str, AnyFunc] = {}
        for name, func in mod.functions.items():
            symbol = self.prefix + name
            if not isinstance(func, ExternFunc) and not func.is_private and func.attrs["global_symbol"] != symbol:
                func = func.replace(attrs=func.attrs.set("global_symbol", symbol))
            changed[name] = func
        return mod.with_functions(changed)
