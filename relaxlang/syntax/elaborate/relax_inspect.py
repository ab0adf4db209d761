"""`x.dtype.bits`, `x.ndim`, `x.strides[0]`: what of a tensor is not known while compiling, as scalars of run time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from relaxlang.base.source import Span
from relaxlang.ir import relax
from relaxlang.syntax.comptime import Evaluator, Value, error

if TYPE_CHECKING:
    from relaxlang.syntax.elaborate.relax_body import RelaxElaborator

SCALARS = {"ndim": "tensor_ndim", "byte_offset": "tensor_byte_offset", "elem_offset": "tensor_elem_offset"}


class Inspected(Value):
    """`x.dtype` or `x.strides` of a tensor `x`."""

    def __init__(self, value: relax.Expr, field: str) -> None:
        self.value = value
        self.field = field
        self.kind = f"`{field}` of a tensor"

    def attribute(self, ev: Evaluator, name: str, span: Span | None) -> Any:
        if self.field != "dtype" or name not in ("bits", "code", "lanes", "type_code"):
            raise error("RLX0102", f"the {self.kind} has no attribute `{name}`", span)
        part = name.removeprefix("type_")
        return cast("RelaxElaborator", ev).operator(f"inspect.tensor_dtype_{part}", [self.value], {}, span)

    def item(self, ev: Evaluator, index: Any, span: Span | None) -> Any:
        if self.field != "strides":
            raise error("RLX0110", f"the {self.kind} cannot be indexed", span)
        return cast("RelaxElaborator", ev).operator("inspect.tensor_stride_i", [self.value, index], {}, span)


def inspected(ev: RelaxElaborator, value: relax.Expr, name: str, span: Span | None) -> Any:
    """The attribute `name` of a tensor where it is one of these; None where it is not."""
    if name in ("dtype", "strides"):
        return Inspected(value, name)
    if name in SCALARS:
        return ev.operator(f"inspect.{SCALARS[name]}", [value], {}, span)
    return None
