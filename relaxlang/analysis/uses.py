"""Who uses what: variables and functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from relaxlang.ir import prim, relax
from relaxlang.ir.module import AnyFunc, IRModule
from relaxlang.ir.tir import PrimFunc
from relaxlang.ir.visit import Visitor, on, walk


def referenced_functions(mod: IRModule, roots: Iterable[str]) -> set[str]:
    """The functions that can be reached from `roots` by references, the roots included."""
    reached: set[str] = set()
    work = [name for name in roots if name in mod]
    while work:
        name = work.pop()
        if name in reached:
            continue
        reached.add(name)
        work.extend(n for n in _references(mod[name]) if n in mod)
    return reached


def _references(func: AnyFunc) -> set[str]:
    """The functions that a function names."""
    found: set[str] = set()
    for node in walk(func):
        # Calls between PrimFuncs carry the callee in the call itself.
        callee = node.op if isinstance(node, prim.Call) else node
        if isinstance(callee, relax.GlobalVar):
            found.add(callee.name)
    return found


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
