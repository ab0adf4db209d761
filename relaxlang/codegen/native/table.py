"""The table of a program: what its code refers to that only exists in a process. The code itself refers to places of
the table, so it can be kept on disk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from relaxlang.codegen.native import helpers
from relaxlang.runtime.executable import Arg
from relaxlang.runtime.ndarray import numpy_dtype

if TYPE_CHECKING:
    from relaxlang.codegen.native.helpers import Context


class Entry(Protocol):
    """An entry of the table: a Python object (kept alive by the program), or a word such as an address."""

    word: ClassVar[bool]

    def make(self, context: Context) -> Any:
        """The object or the word."""


class Fixed:
    """An object that exists before any program: None, a class, a function. The same object is the same entry."""

    __slots__ = ("value",)
    word: ClassVar[bool] = False

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fixed) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)

    def make(self, context: Context) -> Any:
        """The object."""
        return self.value


@dataclass(frozen=True, slots=True)
class ElementType:
    """numpy's dtype of that name."""

    name: str
    word: ClassVar[bool] = False

    def make(self, context: Context) -> Any:
        """The dtype."""
        return numpy_dtype(self.name)


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand that is no register: a constant, a function, the machine."""

    arg: Arg
    word: ClassVar[bool] = False

    def make(self, context: Context) -> Any:
        """The object."""
        return context.value(self.arg)


@dataclass(frozen=True, slots=True)
class DataOf:
    """The address of the data of a constant array."""

    arg: Arg
    word: ClassVar[bool] = True

    def make(self, context: Context) -> int:
        """The address."""
        return int(context.value(self.arg)._address)


@dataclass(frozen=True, slots=True)
class KernelAddress:
    """The address of a kernel; 0 when nobody linked it."""

    name: str
    word: ClassVar[bool] = True

    def make(self, context: Context) -> int:
        """The address."""
        return context.kernels[self.name].address


@dataclass(frozen=True, slots=True)
class RefuseTensor:
    """The function that raises for a tensor that its storage cannot hold."""

    dtype: str
    word: ClassVar[bool] = False

    def make(self, context: Context) -> Any:
        """The function."""
        return helpers.RefuseTensor(self.dtype)


@dataclass(frozen=True, slots=True)
class RefuseStorage:
    """The function that raises for a storage of a shape that no memory can hold."""

    dtype: str
    word: ClassVar[bool] = False

    def make(self, context: Context) -> Any:
        """The function."""
        return helpers.RefuseStorage(self.dtype)


@dataclass(frozen=True, slots=True)
class RefuseReshape:
    """The function that raises for a tensor and a shape of other numbers of elements."""

    dtype: str
    ndim: int
    word: ClassVar[bool] = False

    def make(self, context: Context) -> Any:
        """The function."""
        return helpers.RefuseReshape(self.dtype, self.ndim)


@dataclass(frozen=True, slots=True)
class KernelFailed:
    """The function that raises for the status of a kernel."""

    name: str
    word: ClassVar[bool] = False

    def make(self, context: Context) -> Any:
        """The function."""
        return helpers.KernelFailed(context.kernels[self.name].signature)


@dataclass(frozen=True, slots=True)
class TooDeep:
    """The function that raises for recursion without end."""

    function: str
    word: ClassVar[bool] = False

    def make(self, context: Context) -> Any:
        """The function."""
        return helpers.TooDeep(self.function)


@dataclass(frozen=True, slots=True)
class Step:
    """The function that does what an instruction does, given the values of the registers that it reads."""

    function: int
    pc: int
    word: ClassVar[bool] = False

    def make(self, context: Context) -> Any:
        """The function."""
        return helpers.Step(context, self.function, self.pc)


@dataclass(frozen=True, slots=True)
class Observe:
    """The function that tells the observer of a kernel call."""

    function: int
    pc: int
    word: ClassVar[bool] = False

    def make(self, context: Context) -> Any:
        """The function."""
        return helpers.Observe(context, self.function, self.pc)


@dataclass(frozen=True, slots=True)
class Prologue:
    """The function that raises what is wrong with the arguments of a function."""

    function: int
    word: ClassVar[bool] = False

    def make(self, context: Context) -> Any:
        """The function."""
        return helpers.Prologue(context, self.function)


@dataclass(frozen=True, slots=True)
class Slow:
    """The function that a caller's arguments go to when they are not such that native code takes them as they are."""

    function: int
    word: ClassVar[bool] = False

    def make(self, context: Context) -> Any:
        """The function."""
        return helpers.Slow(context, self.function)
