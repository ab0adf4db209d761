"""The table of a program: what its code refers to that only exists in a process. The code itself refers to places of
the table, so it can be kept on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from relaxlang.codegen.native import helpers
from relaxlang.runtime.builtins import read_if_cond
from relaxlang.runtime.executable import Arg
from relaxlang.runtime.ndarray import NDArray, ShapeTuple, numpy_dtype, wrap

if TYPE_CHECKING:
    from relaxlang.codegen.native.helpers import Context

TABLE = "rlx_table"
"""The symbol of the table: an array of pointers, which whoever links the program fills."""

FIXED: tuple[object, ...] = (
    None, True, False, float, ShapeTuple, NDArray, np.ndarray, wrap, read_if_cond, helpers.make_shape,
    helpers.heap_view, helpers.bind_closure, helpers.approve_memory, helpers.refuse_memory,
)  # fmt: skip
"""The objects that programs refer to and that exist before any of them."""


class Entry:
    """An entry of the table: `make(context)` gives a Python object, which the program keeps alive, or where it is a
    `word` an integer such as an address. Entries with equal keys are one."""

    __slots__ = ("key", "make", "word")

    def __init__(self, key: tuple[object, ...], make: Callable[[Context], Any], word: bool = False) -> None:
        self.key = key
        self.make = make
        self.word = word

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Entry) and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)


def fixed(value: object) -> Entry:
    """An object of `FIXED`."""
    return numbered(next(i for i, known in enumerate(FIXED) if known is value))


def numbered(number: int) -> Entry:
    """The object of `FIXED` at a place."""
    return Entry((numbered, number), lambda context: FIXED[number])


def element_type(name: str) -> Entry:
    """numpy's dtype of that name."""
    return Entry((element_type, name), lambda context: numpy_dtype(name))


def operand(arg: Arg) -> Entry:
    """What an operand that is no register stands for: a constant, a function, the machine."""
    return Entry((operand, arg), lambda context: context.value(arg))


def data_of(arg: Arg) -> Entry:
    """The address of the data of a constant array."""
    return Entry((data_of, arg), lambda context: context.value(arg)._address, word=True)


def kernel_address(name: str) -> Entry:
    """The address of a kernel."""
    return Entry((kernel_address, name), lambda context: context.kernels[name].address, word=True)


# Functions in Python
def step(function: int, pc: int) -> Entry:
    """Does what an instruction does, given the values of the registers that it reads."""
    return Entry((step, function, pc), lambda context: helpers.Step(context, function, pc))


def slow(function: int) -> Entry:
    """Takes a caller's arguments when they are not such that native code takes them as they are."""
    return Entry((slow, function), lambda context: helpers.Slow(context, function))


def observe(function: int, pc: int) -> Entry:
    """Tells the observer of a kernel call."""
    return Entry((observe, function, pc), lambda context: helpers.Observe(context, function, pc))


def prologue(function: int) -> Entry:
    """Raises what is wrong with the arguments of a function."""
    return Entry((prologue, function), lambda context: helpers.Prologue(context, function))


def too_deep(name: str) -> Entry:
    """Raises for recursion without end."""
    return Entry((too_deep, name), lambda context: helpers.TooDeep(name))


def kernel_failed(name: str) -> Entry:
    """Raises for the status of a kernel."""
    return Entry((kernel_failed, name), lambda context: helpers.KernelFailed(context.kernels[name].signature))


def refuse_tensor(dtype: str) -> Entry:
    """Raises for a tensor that its storage cannot hold."""
    return Entry((refuse_tensor, dtype), lambda context: helpers.RefuseTensor(dtype))


def refuse_storage(dtype: str) -> Entry:
    """Raises for a storage of a shape that no memory can hold."""
    return Entry((refuse_storage, dtype), lambda context: helpers.RefuseStorage(dtype))


def refuse_reshape(dtype: str, ndim: int) -> Entry:
    """Raises for a tensor and a shape of other numbers of elements."""
    return Entry((refuse_reshape, dtype, ndim), lambda context: helpers.RefuseReshape(dtype, ndim))


MAKERS: tuple[Callable[..., Entry], ...] = (
    numbered, element_type, operand, data_of, kernel_address, step, slow, observe, prologue, too_deep, kernel_failed,
    refuse_tensor, refuse_storage, refuse_reshape,
)  # fmt: skip
"""The functions above, by whose places in this tuple the cache names them."""
