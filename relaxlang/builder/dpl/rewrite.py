"""Rewriting functions: where a pattern matches, what a Python function makes of it takes its place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from relaxlang.base.arguments import checked
from relaxlang.base.diagnostics import fail
from relaxlang.base.recursion import deep_recursion
from relaxlang.builder.construct import as_expr
from relaxlang.builder.dpl.context import PatternContext
from relaxlang.builder.dpl.patterns import Pattern
from relaxlang.builder.dpl.state import State, Values
from relaxlang.builder.normalize import Normalizer
from relaxlang.ir import prim, relax
from relaxlang.ir.module import AnyFunc, IRModule
from relaxlang.ir.struct_info import OBJECT, FuncStructInfo
from relaxlang.ir.visit import Rewriter, free_vars, on, walk
from relaxlang.ops import Operators, default_operators
from relaxlang.syntax.core_ops import CORE_OPS
from relaxlang.syntax.struct_info import BaseCheck, base_check, bound_vars

LIMIT = 200
"""How often one block may be rewritten."""

Around = IRModule | Mapping[str, AnyFunc] | None
"""The module that a function is part of, or its functions when it defines no operators of its own."""

Found = dict[Pattern, Any]
Replacement = tuple[list[relax.Binding], relax.Expr]
"""What stands in the place of a value: bindings before it, and the value."""

Replace = Callable[[relax.Expr, Values, bool], Replacement | None]
"""Gives the replacement of a value from what variables are bound to, and whether it stands in a dataflow block."""


@checked
def rewrite_call(
    pattern: Pattern,
    rewriter: Callable[[relax.Expr, Found], Any],
    func: relax.Function,
    module: Around = None,
) -> relax.Function:
    """`func` with each bound value that `pattern` matches replaced by `rewriter(value, found)`.

    `found` says what each part of the pattern matched: variables where operands are variables. The rewriter gives an
    expression, nested as it likes, or the value itself for no change. Bindings are visited once, in order, so that
    later ones see what became of earlier ones; what nobody uses any more is dropped. `module` is where `func` belongs.
    """

    def replace(value: relax.Expr, values: Values, dataflow: bool) -> Replacement | None:
        state = next(pattern.search(value, State(values)), None)
        if state is None:
            return None
        made = as_expr(rewriter(value, dict(state.found)))
        return None if made is value else ([], made)

    return rewrite_values(func, replace, module)


@checked
def rewrite_bindings(
    context: PatternContext,
    rewriter: Callable[[dict[Pattern, relax.Var], dict[relax.Var, relax.Expr]], Mapping[relax.Var, Any]],
    func: relax.Function,
    module: Around = None,
) -> relax.Function:
    """`func` with the dataflow blocks in which a context's patterns match rewritten: `rewriter(found, bindings)` gives
    new values for some of the variables that the block binds.

    Each block is rewritten until nothing matches, or a match changes nothing. RLX0452 when this does not end.
    """
    return _BlockRewriter(_Changes(context, rewriter), module).run(func)


def rewrite_values(func: relax.Function, replace: Replace, module: Around = None) -> relax.Function:
    """`func` with each bound value replaced by what `replace` gives (None: kept)."""
    return _ValueRewriter(replace, module).run(func)


# --- what both kinds share --------------------------------------------------------------------------------------------
class _FunctionRewriter(Rewriter):
    """Visits the blocks of a function in order; `values` are those of the variables bound so far."""

    def __init__(self, module: Around) -> None:
        whole = module if isinstance(module, IRModule) else IRModule(module or {})
        self.functions = whole.functions
        self.operators = default_operators(whole)
        self.values: dict[relax.Var, relax.Expr] = {}

    def run(self, func: relax.Function) -> relax.Function:
        """The function rewritten, without what nobody uses any more."""
        with deep_recursion():
            made: relax.Function = self(func)
        return made if made is func else without_unused(made, unused(func), self.operators)

    @on(relax.Var, relax.DataflowVar)
    def var(self, node: relax.Var) -> relax.Var:
        """Variables stay."""
        return node

    def normalizer(self, dataflow: bool) -> Normalizer:
        """What brings new values into normal form."""
        made = Normalizer(self.functions, self.operators)
        made.in_dataflow = dataflow
        return made

    def rebound(self, var: relax.Var, value: relax.Expr, normalizer: Normalizer) -> list[relax.Binding]:
        """The bindings that give a variable another value. What is not known of it is checked at run time."""
        made = normalizer(value)
        before, normalizer.pending = normalizer.pending, []
        info = normalizer.infer(made)
        if base_check(var.struct_info, info) is BaseCheck.HOLDS:
            return [*before, relax.VarBinding(var, made, span=var.span)]
        held = (relax.DataflowVar if normalizer.in_dataflow else relax.Var)(f"{var.name}_any", info, span=var.span)
        cast = relax.MatchCast(var, held, var.struct_info, span=var.span)
        return [*before, relax.VarBinding(held, made, span=var.span), cast]

    def note(self, bindings: list[relax.Binding]) -> None:
        """Remember what variables are bound to; a match_cast is looked at as a value of its own."""
        self.values.update((b.var, b.value) for b in bindings if isinstance(b, relax.VarBinding))


class _ValueRewriter(_FunctionRewriter):
    """Replaces bound values one by one."""

    def __init__(self, replace: Replace, module: Around) -> None:
        super().__init__(module)
        self.replace = replace

    @on(relax.BindingBlock, relax.DataflowBlock)
    def block(self, node: relax.BindingBlock) -> relax.BindingBlock:
        """A block, binding by binding."""
        dataflow = isinstance(node, relax.DataflowBlock)
        made: list[relax.Binding] = []
        for binding in node.bindings:
            value = self(binding.value)  # branches and inner functions
            binding = binding if value is binding.value else binding.replace(value=value)
            found = self.replace(value, self.values, dataflow) if isinstance(binding, relax.VarBinding) else None
            new = [binding]
            if found is not None:
                new = [*found[0], *self.rebound(binding.var, found[1], self.normalizer(dataflow))]
            self.note(new)
            made += new
        if len(made) == len(node.bindings) and all(a is b for a, b in zip(made, node.bindings)):
            return node
        return node.replace(bindings=tuple(made))


# --- several bindings at once -----------------------------------------------------------------------------------------
Proposal = tuple[list[relax.Binding], dict[relax.Var, relax.Expr]]
"""New bindings, and new values of variables that are bound already."""

Propose = Callable[[relax.DataflowBlock, Values], Iterator[Proposal]]


class _Changes:
    """The proposals of `rewrite_bindings`: what its rewriter makes of each match."""

    def __init__(self, context: PatternContext, rewriter: Callable[..., Mapping[relax.Var, Any]]) -> None:
        self.context = context
        self.rewriter = rewriter

    def __call__(self, block: relax.DataflowBlock, values: Values) -> Iterator[Proposal]:
        inside = {b.var: b.value for b in block.bindings}
        for state in self.context.matches(block, values):
            found = {p: v for p, v in state.found.items() if isinstance(v, relax.Var)}
            given = self.rewriter(found, dict(inside))
            if not isinstance(given, Mapping):
                fail("RLX0451", f"a rewriter of bindings gives new values by variable, not `{type(given).__name__}`")
            changes = {var: as_expr(value) for var, value in given.items()}
            for var in changes:
                if var not in inside:
                    named = f"`{var.name}`" if isinstance(var, relax.Var) else f"{var!r}"
                    fail("RLX0451", f"{named} is not bound in the block that is rewritten")
            yield [], {var: value for var, value in changes.items() if value is not inside[var]}


def rewrite_blocks(func: relax.Function, propose: Propose, module: Around = None) -> relax.Function:
    """`func` with each dataflow block changed as `propose(block, values)` says, again and again until it proposes
    nothing that changes the block. RLX0452 when this does not end."""
    return _BlockRewriter(propose, module).run(func)


class _BlockRewriter(_FunctionRewriter):
    """Rewrites dataflow blocks as wholes."""

    def __init__(self, propose: Propose, module: Around) -> None:
        super().__init__(module)
        self.propose = propose

    @on(relax.BindingBlock)
    def plain(self, node: relax.BindingBlock) -> relax.BindingBlock:
        """A plain block is only looked through."""
        made = self.below(node)
        self.note(list(made.bindings))
        return made

    @on(relax.DataflowBlock)
    def dataflow(self, node: relax.DataflowBlock) -> relax.DataflowBlock:
        """A block, changed until nothing more is to be changed."""
        for _ in range(LIMIT):
            proposed = next((p for p in self.propose(node, self.values) if p[0] or p[1]), None)
            if proposed is None:
                self.note(list(node.bindings))
                return node
            node = self.changed(node, *proposed)
        fail("RLX0452", f"a block was rewritten {LIMIT:,} times, and still matches")

    def changed(
        self, node: relax.DataflowBlock, new: list[relax.Binding], changes: Mapping[relax.Var, relax.Expr]
    ) -> relax.DataflowBlock:
        """The block with new bindings and new values, in an order in which everything is bound before it is used."""
        made: list[relax.Binding] = []
        normalizer = self.normalizer(True)  # one for all: a value that several changes share is computed once
        for binding in node.bindings:
            if binding.var in changes:
                made += [*new, *self.rebound(binding.var, changes[binding.var], normalizer)]
                new = []
            else:
                made.append(binding)
        return node.replace(bindings=tuple(in_order([*new, *made])))


def in_order(bindings: list[relax.Binding]) -> list[relax.Binding]:
    """Bindings sorted so that each follows those it needs, otherwise in the order given. RLX0451 for a circle."""
    makers: dict[object, int] = {}
    for at, binding in enumerate(bindings):
        makers[binding.var] = at
        if isinstance(binding, relax.MatchCast):
            for dim in bound_vars((binding.struct_info,)):
                makers.setdefault(dim, at)
    done: set[int] = set()
    open_: set[int] = set()
    made: list[relax.Binding] = []
    work = [(at, False) for at in range(len(bindings) - 1, -1, -1)]
    while work:
        at, ready = work.pop()
        if ready:
            open_.discard(at)
            done.add(at)
            made.append(bindings[at])
        elif at not in done:
            if at in open_:
                fail("RLX0451", f"the new value of `{bindings[at].var.name}` depends on itself")
            open_.add(at)
            work.append((at, True))
            needs = {makers[n] for n in needed(bindings[at]) if n in makers} - {at} - done
            work += [(n, False) for n in sorted(needs, reverse=True)]
    return made


def needed(binding: relax.Binding) -> Iterator[object]:
    """The variables and symbolic dimensions that a binding mentions."""
    for node in walk(binding.value):
        if isinstance(node, (relax.Var, prim.Var)):
            yield node
    info = binding.struct_info if isinstance(binding, relax.MatchCast) else binding.var.struct_info
    if not isinstance(info, FuncStructInfo):
        yield from free_vars(info)


# --- what is left over ------------------------------------------------------------------------------------------------
def _mentions(func: relax.Function) -> Counter[relax.Var]:
    """How often each variable stands in a function, as the shape of others too; its binding is one time."""
    found = [n for n in walk(func) if isinstance(n, relax.Var)]
    shapes = [n for v in found for n in walk(v.struct_info or OBJECT) if isinstance(n, relax.Var)]
    return Counter([*found, *shapes])


def unused(func: relax.Function) -> set[relax.Var]:
    """The variables that nothing uses."""
    return {v for v, count in _mentions(func).items() if count == 1}


def without_unused(func: relax.Function, keep: set[relax.Var], operators: Operators) -> relax.Function:
    """A function without the bindings of variables that nothing uses, unless they have effects or are in `keep`."""
    while True:
        counts = _mentions(func)
        sweep = _Sweep({v for v, count in counts.items() if count == 1 and v not in keep}, operators)
        made: relax.Function = sweep(func)
        if made is func:
            return func
        func = made


class _Sweep(Rewriter):
    def __init__(self, dead: set[relax.Var], operators: Operators) -> None:
        self.dead = dead
        self.operators = operators

    @on(relax.SeqExpr)
    def sequence(self, node: relax.SeqExpr) -> relax.SeqExpr:
        """Blocks that become empty go; plain ones that then meet are one."""
        made = self.below(node)
        return node if made is node else made.replace(blocks=relax.joined(made.blocks))

    @on(relax.BindingBlock, relax.DataflowBlock)
    def block(self, node: relax.BindingBlock) -> relax.BindingBlock:
        """A block without dead bindings."""
        made = self.below(node)
        kept = tuple(b for b in made.bindings if b.var not in self.dead or not self.is_pure(b))
        return made if len(kept) == len(made.bindings) else made.replace(bindings=kept)

    def is_pure(self, binding: relax.Binding) -> bool:
        """Whether a binding may be dropped: it checks nothing and has no effect."""
        value = binding.value
        if not isinstance(binding, relax.VarBinding) or isinstance(value, relax.If):
            return False
        if not isinstance(value, relax.Call):
            return True
        if isinstance(value.op, relax.Op):
            core = CORE_OPS.get(value.op.name)
            return core.pure if core is not None else self.operators.is_pure(value.op.name)
        info = value.op.struct_info or OBJECT
        return isinstance(info, FuncStructInfo) and info.purity
