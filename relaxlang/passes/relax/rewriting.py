"""Finding and making calls of operators: what passes that rewrite algebra share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Set
from typing import Any

from relaxlang.analysis.uses import Uses, variable_uses
from relaxlang.base.source import Span
from relaxlang.builder.infer import Inference
from relaxlang.ir import prim, relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.prim import IntImm, PrimExpr
from relaxlang.ir.struct_info import TensorStructInfo
from relaxlang.ir.visit import walk
from relaxlang.ops import Operators
from relaxlang.passes.bindings import BindingRewriter


class OperatorRewriter(BindingRewriter):
    """A rewriter of operators in one function, which knows what variables are bound to and how often they are used."""

    def __init__(self, mod: IRModule, operators: Operators, func: relax.Function) -> None:
        super().__init__()
        self.mod = mod
        self.operators = operators
        self.infer = Inference(dict(mod.functions), operators)
        self.uses: Counter[relax.Var] = variable_uses(func)
        self.values: dict[relax.Expr, relax.Expr] = {}

    def bound(self, value: relax.Expr, *names: str) -> relax.Call | None:
        """The call of one of some operators that a variable is bound to, in sight of the current binding; else None."""
        found = self.values.get(value)
        return found if is_call(found, *names) and isinstance(found, relax.Call) else None

    def once(self, value: relax.Expr) -> bool:
        """Whether a variable is used in one place only."""
        return isinstance(value, relax.Var) and self.uses[value] == 1

    def call(self, name: str, *args: relax.Expr, span: Span | None = None, **attrs: Any) -> relax.Call:
        """A call of an operator, with its struct info; attributes that are not given take their defaults."""
        made = self.operators.make_call(name, list(args), attrs, span)
        return made.replace(struct_info=self.infer(made))

    def emit_call(self, hint: str, name: str, *args: relax.Expr, span: Span | None = None, **attrs: Any) -> relax.Var:
        """A call of an operator, bound to a new variable before the current binding."""
        made = self.call(name, *args, span=span, **attrs)
        assert made.struct_info is not None
        var = self.emit(hint, made, made.struct_info, span)
        self.values[var] = made
        return var


class _Dropper(BindingRewriter):
    """Drops bindings of some variables."""

    def __init__(self, gone: Set[relax.Var]) -> None:
        super().__init__()
        self.gone = gone

    def binding(self, binding: relax.Binding) -> Iterable[relax.Binding]:
        return () if binding.var in self.gone else (binding,)


def without_unused(func: relax.Function, variables: Set[relax.Var]) -> relax.Function:
    """A function without those of some pure bindings that nothing needs, directly or through others of them."""
    uses = variable_uses(func)
    values = {b.var: b.value for b in walk(func) if isinstance(b, relax.VarBinding)}
    gone: set[relax.Var] = set()
    work = [v for v in variables if not uses[v]]
    while work:
        var = work.pop()
        gone.add(var)
        inside = Uses()
        inside(values[var])
        for used, count in inside.counts.items():
            uses[used] -= count
            if not uses[used] and used in variables:
                work.append(used)
    made: relax.Function = _Dropper(gone)(func)
    return made


def is_call(value: object, *names: str) -> bool:
    """Whether a value is a call of one of some operators."""
    return isinstance(value, relax.Call) and isinstance(value.op, relax.Op) and value.op.name in names


def dims(value: relax.Expr) -> tuple[PrimExpr, ...] | None:
    """The dimensions of a tensor, where they are known."""
    info = value.struct_info
    return info.dims if isinstance(info, TensorStructInfo) else None


def numbers(shape: tuple[PrimExpr, ...] | None) -> tuple[int, ...] | None:
    """Dimensions as numbers; None when one is symbolic."""
    if shape is None or not all(isinstance(d, IntImm) for d in shape):
        return None
    return tuple(d.value for d in shape if isinstance(d, IntImm))


def shape_expr(*values: int | PrimExpr) -> relax.ShapeExpr:
    """A shape value."""
    return relax.ShapeExpr(tuple(prim.cast(prim.as_prim(v, prim.INT64), prim.INT64) for v in values))
