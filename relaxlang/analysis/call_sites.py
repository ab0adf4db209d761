"""Where the functions of a module are called, and which are used in any other way."""

from __future__ import annotations

from relaxlang.ir import relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.visit import Visitor, on


class CallSites(Visitor):
    """`calls`: the direct calls of each function of the module, by name; `escaped`: those that are used as values too,
    so that not every call of them is known."""

    def __init__(self, mod: IRModule) -> None:
        self.calls: dict[str, list[relax.Call]] = {}
        self.escaped: set[str] = set()
        for _, func in mod.relax_functions():
            self(func)

    @on(relax.Call)
    def call(self, node: relax.Call) -> None:
        """A call; its callee is no use as a value."""
        if isinstance(node.op, relax.GlobalVar):
            self.calls.setdefault(node.op.name, []).append(node)
        else:
            self(node.op)
        for arg in node.args:
            self(arg)

    @on(relax.GlobalVar)
    def value(self, node: relax.GlobalVar) -> None:
        """A function as a value."""
        self.escaped.add(node.name)

    def private(self, mod: IRModule) -> dict[str, relax.Function]:
        """The private Relax functions of which every call is known."""
        return {n: f for n, f in mod.relax_functions() if f.is_private and n not in self.escaped and n in self.calls}
