"""DLPack for the element types that numpy does not exchange: bfloat16 and the 8-bit floats.

The structures are those of dlpack.h (https://dmlc.github.io/dlpack/latest/c_api.html), version 1.1.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np

from relaxlang.base.diagnostics import fail
from relaxlang.base.dtype import dtype

_CPU_LIKE = (1, 3, 11)  # kDLCPU, kDLCUDAHost, kDLROCMHost
_KINDS = {"bfloat16": 4, "float8_e3m4": 7, "float8_e4m3": 8, "float8_e4m3b11fnuz": 9, "float8_e4m3fn": 10,
          "float8_e4m3fnuz": 11, "float8_e5m2": 12, "float8_e5m2fnuz": 13, "float8_e8m0fnu": 14}  # fmt: skip
_NAMES = {code: name for name, code in _KINDS.items()}
_USED = b"used_dltensor"
_NAME = b"dltensor"


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_exported: dict[int, tuple[Any, ...]] = {}  # by address of the structure: its capsule, and what must live as long


def _forget(managed: int) -> None:
    _exported.pop(managed, None)


_release = _Deleter(_forget)
_api = ctypes.pythonapi
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_New", _api))
_is_named = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_SetName", _api))


def _sweep() -> None:
    """Drop exports whose capsule nobody took and nobody holds.

    A capsule's destructor would do that at once, but it may run while an exception is set (numpy refuses bfloat16
    so), and a destructor written in Python would lose it.
    """
    for where, entry in list(_exported.items()):
        capsule = entry[0]
        if sys.getrefcount(capsule) == 3 and _is_named(capsule, _NAME):  # the entry, the variable, the argument
            _exported.pop(where, None)


def needs_own_export(element: np.dtype[Any]) -> bool:
    """Whether numpy cannot export this dtype and `export` can."""
    return element.name in _KINDS


def export(array: np.ndarray[Any, Any]) -> Any:
    """A DLPack capsule (`dltensor`) of an array of bfloat16 or an 8-bit float; it keeps the array alive.

    BufferError for a read-only array, which this form of capsule cannot mark as such.
    """
    if not array.flags.writeable:
        raise BufferError("a read-only array cannot be exported by DLPack")
    sizes = ctypes.c_int64 * max(1, array.ndim)
    shape = sizes(*array.shape)
    strides = sizes(*[s // array.itemsize for s in array.strides])
    managed = _Managed()
    tensor = managed.tensor
    tensor.data = int(array.__array_interface__["data"][0])
    tensor.device_type, tensor.device_id, tensor.ndim = 1, 0, array.ndim
    tensor.code, tensor.bits, tensor.lanes = _KINDS[array.dtype.name], array.itemsize * 8, 1
    tensor.shape, tensor.strides = shape, strides
    managed.deleter = ctypes.cast(_release, ctypes.c_void_p).value
    where = ctypes.addressof(managed)
    capsule = _new(where, _NAME, None)
    _sweep()
    _exported[where] = (capsule, managed, shape, strides, array)
    return capsule


class _Owner:
    """Exposes foreign memory to numpy and calls the producer's deleter when no array uses it any more."""

    def __init__(self, managed: _Managed, interface: dict[str, Any]) -> None:
        self.managed = managed
        self.__array_interface__ = interface

    def __del__(self) -> None:
        if self.managed.deleter:
            _Deleter(self.managed.deleter)(ctypes.addressof(self.managed))


def to_numpy(x: Any) -> np.ndarray[Any, Any]:
    """The data of anything that has `__dlpack__`, without a copy; RLX6002 when it is not in the CPU's memory or has a
    dtype that the language lacks."""
    device = x.__dlpack_device__() if hasattr(x, "__dlpack_device__") else (1, 0)
    if int(device[0]) not in _CPU_LIKE:
        fail("RLX6002", f"a `{type(x).__name__}` on another device than the CPU", help="copy it to the CPU first")
    try:
        return np.from_dlpack(x)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        reason = str(error)
    try:
        capsule = x.__dlpack__()
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        fail("RLX6002", f"`{type(x).__name__}` gives no data through DLPack: {error}")
    made = _adopt(capsule)
    if made is None:
        fail("RLX6002", f"`{type(x).__name__}` gives no usable data through DLPack: {reason}")
    return made


def _adopt(capsule: Any) -> np.ndarray[Any, Any] | None:
    """The array behind a capsule of a small float; None when it holds something else."""
    if not _is_named(capsule, _NAME):
        return None
    managed = _Managed.from_address(_pointer(capsule, _NAME))
    tensor = managed.tensor
    name = _NAMES.get(tensor.code)
    if name is None or tensor.lanes != 1:
        return None
    element = dtype(name).numpy
    if tensor.bits != element.itemsize * 8:
        return None
    _rename(capsule, _USED)  # from here on the deleter is ours to call
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = tuple(tensor.strides[i] * element.itemsize for i in range(tensor.ndim)) if tensor.strides else None
    interface = {
        "version": 3,
        "shape": shape,
        "strides": strides,
        "typestr": np.dtype(f"u{element.itemsize}").str,
        "data": ((tensor.data or 0) + tensor.byte_offset, False),
    }
    return np.asarray(_Owner(managed, interface)).view(element)
