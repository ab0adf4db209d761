"""What native code reads of CPython's and numpy's objects, and how their C functions are found.

Offsets are those of the public headers (`object.h`, `ndarraytypes.h`, `tupleobject.h`). They are used only when reading
objects of known content through them gives what Python says of these objects; otherwise, and on interpreters without a
global lock, there are no native programs and everything runs as bytecode.
"""

from __future__ import annotations

import ctypes
import sys
from functools import lru_cache
from typing import Any

import numpy as np

from relaxlang.runtime.ndarray import NDArray

WORD = 8
TYPE = 8  # PyObject.ob_type
DATA, NDIM, DIMS, STRIDES, BASE, DESCR, FLAGS, HANDLER = 16, 24, 32, 40, 48, 56, 64, 88  # PyArrayObject_fields

C_CONTIGUOUS, OWNDATA, ALIGNED, WRITEABLE = 0x1, 0x4, 0x100, 0x400

# Places in numpy's table of C functions, fixed by its ABI.
_ARRAY_NEW, _ARRAY_SET_BASE, _GET_HANDLER = 94, 282, 305

_PYTHON = (
    "Py_IncRef", "Py_DecRef", "PyObject_Vectorcall", "PyErr_CheckSignals", "PyEval_SaveThread", "PyEval_RestoreThread",
    "PyLong_FromLongLong", "PyLong_AsLongLong", "PyFloat_AsDouble", "PyTuple_New", "PyTuple_SetItem",
    "PyTuple_Size", "PyTuple_GetItem", "PyErr_Occurred", "PyErr_Clear", "PyCapsule_New", "PyCapsule_GetPointer",
)  # fmt: skip


def _table() -> Any:
    """numpy's table of C functions."""
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    core: Any = np._core  # type: ignore[attr-defined]
    return (ctypes.c_void_p * (_GET_HANDLER + 1)).from_address(get(core._multiarray_umath._ARRAY_API, None))


@lru_cache(maxsize=1)
def c_functions() -> dict[str, int]:
    """The addresses of the C functions of Python and numpy that native code calls, by name."""
    table = _table()
    found = {name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in _PYTHON}
    return {**found, "PyArray_NewFromDescr": table[_ARRAY_NEW], "PyArray_SetBaseObject": table[_ARRAY_SET_BASE]}


def _word(address: int) -> int:
    return int(ctypes.c_size_t.from_address(address).value)


def _handler() -> int:
    """The address of the capsule that names numpy's current allocator."""
    get = ctypes.PYFUNCTYPE(ctypes.py_object)(_table()[_GET_HANDLER])
    return id(get())


@lru_cache(maxsize=1)
def supported() -> bool:
    """Whether this process can run native programs."""
    return (
        sys.implementation.name == "cpython"
        and sys.byteorder == "little"
        and ctypes.sizeof(ctypes.c_void_p) == WORD
        and object.__basicsize__ == 2 * WORD  # it is twice that in a Python without the global lock
        and np.ndarray.__basicsize__ == HANDLER + WORD
        and all(_agrees(probe) for probe in _probes())
        and _handler_agrees()
    )


def _handler_agrees() -> bool:
    """Whether an array that owns its data names the allocator where it should."""
    array = np.empty(3)
    return _word(id(array) + HANDLER) == _handler()


def _probes() -> list[np.ndarray[Any, Any]]:
    fixed = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
    fixed.flags.writeable = False
    base: list[np.ndarray[Any, Any]] = [np.zeros((5, 7), np.float32), np.zeros((), np.int64), fixed, fixed[1].T]
    return [*base, base[0].view(NDArray), np.zeros((0, 3), np.float64)]


def _agrees(array: np.ndarray[Any, Any]) -> bool:
    """Whether an array, read through the offsets, is what numpy says it is."""
    at = id(array)
    ndim = ctypes.c_int32.from_address(at + NDIM).value
    if _word(at + TYPE) != id(type(array)) or _word(at + DESCR) != id(array.dtype) or ndim != array.ndim:
        return False
    if _word(at + DATA) != array.__array_interface__["data"][0]:
        return False
    # numpy keeps dimensions and strides in one piece: only words that are so related are taken for addresses.
    dims, strides = _word(at + DIMS), _word(at + STRIDES)
    if ndim and (dims % WORD or dims + WORD * ndim != strides):
        return False
    if ndim:
        words = ctypes.c_int64 * ndim
        if tuple(words.from_address(dims)) != array.shape or tuple(words.from_address(strides)) != array.strides:
            return False
    flags, said = ctypes.c_int32.from_address(at + FLAGS).value, array.flags
    pairs = ((C_CONTIGUOUS, said.c_contiguous), (OWNDATA, said.owndata), (ALIGNED, said.aligned),
             (WRITEABLE, said.writeable))  # fmt: skip
    base = _word(at + BASE)
    return all(bool(flags & bit) == wanted for bit, wanted in pairs) and base == (
        0 if array.base is None else id(array.base)
    )
