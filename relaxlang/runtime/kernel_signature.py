"""What a caller must know of a compiled PrimFunc, as data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from relaxlang.base.diagnostics import fail
from relaxlang.base.dtype import dtype
from relaxlang.base.record import record
from relaxlang.runtime.ndarray import numpy_dtype

Dim: TypeAlias = "int | str | tuple[str, Dim, Dim] | None"
"""A dimension: a constant, the name of a symbol or integer scalar parameter, an expression `(op, a, b)` with `op` one
of `DIM_OPS`, or None when it is checked elsewhere."""

DIM_OPS: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "min": min,
    "max": max,
}
MAX_DIM_DEPTH = 64
SYMBOL_PREFIX = "rlx_"
"""Goes before a PrimFunc's name in object code, so that a kernel called `exp` is not taken for the C library's."""


@record
class BufferParam:
    """A buffer parameter; `output` says that the kernel writes to it."""

    name: str
    dtype: str
    dims: tuple[Dim, ...]
    output: bool = False


@record
class ScalarParam:
    """A parameter passed by value."""

    name: str
    dtype: str


@record
class KernelSignature:
    """What a caller must know of a kernel: its parameters in the PrimFunc's order, the symbolic dimensions that are
    passed after the pointers, and the texts of its assertions."""

    name: str
    params: tuple[BufferParam | ScalarParam, ...]
    symbols: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()

    @property
    def buffers(self) -> tuple[BufferParam, ...]:
        """The buffer parameters, in order."""
        return tuple(p for p in self.params if isinstance(p, BufferParam))

    @property
    def scalars(self) -> tuple[ScalarParam, ...]:
        """The scalar parameters, in order."""
        return tuple(p for p in self.params if isinstance(p, ScalarParam))

    def check(self) -> None:
        """Raise RLX6014 for a dimension that is no expression over the symbols and scalars and for a symbol without a
        source, RLX6002 for a dtype that no tensor has."""
        names = {*self.symbols, *(p.name for p in self.scalars)}
        for param in self.buffers:
            numpy_dtype(param.dtype)
            for dim in param.dims:
                fault = _dim_fault(dim, names)
                if fault:
                    fail("RLX6014", f"kernel `{self.name}`, parameter `{param.name}`: {fault}")
        self.sources()

    def sources(self) -> tuple[tuple[int, int], ...]:
        """Where each symbol's value is found: the index of a parameter and the dimension of its buffer that is exactly
        this symbol. RLX6014 when a symbol has no such place."""
        found: dict[str, tuple[int, int]] = {}
        for index, param in enumerate(self.params):
            if isinstance(param, BufferParam):
                for axis, dim in enumerate(param.dims):
                    if isinstance(dim, str):
                        found.setdefault(dim, (index, axis))
        for symbol in self.symbols:
            if symbol not in found:
                fail("RLX6014", f"kernel `{self.name}`: no buffer has `{symbol}` alone as a dimension")
        return tuple(found[s] for s in self.symbols)


def _dim_fault(dim: Dim, names: set[str], depth: int = 0) -> str:
    """What is wrong with a dimension, "" when nothing is."""
    if dim is None or type(dim) is int:
        return ""
    if isinstance(dim, str):
        return "" if dim in names else f"there is no symbol or scalar `{dim}`"
    if not isinstance(dim, tuple) or len(dim) != 3 or dim[0] not in DIM_OPS:
        return "a dimension is no expression"
    if depth >= MAX_DIM_DEPTH:
        return f"a dimension is nested more than {MAX_DIM_DEPTH} deep"
    return _dim_fault(dim[1], names, depth + 1) or _dim_fault(dim[2], names, depth + 1)


def evaluate_dim(dim: Dim, values: dict[str, int]) -> int | None:
    """The value of a dimension, None for None. KeyError for an unknown name, ZeroDivisionError for a division by 0."""
    if dim is None or isinstance(dim, int):
        return dim
    if isinstance(dim, str):
        return values[dim]
    left, right = evaluate_dim(dim[1], values), evaluate_dim(dim[2], values)
    return None if left is None or right is None else DIM_OPS[dim[0]](left, right)


def dim_text(dim: Dim) -> str:
    """A dimension as text, expressions in full parentheses: `n`, `4`, `(n * 2)`, `?`."""
    if isinstance(dim, tuple):
        return f"({dim_text(dim[1])} {dim[0]} {dim_text(dim[2])})"
    return "?" if dim is None else str(dim)


def scalar_fits(name: str, value: Any) -> bool:
    """Whether a Python value can be passed as a scalar of dtype `name`: bool takes truth values, integers whole numbers
    within range, floats any number."""
    kind = dtype(name)
    if kind.is_bool:
        return isinstance(value, bool)
    if isinstance(value, bool):
        return False
    if kind.is_float:
        return isinstance(value, (int, float)) and (not isinstance(value, int) or abs(value) < 1 << 1023)
    if not isinstance(value, int):
        return False
    if kind.is_integer:
        low, high = (-(1 << kind.bits - 1), (1 << kind.bits - 1) - 1) if kind.is_int else (0, (1 << kind.bits) - 1)
        return low <= value <= high
    return kind.is_handle and 0 <= value < 1 << 64
