"""What a module says that cannot be true: a value or a result declared as what it is not, a call of a function or a
kernel with what that does not take.

Reading refuses them where the text is strict, and warns where it is not (`syntax.elaborate.unit.Unit.require`);
programs can make them too. Code relies on struct info, so that nothing is built from a module that holds one.
"""

from __future__ import annotations

from collections.abc import Iterator

from relaxlang.analysis.index_ranges import require_in_range
from relaxlang.base.diagnostics import Diagnostic, DiagnosticError, Label
from relaxlang.base.recursion import deep_recursion
from relaxlang.base.source import Span
from relaxlang.ir import relax
from relaxlang.ir.module import IRModule, function_info
from relaxlang.ir.struct_info import OBJECT, FuncStructInfo, StructInfo
from relaxlang.ir.visit import walk
from relaxlang.syntax.elaborate.kernel_calls import check_count, check_kernel_call, matched, passed_to_kernel, unfit
from relaxlang.syntax.struct_info import BaseCheck, base_check, replaced


def contradictions(mod: IRModule) -> list[Diagnostic]:
    """Every contradiction of a module, as errors."""
    finder = _Finder(mod)
    with deep_recursion():
        return [found for _, function in mod.relax_functions() for found in finder.within(function)]


def require_buildable(mod: IRModule) -> None:
    """Raise DiagnosticError with what may be read and changed and cannot be built: contradictions, and indices that are
    certainly out of range."""
    found = contradictions(mod)
    if found:
        raise DiagnosticError(found)
    require_in_range(kernel for _, kernel in mod.prim_funcs())


class _Finder:
    def __init__(self, mod: IRModule) -> None:
        self.mod = mod
        self.infos: dict[str, StructInfo | None] = {}

    def within(self, function: relax.Function) -> Iterator[Diagnostic]:
        """The contradictions in a function and the closures in it."""
        for part in walk(function):
            if isinstance(part, relax.VarBinding):
                yield from _declared(f"`{part.var.name}`", part.var.struct_info, part.value, part.span)
            elif isinstance(part, relax.Function):
                yield from _declared("the result", part.ret_struct_info, part.body, part.span or part.body.span)
            elif isinstance(part, relax.Call):
                try:
                    self.call(part)
                except DiagnosticError as fault:
                    yield from fault.diagnostics

    def call(self, call: relax.Call) -> None:
        """Raises DiagnosticError when a call passes what its callee does not take."""
        if isinstance(call.op, relax.Op):
            if call.op.name.startswith("call_tir") and isinstance(call.args[1], relax.Tuple):
                check_kernel_call(call, passed_to_kernel(call), self.known, self.defined_at)
            return
        info = self.known(call.op) if isinstance(call.op, relax.GlobalVar) else call.op.struct_info
        if not isinstance(info, FuncStructInfo) or info.params is None:
            return
        name = getattr(call.op, "name", "the function")
        check_count(name, info, call, self.defined_at)
        mapping = matched(info, call.args)
        for at, (param, arg) in enumerate(zip(info.params, call.args)):
            wanted, given = replaced(param, mapping), arg.struct_info or OBJECT
            if base_check(wanted, given) is BaseCheck.NEVER:
                raise unfit(name, at, wanted, given, call.span, self.defined_at)

    def known(self, var: relax.GlobalVar) -> StructInfo | None:
        """What is known of a function of the module."""
        name = var.name
        if name not in self.infos:
            self.infos[name] = function_info(self.mod[name]) if name in self.mod else None
        return self.infos[name]

    def defined_at(self, name: str) -> list[Label]:
        """The place of a function's definition, as a second label."""
        span = self.mod[name].span if name in self.mod else None
        return [Label(span, f"`{name}` is defined here")] if span is not None else []


def _declared(what: str, declared: StructInfo | None, value: relax.Expr, span: Span | None) -> Iterator[Diagnostic]:
    inferred = value.struct_info
    if declared is None or inferred is None or base_check(declared, inferred) is not BaseCheck.NEVER:
        return
    yield Diagnostic("RLX0201", f"{what} is `{inferred}`, which contradicts the annotation `{declared}`", span)
