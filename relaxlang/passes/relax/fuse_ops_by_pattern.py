"""FuseOpsByPattern: what a back end can compute as one piece becomes a function of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from relaxlang.analysis.alias import overwritten
from relaxlang.base.diagnostics import fail
from relaxlang.base.record import record
from relaxlang.builder.dpl.context import users
from relaxlang.builder.dpl.patterns import CallPattern, Pattern, TupleGetItemPattern, TuplePattern
from relaxlang.builder.dpl.state import State
from relaxlang.builder.operands import operands
from relaxlang.ir import relax
from relaxlang.ir.attrs import EMPTY, Attrs
from relaxlang.ir.module import AnyFunc, IRModule
from relaxlang.ir.visit import on, walk
from relaxlang.ops import default_operators
from relaxlang.passes.back_end import CODEGEN, COMPOSITE, CompositePattern, Match
from relaxlang.passes.base import Pass, PassContext
from relaxlang.passes.relax.fuse_ops import UNITS, Outliner, outline


@record
class FuseOpsByPattern(Pass):
    """Each part of a dataflow block that a pattern matches becomes a private function with the attribute `Composite`.

    `patterns` are `CompositePattern`s, or tuples of a name (`blas.matmul`, the back end's first), a dataflow pattern
    and, if wanted, a predicate that takes the `Match`; or `back_end` names a back end, whose patterns they are. Earlier
    patterns go before later ones. A match counts when what it computes on the way is used nowhere else, so that nothing
    outside stands between its parts, when no call in place writes to what it reads, and when the predicate holds. With
    `bind_constants` constants go into the function, else they are arguments. With `annotate_codegen` the functions get
    the attribute `Codegen` too, as if `MergeCompositeFunctions` had made them. RLX3151 for what is no pattern.

    With the pattern `blas.matmul` for `R.matmul`:

    Before:

        @R.function
        def main(x: R.Tensor((n, 4), "float32"), w: R.Tensor((4, 8), "float32")) -> R.Tensor((n, 8), "float32"):
            with R.dataflow():
                y = R.matmul(x, w)
                z = R.nn.relu(y)
                R.output(z)
            return z

    After:

        @I.ir_module
        class Module:
            @R.function
            def main(x: R.Tensor((n, 4), "float32"), w: R.Tensor((4, 8), "float32")) -> R.Tensor((n, 8), "float32"):
                cls = Module
                with R.dataflow():
                    y = cls.fused_blas_matmul(x, w)
                    z = R.nn.relu(y)
                    R.output(z)
                return z

            @R.function(private=True)
            def fused_blas_matmul(
                x: R.Tensor((n, 4), "float32"), w: R.Tensor((4, 8), "float32")
            ) -> R.Tensor((n, 8), "float32"):
                R.func_attr({"Composite": "blas.matmul"})
                with R.dataflow():
                    y = R.matmul(x, w)
                    R.output(y)
                return y
    """

    patterns: tuple[Any, ...] | list[Any] = ()
    bind_constants: bool = True
    annotate_codegen: bool = False
    back_end: str = ""

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        patterns = [as_pattern(p) for p in self.patterns]
        if self.back_end:
            patterns += ctx.back_ends.find(self.back_end).patterns()
        return PatternFuser(mod, patterns, self.bind_constants, self.annotate_codegen).run(mod)


def as_pattern(given: Any) -> CompositePattern:
    """A pattern of a back end from what a user may write for one; RLX3151 for what is none."""
    if isinstance(given, CompositePattern):
        return given
    if isinstance(given, (tuple, list)) and 2 <= len(given) <= 3:
        name, pattern, *predicate = given
        if isinstance(name, str) and isinstance(pattern, Pattern) and all(callable(p) for p in predicate):
            return CompositePattern(name, pattern, *predicate)
    fail("RLX3151", f"a pattern is a tuple of a name, a dataflow pattern and perhaps a predicate, not {given!r}")


def values_of(func: relax.Function) -> dict[relax.Var, relax.Expr]:
    """What the variables of a function are bound to."""
    return {n.var: n.value for n in walk(func) if isinstance(n, relax.VarBinding)}


class PatternFuser(Outliner):
    """What `FuseOpsByPattern` does, once; `taken` then says which variables each of its calls computes, by the variable
    of the call."""

    def __init__(
        self, mod: IRModule, patterns: Sequence[CompositePattern], bind_constants: bool, annotate: bool
    ) -> None:
        super().__init__(mod)
        self.patterns = patterns
        self.bind_constants = bind_constants
        self.annotate = annotate
        self.values: Mapping[relax.Var, relax.Expr] = {}
        self.taken: dict[relax.Var, tuple[relax.Var, ...]] = {}

    def run(self, mod: IRModule) -> IRModule:
        """The module with a function for each match."""
        for name, func in mod.relax_functions():
            if not UNITS & func.attrs.keys():
                self.written = overwritten(func, mod, default_operators(mod))
                self.values = values_of(func)
                self.functions[name] = self(func)
        return mod.with_functions(self.functions)

    @on(relax.DataflowBlock)
    def dataflow_block(self, node: relax.DataflowBlock) -> relax.DataflowBlock:
        """A dataflow block: each match becomes a call, where its last binding stood."""
        calls: dict[relax.Binding, relax.Binding | None] = {}
        for name, members in self.matches(node):
            self.taken[members[-1].var] = tuple(b.var for b in members)
            calls.update(dict.fromkeys(members))
            calls[members[-1]] = self.composite(name, members)
        if not calls:
            return node
        kept = [calls.get(b, b) for b in node.bindings]
        return node.replace(bindings=tuple(b for b in kept if b is not None))

    def matches(self, block: relax.DataflowBlock) -> list[tuple[str, list[relax.VarBinding]]]:
        """The matches that count, none overlapping another: the pattern's name and the bindings, in order."""
        inside = {b.var: b for b in block.bindings if isinstance(b, relax.VarBinding)}
        places = {b: at for at, b in enumerate(block.bindings)}
        uses = users(block)
        taken: set[relax.Var] = set()
        found: list[tuple[str, list[relax.VarBinding]]] = []
        for pattern in self.patterns:
            for var in reversed(inside):
                if var in taken:
                    continue
                for state in pattern.pattern.search(var, State(self.values)):
                    members = sorted((inside[v] for v in matched(state, var) if v in inside), key=places.__getitem__)
                    if self.counts(pattern, state, members, uses) and not taken & {b.var for b in members}:
                        taken |= {b.var for b in members}
                        found.append((pattern.name, members))
                        break
        return found

    def counts(
        self,
        pattern: CompositePattern,
        state: State,
        members: Sequence[relax.VarBinding],
        uses: Mapping[relax.Var, Sequence[relax.Var]],
    ) -> bool:
        """Whether a match may become a function."""
        own = {b.var for b in members}
        for binding in members[:-1]:
            if not isinstance(binding.var, relax.DataflowVar) or not own.issuperset(uses.get(binding.var, ())):
                return False
        if any(arg in self.written for b in members for arg in operands(b.value)):
            return False
        return pattern.predicate is None or pattern.predicate(Match(state.found, members))

    def composite(self, name: str, members: Sequence[relax.VarBinding]) -> relax.VarBinding:
        """The call of a function that computes the members."""
        attrs = Attrs({COMPOSITE: name})
        if self.annotate:
            attrs = attrs.set(CODEGEN, back_end_of(name))
        func, args = outline(members, attrs, bind_constants=self.bind_constants)
        made = self.add(func, [name.replace(".", "_")])
        last = members[-1]
        callee = relax.GlobalVar(made, func.struct_info)
        return last.replace(value=relax.Call(callee, args, EMPTY, (), last.var.struct_info, span=last.value.span))


def matched(state: State, root: relax.Var) -> set[relax.Var]:
    """The variables whose values a match is made of, its operands left out."""
    parts = (CallPattern, TuplePattern, TupleGetItemPattern)
    return {root, *(e for p, e in state.found.items() if isinstance(p, parts) and isinstance(e, relax.Var))}


def back_end_of(composite: str) -> str:
    """The back end in the name of a pattern."""
    return composite.partition(".")[0]


def composites(functions: Mapping[str, AnyFunc]) -> dict[str, str]:
    """The functions that are pieces of a back end's work and may be joined, and the back ends."""
    return {
        name: back_end_of(str(func.attrs[COMPOSITE]))
        for name, func in functions.items()
        if isinstance(func, relax.Function) and COMPOSITE in func.attrs and CODEGEN not in func.attrs
    }
