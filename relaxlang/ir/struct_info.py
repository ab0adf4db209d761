"""Struct info: what is known about a value of Relax while compiling (TVM 0.27 says type)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from relaxlang.base.dtype import DType
from relaxlang.base.node import Node, node
from relaxlang.ir.prim import INT64, Cast, IntImm, PrimExpr, Var

if TYPE_CHECKING:
    from relaxlang.ir.module import VDevice


class StructInfo(Node):
    """The base of all struct info."""

    __slots__ = ()

    def __str__(self) -> str:
        from relaxlang.ir.printing import script

        return script(self)


def _numbers(dims: object) -> bool:
    """Whether dimensions are numbers, or unknown."""
    return dims is None or (dims.__class__ is tuple and all(d.__class__ is IntImm for d in dims))


@node
class ObjectStructInfo(StructInfo):
    """Any value."""

    DERIVED: ClassVar[dict[str, str]] = {"ground": "True"}


@node
class PrimStructInfo(StructInfo):
    """A scalar; `value` is its symbolic value when known."""

    dtype: DType
    value: PrimExpr | None = None


@node
class ShapeStructInfo(StructInfo):
    """A shape: its `values`, or only its rank `ndim` (-1: unknown)."""

    values: tuple[PrimExpr, ...] | None
    ndim: int = -1
    DERIVED: ClassVar[dict[str, str]] = {"ground": "_numbers(values)"}


@node
class TensorStructInfo(StructInfo):
    """A tensor.

    `shape` is a tuple of dimensions (int64 expressions), or a variable that holds a shape, or None when unknown;
    `dtype` None when unknown; `ndim` -1 when unknown. `tensor_info` keeps them consistent.
    """

    shape: tuple[PrimExpr, ...] | Node | None
    dtype: DType | None
    ndim: int = -1
    vdevice: VDevice | None = None
    DERIVED: ClassVar[dict[str, str]] = {"ground": "vdevice is None and _numbers(shape)"}

    def __str__(self) -> str:
        return _short_text(self) or StructInfo.__str__(self)

    @property
    def dims(self) -> tuple[PrimExpr, ...] | None:
        """The dimensions, when they are known."""
        return self.shape if isinstance(self.shape, tuple) else None


def _short_text(info: TensorStructInfo) -> str:
    """The text of a tensor of a few known dimensions, which is on one line. Building a program mostly takes no other
    texts, and so not the printer. Empty for others."""
    dims = info.dims
    if dims is None or info.dtype is None or not info.ground or any(d.dtype is not INT64 for d in dims):
        return ""
    listed = ", ".join([str(d.value) for d in dims if isinstance(d, IntImm)])
    text = f'R.Tensor(({listed}{"," * (len(dims) == 1)}), "{info.dtype}")'
    return text if len(text) <= 60 else ""


@node
class TupleStructInfo(StructInfo):
    """A tuple."""

    fields: tuple[StructInfo, ...]
    DERIVED: ClassVar[dict[str, str]] = {"ground": "all([field.ground for field in fields])"}


@node
class FuncStructInfo(StructInfo):
    """A function: parameters (None: opaque) and result. Symbolic variables of the parameters are bound by them.

    `derive_func` names a packed function that derives the result of an opaque one.
    """

    params: tuple[StructInfo, ...] | None
    ret: StructInfo
    purity: bool = True
    derive_func: str | None = None


@node
class DTensorStructInfo(StructInfo):
    """A tensor spread over a device mesh; opaque to the passes for one CPU. `mesh` and `placement` are texts."""

    tensor: TensorStructInfo
    mesh: str
    placement: str


OBJECT = ObjectStructInfo()
VOID_TUPLE = TupleStructInfo(())


def lone_var(dim: PrimExpr) -> Var | None:
    """The variable that a dimension is: alone, or (one of int32) converted to int64; it is defined by the dimension."""
    if isinstance(dim, Cast) and dim.of is INT64 and isinstance(dim.value, Var) and dim.value.dtype.is_integer:
        return dim.value
    return dim if isinstance(dim, Var) else None


def tensor_info(
    shape: tuple[PrimExpr, ...] | Node | None = None,
    dtype: DType | None = None,
    ndim: int = -1,
    vdevice: VDevice | None = None,
) -> TensorStructInfo:
    """A `TensorStructInfo` whose `ndim` follows from the shape where that is known."""
    return TensorStructInfo(shape, dtype, len(shape) if isinstance(shape, tuple) else ndim, vdevice)


def shape_info(values: tuple[PrimExpr, ...] | None = None, ndim: int = -1) -> ShapeStructInfo:
    """A `ShapeStructInfo` whose `ndim` follows from the values where they are known."""
    return ShapeStructInfo(values, len(values) if values is not None else ndim)
