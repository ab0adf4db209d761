"""Where the elements of a buffer are: strides and offsets."""

from __future__ import annotations

from relaxlang.ir import prim
from relaxlang.ir.prim import INT32, INT64, IntImm, PrimExpr, Ramp
from relaxlang.ir.tir import Buffer

_INT32_MAX = (1 << 31) - 1


def strides_of(buffer: Buffer) -> tuple[PrimExpr, ...]:
    """The stride of each dimension in elements: the stated ones, or row-major."""
    if buffer.strides:
        return buffer.strides
    made: list[PrimExpr] = []
    run: PrimExpr | None = None
    for dim in reversed(buffer.shape):
        made.append(IntImm(dim.dtype, 1) if run is None else run)
        run = dim if run is None else run * dim
    return tuple(reversed(made))


def size_of(buffer: Buffer) -> PrimExpr:
    """The elements of memory that a buffer spans, from its first one."""
    if buffer.strides and buffer.shape:
        return buffer.strides[0] * buffer.shape[0]
    fixed = _constant_product(buffer.shape)
    if fixed is not None:
        return fixed
    total: PrimExpr = IntImm(INT64, 1)
    for dim in buffer.shape:
        total = total * prim.cast(dim, INT64)
    return total


def _constant_product(shape: tuple[PrimExpr, ...]) -> IntImm | None:
    product = 1
    for dim in shape:
        if not isinstance(dim, IntImm):
            return None
        product *= dim.value
    return IntImm(INT32 if product <= _INT32_MAX else INT64, product)


class Places:
    """Where the elements of a buffer are in memory."""

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        strides = strides_of(buffer)
        self.strides = {work: tuple([prim.cast(stride, work) for stride in strides]) for work in (INT32, INT64)}
        size = _constant_product(buffer.shape) if not buffer.strides else None
        self.small = size is not None and size.of is INT32

    def offset(self, indices: tuple[PrimExpr, ...]) -> PrimExpr:
        """The position of an element, or the vector of positions at a vector of indices.

        Computed in int64, unless all indices are int32 and the buffer is so small that int32 holds every position.
        """
        if len(indices) == 1 and not self.buffer.strides:
            total = indices[0]
        else:
            work = INT32 if self.small and all(i.dtype.bits <= 32 for i in indices) else INT64
            total = prim.const(0, work)
            for index, stride in zip(indices, self.strides[work]):
                index = prim.cast(index, work.with_lanes(index.dtype.lanes))
                total = _plus(total, _times(index, stride))
        if self.buffer.elem_offset is not None:
            total = _plus(prim.cast(self.buffer.elem_offset, total.dtype.scalar), total)
        return total


def element_offset(buffer: Buffer, indices: tuple[PrimExpr, ...]) -> PrimExpr:
    """The position in memory of an element, or the vector of positions at a vector of indices (`Places.offset`)."""
    return Places(buffer).offset(indices)


def _times(index: PrimExpr, stride: PrimExpr) -> PrimExpr:
    if index.dtype is stride.dtype:
        return prim.fold(prim.Mul, index, stride)
    if isinstance(index, Ramp) and index.base.dtype.lanes == 1:
        return Ramp(index.base * stride, index.stride * stride, index.lanes)
    return index * stride


def _plus(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    if a.dtype is b.dtype and b.dtype.lanes == 1:
        return prim.fold(prim.Add, a, b)
    if isinstance(a, Ramp) and b.dtype.lanes == 1 and a.base.dtype.lanes == 1:
        return Ramp(a.base + b, a.stride, a.lanes)
    if isinstance(b, Ramp) and a.dtype.lanes == 1 and b.base.dtype.lanes == 1:
        return Ramp(a + b.base, b.stride, b.lanes)
    return a + b
