"""Definitions that are typed: functions and classes that extend a module, or replace what it has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from relaxlang.analysis.well_formed import well_formed
from relaxlang.base.diagnostics import Diagnostics, WarningSink
from relaxlang.base.recursion import deep_recursion
from relaxlang.builder.dpl.rules import is_rule
from relaxlang.ir.module import AnyFunc, IRModule, function_info
from relaxlang.ir.relax import ExternFunc, GlobalVar
from relaxlang.ir.structural import structural_equal
from relaxlang.ir.tir import PrimFunc
from relaxlang.ops import Operators
from relaxlang.syntax import tree
from relaxlang.syntax.elaborate.module import ModuleElaborator
from relaxlang.syntax.elaborate.unit import Declared, Unit

Check = Callable[[IRModule], IRModule]


class Extended(NamedTuple):
    """A module with definitions added: its operators, which of them are new, the names of the functions that are new
    and of those that were there before, and the rules of rewriting that were typed."""

    module: IRModule
    operators: Operators
    new_operators: tuple[str, ...]
    added: tuple[str, ...]
    replaced: tuple[str, ...]
    rules: tuple[str, ...]


def declare_functions(unit: Unit, module: IRModule, leave_out: frozenset[str] = frozenset()) -> dict[str, GlobalVar]:
    """Make the functions of a module known to an elaboration, as finished ones; what their names mean."""
    known: dict[str, GlobalVar] = {}
    for name, function in module.functions.items():
        if name in leave_out:
            continue
        if isinstance(function, ExternFunc):
            known[name] = unit.externs[name] = GlobalVar(name, function.struct_info)
            continue
        declared = unit.functions[name] = Declared(name, function.span, None)
        declared.state, declared.function, declared.info = "done", function, function_info(function)
        declared.is_prim = isinstance(function, PrimFunc)
        known[name] = declared.var
    return known


class _Extension(ModuleElaborator):
    """Elaborates statements as a part of a module that exists."""

    def __init__(self, unit: Unit, module: IRModule, replaced: frozenset[str]) -> None:
        unit.name = module.name
        unit.attrs = dict(module.attrs)
        unit.global_infos = dict(module.global_infos)
        unit.own_operators = dict(module.operators)
        unit.python = dict(module.python)
        unit.rules = dict(module.rules)
        super().__init__(unit)
        known = declare_functions(unit, module, replaced)
        self.order += known
        self.extern.update({n: f for n, f in module.functions.items() if n in known and isinstance(f, ExternFunc)})
        self.outer.names.update(known)


def defined_names(body: Sequence[tree.Stmt]) -> Iterator[str]:
    """The names of the functions that statements define, those in classes included but not the parts of rules."""
    for stmt in body:
        if isinstance(stmt, tree.FunctionDef):
            yield stmt.name
        elif isinstance(stmt, tree.ClassDef) and not is_rule(stmt):
            yield from defined_names(stmt.body)


def extend(
    module: IRModule,
    body: Sequence[tree.Stmt],
    values: Mapping[str, Any],
    operators: Operators,
    check: Check,
    warnings: WarningSink,
) -> Extended:
    """The module with the definitions of `body`; `values` are compile-time names. `check(module)` reads a module again
    from its own text: it finds callers that a changed signature leaves behind. Raises DiagnosticError."""
    names = list(defined_names(body))
    diagnostics = Diagnostics()
    unit = Unit(diagnostics, operators, values, True)
    with deep_recursion():
        made = _Extension(unit, module, frozenset(names)).run(tree.Module(tuple(body)))
        diagnostics.check()
        made = _in_order(module, made)
        known = unit.operators
        assert isinstance(known, Operators)
        new = body[0].span.source if body and body[0].span else None
        for finding in well_formed(made, known):  # what the rest of the module is warned of was said before
            if finding.level == "error" or (finding.span is not None and finding.span.source is new):
                diagnostics.report(finding)
        diagnostics.warn(warnings)
    if any(_changed(module.functions[n], made.functions.get(n)) for n in names if n in module):
        made = check(made)
    added = tuple(n for n in made.functions if n not in module)
    fresh = tuple(n for n, d in known.own.items() if operators.own.get(n) is not d)
    rules = tuple(s.name for s in body if isinstance(s, tree.ClassDef) and is_rule(s))
    return Extended(made, known, fresh, added, tuple(n for n in names if n in module), rules)


def _in_order(old: IRModule, made: IRModule) -> IRModule:
    """The functions in the order they had, new ones behind."""
    names = [*(n for n in old.functions if n in made), *(n for n in made.functions if n not in old)]
    functions = {n: made.functions[n] for n in names}
    return made.with_functions(functions)


def _changed(old: AnyFunc, new: AnyFunc | None) -> bool:
    return new is None or not structural_equal(function_info(old), function_info(new))
