"""Kernels: compiled PrimFuncs, and how they are called.

The C signature of a kernel is

    int32_t name(void *buffer…, int64_t symbol…, scalar…)

the data pointers of all buffers in the order of the parameters, then the symbolic dimensions in the order of
`KernelSignature.symbols`, then the scalar parameters in their order. bool is passed as uint8, float16 and bfloat16 as
the uint16 of their bits, handles as pointers. The result is 0, or k > 0 when assertion k failed, whose text is
`messages[k - 1]`.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

import numpy as np

from relaxlang.base.diagnostics import fail
from relaxlang.base.dtype import dtype
from relaxlang.runtime.kernel_args import Binder
from relaxlang.runtime.kernel_signature import BufferParam, KernelSignature, ScalarParam
from relaxlang.runtime.ndarray import numpy_dtype

__all__ = ["BufferParam", "Kernel", "KernelSignature", "ScalarParam"]

_SCALAR_TYPES: dict[str, Any] = {
    "bool": ctypes.c_uint8, "int8": ctypes.c_int8, "int16": ctypes.c_int16, "int32": ctypes.c_int32,
    "int64": ctypes.c_int64, "uint8": ctypes.c_uint8, "uint16": ctypes.c_uint16, "uint32": ctypes.c_uint32,
    "uint64": ctypes.c_uint64, "float32": ctypes.c_float, "float64": ctypes.c_double, "float16": ctypes.c_uint16,
    "bfloat16": ctypes.c_uint16, "handle": ctypes.c_void_p,
}  # fmt: skip


class Kernel:
    """A compiled function: a signature and the address of its code.

    Calling it checks count, dtypes, ranks and dimensions first and copies arrays whose layout the code cannot take.
    `run(*args)` is the same without checks, for callers that know: tensors from `as_tensor` and the like (or anything
    with `_address` and `shape`), ints and floats. `owner` keeps the code alive.
    """

    __slots__ = ("signature", "address", "owner", "run", "_binder")
    run: Callable[..., None]

    def __init__(self, signature: KernelSignature, address: int, owner: object = None) -> None:
        self.signature = signature
        self.address = address
        self.owner = owner
        self.run = _runner(signature, address)
        self._binder: Binder | None = None

    @property
    def name(self) -> str:
        """The name of the PrimFunc."""
        return self.signature.name

    def __call__(self, *args: Any) -> None:
        """Run on the caller's arrays, outputs included. Raises RLX600x for arguments that do not fit the signature,
        RLX6015 for a read-only output and RLX6009 when an assertion of the kernel fails."""
        if self._binder is None:
            self._binder = Binder(self.signature)
        values, copies = self._binder.bind(args)
        self.run(*values)
        for target, computed in copies:
            np.copyto(target, computed)

    def __repr__(self) -> str:
        params = ", ".join(p.name for p in self.signature.params)
        return f"<kernel {self.name}({params})>"


def assertion_failed(signature: KernelSignature, status: int, values: tuple[Any, ...] = ()) -> NoReturn:
    """Raise RLX6009 for the assertion that a kernel's result names. `values` are those of the symbols, then of the
    scalars; `{n}` in the text is the value of `n`."""
    messages = signature.messages
    text = messages[status - 1] if 0 < status <= len(messages) else f"status {status}"
    known = dict(zip((*signature.symbols, *(p.name for p in signature.scalars)), values))
    text = re.sub(r"\{(\w+)\}", lambda hole: str(known.get(hole[1], hole[0])), text)
    fail("RLX6009", f"assertion failed in `{signature.name}`: {text}")


def _runner(signature: KernelSignature, where: int) -> Callable[..., None]:
    """The unchecked call of a kernel as straight-line Python, which halves what a loop over the parameters costs."""
    names = [f"a{i}" for i in range(len(signature.params))]
    scope: dict[str, Any] = {"failed": partial(assertion_failed, signature)}
    pointers, scalars = [], []
    given: list[str] = []
    types: list[Any] = []
    for name, param in zip(names, signature.params, strict=True):
        if isinstance(param, BufferParam):
            pointers.append(f"{name}._address")
            continue
        if param.dtype not in _SCALAR_TYPES:
            fail("RLX6014", f"kernel `{signature.name}`: a scalar cannot have dtype `{param.dtype}`")
        scope[f"encode_{name}"] = encode_scalar(param.dtype)
        scalars.append(f"encode_{name}({name})")
        given.append(name)
        types.append(_SCALAR_TYPES[param.dtype])
    dims = [f"{names[index]}.shape[{axis}]" for index, axis in signature.sources()]
    types = [ctypes.c_void_p] * len(pointers) + [ctypes.c_int64] * len(dims) + types
    scope["call"] = ctypes.CFUNCTYPE(ctypes.c_int32, *types)(where)
    exec(
        f"def run({', '.join(names)}):\n"
        f"    status = call({', '.join(pointers + dims + scalars)})\n"
        "    if status:\n"
        f"        failed(status, ({''.join(f'{v}, ' for v in (*dims, *given))}))",
        scope,
    )
    run: Callable[..., None] = scope["run"]
    return run


def encode_scalar(name: str) -> Callable[[Any], Any]:
    """How a Python value of dtype `name` is handed to ctypes."""
    if name in ("float16", "bfloat16"):
        element = numpy_dtype(name)
        return lambda value: int(np.asarray(value, element).view(np.uint16)[()])
    if dtype(name).is_float:
        return float
    return int
