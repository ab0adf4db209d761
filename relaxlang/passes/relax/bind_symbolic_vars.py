"""BindSymbolicVars: symbolic dimensions become numbers."""

from __future__ import annotations

from collections.abc import Mapping

from relaxlang.base.diagnostics import fail
from relaxlang.base.record import record
from relaxlang.base.suggest import did_you_mean
from relaxlang.ir import prim, relax
from relaxlang.ir.module import AnyFunc, IRModule
from relaxlang.ir.prim import PrimExpr
from relaxlang.passes.base import Pass, PassContext
from relaxlang.passes.bindings import specialize
from relaxlang.syntax.struct_info import bound_vars


@record
class BindSymbolicVars(Pass):
    """Replace symbolic dimensions of functions. `binding_map` is pairs of a name, or a variable, and its value.

    With `func_name` only that function changes, without it every function that has such a dimension. A name that no
    function has is an error (RLX3112). With `n` bound to 16:

    Before:

        @R.function
        def main(x: R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32"):
            y = R.exp(x)
            return y

    After:

        @R.function
        def main(x: R.Tensor((16, 4), "float32")) -> R.Tensor((16, 4), "float32"):
            y = R.exp(x)
            return y
    """

    binding_map: tuple[tuple[str | prim.Var, int | PrimExpr], ...] = ()
    func_name: str = ""

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        return bind_symbolic_vars(mod, dict(self.binding_map), self.func_name or None)


def bind_symbolic_vars(
    mod: IRModule, values: Mapping[str | prim.Var, int | PrimExpr], func_name: str | None = None
) -> IRModule:
    """The module with symbolic dimensions replaced, in one function or in all."""
    functions: dict[str, AnyFunc] = dict(mod.functions)
    names = [n for n, _ in mod.relax_functions()] if func_name is None else [func_name]
    unused, known = dict.fromkeys(values), set()
    for name in names:
        func = mod[name]
        if not isinstance(func, relax.Function):
            fail("RLX3112", f"`{name}` is no Relax function, it has no symbolic dimensions to bind", func.span)
        dims: dict[prim.Var, PrimExpr] = {}
        for var in bound_vars(tuple(p.struct_info for p in func.params)):
            known.add(var.name)
            key = var if var in values else var.name
            if key in values:
                dims[var] = prim.cast(prim.as_prim(values[key], var.dtype), var.dtype)
                unused.pop(key, None)
        functions[name] = specialize(func, dims)
    for left in unused:
        name = left if isinstance(left, str) else left.name
        near = did_you_mean(name, known)
        where = f"`{func_name}` has no" if func_name else "no function has a"
        fail(
            "RLX3112",
            f"{where} symbolic dimension `{name}`",
            help=f"did you mean `{near}`?" if near else "",
        )
    return mod.with_functions(functions)
