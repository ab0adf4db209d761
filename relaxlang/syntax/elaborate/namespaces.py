"""The outermost scope: the namespaces `T`, `R` and `I`, under every name that scripts of any era reach them by."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from relaxlang.base.dtype import dtype
from relaxlang.base.source import Span
from relaxlang.base.suggest import did_you_mean
from relaxlang.ir import prim
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import Evaluator, Namespace, Scope, Value, error
from relaxlang.syntax.elaborate import buffers, scalars, tir_names
from relaxlang.syntax.elaborate.scalars import call_args
from relaxlang.syntax.spellings import canonical_name


class Opaque(Value):
    """A name that relaxlang does not know, in a module that is read without checking: it is carried as it is written."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.kind = f"unknown `{name}`"

    def attribute(self, ev: Evaluator, name: str, span: Span | None) -> Any:
        return Opaque(f"{self.name}.{name}")

    def call(self, ev: Evaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
        if kwargs:
            raise error("RLX0104", f"`{self.name}` is not known, and has keyword arguments", node.span)
        return prim.Call(prim.HANDLE, self.name.removeprefix("T."), call_args(args, node.span), span=node.span)


class TirNamespace(Namespace):
    """`T`, and `T.axis`."""

    def __init__(self, path: str, table: dict[str, Any]) -> None:
        super().__init__(path, table.get, lambda: table)
        self.table = table

    def attribute(self, ev: Evaluator, name: str, span: Span | None) -> Any:
        found = self.table.get(name)
        if found is None:
            found = self._other(ev, name, span)
        return found

    def _other(self, ev: Evaluator, name: str, span: Span | None) -> Any:
        canonical = canonical_name(self.path, name).removeprefix(self.path + ".")
        if canonical in self.table:
            return self.table[canonical]
        if self.path == "T":
            try:
                return self.table.setdefault(name, dtype(name))
            except ValueError:
                pass
        unit = getattr(ev, "unit", None)
        if unit is not None and not unit.check:
            return Opaque(f"{self.path}.{name}")
        near = did_you_mean(name, self.known())
        raise error("RLX0102", f"`{self.path}` has no `{name}`", span, help=f"did you mean `{self.path}.{near}`?" if near else "")

    def known(self) -> Iterable[str]:
        """Every name, for suggestions."""
        return self.table.keys()


def _tir_table() -> dict[str, Any]:
    table = {**scalars.names.table, **buffers.names.table, **tir_names.names.table}
    table["axis"] = TirNamespace("T.axis", tir_names.axis_names.table)
    return table


T = TirNamespace("T", _tir_table())


def root_scope() -> Scope:
    """A scope with the namespaces under all their names."""
    return Scope(_ROOT)


_ROOT: dict[str, Any] = {name: T for name in ("T", "tir", "tirx", "ty")}
