"""What every native program calls: the caching allocator, arrays on its blocks, calls of Python. One LLVM module,
compiled once per process and never given back, because arrays that it made outlive every program.

A block is 64-byte aligned memory with a header of 64 bytes before it: its references, size class, size, the next idle
block of the class, and the address that the system gave. The interpreter's lock protects all of it. A tensor that
leaves a program becomes a numpy array that owns its block through numpy's own protocol for allocators (NEP 49).
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from relaxlang.codegen import cache, jit
from relaxlang.codegen.native import layout
from relaxlang.codegen.native.allocator_text import ALLOCATOR, SYSTEM_ELSEWHERE, SYSTEM_LINUX
from relaxlang.codegen.native.support_text import STACK_APPLE, STACK_ELSEWHERE, STACK_LINUX, TEXT
from relaxlang.ir.configuration.target import Target
from relaxlang.runtime.memory import CHECKED, HUGE_PAGE, LARGE, POOL
from relaxlang.runtime.ndarray import NDArray, ShapeTuple

SIGNATURES: dict[str, tuple[str, tuple[str, ...]]] = {
    "rlx_take": ("ptr", ("i64", "i1")),
    "rlx_drop": ("void", ("ptr",)),
    "rlx_release": ("void", ("ptr", "i64")),
    "rlx_array": ("ptr", ("ptr", "i32", "ptr", "ptr", "ptr")),
    "rlx_view": ("ptr", ("ptr", "i32", "ptr", "ptr", "ptr")),
    "rlx_call": ("ptr", ("ptr", "ptr", "i64")),
    "rlx_complete": ("i1", ("ptr", "i64")),
    "rlx_tuple": ("ptr", ("ptr", "i64")),
    "rlx_shape": ("i64", ("ptr", "ptr", "i64")),
    "rlx_item": ("ptr", ("ptr", "i64")),
    "rlx_int": ("i1", ("ptr", "ptr")),
    "rlx_stack_limit": ("i64", ()),
}
"""The functions that programs call: results and parameters.

`take(bytes, force)` gives a block with one reference, null when there is none (without `force` also when it would be a
large one from the system, which Python is asked about first). `drop` gives back a reference. `release(frame, n)` gives
back and clears the references in a frame: to objects, or with the lowest bit set to blocks. `array(dtype, ndim, dims,
data, block)` is a new NDArray that takes over a reference to the block, `view(dtype, ndim, dims, data, base)` one in
the memory of the array `base`. `call(function, args, n)` and `tuple(items, n)` take over the references they are given,
and give null when one of them is; `complete(args, n)` tells whether none is. `shape(value, dims, n)` writes at most n
dimensions of an array or ShapeTuple and gives their number, -1 for anything else. `item(values, index)` is a new
reference to an element of a tuple, null where there is none; `int(value, word)` writes an int of 64 bits and tells
whether it is one. `stack_limit` is the address that the
stack must stay above."""

_OFFSETS = {
    "TYPE": layout.TYPE, "DATA": layout.DATA, "NDIM": layout.NDIM, "DIMS": layout.DIMS, "DESCR": layout.DESCR,
    "FLAGS": layout.FLAGS, "HANDLER": layout.HANDLER, "OWNDATA": layout.OWNDATA, "WRITEABLE": layout.WRITEABLE,
    "PLAIN": layout.C_CONTIGUOUS | layout.ALIGNED, "FULL": layout.C_CONTIGUOUS | layout.ALIGNED | layout.WRITEABLE,
    "CHECKED": CHECKED, "LARGE": LARGE, "HUGE_PAGE": HUGE_PAGE,
    "ANONYMOUS": 0x22, "ADVICE": 14,  # MAP_PRIVATE | MAP_ANONYMOUS and MADV_HUGEPAGE of Linux
}  # fmt: skip


class _Handler(ctypes.Structure):
    """numpy's PyDataMem_Handler."""

    _fields_ = [
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p),
        ("calloc", ctypes.c_void_p),
        ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    ]


class Support:
    """The support module of this process; `addresses` are those of `SIGNATURES`."""

    def __init__(self) -> None:
        target = Target({"kind": "llvm", "opt-level": 1})
        text = _text(target.mtriple)
        functions = [*SIGNATURES, "rlx_clear", *(f"rlx_np_{n}" for n in ("malloc", "calloc", "realloc", "free"))]
        objects = ["idle", "limit", "handler", "ndarray", "NDArray", "ShapeTuple", "tuple", "int"]
        provided = {**layout.c_functions(), **_c_library()}
        self._code = jit.load([cache.fetch(text, target, _compile)], [*functions, *objects], provided)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._code))
        found = self._code.addresses
        self.addresses = {name: found[name] for name in SIGNATURES}
        for name, value in (
            ("ndarray", np.ndarray),
            ("NDArray", NDArray),
            ("ShapeTuple", ShapeTuple),
            ("tuple", tuple),
            ("int", int),
        ):
            ctypes.c_size_t.from_address(found[name]).value = id(value)
        ctypes.c_size_t.from_address(found["limit"]).value = POOL.limit
        self._handler = _Handler(
            b"relaxlang", 1, None, *(found[f"rlx_np_{n}"] for n in ("malloc", "calloc", "realloc", "free"))
        )
        self._capsule = _capsule(ctypes.addressof(self._handler))
        ctypes.c_size_t.from_address(found["handler"]).value = id(self._capsule)
        self._idle = ctypes.c_size_t.from_address(found["idle"])
        self.clear = ctypes.PYFUNCTYPE(None)(found["rlx_clear"])
        POOL.share(self.clear)

    @property
    def idle(self) -> int:
        """The bytes of idle blocks."""
        return self._idle.value


_support: list[Support] = []


def support() -> Support:
    """The support module, made when it is first needed."""
    if not _support:
        _support.append(Support())
    return _support[0]


def _text(triple: str) -> str:
    text = TEXT + ALLOCATOR + (SYSTEM_LINUX if "linux" in triple else SYSTEM_ELSEWHERE)
    for name, value in _OFFSETS.items():
        text = text.replace("{" + name + "}", str(value))
    return f'target triple = "{triple}"\n{text}{stack_text(triple)}'


def stack_text(triple: str) -> str:
    """The function that tells how far the stack may grow, on a platform."""
    if "linux" in triple:
        return STACK_LINUX
    return STACK_APPLE if "apple" in triple else STACK_ELSEWHERE


def _compile(text: str, target: Target) -> bytes:
    from relaxlang.codegen.compile import assembled

    return assembled(text, target)


def has_clock() -> bool:
    """Whether native code can measure time here."""
    return bool(c_clock())


def c_clock() -> dict[str, int]:
    """The address of POSIX's `clock_gettime`, by name; nothing where there is none."""
    found = getattr(ctypes.CDLL(None), "clock_gettime", None)
    return {} if found is None else {"clock_gettime": ctypes.cast(found, ctypes.c_void_p).value or 0}


def _c_library() -> dict[str, int]:
    process = ctypes.CDLL(None)
    return {"free_system": ctypes.cast(process.free, ctypes.c_void_p).value or 0}


def _capsule(address: int) -> Any:
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return new(("PyCapsule_New", ctypes.pythonapi))(address, _HANDLER_NAME, None)


_HANDLER_NAME = b"mem_handler"  # kept alive: a capsule does not copy its name
