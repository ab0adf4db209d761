"""Functions inside a Relax function: closures, which see what is bound around them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from relaxlang.ir import relax
from relaxlang.ir.struct_info import OBJECT
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import Evaluator, Scope, Value, error
from relaxlang.syntax.elaborate.decorators import decorator_name
from relaxlang.syntax.elaborate.places import head
from relaxlang.syntax.elaborate.relax_body import UNKNOWN

if TYPE_CHECKING:
    from relaxlang.syntax.elaborate.relax_statements import Body


class Unfinished(Value):
    """A closure inside its own body, when its result is not declared."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.kind = f"function `{name}` without a declared result"

    def call(self, ev: Evaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
        raise error(
            "RLX0433",
            f"`{self.name}` calls itself and does not declare its result",
            node.span,
            help="add `-> R.Tensor(…)`",
        )


def closure(body: Body, node: tree.FunctionDef, scope: Scope) -> None:
    """A closure; it may call itself by its name when its result is declared."""
    from relaxlang.syntax.elaborate.macros import define_macro, is_macro
    from relaxlang.syntax.elaborate.relax_function import FunctionElaborator

    kinds = [decorator_name(d) for d in node.decorators]
    if is_macro(kinds):
        scope.names[node.name] = define_macro(body.ev, node, scope)
        return
    if "R.function" not in kinds:
        raise error("RLX0146", "a function inside a Relax function is a `@R.function`", head(node),
                    help="TensorIR functions stand in the module")  # fmt: skip
    options = {
        k.name: body.ev.expr(k.value, scope)
        for d in node.decorators
        if isinstance(d, tree.Call)
        for k in d.keywords
        if k.name
    }
    ev = body.ev
    inner = FunctionElaborator(ev.unit, node, Scope({}, scope), options, None)
    kind = relax.DataflowVar if ev.frame.dataflow and body.is_local(tree.Name(node.name), node) else relax.Var
    info = inner.signature()
    var = kind(node.name, info or OBJECT, span=head(node)) if info is not None else None
    inner.outer.names[node.name] = Unfinished(node.name) if var is None else var
    made = inner.run()
    if var is None:
        var = kind(node.name, made.struct_info if ev.check else UNKNOWN, span=head(node))
    ev.frame.bindings.append(relax.VarBinding(var, made, span=head(node)))
    scope.names[node.name] = var
