"""RunCodegen: back ends make code of the functions that are theirs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from relaxlang.analysis.uses import referenced_functions
from relaxlang.base.diagnostics import fail
from relaxlang.base.record import record
from relaxlang.ir import relax
from relaxlang.ir.module import AnyFunc, IRModule
from relaxlang.ir.visit import walk
from relaxlang.passes.back_end import CODEGEN, COMPOSITE, BackEnd
from relaxlang.passes.base import Pass, PassContext
from relaxlang.passes.relax.fuse_ops_by_pattern import back_end_of
from relaxlang.passes.relax.inline_private_functions import InlinePrivateFunctions


@record
class RunCodegen(Pass):
    """Functions with the attribute `Codegen`, and those with `Composite` that nobody merged, are replaced by what their
    back end makes of them: a function of the same parameters and result that calls the back end's library.

    `target_options` are options for back ends, by their names; `entry_functions` restricts the pass to what these
    functions reach. RLX3150 for a back end that is not there, RLX3152 for a function that it cannot make.

    With the back end `blas`:

    Before:

        @I.ir_module
        class Module:
            @R.function
            def main(x: R.Tensor((n, 4), "float32"), w: R.Tensor((4, 8), "float32")) -> R.Tensor((n, 8), "float32"):
                cls = Module
                y = cls.product(x, w)
                return y

            @R.function(private=True)
            def product(
                x: R.Tensor((n, 4), "float32"), w: R.Tensor((4, 8), "float32")
            ) -> R.Tensor((n, 8), "float32"):
                R.func_attr({"Composite": "blas.matmul"})
                with R.dataflow():
                    y = R.matmul(x, w)
                    R.output(y)
                return y

    After:

        @I.ir_module
        class Module:
            @R.function
            def main(x: R.Tensor((n, 4), "float32"), w: R.Tensor((4, 8), "float32")) -> R.Tensor((n, 8), "float32"):
                cls = Module
                y = cls.product(x, w)
                return y

            @R.function(private=True)
            def product(
                x: R.Tensor((n, 4), "float32"), w: R.Tensor((4, 8), "float32")
            ) -> R.Tensor((n, 8), "float32"):
                with R.dataflow():
                    y = R.call_dps_packed("relaxlang.blas.matmul", (x, w), out_sinfo=R.Tensor((n, 8), "float32"))
                    R.output(y)
                return y
    """

    target_options: Mapping[str, Any] | None = None
    entry_functions: tuple[str, ...] = ()

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        for name in self.target_options or ():
            ctx.back_ends.find(name)
        for name in self.entry_functions:
            mod[name]
        reached = referenced_functions(mod, self.entry_functions) if self.entry_functions else set(mod.functions)
        functions: dict[str, AnyFunc] = dict(mod.functions)
        made = False
        for name, back_end in _units(mod, ctx, reached).items():
            functions[name] = self._generated(mod, name, back_end)
            made = True
        if not made:
            return mod
        left = mod.with_functions(functions)
        roots = [n for n, f in left.functions.items() if not isinstance(f, relax.Function) or COMPOSITE not in f.attrs]
        kept = referenced_functions(left, roots)
        return left.with_functions({n: f for n, f in left.functions.items() if n in kept})

    def _generated(self, mod: IRModule, name: str, back_end: BackEnd) -> relax.Function:
        """What takes the place of a function."""
        func = mod[name]
        assert isinstance(func, relax.Function)
        attrs = func.attrs.without(CODEGEN).without(COMPOSITE)
        if CODEGEN in func.attrs and not back_end.takes_whole_functions and COMPOSITE not in func.attrs:
            return func.replace(attrs=attrs)  # the pieces that it calls are replaced
        flat = flattened(mod, name)
        made = back_end.generate(name, flat, (self.target_options or {}).get(back_end.name) or {})
        if len(made.params) != len(func.params):
            fail("RLX3152", f"the back end `{back_end.name}` changed the parameters of `{name}`", func.span)
        return made.replace(attrs=attrs)


def _units(mod: IRModule, ctx: PassContext, reached: Iterable[str]) -> dict[str, BackEnd]:
    """The functions to be replaced, and their back ends: whole ones, and pieces that are called from elsewhere."""
    whole: dict[str, BackEnd] = {}
    pieces: dict[str, BackEnd] = {}
    for name, func in mod.relax_functions():
        if name not in reached:
            continue
        if CODEGEN in func.attrs:
            whole[name] = ctx.back_ends.find(str(func.attrs[CODEGEN]))
        elif COMPOSITE in func.attrs:
            pieces[name] = ctx.back_ends.find(back_end_of(str(func.attrs[COMPOSITE])))
    inlined = {n for n, b in whole.items() if b.takes_whole_functions}
    called = {
        node.name
        for name, func in mod.relax_functions()
        if name not in inlined
        for node in walk(func)
        if isinstance(node, relax.GlobalVar)
    }
    return {**whole, **{n: b for n, b in pieces.items() if n in called}}


def flattened(mod: IRModule, name: str) -> relax.Function:
    """A function with the pieces that it calls in its own body."""
    func = mod[name]
    assert isinstance(func, relax.Function)
    functions: dict[str, AnyFunc] = {}
    for n in referenced_functions(mod, [name]):
        part = mod[n]
        plain = part.attrs.without(CODEGEN).without(COMPOSITE) if isinstance(part, relax.Function) else None
        functions[n] = part if plain is None else part.replace(attrs=plain)
    functions[name] = func.replace(attrs=func.attrs.without(CODEGEN).without(COMPOSITE).set("global_symbol", name))
    made = InlinePrivateFunctions().run(mod.with_functions(functions), PassContext.current())[name]
    assert isinstance(made, relax.Function)
    return made
