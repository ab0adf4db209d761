"""What elaboration needs to know of operators, which are written in the language and live in `relaxlang.ops`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from relaxlang.base.source import Span
from relaxlang.ir import relax
from relaxlang.ir.struct_info import StructInfo
from relaxlang.syntax import tree


class OperatorTable(Protocol):
    """The operators of a compilation: those of the standard library and those a module defines itself."""

    def has(self, name: str) -> bool:
        """Whether `name` (without `R.`: `add`, `nn.relu`) is an operator or a prefix of one (`nn`)."""

    def names(self) -> Iterable[str]:
        """All operator names, for suggestions and completion."""

    def make_call(self, name: str, args: list[Any], kwargs: dict[str, Any], span: Span | None) -> relax.Call:
        """The call `R.name(*args, **kwargs)`: arguments bound to the signature and sorted into `args` (values of Relax)
        and `attrs` (compile-time values), defaults filled in. Its `struct_info` is None.

        `args` are relax expressions, or compile-time values: numbers become constants or prim values, tuples of
        dimensions shapes, as the parameter's kind asks. Raises DiagnosticError for arguments that do not fit.
        """

    def infer(self, call: relax.Call) -> StructInfo:
        """The struct info of the result of a call of an operator; arguments have theirs. Raises DiagnosticError."""

    def is_pure(self, name: str) -> bool:
        """Whether the operator has no side effect."""

    def extended(self, body: Iterable[tree.Stmt]) -> OperatorTable:
        """A table that also has the operators and compile-time functions which statements of a module define."""

    def sugar(self, symbol: str) -> str | None:
        """The operator that a symbol of the language stands for: `@`; `[:]`, a slice of a tensor; `[i]`, the removal of
        dimensions that an index takes. None when the library has none."""
