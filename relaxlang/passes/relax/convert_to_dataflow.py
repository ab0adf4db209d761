"""ConvertToDataflow: runs of bindings without side effects become dataflow blocks."""

from __future__ import annotations

from relaxlang.analysis.purity import is_pure
from relaxlang.base.record import record
from relaxlang.ir import relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.visit import Rewriter, Visitor, on
from relaxlang.ops import Operators, default_operators
from relaxlang.passes.base import FunctionPass, PassContext


@record
class ConvertToDataflow(FunctionPass):
    """Turn every longest run of at least `min_size` pure bindings, without conditionals, inner functions and calls of
    the function itself, into a dataflow block. Variables that are used only inside it become dataflow variables.

    Before:

        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            y = R.exp(x)
            z = R.add(y, x)
            return z

    After:

        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            with R.dataflow():
                y = R.exp(x)
                z = R.add(y, x)
                R.output(z)
            return z
    """

    min_size: int = 2

    def run_function(self, func: relax.Function, mod: IRModule, ctx: PassContext) -> relax.Function:
        own = next((name for name, f in mod.relax_functions() if f is func), "")
        convert = _Converter(mod, default_operators(mod), self.min_size, func, own)
        made: relax.Function = func.replace(body=convert(func.body))
        return made


class _Places(Visitor):
    """`used_in`: the blocks (by identity of their first binding's run) in which each variable is used."""

    def __init__(self, run_of: dict[relax.Binding, int]) -> None:
        self.run_of = run_of
        self.run = -1
        self.used_in: dict[relax.Var, set[int]] = {}

    @on(relax.VarBinding, relax.MatchCast)
    def binding(self, node: relax.Binding) -> None:
        """A binding: in its run, or in none. What stands inside an inner function is outside of all runs."""
        outer, self.run = self.run, self.run_of.get(node, -1)
        self(node.value)
        for info in (node.var.struct_info, getattr(node, "struct_info", None)):
            if info is not None:
                self(info)
        self.run = outer

    @on(relax.Var, relax.DataflowVar)
    def var(self, node: relax.Var) -> None:
        """A use."""
        self.used_in.setdefault(node, set()).add(self.run)


class _Converter(Rewriter):
    def __init__(self, mod: IRModule, operators: Operators, min_size: int, func: relax.Function, own: str) -> None:
        self.mod = mod
        self.own = own
        self.operators = operators
        self.min_size = min_size
        self.run_of: dict[relax.Binding, int] = {}
        self.renamed: dict[relax.Var, relax.Var] = {}
        self._find_runs(func)
        places = _Places(self.run_of)
        places(func.body)
        for binding, run in self.run_of.items():
            if not isinstance(binding.var, relax.DataflowVar) and places.used_in.get(binding.var, {run}) == {run}:
                var = binding.var
                self.renamed[var] = relax.DataflowVar(var.name, var.struct_info, span=var.span)

    def _find_runs(self, func: relax.Function) -> None:
        finder = _Blocks()
        finder(func.body)
        number = 0
        for block in finder.found:
            run: list[relax.Binding] = []
            for binding in (*block.bindings, None):
                if binding is not None and self._fits(binding.value):
                    run.append(binding)
                    continue
                if len(run) >= self.min_size:
                    self.run_of.update(dict.fromkeys(run, number))
                    number += 1
                run = []

    def _fits(self, value: relax.Expr) -> bool:
        if isinstance(value, relax.Call) and isinstance(value.op, relax.GlobalVar) and value.op.name == self.own:
            return False  # dataflow blocks do not recurse
        return not isinstance(value, (relax.If, relax.Function)) and is_pure(value, self.mod, self.operators)

    @on(relax.Var)
    def var(self, node: relax.Var) -> relax.Var:
        """A variable under its new kind."""
        return self.renamed.get(node, node)

    @on(relax.SeqExpr)
    def sequence(self, node: relax.SeqExpr) -> relax.SeqExpr:
        """Plain blocks, taken apart into runs and what is between."""
        blocks: list[relax.BindingBlock] = []
        for block in node.blocks:
            if isinstance(block, relax.DataflowBlock):
                blocks.append(self(block))
            else:
                self._split(block, blocks)
        body = self(node.body)
        if body is node.body and len(blocks) == len(node.blocks) and all(a is b for a, b in zip(blocks, node.blocks)):
            return node
        return relax.SeqExpr(tuple(blocks), body, span=node.span)

    def _split(self, block: relax.BindingBlock, blocks: list[relax.BindingBlock]) -> None:
        if not any(b in self.run_of for b in block.bindings):
            blocks.append(self(block))
            return
        parts: list[tuple[int, list[relax.Binding]]] = []
        for binding in block.bindings:
            run = self.run_of.get(binding, -1)
            if not parts or parts[-1][0] != run:
                parts.append((run, []))
            parts[-1][1].append(self(binding))
        for run, bindings in parts:
            kind = relax.BindingBlock if run < 0 else relax.DataflowBlock
            blocks.append(kind(tuple(bindings), span=block.span))


class _Blocks(Visitor):
    """Collects the plain blocks of a function, inner ones too."""

    def __init__(self) -> None:
        self.found: list[relax.BindingBlock] = []

    @on(relax.BindingBlock)
    def block(self, node: relax.BindingBlock) -> None:
        """A plain block."""
        self.found.append(node)
        self.below(node)
