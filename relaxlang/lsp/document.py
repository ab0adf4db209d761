"""A text that is open in an editor, and what is known of it: diagnostics, names, and the module when it has one."""

from __future__ import annotations

import os
from functools import cached_property

from relaxlang.base.diagnostics import Diagnostic, DiagnosticError, Diagnostics, RelaxlangError
from relaxlang.base.recursion import deep_recursion
from relaxlang.base.source import Source
from relaxlang.ir import relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.struct_info import StructInfo
from relaxlang.ir.visit import walk
from relaxlang.lsp.names import Names
from relaxlang.ops import Operators, default_operators
from relaxlang.syntax import tree


class Document:
    """One version of a text. Everything is found when it is first asked for, and once."""

    def __init__(self, name: str, text: str) -> None:
        self.source = Source(name, text)

    @cached_property
    def _elaborated(self) -> tuple[IRModule | None, tuple[Diagnostic, ...]]:
        from relaxlang.driver import parse_source

        warnings: list[Diagnostic] = []
        roots = (os.path.dirname(self.source.name),)
        try:
            return parse_source(self.source, roots=roots, warnings=warnings.append), tuple(warnings)
        except DiagnosticError as fault:
            return None, fault.diagnostics
        except RelaxlangError as fault:
            return None, (Diagnostic("RLX9001", str(fault)),)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What is wrong with the text."""
        return self._elaborated[1]

    @property
    def module(self) -> IRModule | None:
        """The module; None when the text has errors."""
        return self._elaborated[0]

    @cached_property
    def surface(self) -> tree.Module:
        """The surface tree, without the statements that could not be read."""
        from relaxlang.syntax.parser import parse_surface

        with deep_recursion():
            return parse_surface(self.source, Diagnostics())

    @cached_property
    def names(self) -> Names:
        """What the names refer to; nothing when the text is nested too deeply."""
        with deep_recursion():
            try:
                return Names(self.surface)
            except RecursionError:
                return Names(tree.Module((), ()))

    @cached_property
    def operators(self) -> Operators:
        """The operators that the text may use, its own included."""
        return default_operators(self.module)

    @cached_property
    def struct_infos(self) -> dict[int, tuple[str, StructInfo]]:
        """The struct info of the Relax variables, by the offset at which each is bound, with its name."""
        found: dict[int, tuple[str, StructInfo]] = {}
        for _, function in self.module.relax_functions() if self.module is not None else ():
            for param in function.params:
                if param.span is not None and param.span.source is self.source and param.struct_info is not None:
                    found[param.span.start] = (param.name, param.struct_info)
            for node in walk(function.body):
                if isinstance(node, (relax.VarBinding, relax.MatchCast)):
                    span, info = node.var.span, node.var.struct_info
                    if span is not None and span.source is self.source and info is not None:
                        found[span.start] = (node.var.name, info)
        return found
