"""The outermost scope: the namespaces `T`, `R` and `I`, under every name that scripts of any era reach them by."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from relaxlang.base.dtype import dtype
from relaxlang.base.source import Span
from relaxlang.base.suggest import suggestion
from relaxlang.ir import prim, relax
from relaxlang.ir.attrs import Attrs
from relaxlang.ir.intrinsics import CARRIED, CARRIED_NAMESPACES
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import Closure, Evaluator, Namespace, Scope, Value, describe, error
from relaxlang.syntax.elaborate import (
    buffers,
    module_names,
    relax_calls,
    relax_dist,
    relax_names,
    scalars,
    tir_access,
    tir_loops,
    tir_names,
)
from relaxlang.syntax.elaborate.annotations import ANNOTATIONS
from relaxlang.syntax.elaborate.carried import Opaque
from relaxlang.syntax.elaborate.relax_body import RelaxElaborator
from relaxlang.syntax.spellings import canonical_name


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
            if name in CARRIED or name in CARRIED_NAMESPACES:
                return self.table.setdefault(name, Opaque(f"T.{name}"))
            try:
                return self.table.setdefault(name, dtype(name))
            except ValueError:
                pass
        unit = getattr(ev, "unit", None)
        if unit is not None and not unit.check:
            return Opaque(f"{self.path}.{name}")
        hint = suggestion(name, self.known(), span, f"{self.path}.")
        raise error("RLX0102", f"`{self.path}` has no `{name}`", span, **hint)

    def known(self) -> Iterable[str]:
        """Every name, for suggestions."""
        return self.table.keys()


def _tir_table() -> dict[str, Any]:
    parts = (scalars, buffers, tir_names, tir_loops, tir_access)
    table = {name: made for part in parts for name, made in part.names.table.items()}
    table["axis"] = TirNamespace("T.axis", tir_names.axis_names.table)
    return table


T = TirNamespace("T", _tir_table())


class RelaxNamespace(Namespace):
    """`R`, and the namespaces of operators below it (`R.nn`)."""

    def __init__(self, path: str) -> None:
        super().__init__(path, RELAX.get, lambda: RELAX)
        self.prefix = path.removeprefix("R").removeprefix(".")

    def attribute(self, ev: Evaluator, name: str, span: Span | None) -> Any:
        full = f"{self.prefix}.{name}" if self.prefix else name
        found = RELAX.get(full)
        if found is not None:
            return found
        unit = getattr(ev, "unit", None)
        if unit is None:
            raise error("RLX0102", f"`R.{full}` means nothing here", span)
        if unit.operators.has(full) or any(n.startswith(full + ".") for n in RELAX):
            return Operator(full)
        canonical = canonical_name("R", full).removeprefix("R.")
        if canonical in RELAX:
            return RELAX[canonical]
        if not unit.check:
            return Operator(full)
        hint = suggestion(full, {*RELAX, *unit.operators.names()}, span, "R.")
        raise error("RLX0103", f"there is no operator `R.{full}`", span, **hint)


class Operator(Value):
    """An operator of the library, or the prefix of some."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.kind = f"operator `R.{name}`"

    def attribute(self, ev: Evaluator, name: str, span: Span | None) -> Any:
        return RelaxNamespace(f"R.{self.name}").attribute(ev, name, span)

    def call(self, ev: Evaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
        kwargs = {
            k: scalars.index_map(ev, v, prim.INT64, node.span) if isinstance(v, Closure) else v
            for k, v in kwargs.items()
        }
        if not isinstance(ev, RelaxElaborator):
            raise error("RLX0105", f"`R.{self.name}` can be called only in a Relax function", node.span)
        if not ev.check and not ev.unit.operators.has(self.name):
            nothing = relax.Call(relax.Op("null_value"), (), span=node.span)
            values = tuple(nothing if a is None else _argument(ev, a, node.span) for a in args)
            attrs = Attrs({k: _plain(v, node.span) for k, v in kwargs.items()})
            return relax.Call(relax.UnknownOp(self.name), values, attrs, span=node.span)
        return ev.operator(self.name, args, kwargs, node.span)


def _argument(ev: RelaxElaborator, value: Any, span: Span | None) -> relax.Expr:
    """What stands in a call of an unknown operator, as it is written."""
    return relax_names.prim_value(value, span) if isinstance(value, bool) else ev.lift(value, span)


def _plain(value: Any, span: Span | None) -> Any:
    """An attribute of a call of an unknown operator: any data, and nothing of the language itself."""
    if isinstance(value, (list, tuple)):
        return tuple(_plain(v, span) for v in value)
    if (isinstance(value, Value) and not isinstance(value, Closure)) or value is ...:
        said = "`...`" if value is ... else describe(value)
        raise error("RLX0225", f"{said} is no value of Relax", span)
    return value.value if isinstance(value, (relax.PrimValue, relax.StringImm)) else value


RELAX: dict[str, Any] = {**relax_names.names.table, **relax_calls.names.table, **relax_dist.names.table, **ANNOTATIONS}
R = RelaxNamespace("R")


class Plain(Namespace):
    """A namespace with a fixed table, such as `I`, or `tvm` with the others below it."""

    def __init__(self, path: str, table: dict[str, Any]) -> None:
        super().__init__(path, table.get, lambda: table)


def root_scope() -> Scope:
    """A scope with the namespaces under all their names."""
    return Scope(_ROOT)


I = Plain("I", module_names.names.table)  # noqa: E741
_SCRIPT = Plain("script", {**module_names.names.table, "ir": I, "tir": T, "tirx": T, "relax": R, "ty": T})
_DEVICES = {name: RELAX[name] for name in ("cpu", "cuda", "gpu", "rocm", "vulkan", "opencl", "metal", "device")}
_TARGET = Plain("tvm.target", {"Target": T.table["target"]})
_IR = Plain("tvm.ir", {**module_names.names.table, "Op": Plain("tvm.ir.Op", scalars.op_names.table)})
_TVM = Plain("tvm", {"script": _SCRIPT, "tir": T, "tirx": T, "relax": R, "ir": _IR, "target": _TARGET, **_DEVICES})
_ROOT: dict[str, Any] = {
    **dict.fromkeys(("T", "tir", "tirx", "ty"), T), **dict.fromkeys(("R", "relax", "rx"), R),
    "I": I, "ir": I, "script": _SCRIPT, "tvm": _TVM, "Tx": Opaque("Tx"),
}  # fmt: skip
