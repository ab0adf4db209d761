"""`@T.macro` and `@R.macro`: statements with parameters, expanded where they are called.

A macro's own names are apart from those at the call. Names that it does not bind are looked up where it is defined, or,
with `hygienic=False`, where it is called. A macro of Relax ends with `return`, which is the value of the call.
"""

from __future__ import annotations

from typing import Any

from relaxlang.syntax import tree
from relaxlang.syntax.comptime import Evaluator, Scope, Value, bind_parameters, error
from relaxlang.syntax.elaborate.relax_body import RelaxElaborator
from relaxlang.syntax.elaborate.tir_body import BodyElaborator

MAX_DEPTH = 100
MAX_CALLS = 10_000


class Macro(Value):
    """A macro with the scope it was defined in."""

    def __init__(self, node: tree.FunctionDef, scope: Scope, hygienic: bool) -> None:
        self.node = node
        self.scope = scope
        self.hygienic = hygienic
        self.kind = f"macro `{node.name}`"

    def call(self, ev: Evaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
        if not isinstance(ev, (BodyElaborator, RelaxElaborator)):
            raise error("RLX0111", f"the {self.kind} can be called only in a function", node.span)
        ev.macro_calls += 1
        if ev.macro_calls > MAX_CALLS:
            raise error("RLX0120", f"macros are called more than {MAX_CALLS:,} times in one function", node.span)
        if ev.macro_depth >= MAX_DEPTH:
            raise error("RLX0120", f"macros call each other more than {MAX_DEPTH} deep", node.span)
        outer = self.scope if self.hygienic or ev.here is None else ev.here
        scope = Scope(bind_parameters(ev, self.node.params, args, kwargs, node.span, f"the {self.kind}", outer), outer)
        ev.macro_depth += 1
        try:
            return self._relax(ev, scope, node) if isinstance(ev, RelaxElaborator) else ev.run(self.node.body, scope)
        finally:
            ev.macro_depth -= 1

    def _relax(self, ev: RelaxElaborator, scope: Scope, node: tree.Call) -> Any:
        *before, last = self.node.body
        if not isinstance(last, tree.Return) or last.value is None or ev.run_statements is None:
            raise error("RLX0148", f"the {self.kind} does not end with `return`", self.node.span)
        ev.run_statements(tuple(before), scope)
        return ev.evaluate(last.value, scope)


def is_macro(kinds: list[str]) -> bool:
    """Whether decorators make a function a macro."""
    return any(k in ("T.macro", "R.macro", "T.inline") for k in kinds)


def define_macro(ev: Evaluator, node: tree.FunctionDef, scope: Scope) -> Macro:
    """The macro of a decorated function."""
    hygienic = True
    for decorator in node.decorators:
        for keyword in decorator.keywords if isinstance(decorator, tree.Call) else ():
            if keyword.name == "hygienic":
                hygienic = ev.truth(ev.expr(keyword.value, scope), keyword.span)
    return Macro(node, scope, hygienic)
