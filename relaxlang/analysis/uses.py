"""Who uses what: variables and functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from relaxlang.ir import prim, relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.tir import PrimFunc
from relaxlang.ir.visit import Visitor, on, walk

_OPERANDS: dict[type, Callable[[Any], tuple[relax.Expr, ...]]] = {
    relax.Call: lambda e: (e.op, *e.args),
    relax.Tuple: lambda e: e.fields,
    relax.TupleGetItem: lambda e: (e.tuple_value,),
    relax.If: lambda e: (e.condition, e.true_branch, e.false_branch),
    relax.SeqExpr: lambda e: (*(b.value for block in e.blocks for b in block.bindings), e.body),
    relax.Function: lambda e: (e.body,),
}


def expressions(root: relax.Expr) -> Iterator[relax.Expr]:
    """Every expression of Relax in an expression or function and itself, parents first, in order; of what is bound and
    of what is said about values nothing. Without recursion."""
    stack = [root]
    while stack:
        value = stack.pop()
        yield value
        operands = _OPERANDS.get(value.__class__)
        if operands is not None:
            stack += reversed(operands(value))


def referenced_functions(mod: IRModule, roots: Iterable[str]) -> set[str]:
    """The functions that can be reached from `roots` by references, the roots included."""
    reached: set[str] = set()
    work = [name for name in roots if name in mod]
    kernels: list[PrimFunc] = []  # looked into last: most call nothing, and often everything is reached by then
    while work or (kernels and len(reached) < len(mod)):
        if not work:
            work.extend(n for n in _called_kernels(kernels.pop()) if n in mod)
            continue
        name = work.pop()
        if name in reached:
            continue
        reached.add(name)
        func = mod[name]
        if isinstance(func, PrimFunc):
            kernels.append(func)
        else:
            work.extend(e.name for e in expressions(func) if isinstance(e, relax.GlobalVar) and e.name in mod)
    return reached


def _called_kernels(func: PrimFunc) -> Iterator[str]:
    """The functions that a PrimFunc calls: the call itself carries the callee."""
    return (n.op.name for n in walk(func) if isinstance(n, prim.Call) and isinstance(n.op, relax.GlobalVar))


def public_functions(mod: IRModule) -> list[str]:
    """The functions that may be called from outside."""
    return [n for n, f in mod.functions.items() if isinstance(f, (relax.Function, PrimFunc)) and not f.is_private]


class Uses(Visitor):
    """Counts, in a Relax function, how often each variable is used (not bound)."""

    def __init__(self) -> None:
        self.counts: Counter[relax.Var] = Counter()

    @on(relax.Var, relax.DataflowVar)
    def var(self, node: relax.Var) -> None:
        """A use."""
        self.counts[node] += 1

    @on(relax.VarBinding, relax.MatchCast)
    def binding(self, node: relax.Binding) -> None:
        """The bound variable is no use."""
        self(node.value)

    @on(relax.Function)
    def function(self, node: relax.Function) -> None:
        """Parameters are no uses."""
        self(node.body)


def variable_uses(func: relax.Function) -> Counter[relax.Var]:
    """How often each variable of a function is used."""
    uses = Uses()
    uses(func)
    return uses.counts
