"""Texts of numbers, strings and arrays that read back bit for bit: what the printer writes and the parser reads.

A float is the shortest text that gives the same value; what no literal can say is a string: `"inf"`, `"-inf"`, `"nan"`,
and `"nan:0x7ff8000000000001"` for a NaN with other bits than the default one. An array is `I.array(data, dtype,
shape)`, where `data` is the base64 of its elements in row-major, little-endian order, or a nested list of numbers (then
`shape` may be absent), or `"sha256:…"`, the digest of those bytes in a side file.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
import struct
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from relaxlang.base.dtype import DType, from_numpy
from relaxlang.base.stored_array import StoredArray

if TYPE_CHECKING:
    import numpy as np

_PLAIN_NAN = struct.pack("<d", math.nan)
_SHA = "sha256:"


# --- floats and strings -----------------------------------------------------------------------------------------------
def float_text(value: float) -> str:
    """The shortest text of a finite float; for the others a string literal, quotes included."""
    if math.isfinite(value):
        return repr(value)
    if value == math.inf:
        return '"inf"'
    if value == -math.inf:
        return '"-inf"'
    bits = struct.pack("<d", value)
    return '"nan"' if bits == _PLAIN_NAN else f'"nan:0x{int.from_bytes(bits, "little"):016x}"'


def parse_float(text: str) -> float:
    """The value of the content of such a string, or of a decimal or hexadecimal number (`0x1.8p3`). Raises ValueError
    when it is none."""
    if text.startswith("nan:"):
        value: float = struct.unpack("<d", int(text[4:], 16).to_bytes(8, "little"))[0]
        if not math.isnan(value):
            raise ValueError(f"`{text}` does not have the bits of a NaN")
        return value
    return float.fromhex(text) if "0x" in text.lower() else float(text)


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def string_text(value: str) -> str:
    """A string literal in double quotes; characters that do not show are escaped."""
    if value.isprintable() and '"' not in value and "\\" not in value:
        return f'"{value}"'
    return f'"{"".join(_ESCAPES.get(c) or (c if c.isprintable() else _escape(ord(c))) for c in value)}"'


def _escape(code: int) -> str:
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


# --- arrays -----------------------------------------------------------------------------------------------------------
def array_bytes(array: np.ndarray[Any, Any]) -> bytes:
    """The elements in row-major, little-endian order."""
    return _plain(array).tobytes()


def _plain(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The bytes of the elements in row-major, little-endian order: the array's own memory where it lies like that."""
    import numpy as np

    flat = np.ascontiguousarray(array)
    big = flat.dtype.byteorder == ">" or (flat.dtype.byteorder == "=" and sys.byteorder == "big")
    return (flat.byteswap() if big else flat).reshape(-1).view(np.uint8)


def array_base64(array: np.ndarray[Any, Any]) -> str:
    """The elements as text."""
    return base64.b64encode(array_bytes(array)).decode("ascii")


def array_digest(array: np.ndarray[Any, Any]) -> str:
    """`"sha256:…"`: the name under which a side file holds the elements."""
    return _SHA + hashlib.sha256(_plain(array).data).hexdigest()


def array_from_text(
    text: str, dtype: DType, shape: tuple[int, ...], store: Mapping[str, Any] | None = None
) -> np.ndarray[Any, Any] | StoredArray:
    """The array that `I.array(text, dtype, shape)` stands for; `store` is the side file, by digest.

    Raises ValueError when the text is no base64, has the wrong length, or names an array that `store` lacks or has with
    another content. What `store` has not read yet is not read here either.
    """
    import numpy as np

    count = math.prod(shape)
    if text.startswith(_SHA):
        found = None if store is None else store.get(text)
        if found is None:
            raise ValueError(no_content(text))
        if isinstance(found, StoredArray):
            if found.nbytes != count * dtype.numpy.itemsize:
                raise ValueError(other_content(text))
            return found.seen_as(dtype.numpy, shape)
        content = _plain(np.asarray(found))
        if array_digest(found) != text or len(content) != count * dtype.numpy.itemsize:
            raise ValueError(other_content(text))
        content.flags.writeable = False
        return _from_bytes(content, dtype, shape)
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error as fault:
        raise ValueError(f"the elements are not base64: {str(fault).lower()}") from None
    if len(data) != count * dtype.numpy.itemsize:
        size = count * dtype.numpy.itemsize
        raise ValueError(f"{count} elements of {dtype} take {size} bytes, the text has {len(data)}")
    return _from_bytes(data, dtype, shape)


def no_content(digest: str) -> str:
    """What is wrong with a text that names an array which is not there."""
    return f"no side file has the array `{digest}`"


def other_content(digest: str) -> str:
    """What is wrong with a text that names an array which turns out to be another one."""
    return f"the array `{digest}` of the side file has another content"


def _from_bytes(data: bytes | np.ndarray[Any, Any], dtype: DType, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """An array from its elements in row-major, little-endian order."""
    import numpy as np

    wanted = dtype.numpy
    array = np.frombuffer(data, wanted if wanted.kind == "V" else wanted.newbyteorder("<"))
    return array.astype(wanted, copy=False).reshape(shape)


def number_texts(array: np.ndarray[Any, Any]) -> list[str] | None:
    """A text for each element, in row-major order, from which the same bits come back in the array's dtype; floats that
    no literal can say are `float("inf")`. None when some element has no such text (a NaN with special bits)."""
    flat = array.reshape(-1)
    if not from_numpy(array.dtype).is_float:
        return [repr(v) for v in flat.tolist()]
    texts = [_element_text(v) for v in flat]
    return None if None in texts else texts  # type: ignore[return-value]


def _element_text(element: Any) -> str | None:
    """The shortest text of a numpy float scalar of any width."""
    exact = float(element)
    if not math.isfinite(exact):
        bits = element.dtype.type(exact).tobytes()
        plain = element.dtype.type("nan" if math.isnan(exact) else exact).tobytes()
        text = "nan" if math.isnan(exact) else repr(exact)
        return f'float("{text}")' if element.tobytes() == plain == bits else None
    short = float(str(element))
    same: bool = element.dtype.type(short).tobytes() == element.tobytes()
    return repr(short) if same else repr(exact)
