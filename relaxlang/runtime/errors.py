"""Errors of the run time that have a class of their own; all others are plain `DiagnosticError`s with a 60xx code."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import NoReturn

from relaxlang.base.diagnostics import Diagnostic, DiagnosticError
from relaxlang.base.suggest import did_you_mean


class UnknownFunctionError(DiagnosticError, KeyError):
    """There is no function of that name (RLX6008)."""


class PackedFunctionError(DiagnosticError):
    """A packed function raised; `name` is its name and `__cause__` what it raised (RLX6007)."""

    def __init__(self, name: str, cause: BaseException) -> None:
        text = f"packed function `{name}` raised {type(cause).__name__}"
        said = str(cause)
        super().__init__([Diagnostic("RLX6007", f"{text}: {said}" if said else text)])
        self.name = name


class blame:
    """A context that names packed function `name` in any exception raised within it."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception):  # KeyboardInterrupt and SystemExit are nobody's fault
            raise PackedFunctionError(self.name, error) from error


def unknown_function(name: str, what: str, known: Iterable[str]) -> NoReturn:
    """Raise `UnknownFunctionError`: `what` (`there is no kernel`), the name, and the nearest of the `known` names."""
    near = did_you_mean(name, known)
    help = f"did you mean `{near}`?" if near else ""
    raise UnknownFunctionError([Diagnostic("RLX6008", f"{what} `{name}`", help=help)])
