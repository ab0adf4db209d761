"""The front door: text in, checked IR out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relaxlang.base.diagnostics import Diagnostics
from relaxlang.base.recursion import deep_recursion
from relaxlang.base.source import Source
from relaxlang.ir.module import IRModule
from relaxlang.syntax.elaborate.module import elaborate_module
from relaxlang.syntax.elaborate.unit import Unit
from relaxlang.syntax.operators import OperatorTable
from relaxlang.syntax.parser import parse_surface


def parse(
    text: str,
    filename: str | None = None,
    *,
    values: Mapping[str, Any] | None = None,
    check: bool = True,
    operators: OperatorTable,
) -> IRModule:
    """The module that a text states.

    `filename` is what diagnostics show. `values` are the module's parameters (`N = I.param(int)`) by name. With
    `check=True` every error that can be found before lowering is raised; with `check=False` only syntax and names are
    looked at, struct info is None where it is not written, and unknown operators are kept as they are. Raises
    DiagnosticError with all findings, sorted by place.
    """
    return parse_source(Source(filename or "<string>", text), values=values, check=check, operators=operators)


def parse_source(
    source: Source, *, values: Mapping[str, Any] | None = None, check: bool = True, operators: OperatorTable
) -> IRModule:
    """As `parse`, from a source whose spans the module keeps."""
    diagnostics = Diagnostics()
    with deep_recursion():
        surface = parse_surface(source, diagnostics)
        diagnostics.check()
        unit = Unit(diagnostics, operators, values or {}, check)
        module = elaborate_module(unit, surface)
        diagnostics.check()
    return module
