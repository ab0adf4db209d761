"""The values that an operator's body works on: tensors (given or computed), and what is not known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from relaxlang.base.diagnostics import Diagnostic, DiagnosticError, Label
from relaxlang.base.dtype import DType
from relaxlang.base.source import Span
from relaxlang.ir import prim, relax, tir
from relaxlang.ir.prim import INT64, PrimExpr
from relaxlang.syntax.comptime import Evaluator, Value, error

Dim = int | PrimExpr


class Erased(Exception):
    """Raised when an evaluation needs what is not known; the caller makes the result less precise."""


class Unknown(Value):
    """A shape or dtype that is not known while compiling: whatever is done with it is not known either."""

    kind = "value that is not known"

    def attribute(self, ev: Evaluator, name: str, span: Span | None) -> Any:
        raise Erased

    def item(self, ev: Evaluator, index: Any, span: Span | None) -> Any:
        raise Erased

    def call(self, ev: Evaluator, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        raise Erased

    def binary(self, ev: Evaluator, op: str, other: Any, reflected: bool, span: Span | None) -> Any:
        raise Erased

    def unary(self, ev: Evaluator, op: str, span: Span | None) -> Any:
        raise Erased

    def __len__(self) -> int:
        raise Erased

    def __iter__(self) -> Iterator[Any]:
        raise Erased


UNKNOWN = Unknown()


class TensorValue(Value):
    """A tensor in the body of an operator.

    `shape` is a tuple of ints and int64 expressions, or UNKNOWN; `dtype` a DType or UNKNOWN; `buffer` has the elements
    of tensors that have storage; `expr` is the argument of the call that it stands for, if it is one.
    """

    kind = "tensor"

    def __init__(
        self, name: str, shape: tuple[Dim, ...] | Unknown, dtype: DType | Unknown, expr: relax.Expr | None = None
    ) -> None:
        self.name = name
        self.shape = shape
        self.dtype = dtype
        self.expr = expr
        self._buffer: tir.Buffer | None = None

    @property
    def buffer(self) -> tir.Buffer:
        """The buffer that holds the elements; made at first use."""
        if self._buffer is None:
            if isinstance(self.shape, Unknown) or isinstance(self.dtype, Unknown):
                raise Erased
            self._buffer = make_buffer(self.name, self.shape, self.dtype)
        return self._buffer

    def described(self) -> str:
        """Its shape and dtype in words."""
        known = not isinstance(self.shape, Unknown)
        shape = (
            f"({', '.join(str(d) for d in self.shape)}{',' * (len(self.shape) == 1)})" if known else "of unknown shape"
        )
        return f"{shape} {'of unknown dtype' if isinstance(self.dtype, Unknown) else self.dtype.name}"

    def attribute(self, ev: Evaluator, name: str, span: Span | None) -> Any:
        if name == "shape":
            return self.shape
        if name == "dtype":
            return self.dtype
        if name == "ndim":
            if isinstance(self.shape, Unknown):
                raise Erased
            return len(self.shape)
        return super().attribute(ev, name, span)

    def item(self, ev: Evaluator, index: Any, span: Span | None) -> Any:
        index = index if isinstance(index, tuple) else (index,)
        if len(index) != self.buffer.ndim:
            raise error(
                "RLX0301", f"`{self.name}` has {self.buffer.ndim} dimensions, {len(index)} indices were given", span
            )
        return prim.BufferLoad(self.buffer, tuple(as_index(i, span) for i in index), span=span)


def refusal(
    code: str,
    message: str,
    span: Span | None,
    tensors: list[TensorValue],
    *,
    notes: tuple[str, ...] = (),
    help: str = "",
) -> DiagnosticError:
    """An error at a call, and what is known of its tensors: labels where they stand in the same text, else notes."""
    placed: dict[tuple[int, int], tuple[Span, list[TensorValue]]] = {}
    said = []
    for tensor in tensors:
        where = tensor.expr.span if tensor.expr is not None else None
        if where is not None and span is not None and where.source is span.source and where is not span:
            placed.setdefault((where.start, where.end), (where, []))[1].append(tensor)
        else:
            said.append(_described([tensor]))
    labels = [Label(where, _described(group)) for where, group in placed.values()]
    return DiagnosticError([Diagnostic(code, message, span, labels=labels, notes=[*said, *notes], help=help)])


def _described(tensors: list[TensorValue]) -> str:
    """`x1`: (2, 4) float32; tensors that are one and the same are named together."""
    return f"{', '.join(f'`{t.name}`' for t in tensors)}: {tensors[0].described()}"


def make_buffer(name: str, shape: tuple[Dim, ...], dtype: DType) -> tir.Buffer:
    """A row-major buffer in global memory."""
    data = prim.Var(name, prim.HANDLE, prim.PointerType(dtype))
    return tir.Buffer(name, tuple(as_dim(d) for d in shape), dtype, data)


def dims_text(dims: tuple[Dim, ...]) -> str:
    """A shape as it is written: `(n, 4)`, `(3,)`, `()`."""
    return f"({', '.join(str(d) for d in dims)}{',' * (len(dims) == 1)})"


def as_dim(value: Dim) -> PrimExpr:
    """A dimension as an int64 expression."""
    return prim.cast(value, INT64) if isinstance(value, PrimExpr) else prim.IntImm(INT64, int(value))


def from_dim(value: PrimExpr) -> Dim:
    """A dimension as the compile-time language sees it: an int when it is a constant."""
    return value.value if isinstance(value, prim.IntImm) else value


def as_index(value: Any, span: Span | None) -> PrimExpr:
    """An index of a tensor: an integer expression, as int64."""
    if isinstance(value, bool) or not isinstance(value, (int, PrimExpr)):
        raise error("RLX0302", "an index must be an integer", span)
    if isinstance(value, PrimExpr) and not value.dtype.is_integer:
        raise error("RLX0302", f"an index must be an integer, not {value.dtype}", span)
    return as_dim(value)
