"""Arrays that are in a file as yet."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


class StoredArray(ABC):
    """What is known of an array before it is read: its `shape` and `dtype`, as numpy has them."""

    __slots__ = ("shape", "dtype", "__weakref__")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.shape = shape
        self.dtype = dtype

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of the elements."""
        return self.size * self.dtype.itemsize

    @abstractmethod
    def read(self) -> np.ndarray[Any, Any]:
        """The array, in memory that nobody writes to. DiagnosticError when the file is not what it was any more."""

    @abstractmethod
    def seen_as(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> StoredArray:
        """The same bytes as other elements, as many."""
