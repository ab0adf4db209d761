"""Kernels: compiled PrimFuncs, and how they are called.

The C signature of a kernel is

    int32_t name(void *buffer…, int64_t symbol…, scalar…)

the data pointers of all buffers in the order of the parameters, then the symbolic dimensions in the order of
`KernelSignature.symbols`, then the scalar parameters in their order. bool is passed as uint8, float16 and bfloat16 as the
uint16 of their bits, handles as pointers. The result is 0, or k > 0 when assertion k failed, whose text is
`messages[k - 1]`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import numpy as np

from relaxlang.base.diagnostics import fail
from relaxlang.base.dtype import dtype
from relaxlang.runtime.ndarray import address, numpy_dtype

Dim: TypeAlias = "int | str | tuple[str, Dim, Dim] | None"
"""A dimension: a constant, the name of a symbol or integer scalar parameter, an expression `(op, a, b)` with `op` one of
`DIM_OPS`, or None when it is checked elsewhere."""

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


@dataclass(frozen=True, slots=True)
class BufferParam:
    """A buffer parameter; `output` says that the kernel writes to it."""

    name: str
    dtype: str
    dims: tuple[Dim, ...]
    output: bool = False


@dataclass(frozen=True, slots=True)
class ScalarParam:
    """A parameter passed by value."""

    name: str
    dtype: str


@dataclass(frozen=True, slots=True)
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


_SCALAR_TYPES: dict[str, Any] = {
    "bool": ctypes.c_uint8, "int8": ctypes.c_int8, "int16": ctypes.c_int16, "int32": ctypes.c_int32,
    "int64": ctypes.c_int64, "uint8": ctypes.c_uint8, "uint16": ctypes.c_uint16, "uint32": ctypes.c_uint32,
    "uint64": ctypes.c_uint64, "float32": ctypes.c_float, "float64": ctypes.c_double, "float16": ctypes.c_uint16,
    "bfloat16": ctypes.c_uint16, "handle": ctypes.c_void_p,
}  # fmt: skip


class Kernel:
    """A compiled function: a signature and the address of its code.

    Calling it checks count, dtypes, ranks and dimensions first and copies arrays whose layout the code cannot take.
    `run(*args)` is the same without checks, for callers that know: NDArrays (contiguous, native), ints, floats, and
    objects with `_address`. `owner` keeps the code alive.
    """

    __slots__ = ("signature", "address", "owner", "run")
    run: Callable[..., None]

    def __init__(self, signature: KernelSignature, address: int, owner: object = None) -> None:
        self.signature = signature
        self.address = address
        self.owner = owner
        self.run = _runner(signature, address)

    @property
    def name(self) -> str:
        """The name of the PrimFunc."""
        return self.signature.name

    def __call__(self, *args: Any) -> None:
        """Run on the caller's arrays, outputs included. Raises RLX600x for arguments that do not fit the signature,
        RLX6015 for a read-only output and RLX6009 when an assertion of the kernel fails."""
        from relaxlang.runtime.kernel_args import bind

        values, copies = bind(self.signature, args)
        self.run(*values)
        for target, computed in copies:
            np.copyto(target, computed)

    def __repr__(self) -> str:
        params = ", ".join(p.name for p in self.signature.params)
        return f"<kernel {self.name}({params})>"


def assertion_failed(signature: KernelSignature, status: int) -> NoReturn:
    """Raise RLX6009 for the assertion that a kernel's result names."""
    messages = signature.messages
    text = messages[status - 1] if 0 < status <= len(messages) else f"status {status}"
    fail("RLX6009", f"assertion failed in `{signature.name}`: {text}")


def _runner(signature: KernelSignature, where: int) -> Callable[..., None]:
    """The unchecked call of a kernel, in the plainest form that its signature allows."""
    sources = signature.sources()
    scalars = [(i, encode_scalar(p.dtype)) for i, p in enumerate(signature.params) if isinstance(p, ScalarParam)]
    buffers = [i for i, p in enumerate(signature.params) if isinstance(p, BufferParam)]
    types: list[Any] = [ctypes.c_void_p] * len(buffers) + [ctypes.c_int64] * len(sources)
    for param in signature.scalars:
        if param.dtype not in _SCALAR_TYPES:
            fail("RLX6014", f"kernel `{signature.name}`: a scalar cannot have dtype `{param.dtype}`")
        types.append(_SCALAR_TYPES[param.dtype])
    call = ctypes.CFUNCTYPE(ctypes.c_int32, *types)(where)

    def run_plain(*args: Any) -> None:
        try:
            status = call(*[a._address for a in args])
        except AttributeError:
            status = call(*[address(a) for a in args])
        if status:
            assertion_failed(signature, status)

    def run_shaped(*args: Any) -> None:
        status = call(*[address(a) for a in args], *[args[i].shape[axis] for i, axis in sources])
        if status:
            assertion_failed(signature, status)

    def run_mixed(*args: Any) -> None:
        pointers = [address(args[i]) for i in buffers]
        dims = [args[i].shape[axis] for i, axis in sources]
        status = call(*pointers, *dims, *[encode(args[i]) for i, encode in scalars])
        if status:
            assertion_failed(signature, status)

    return run_mixed if scalars else run_shaped if sources else run_plain


def encode_scalar(name: str) -> Callable[[Any], Any]:
    """How a Python value of dtype `name` is handed to ctypes."""
    if name in ("float16", "bfloat16"):
        element = numpy_dtype(name)
        return lambda value: int(np.asarray(value, element).view(np.uint16)[()])
    if dtype(name).is_float:
        return float
    return int


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
