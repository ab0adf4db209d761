"""Values for the parameters of the function that `--run` calls: those of `--arg`, and random ones for the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from relaxlang.base.diagnostics import Diagnostic, DiagnosticError, fail
from relaxlang.base.source import Span
from relaxlang.cli.arguments import Argument
from relaxlang.debug.inputs import Filler, Parameter, require_known

__all__ = ["Filler", "Parameter", "assign", "missing", "read_dims"]


def assign(function: str, params: Sequence[Parameter], given: Iterable[Argument]) -> dict[str, Any]:
    """The values that arguments give to parameters, by name. RLX7005 for what fits no parameter, or one twice."""
    values: dict[str, Any] = {}
    for argument in given:
        if not argument.name and isinstance(argument.value, Mapping):
            _spread(function, params, argument, values)
            continue
        name = argument.name or next((p.name for p in params if p.name not in values), "")
        if not name:
            fail(
                "RLX7005", f"`{function}` takes {_count(len(params), 'argument')}, and this is one more", argument.span
            )
        require_known(name, [p.name for p in params], f"`{function}` has no parameter", argument.span)
        if name in values:
            fail("RLX7005", f"the parameter `{name}` has a value already", argument.span)
        if isinstance(argument.value, Mapping):
            fail(
                "RLX7005",
                f"`{name}` is one array, and the file holds several",
                argument.span,
                help="write `@x.npz:name`",
            )
        values[name] = argument.value
    return values


def _spread(function: str, params: Sequence[Parameter], argument: Argument, values: dict[str, Any]) -> None:
    """Give parameters the arrays of their names; what has a value keeps it."""
    names = [p.name for p in params if p.name in argument.value]
    if not names:
        has = ", ".join(f"`{n}`" for n in list(argument.value)[:20]) or "none"
        takes = ", ".join(f"`{p.name}`" for p in params) or "nothing"
        fail("RLX7005", "no array of the file has the name of a parameter", argument.span,
             help=f"its arrays: {has}; `{function}` takes {takes}")  # fmt: skip
    for name in names:
        values.setdefault(name, argument.value[name])


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def read_dims(spans: Iterable[Span]) -> dict[str, tuple[int, Span]]:
    """The sizes that texts such as `n=16` state."""
    dims = {}
    for span in spans:
        name, equals, text = (part.strip() for part in span.text.partition("="))
        if not equals or not name.isidentifier() or not (text.isascii() and text.isdecimal() and len(text) <= 18):
            fail("RLX7002", f"`{span.text}` gives no dimension a size", span, help="write `--dim n=16`")
        dims[name] = (int(text), span)
    return dims


def missing(function: str, params: Sequence[Parameter], values: Mapping[str, Any]) -> DiagnosticError:
    """The error for parameters without a value."""
    lacking = [p for p in params if p.name not in values]
    notes = [f"`{p.name}`: {p.info}" for p in lacking if p.info is not None]
    names = ", ".join(f"`{p.name}`" for p in lacking)
    help = "`--arg` gives a value, `--random 0` fills in what is missing"
    message = f"`{function}` needs {_count(len(lacking), 'more argument')}: {names}"
    return DiagnosticError([Diagnostic("RLX7005", message, notes=notes, help=help)])
