"""Functions that come from elsewhere: out of an included module, or captured from Python.

A module is closed, so whoever refers to such a function gets a copy of it, and of all that it calls, in its own module.
The copies are private. They keep their names where those are free; else the name they are reached by is put in front.
"""

from __future__ import annotations

from typing import Any

from relaxlang.base.source import Span
from relaxlang.base.suggest import suggestion
from relaxlang.ir import prim, relax, tir
from relaxlang.ir.attrs import Attrs
from relaxlang.ir.module import AnyFunc, IRModule, function_info
from relaxlang.ir.visit import Rewriter, on, walk
from relaxlang.syntax.comptime import Evaluator, Value, error
from relaxlang.syntax.elaborate.unit import Declared, Unit


class OtherModule(Value):
    """A module in the text of another: `attn = I.include("attn.rlx")`, then `attn.f`."""

    def __init__(self, unit: Unit, alias: str, module: IRModule) -> None:
        self.unit = unit
        self.alias = alias
        self.module = module
        self.names: dict[str, str] = {}
        self.kind = f"module `{alias}`"

    def attribute(self, ev: Evaluator, name: str, span: Span | None) -> Any:
        if name not in self.module.functions:
            hint = suggestion(name, self.module.functions, span)
            raise error("RLX0101", f"the module `{self.alias}` has no function `{name}`", span, **hint)
        return self.take(name)

    def take(self, name: str) -> relax.GlobalVar:
        """The module's function, in the module that is being read; it comes with the functions that it calls."""
        if name not in self.names:
            pending = [name]
            while pending:
                current = pending.pop()
                if current in self.names:
                    continue
                self.names[current] = self._free_name(current)
                pending += _called(self.module.functions[current])
            for own, new in self.names.items():
                if new not in self.unit.functions:
                    self._declare(own, new)
        return self.unit.functions[self.names[name]].var

    def _free_name(self, name: str) -> str:
        taken = {*self.unit.functions, *self.unit.externs, *self.names.values()}
        if name in taken:
            name, number = f"{self.alias}_{name}", 1
            while name in taken:
                name, number = f"{self.alias}_{name}_{number}", number + 1
        return name

    def _declare(self, own: str, new: str) -> None:
        function = _private(self.module.functions[own])
        made: AnyFunc = _Renamed(self.names)(function)
        declared = self.unit.functions[new] = Declared(new, made.span, None)
        declared.function, declared.state, declared.is_prim = made, "done", isinstance(made, tir.PrimFunc)
        declared.info = function_info(made)


def adopt(unit: Unit, name: str, function: AnyFunc) -> relax.GlobalVar:
    """A single function from elsewhere, under a name of the module."""
    return OtherModule(unit, name, IRModule({name: function})).take(name)


def _private(function: AnyFunc) -> AnyFunc:
    if isinstance(function, relax.ExternFunc) or "global_symbol" not in function.attrs:
        return function
    return function.replace(attrs=Attrs({k: v for k, v in function.attrs.items() if k != "global_symbol"}))


def _called(function: AnyFunc) -> list[str]:
    """The functions of its module that a function refers to."""
    found = {n.name for n in walk(function) if isinstance(n, relax.GlobalVar)}
    found |= {n.op.name for n in walk(function) if isinstance(n, prim.Call) and isinstance(n.op, relax.GlobalVar)}
    return sorted(found)


class _Renamed(Rewriter):
    """Puts new names of functions in the place of old ones."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    @on(relax.GlobalVar)
    def global_var(self, node: relax.GlobalVar) -> relax.GlobalVar:
        return node.replace(name=self.names.get(node.name, node.name))

    @on(prim.Call)
    def prim_call(self, node: prim.Call) -> prim.Call:
        made = self.below(node)
        return made.replace(op=self.global_var(made.op)) if isinstance(made.op, relax.GlobalVar) else made
