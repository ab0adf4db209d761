"""Element types: interned, comparable by identity, and convertible to numpy's."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from relaxlang.base.diagnostics import RelaxlangError

if TYPE_CHECKING:
    import numpy as np

_FLOAT8 = ("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
           "float8_e5m2fnuz", "float8_e8m0fnu")  # fmt: skip
_SMALL = {**dict.fromkeys(_FLOAT8, 8), "float6_e2m3fn": 6, "float6_e3m2fn": 6, "float4_e2m1fn": 4}
_NAME = re.compile(r"(int|uint|float|bfloat)(\d+)(?:x(\d+))?$")
_LANED = re.compile(r"(.+?)x(\d+)$")
_SCALABLE = re.compile(r"(\w+?)xvscalex(\d+)$")
_WIDTHS = {"int": (1, 2, 4, 8, 16, 32, 64), "uint": (1, 2, 4, 8, 16, 32, 64), "float": (16, 32, 64), "bfloat": (16,)}


class DType:
    """An element type: `kind` is int, uint, float, bfloat, bool, handle, void, or the name of a small float.

    `bits` is the width of one lane (bool: 1, stored in one byte), `lanes` the vector length (1: a scalar; -4: four
    times the `vscale` of the processor, as in `float32xvscalex4`). Made by `dtype("float32")`; equal types are one
    object.
    """

    __slots__ = ("kind", "bits", "lanes", "name", "_vectors")

    def __init__(self, kind: str, bits: int, lanes: int, name: str) -> None:
        self.kind = kind
        self.bits = bits
        self.lanes = lanes
        self.name = name
        self._vectors: dict[int, DType] = {}

    @property
    def is_int(self) -> bool:
        """Signed integer."""
        return self.kind == "int"

    @property
    def is_uint(self) -> bool:
        """Unsigned integer (not bool)."""
        return self.kind == "uint"

    @property
    def is_integer(self) -> bool:
        """Signed or unsigned integer, not bool."""
        return self.kind in ("int", "uint")

    @property
    def is_bool(self) -> bool:
        """Truth value."""
        return self.kind == "bool"

    @property
    def is_float(self) -> bool:
        """Any floating-point type, bfloat16 and the small floats included."""
        return self.kind in ("float", "bfloat") or self.kind in _SMALL

    @property
    def is_handle(self) -> bool:
        """A pointer."""
        return self.kind == "handle"

    @property
    def scalar(self) -> DType:
        """The type of one lane."""
        return self if self.lanes == 1 else dtype(self.name.split("x")[0])

    @property
    def itemsize(self) -> int:
        """Bytes that one element takes in memory (sub-byte types take a byte each; lanes included, of a scalable vector
        the fewest that it has)."""
        return max(1, (self.bits + 7) // 8) * abs(self.lanes)

    def with_lanes(self, lanes: int) -> DType:
        """The vector type of `lanes` such elements."""
        found = self._vectors.get(lanes)
        if found is None:
            base = self.scalar.name
            found = dtype(base if lanes == 1 else f"{base}xvscalex{-lanes}" if lanes < 0 else f"{base}x{lanes}")
            self._vectors[lanes] = found
        return found

    @property
    def numpy(self) -> np.dtype[Any]:
        """The numpy dtype that stores it (ml_dtypes for bfloat16 and the small floats); TypeError if there is none."""
        return _numpy(self)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"dtype({self.name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (dtype, (self.name,))


_TABLE: dict[str, DType] = {}
ALIASES = {"f16": "float16", "f32": "float32", "f64": "float64", "bf16": "bfloat16", "i8": "int8", "i16": "int16",
           "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
           "boolean": "bool", "e4m3_float8": "float8_e4m3fn", "e5m2_float8": "float8_e5m2", "int": "int32",
           "float": "float32"}  # fmt: skip


class DTypeError(RelaxlangError, ValueError):
    """A name or value that is no type of the language."""


def dtype(name: str | DType) -> DType:
    """The type of that name (`float32`, `int8x4`, `bool`, `bfloat16`, `handle`, `void`, short forms such as `f32`).

    Raises DTypeError, a ValueError, for what is no type.
    """
    if isinstance(name, DType):
        return name
    if not isinstance(name, str):
        raise DTypeError(f"a dtype is a name such as `float32`, not `{type(name).__name__}`")
    found = _TABLE.get(name)
    if found is None:
        found = _TABLE.setdefault(name, _make(name))
    return found


def _make(name: str) -> DType:
    full = ALIASES.get(name, name)
    if full != name:
        return dtype(full)
    if name in _SMALL:
        return DType(name, _SMALL[name], 1, name)
    if name in ("bool", "handle", "void"):
        return DType(name, {"bool": 1, "handle": 64, "void": 0}[name], 1, name)
    scalable = _SCALABLE.match(name)
    if scalable and int(scalable[2]) > 0:
        base = dtype(scalable[1])
        if base.lanes == 1 and base.kind not in ("handle", "void"):
            return DType(base.kind, base.bits, -int(scalable[2]), f"{base.name}xvscalex{int(scalable[2])}")
    match = _NAME.match(name)
    if match and int(match[2]) in _WIDTHS[match[1]] and int(match[3] or 2) > 1:
        return DType(match[1], int(match[2]), int(match[3] or 1), name)
    laned = _LANED.match(name)
    if laned and (laned[1] in _SMALL or laned[1] == "bool") and int(laned[2]) > 1:
        base = dtype(laned[1])
        return DType(base.kind, base.bits, int(laned[2]), name)
    raise DTypeError(f"`{name}` is not a dtype")


def _numpy(wanted: DType) -> np.dtype[Any]:
    import numpy as np

    if wanted.lanes != 1 or wanted.kind in ("handle", "void"):
        raise TypeError(f"numpy has no dtype for {wanted}")
    if wanted.kind in ("int", "uint") and wanted.bits < 8:
        return np.dtype(f"{wanted.kind}8")
    if wanted.kind == "bfloat" or wanted.kind in _SMALL:
        import ml_dtypes

        extended: np.dtype[Any] = np.dtype(getattr(ml_dtypes, wanted.name))
        return extended
    return np.dtype(wanted.name)


def from_numpy(wanted: np.dtype[Any]) -> DType:
    """The type of a numpy dtype; TypeError when the language has none (complex, object, strings)."""
    try:
        return dtype(wanted.name)
    except ValueError:
        raise TypeError(f"numpy dtype {wanted} has no counterpart") from None
