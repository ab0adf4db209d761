"""DeadCodeElimination: what nobody uses goes."""

from __future__ import annotations

from collections import Counter

from relaxlang.analysis.purity import is_pure
from relaxlang.analysis.uses import public_functions, referenced_functions, variable_uses
from relaxlang.base.record import record
from relaxlang.ir import relax
from relaxlang.ir.module import AnyFunc, IRModule
from relaxlang.ir.structural import structural_equal
from relaxlang.ir.visit import Rewriter, on
from relaxlang.ops import Operators, default_operators
from relaxlang.passes.base import Pass, PassContext


@record
class DeadCodeElimination(Pass):
    """Remove bindings without side effects whose variables are not used, and private functions that nothing refers to.

    A `match_cast` stays, for what it defines and for its check; one that states only what is known already goes like
    any other binding. `entry_functions` are the functions to keep, besides the public ones.

    Before:

        @I.ir_module
        class Module:
            @R.function
            def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
                y = R.exp(x)
                z = R.add(y, y)
                return y

    After:

        @I.ir_module
        class Module:
            @R.function
            def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
                y = R.exp(x)
                return y
    """

    entry_functions: tuple[str, ...] = ()

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        operators = default_operators(mod)
        functions: dict[str, AnyFunc] = dict(mod.functions)
        for name, func in mod.relax_functions():
            functions[name] = _Eliminator(mod, operators, func).run()
        cleaned = mod.with_functions(functions)
        roots = public_functions(cleaned) + list(self.entry_functions)
        if not roots:
            return cleaned  # A module of private functions alone is a library under construction.
        kept = referenced_functions(cleaned, roots)
        return cleaned.with_functions({n: f for n, f in cleaned.functions.items() if n in kept})


class _Eliminator(Rewriter):
    """Goes through the bindings from the last to the first, so that one walk finds whole dead chains."""

    def __init__(self, mod: IRModule, operators: Operators, func: relax.Function) -> None:
        self.mod = mod
        self.operators = operators
        self.func = func
        self.uses: Counter[relax.Var] = variable_uses(func)

    def run(self) -> relax.Function:
        """The function without dead bindings."""
        made: relax.Function = self.func.replace(body=self(self.func.body))
        return made

    @on(relax.SeqExpr)
    def sequence(self, node: relax.SeqExpr) -> relax.SeqExpr:
        """Later blocks first: what they drop may free what earlier ones bind."""
        blocks: list[relax.BindingBlock] = []
        for block in reversed(node.blocks):
            blocks.append(self(block))
        blocks.reverse()
        if all(a is b for a, b in zip(blocks, node.blocks)):
            return node
        return node.replace(blocks=relax.joined(blocks))

    @on(relax.BindingBlock, relax.DataflowBlock)
    def block(self, node: relax.BindingBlock) -> relax.BindingBlock:
        """The live bindings."""
        kept: list[relax.Binding] = []
        for binding in reversed(node.bindings):
            if self.is_dead(binding):
                self._forget(binding)
            else:
                value = self(binding.value)
                kept.append(binding if value is binding.value else binding.replace(value=value))
        kept.reverse()
        if len(kept) == len(node.bindings) and all(a is b for a, b in zip(kept, node.bindings)):
            return node
        return node.replace(bindings=tuple(kept))

    def is_dead(self, binding: relax.Binding) -> bool:
        """Whether a binding can go."""
        if self.uses[binding.var] > 0 or not is_pure(binding.value, self.mod, self.operators):
            return False
        # What a match_cast checks may fail, and what it defines may be used: it goes only when it states nothing new.
        if not isinstance(binding, relax.MatchCast):
            return True
        return structural_equal(binding.value.struct_info, binding.struct_info)

    def _forget(self, binding: relax.Binding) -> None:
        gone = relax.Function((), relax.seq_expr((), binding.value), None)
        self.uses.subtract(variable_uses(gone))
