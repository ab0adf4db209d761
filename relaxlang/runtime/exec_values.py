"""A small tagged binary encoding of the values that executables hold; safe to read from untrusted files.

A value is a tag byte and its content: nothing (N none, T true, F false), int64 (i) or a decimal string (I), float64
(d), a length and bytes (s UTF-8, b bytes, t dtype by name), a count and values (( tuple, S shape), or a tensor (A:
dtype name, dimensions, zero bytes up to a multiple of 64, elements). Lengths and counts are uint64.

What stays on this machine can have its large tensors outside, in data that is mapped rather than read (X: dtype name,
dimensions, offset in that data; the elements are in native byte order).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from relaxlang.base.diagnostics import fail
from relaxlang.base.dtype import DType, dtype
from relaxlang.runtime.executable import MAX_CONSTANT_DEPTH
from relaxlang.runtime.ndarray import ShapeTuple, dtype_name, empty, numpy_dtype, wrap

_INT = struct.Struct("<q")
_SIZE = struct.Struct("<Q")
_FLOAT = struct.Struct("<d")
_ALIGN = 64
_MAX_DEPTH = MAX_CONSTANT_DEPTH + 8  # what surrounds a constant


class Outside:
    """The tensors of at least `least` bytes that an encoding leaves outside, each once and aligned; `size` bytes in
    all."""

    def __init__(self, least: int) -> None:
        self.least = least
        self.size = 0
        self._places: dict[int, tuple[int, np.ndarray[Any, Any]]] = {}

    def place(self, tensor: np.ndarray[Any, Any]) -> int:
        """The offset of a tensor in the data."""
        known = self._places.get(id(tensor))
        if known is None:
            known = self._places[id(tensor)] = (self.size, tensor)
            self.size += tensor.nbytes + -tensor.nbytes % _ALIGN
        return known[0]

    def pieces(self) -> Iterator[bytes | memoryview]:
        """The data, piece by piece."""
        for _, tensor in self._places.values():
            yield np.ascontiguousarray(tensor).reshape(-1).view(np.uint8).data
            yield bytes(-tensor.nbytes % _ALIGN)


def encode_value(value: Any, outside: Outside | None = None) -> bytes:
    """The bytes of a value: None, bool, int, float, str, bytes, DType, ShapeTuple, NDArray, or a tuple of these; large
    tensors go to `outside` when that is given."""
    out = bytearray()
    _write(out, value, outside)
    return bytes(out)


def _write(out: bytearray, value: Any, outside: Outside | None) -> None:
    if isinstance(value, tuple):
        out += b"S" if isinstance(value, ShapeTuple) else b"("
        out += _SIZE.pack(len(value))
        for item in value:
            _write(out, item, outside)
    elif value is None or isinstance(value, bool):
        out += {None: b"N", True: b"T", False: b"F"}[value]
    elif isinstance(value, int):
        _write_int(out, value)
    elif isinstance(value, float):
        out += b"d" + _FLOAT.pack(value)
    elif isinstance(value, str):
        _write_bytes(out, b"s", value.encode("utf-8", "surrogatepass"))
    elif isinstance(value, bytes):
        _write_bytes(out, b"b", value)
    elif isinstance(value, DType):
        _write_bytes(out, b"t", value.name.encode())
    elif outside is not None and value.nbytes >= outside.least:
        _write_bytes(out, b"X", dtype_name(value.dtype).encode())
        _write_dims(out, value)
        out += _SIZE.pack(outside.place(value))
    else:
        _write_tensor(out, value)


def _write_int(out: bytearray, value: int) -> None:
    if -(1 << 63) <= value < 1 << 63:
        out += b"i" + _INT.pack(value)
    else:
        _write_bytes(out, b"I", b"%x" % value)


def _write_bytes(out: bytearray, tag: bytes, data: bytes) -> None:
    out += tag + _SIZE.pack(len(data)) + data


def _write_tensor(out: bytearray, value: np.ndarray[Any, Any]) -> None:
    _write_bytes(out, b"A", dtype_name(value.dtype).encode())
    _write_dims(out, value)
    out += bytes(-len(out) % _ALIGN)
    out += np.ascontiguousarray(value, value.dtype.newbyteorder("<")).tobytes()


def _write_dims(out: bytearray, value: np.ndarray[Any, Any]) -> None:
    out += _SIZE.pack(value.ndim) + b"".join(_SIZE.pack(d) for d in value.shape)


class ValueReader:
    """Reads what `encode_value` wrote; every length is checked against what is left. RLX6011 for anything else.

    `outside` is the data with the tensors that are not in the encoding, of which tensors are views.
    """

    def __init__(self, data: memoryview, outside: memoryview | None = None) -> None:
        self._data = data
        self._outside = outside
        self._at = 0

    def read_all(self) -> Any:
        """The one value that makes up the data."""
        value = self._read(0)
        if self._at != len(self._data):
            fail("RLX6011", "there is data behind its end")
        return value

    def _take(self, count: int) -> memoryview:
        if count > len(self._data) - self._at:
            fail("RLX6011", "a value reaches beyond its end")
        self._at += count
        return self._data[self._at - count : self._at]

    def _size(self) -> int:
        size: int = _SIZE.unpack(self._take(8))[0]
        return size

    def _read(self, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            fail("RLX6011", "its values are nested too deeply")
        tag = bytes(self._take(1))
        if tag == b"i":
            return _INT.unpack(self._take(8))[0]
        if tag in (b"(", b"S"):
            count = self._size()
            if count > len(self._data) - self._at:  # every value takes a byte
                fail("RLX6011", "a tuple reaches beyond its end")
            items = [self._read(depth + 1) for _ in range(count)]
            return ShapeTuple(items) if tag == b"S" else tuple(items)
        if tag in (b"N", b"T", b"F"):
            return {b"N": None, b"T": True, b"F": False}[tag]
        if tag == b"d":
            return _FLOAT.unpack(self._take(8))[0]
        if tag == b"A":
            return self._tensor()
        if tag == b"X" and self._outside is not None:
            return self._tensor_of(self._outside)
        return self._bytes(tag)

    def _bytes(self, tag: bytes) -> Any:
        if tag not in (b"s", b"b", b"t", b"I"):
            fail("RLX6011", f"there is no value of kind {tag!r}")
        data = bytes(self._take(self._size()))
        if tag == b"s":
            return data.decode("utf-8", "surrogatepass")
        if tag == b"t":
            return dtype(data.decode())
        return int(data, 16) if tag == b"I" else data

    def _kind(self) -> tuple[np.dtype[Any], tuple[int, ...]]:
        """The dtype and the dimensions of a tensor."""
        element = numpy_dtype(bytes(self._take(self._size())).decode())
        rank = self._size()
        if rank > 64:
            fail("RLX6011", "a tensor has more than 64 dimensions")
        return element, tuple(self._size() for _ in range(rank))

    def _tensor(self) -> Any:
        element, shape = self._kind()
        self._take(-self._at % _ALIGN)
        data = self._take(math.prod(shape) * element.itemsize)
        made = empty(shape, dtype_name(element))
        np.copyto(made, np.frombuffer(data, element.newbyteorder("<")).reshape(shape))
        made.flags.writeable = False
        return made

    def _tensor_of(self, outside: memoryview) -> Any:
        element, shape = self._kind()
        offset, count = self._size(), math.prod(shape)
        if offset % _ALIGN or offset + count * element.itemsize > len(outside):
            fail("RLX6011", "a tensor reaches beyond the data")
        return wrap(np.frombuffer(outside, element, count, offset).reshape(shape))
