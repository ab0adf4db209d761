"""The front door: text in, checked IR out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from relaxlang.base.diagnostics import Diagnostic, Diagnostics, WarningSink
from relaxlang.base.recursion import deep_recursion
from relaxlang.base.source import Source, Span
from relaxlang.base.suggest import suggestion
from relaxlang.ir.module import UNCHECKED, IRModule
from relaxlang.syntax.elaborate.module import elaborate_module
from relaxlang.syntax.elaborate.unit import Unit
from relaxlang.syntax.include import Includer
from relaxlang.syntax.inputs import Inputs
from relaxlang.syntax.operators import OperatorTable
from relaxlang.syntax.parser import parse_surface
from relaxlang.syntax.side_file import SideFile

Verifier = Callable[[IRModule, OperatorTable], list[Diagnostic]]


def parse(
    text: str,
    filename: str | None = None,
    *,
    values: Mapping[str, Any] | None = None,
    check: bool = True,
    operators: OperatorTable,
    verify: Verifier | None = None,
    roots: Sequence[str] = (),
    warnings: WarningSink | None = None,
) -> IRModule:
    """The module that a text states.

    `filename` is what diagnostics show. `values` are the module's parameters (`N = I.param(int)`) by name. With
    `check=True` every error that can be found before lowering is raised; with `check=False` only syntax and names are
    looked at, struct info is None where it is not written, and unknown operators are kept as they are. `verify` looks
    at the finished module, once nothing else is wrong, with the operators that it may use (its own included). `roots`
    are folders that files may be included from, beside that of `filename`. `warnings` is handed the warnings, those of
    included files too. Raises DiagnosticError with all findings, sorted by place.
    """
    return parse_source(
        Source(filename or "<string>", text),
        values=values,
        check=check,
        operators=operators,
        verify=verify,
        roots=roots,
        warnings=warnings,
    )


def parse_source(
    source: Source,
    *,
    values: Mapping[str, Any] | None = None,
    check: bool = True,
    operators: OperatorTable,
    verify: Verifier | None = None,
    roots: Sequence[str] = (),
    part: tuple[int, int] | None = None,
    warnings: WarningSink | None = None,
    inputs: Inputs | None = None,
) -> IRModule:
    """As `parse`, from a source whose spans the module keeps; or from `part` of it: the offsets of its ends. `inputs`
    is told of all other files that are read."""
    others = inputs or Inputs()

    def read(source: Source, values: Mapping[str, Any], includer: Includer) -> IRModule:
        diagnostics = Diagnostics()
        surface = parse_surface(source, diagnostics, part if includer is outermost else None)
        diagnostics.check()
        unit = Unit(diagnostics, operators, values, check, includer)
        unit.arrays = arrays = SideFile(source.name)
        others.note_side_file(arrays.path)
        module = elaborate_module(unit, surface)
        unit.prove_arrays()
        others.large += arrays.unread_bytes()
        _check_values(unit, source, includer.spans[-1] if includer.spans else None)
        diagnostics.check()
        if check and verify is not None:
            found = verify(module, unit.operators)
            if unit.verify:
                diagnostics.items += [d for d in found if not (unit.tolerated and d.code == "RLX0220")]  # warned of
            elif any(d.level == "error" for d in found):  # faulty on purpose, and goes on saying so
                module = module.with_attrs(module.attrs.with_(**{UNCHECKED: False}))
        diagnostics.warn(warnings)
        return module

    outermost = Includer.for_file(source.name, roots, read, others)
    with deep_recursion():
        return read(source, values or {}, outermost)


def _check_values(unit: Unit, source: Source, included: Span | None) -> None:
    """A value for a name that the text does not even mention is a slip; `included` is where a file was given it."""
    for name in unit.values:
        if name not in unit.parameters and not re.search(rf"\b{re.escape(name)}\b", source.text):
            hint = suggestion(name, unit.parameters)
            known = f"the parameters are {', '.join(f'`{p}`' for p in unit.parameters)}" if unit.parameters else ""
            help = hint["help"] or known or "a file declares its parameters: `N = I.param(int)`"
            unit.complain(Diagnostic("RLX0147", f"`{source.name}` has no parameter `{name}`", included, help=help))
