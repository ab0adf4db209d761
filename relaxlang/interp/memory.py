"""Memory as TensorIR sees it: runs of bytes, pointers into them, and the views through which buffers address elements.

Views of one run may overlap and have different dtypes. When many instances of a loop body are computed at once, memory
that is allocated in the body exists once for each instance: its pointer's offset is then an array.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.lib import stride_tricks
from numpy.lib.array_utils import byte_bounds

from relaxlang.base.dtype import DType
from relaxlang.interp.numeric import numpy_type
from relaxlang.ir.tir import Buffer
from relaxlang.runtime.ndarray import NDArray, empty

Array: TypeAlias = np.ndarray[Any, Any]
Dims: TypeAlias = Sequence[Any]


class Memory:
    """A run of bytes: `data` is a 1-D uint8 array."""

    __slots__ = ("data", "_typed")

    def __init__(self, data: Array) -> None:
        self.data = data
        self._typed: dict[tuple[np.dtype[Any], int], Array] = {}

    def elements(self, of: np.dtype[Any], phase: int) -> Array:
        """The bytes from `phase` on as elements of a dtype (a rest that is no whole element is left out)."""
        found = self._typed.get((of, phase))
        if found is None:
            count = max(0, len(self.data) - phase) // of.itemsize
            found = self.data[phase : phase + count * of.itemsize].view(of)
            self._typed[of, phase] = found
        return found


class Pointer:
    """A place in memory: `offset` counts bytes and is an int, or an array of one for each instance."""

    __slots__ = ("memory", "offset")

    def __init__(self, memory: Memory, offset: Any = 0) -> None:
        self.memory = memory
        self.offset = offset

    def moved(self, nbytes: Any) -> Pointer:
        """The place `nbytes` further on."""
        return Pointer(self.memory, self.offset + nbytes)


class View:
    """A buffer's elements in memory: element (i, j, …) is `flat[base + i * strides[0] + …]`.

    `first` is the place of the first one after the pointer.

    `base` and the entries of `shape` and `strides` are ints, or arrays with one value for each instance. With vector
    elements, `flat` holds the lanes and indices count vectors; the memory has `count` elements. `uniform`: no arrays.
    """

    __slots__ = ("buffer", "pointer", "shape", "strides", "flat", "base", "first", "count", "uniform")

    def __init__(self, buffer: Buffer, pointer: Pointer, shape: Dims, strides: Dims, first: Any) -> None:
        of = numpy_type(buffer.dtype)
        self.buffer = buffer
        self.pointer = pointer
        self.shape = tuple(shape)
        self.strides = tuple(strides)
        # The copies of memory that exists once for each instance lie whole elements apart.
        start = pointer.offset if isinstance(pointer.offset, int) else int(pointer.offset.flat[0])
        phase = start % of.itemsize
        self.flat = pointer.memory.elements(of, phase)
        self.base = (pointer.offset - phase) // (of.itemsize * buffer.dtype.lanes) + first
        self.first = first
        self.count = len(self.flat) // buffer.dtype.lanes
        self.uniform = all(isinstance(n, int) for n in (self.base, *self.shape, *self.strides))

    def offset(self, indices: Sequence[Any]) -> Any:
        """The index of an element in `flat` (of its vector, when elements are vectors)."""
        at = self.base
        for index, stride in zip(indices, self.strides):
            at = at + index * stride
        return at


def row_major(shape: Sequence[Any]) -> tuple[Any, ...]:
    """The strides, in elements, of a compact row-major layout."""
    strides: list[Any] = []
    step: Any = 1
    for extent in reversed(shape):
        strides.append(step)
        step = step * extent
    return tuple(reversed(strides))


def fill_value(of: np.dtype[Any]) -> Any:
    """What fresh memory holds: a value that shows in results. NaN, the least integer, true."""
    if of.kind == "b":
        return True
    if of.kind in "iu":
        return np.iinfo(of).min if of.kind == "i" else np.iinfo(of).max
    return of.type(np.nan)


def fresh(shape: Sequence[int], of: DType) -> NDArray:
    """A tensor with undefined content, the same at every run. Raises RLX6006 for a size that cannot be."""
    made = empty((*shape, of.lanes) if of.lanes > 1 else shape, of.scalar)
    made.fill(fill_value(made.dtype))
    return made


def allocate(elements: int, of: DType, instances: tuple[int, ...] = ()) -> Pointer:
    """Memory for `elements` elements, once for each instance. Raises RLX6006 for a size that cannot be."""
    memory = of_array(fresh((math.prod(instances) * elements,), of)).memory
    if not instances:
        return Pointer(memory)
    return Pointer(memory, np.arange(math.prod(instances)).reshape(instances) * (elements * of.itemsize))


def of_array(array: Array) -> Pointer:
    """The memory of one array, from its first element on; a copy when its layout is not compact."""
    return Pointer(Memory(np.ascontiguousarray(array).reshape(-1).view(np.uint8)))


def share(arrays: Sequence[Array]) -> list[Pointer]:
    """A pointer to the first element of each array; arrays that overlap lie in one `Memory`.

    The strides of every array are whole multiples of its item size.
    """
    bounds = [byte_bounds(a) if a.size else (0, 0) for a in arrays]
    made: list[Pointer | None] = [None] * len(arrays)
    order = sorted((i for i, a in enumerate(arrays) if a.size), key=lambda i: bounds[i])
    at = 0
    while at < len(order):
        group, low, high = [order[at]], *bounds[order[at]]
        while at + len(group) < len(order) and bounds[order[at + len(group)]][0] < high:
            group.append(order[at + len(group)])
            high = max(high, bounds[group[-1]][1])
        memory = Memory(_span(arrays[group[0]], low, high, writable=all(arrays[i].flags.writeable for i in group)))
        for i in group:
            made[i] = Pointer(memory, arrays[i].__array_interface__["data"][0] - low)
        at += len(group)
    return [p if p is not None else Pointer(Memory(np.zeros(0, np.uint8))) for p in made]


def _span(array: Array, low: int, high: int, writable: bool) -> Array:
    """The bytes from address `low` to `high`, of which `array` owns the first: other arrays of the same allocation the
    rest."""
    lowest = array
    for axis, stride in enumerate(array.strides):
        if stride < 0:
            lowest = np.flip(lowest, axis)
    size = array.dtype.itemsize
    # As bare bytes: numpy cannot make views of all element types.
    first = stride_tricks.as_strided(lowest.view(f"V{size}"), (1,), (size,), writeable=writable).view(np.uint8)
    return stride_tricks.as_strided(first, (high - low,), (1,), writeable=writable)


def element_strides(array: Array) -> tuple[int, ...] | None:
    """The strides in elements; None when one is no whole number of them."""
    size = array.dtype.itemsize
    if any(stride % size for stride in array.strides):
        return None
    return tuple(stride // size for stride in array.strides)
