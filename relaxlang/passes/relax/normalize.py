"""Normalize: normal form, and struct info everywhere."""

from __future__ import annotations

from relaxlang.base.record import record
from relaxlang.builder.normalize import Normalizer
from relaxlang.ir.module import AnyFunc, IRModule
from relaxlang.ops import default_operators
from relaxlang.passes.base import Pass, PassContext


@record
class Normalize(Pass):
    """Bind every nested expression to a variable of its own and fill in struct info that is missing.

    Text is normalised as it is parsed; modules made or changed in Python may need this pass.

    Before:

        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            y = R.exp(R.add(x, x))
            return y

    After:

        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            gv = R.add(x, x)
            y = R.exp(gv)
            return y
    """

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        functions: dict[str, AnyFunc] = dict(mod.functions)
        operators = default_operators(mod)
        for name, func in mod.relax_functions():
            functions[name] = Normalizer(functions, operators)(func)
        return mod.with_functions(functions)
