"""Tensors at run time: `NDArray`, how arguments become one, and `ShapeTuple`."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterable, Sequence
from operator import index
from typing import Any, NoReturn

import numpy as np

from relaxlang.base.diagnostics import fail
from relaxlang.base.dtype import DType, dtype, from_numpy
from relaxlang.runtime import dlpack
from relaxlang.runtime.memory import Storage, allocate, format_bytes


class NDArray(np.ndarray[Any, Any]):
    """A tensor: a numpy array with `.numpy()` and a `__dlpack__` that knows bfloat16 and float8 as well.

    Slices, transposes and reshapes are NDArrays that share the data; what arithmetic gives is a plain numpy array.
    """

    __slots__ = ("_address",)  # of the first element, when known: reading it is 8 times faster than asking numpy
    _address: int

    def numpy(self) -> np.ndarray[Any, Any]:
        """The same data as a plain numpy array, without a copy."""
        return self.view(np.ndarray)

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar else array

    def __dlpack__(self, **options: Any) -> Any:
        """A DLPack capsule that keeps this array alive (options as in the array API; BufferError as numpy raises
        it)."""
        if dlpack.needs_own_export(self.dtype):
            return dlpack.export(self)
        return super().__dlpack__(**options)


class ShapeTuple(tuple[int, ...]):
    """A shape: a tuple of whole numbers. `ShapeTuple([2, 3])`; RLX6002 for elements that are none."""

    __slots__ = ()

    def __new__(cls, dims: Iterable[Any] = ()) -> ShapeTuple:
        try:
            return super().__new__(cls, map(index, dims))
        except TypeError:
            fail("RLX6002", f"a shape is made of whole numbers, not of {dims!r}")

    def __repr__(self) -> str:
        return f"ShapeTuple({list(self)})"


_NUMPY: dict[str, np.dtype[Any]] = {}
_NAMES: dict[np.dtype[Any], str] = {}


def numpy_dtype(name: str | DType) -> np.dtype[Any]:
    """The numpy dtype that stores `name`, in native byte order; RLX6002 when there is none (handle, vectors)."""
    key = name if isinstance(name, str) else name.name
    found = _NUMPY.get(key)
    if found is None:
        try:
            found = dtype(key).numpy
        except (TypeError, ValueError) as error:
            fail("RLX6002", f"a tensor cannot have dtype `{key}`: {error}")
        _NUMPY[key] = found
    return found


def dtype_name(wanted: np.dtype[Any]) -> str:
    """The language's name of a numpy dtype, whatever its byte order; RLX6002 when it has none."""
    found = _NAMES.get(wanted)
    if found is None:
        try:
            found = from_numpy(wanted).name
        except TypeError:
            found = "void"
        if found in ("void", "handle"):
            fail("RLX6002", f"numpy dtype `{wanted}` has no counterpart", help="convert the array with `.astype`")
        if wanted.isnative:
            _NAMES[wanted] = found
    return found


_read_word = ctypes.c_size_t.from_address
_DATA = object.__basicsize__  # PyArrayObject begins with the object header and the data pointer


def _slow_address(array: np.ndarray[Any, Any]) -> int:
    return int(array.__array_interface__["data"][0])


def _fast_address(array: np.ndarray[Any, Any]) -> int:
    return int(_read_word(id(array) + _DATA).value)


def _layout_is_known() -> bool:
    probes: list[np.ndarray[Any, Any]] = [np.zeros(3, np.float32), np.zeros((2, 2), np.int8)[1:]]
    return all(_fast_address(p) == _slow_address(p) for p in probes)


_address_of = _fast_address if _layout_is_known() else _slow_address


def address(array: Any) -> int:
    """The address of the first element of an array or of anything that has `_address`; TypeError for other objects."""
    known: int | None = getattr(array, "_address", None)
    if known is not None:
        return known
    if not isinstance(array, np.ndarray):
        raise TypeError(f"`{type(array).__name__}` is no tensor")
    return _address_of(array)


def wrap(contiguous: np.ndarray[Any, Any]) -> NDArray:
    """`contiguous` as an NDArray that shares its data and knows its address."""
    made = contiguous.view(NDArray)
    made._address = _address_of(contiguous)
    return made


def empty(shape: Sequence[int], dtype: str | DType = "float32") -> NDArray:
    """A 64-byte aligned tensor with undefined content.

    Raises RLX6006 for a negative dimension and for a size that overflows or exceeds the memory there is, RLX6002 for a
    dtype that tensors cannot have.
    """
    element = numpy_dtype(dtype)
    dims = ShapeTuple(shape)
    nbytes = math.prod(dims) * element.itemsize
    if any(d < 0 for d in dims) or nbytes >= 1 << 63:
        refuse_size(dims, str(dtype), nbytes)
    return tensor_on(allocate(nbytes), 0, dims, element)


def tensor_on(storage: Storage, offset: int, shape: tuple[int, ...], element: np.dtype[Any]) -> NDArray:
    """The tensor of `shape` that begins `offset` bytes into `storage`; RLX6006 when it does not fit there."""
    try:
        if offset < 0:  # numpy takes it
            raise ValueError
        made = np.ndarray.__new__(NDArray, shape, element, storage, offset)
    except (TypeError, ValueError, OverflowError):
        refuse_tensor(storage.nbytes, offset, shape, element)
    made._address = storage._address + offset
    return made


def refuse_tensor(available: int, offset: int, shape: tuple[int, ...], element: np.dtype[Any]) -> NoReturn:
    """Raise RLX6006 for a tensor that a storage of `available` bytes cannot hold from byte `offset` on."""
    nbytes = math.prod(shape) * element.itemsize
    if any(d < 0 for d in shape) or nbytes >= 1 << 63:
        refuse_size(shape, dtype_name(element), nbytes)
    fail(
        "RLX6006",
        f"a {dtype_name(element)} tensor of shape {shape_text(shape)} needs {format_bytes(nbytes)} from byte "
        f"{offset} on, but its storage has {format_bytes(available)}",
    )


def refuse_size(shape: tuple[int, ...], element: str, nbytes: int) -> NoReturn:
    """Raise RLX6006 for a shape that no memory can hold."""
    if any(d < 0 for d in shape):
        fail("RLX6006", f"cannot allocate a {element} tensor of shape {shape_text(shape)}: a dimension is negative")
    fail(
        "RLX6006",
        f"cannot allocate a {element} tensor of shape {shape_text(shape)}: its size of {nbytes} bytes overflows",
    )


def shape_text(shape: Iterable[int]) -> str:
    """`(2, 3)`, `(4,)`, `()`."""
    return str(tuple(shape))


def array(x: Any, dtype: str | DType | None = None) -> NDArray:
    """A fresh tensor with the values of `x` (an array, nested lists, a scalar), of `dtype` if given.

    Without `dtype` Python floats make float32, integers int64 and truth values bool; an array keeps its own.
    """
    if dtype is None and not hasattr(x, "dtype") and not hasattr(x, "__dlpack__"):
        source = _from_lists(x)
    else:
        source = x if isinstance(x, np.ndarray) else np.asarray(x) if isinstance(x, np.generic) else _any_array(x)
    name = dtype_name(source.dtype) if dtype is None else str(dtype)
    made = empty(source.shape, name)
    try:
        np.copyto(made, source, casting="unsafe")
    except (TypeError, ValueError) as fault:  # objects that are no numbers
        fail("RLX6002", f"a `{type(x).__name__}` cannot become a {name} tensor: {fault}")
    return made


def _any_array(x: Any) -> np.ndarray[Any, Any]:
    return dlpack.to_numpy(x) if hasattr(x, "__dlpack__") else _from_lists(x)


def _from_lists(x: Any) -> np.ndarray[Any, Any]:
    try:
        made = np.asarray(x)
    except (ValueError, OverflowError) as error:
        fail("RLX6002", f"`{type(x).__name__}` does not make a tensor: {error}")
    return made.astype(np.float32) if made.dtype == np.float64 else made


def is_tensor(x: Any) -> bool:
    """Whether `as_tensor` takes `x` without `scalars`."""
    return isinstance(x, (np.ndarray, np.generic)) or hasattr(x, "__dlpack__")


def as_tensor(x: Any, *, scalars: bool = False) -> NDArray:
    """`x` as an aligned C-contiguous tensor in native byte order, without a copy when it is one already.

    Takes numpy arrays and scalars, anything with `__dlpack__`, and with `scalars` Python's bool, int and float (as
    bool, int64, float32). The caller's array is never changed. Raises RLX6002 for anything else.
    """
    if isinstance(x, np.ndarray):
        source = x
    elif isinstance(x, np.generic):
        source = np.asarray(x)
    elif hasattr(x, "__dlpack__"):
        source = dlpack.to_numpy(x)
    elif scalars and isinstance(x, (bool, int, float)):
        return array(x)
    else:
        fail(
            "RLX6002",
            f"expected a tensor, got `{type(x).__name__}`",
            help="pass a numpy array or an object with `__dlpack__`",
        )
    name = _NAMES.get(source.dtype)
    if name is None:
        name = dtype_name(source.dtype)
    element = numpy_dtype(name)
    if source.flags.c_contiguous and source.flags.aligned and source.dtype.isnative:
        # One object for each dtype, by which native code knows it.
        return wrap(source if source.dtype is element else source.view(element))
    made = empty(source.shape, name)
    np.copyto(made, source)
    return made
