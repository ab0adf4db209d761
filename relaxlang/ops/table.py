"""The operator table that parser, inference and legalisation share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from relaxlang.base.diagnostics import Diagnostics, fail
from relaxlang.base.recursion import deep_recursion
from relaxlang.base.source import Source, Span
from relaxlang.base.suggest import suggestion
from relaxlang.ir import relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.struct_info import StructInfo
from relaxlang.ops.definition import OpDef, gradient_rules
from relaxlang.ops.distributed import infer_spread, is_spread
from relaxlang.ops.elaborate import infer_call, lower_call
from relaxlang.ops.kernel import Kernel
from relaxlang.ops.library import Library, definitions, file_scope, standard_library
from relaxlang.ops.memo import InfoMemo, KernelMemo
from relaxlang.ops.rules import Emit, Gradient, Layouts, gradient_of, layouts_of
from relaxlang.ops.signature import make_call
from relaxlang.syntax import tree
from relaxlang.syntax.parser import parse_surface

_kernels, _infos = KernelMemo(), InfoMemo()


class Operators:
    """The operators of a library, and those that a module defines itself. See `syntax.operators.OperatorTable`."""

    def __init__(self, library: Library, own: dict[str, OpDef] | None = None) -> None:
        self.library = library
        self.own = own or {}

    def extended(self, body: Iterable[tree.Stmt]) -> Operators:
        """A table that also has the operators (and compile-time functions) which a module's statements define."""
        body = list(body)
        scope = file_scope(body, self.library.prelude())
        made = Operators(self.library, {**self.own, **{d.name: d for d in definitions(body, scope)}})
        for name, rule in gradient_rules(body, scope).items():
            made.own[name] = made.get(name, rule.function.span).replace(gradient=rule)
        return made

    def names(self) -> Iterable[str]:
        """All operator names, sorted."""
        return sorted({*self.library.names(), *self.own})

    def has(self, name: str) -> bool:
        """Whether `name` is an operator or a prefix of one."""
        return name in self.own or self.library.has(name) or any(n.startswith(name + ".") for n in self.own)

    def sugar(self, symbol: str) -> str | None:
        """The operator that a symbol (`@`, `[:]`, `[i]`) stands for."""
        return self.library.sugar(symbol)

    def find(self, name: str) -> OpDef | None:
        """The definition of an operator, or None."""
        return self.own.get(name) or self.library.get(name)

    def get(self, name: str, span: Span | None = None) -> OpDef:
        """The definition of an operator; a diagnostic when there is none."""
        found = self.find(name)
        if found is None:
            hint = suggestion(name, self.names(), span, "R.")
            fail("RLX0103", f"there is no operator `R.{name}`", span, **hint)
        return found

    def make_call(self, name: str, args: list[Any], kwargs: dict[str, Any], span: Span | None) -> relax.Call:
        """The call `R.name(*args, **kwargs)`, without struct info."""
        return make_call(self.get(name, span), args, kwargs, span)

    def infer(self, call: relax.Call) -> StructInfo:
        """The struct info of the result of an operator call."""
        assert isinstance(call.op, relax.Op)
        definition = self.get(call.op.name, call.span)
        if is_spread(call):
            return infer_spread(definition, call)
        return _infos.infer(definition, call, infer_call)

    def lower(self, call: relax.Call) -> Kernel | relax.Expr:
        """What computes an operator call: a kernel, or an expression that stands for it."""
        assert isinstance(call.op, relax.Op)
        definition = self.get(call.op.name, call.span)
        with deep_recursion():
            return _kernels.lower(definition, call, lambda: lower_call(definition, call, self.get))

    def gradient(
        self, call: relax.Call, output: relax.Expr, grad: relax.Expr, emit: Emit | None = None
    ) -> tuple[Gradient, ...]:
        """The derivatives of a call with respect to its arguments; see `ops.rules.gradient_of`."""
        assert isinstance(call.op, relax.Op)
        with deep_recursion():
            return gradient_of(self.get(call.op.name, call.span), call, output, grad, self, emit)

    def layouts(self, call: relax.Call, kept: Sequence[str], desired: tuple[str, ...] = ()) -> Layouts | None:
        """In which layouts a call takes its tensors; see `ops.rules.layouts_of`."""
        assert isinstance(call.op, relax.Op)
        return layouts_of(self.get(call.op.name, call.span), call, kept, desired)

    def is_view(self, name: str) -> bool:
        """Whether the operator's result has the elements of its first argument, in the same row-major order."""
        return self.get(name).view

    def is_pure(self, name: str) -> bool:
        """Whether the operator has no side effect."""
        return self.get(name).pure


def default_operators(mod: IRModule | None = None) -> Operators:
    """The operators of the standard library, and those that a module defines."""
    return Operators(standard_library()) if mod is None or not mod.operators else _with(tuple(mod.operators.values()))


@lru_cache(maxsize=64)
def _with(definitions: tuple[str, ...]) -> Operators:
    diagnostics = Diagnostics()
    body = parse_surface(Source("operators of the module", "\n\n".join(definitions)), diagnostics).body
    diagnostics.check()
    return Operators(standard_library()).extended(body)
