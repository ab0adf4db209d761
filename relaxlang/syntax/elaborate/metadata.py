"""The section of constants that releases of TVM print above a module, and `metadata["relax.expr.Constant"][0]`.

It is a graph of objects as JSON, in one of two forms: until TVM 0.21 a table of arrays at its end (`b64ndarrays`), and
since then arrays as nodes. Either holds an array as base64 of the same binary record. Only arrays are read; the text of
everything else that may stand there says nothing that a module needs.
"""

from __future__ import annotations

import base64
import binascii
import json
import struct
from typing import TYPE_CHECKING, Any

from relaxlang.base.dtype import DType, dtype
from relaxlang.base.source import Span
from relaxlang.ir import relax
from relaxlang.syntax.comptime import Evaluator, Value, error
from relaxlang.syntax.spellings import METADATA_KEYS

if TYPE_CHECKING:
    import numpy as np

_MAGIC = 0xDD5E40F096B4A13F
_HEAD = struct.Struct("<QQiiiBBH")  # magic, reserved, device type and number, rank, kind, bits, lanes
_SMALL_FLOATS = (
    "float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz "
    "float8_e8m0fnu float6_e2m3fn float6_e3m2fn float4_e2m1fn"
).split()
_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat"}


class Metadata(Value):
    """`metadata`: lists of constants by the name of their class."""

    kind = "metadata section"

    def __init__(self, lists: dict[str, list[Any]]) -> None:
        self.lists = lists

    def item(self, ev: Evaluator, index: Any, span: Span | None) -> Any:
        if index not in self.lists:
            known = ", ".join(f'`"{key}"`' for key in self.lists) or "nothing"
            raise error("RLX0152", f"the metadata section has no `{index}`", span, help=f"it holds {known}")
        if index not in METADATA_KEYS:
            raise error("RLX0152", f"objects of the class `{index}` cannot be read from a metadata section", span)
        return tuple(relax.Constant(array, span=span) for array in self.lists[index])


def metadata_section(text: str, span: Span | None) -> Metadata:
    """The section that `metadata = tvm.ir.load_json(text)` states. RLX0152 when it is none."""
    try:
        graph = json.loads(text)
        lists = _classic(graph) if "b64ndarrays" in graph or "root" in graph else _plain(graph)
        return Metadata(lists)
    except RecursionError:
        fault = "its brackets nest too deeply"
    except (ValueError, LookupError, TypeError, AttributeError, struct.error, binascii.Error) as raised:
        fault = f"{type(raised).__name__}: {raised}"
    raise error("RLX0152", f"this is no metadata section: {fault}", span)


def _classic(graph: dict[str, Any]) -> dict[str, list[Any]]:
    nodes, arrays = graph["nodes"], graph.get("b64ndarrays", ())
    root = nodes[graph["root"]]
    lists: dict[str, list[Any]] = {}
    for key, at in zip(root.get("keys", ()), root.get("data", ())):
        entries = [nodes[k] for k in nodes[at].get("data", ())]
        lists[key] = [_array(arrays[int(e["attrs"]["data"])]) for e in entries] if key in METADATA_KEYS else entries
    return lists


def _plain(graph: dict[str, Any]) -> dict[str, list[Any]]:
    nodes = graph["nodes"]
    pairs = nodes[graph["root_index"]]["data"]
    lists: dict[str, list[Any]] = {}
    for key, at in zip(pairs[::2], pairs[1::2]):
        name = nodes[key]["data"]
        entries = [nodes[k]["data"] for k in nodes[at]["data"]]
        lists[name] = [_array(nodes[e["data"]]["data"]) for e in entries] if name in METADATA_KEYS else entries
    return lists


def _array(text: str) -> np.ndarray[Any, Any]:
    """An array from the base64 of its record: head, shape, number of bytes, elements."""
    import numpy as np

    record = base64.b64decode(text, validate=True)
    magic, _, _, _, rank, kind, bits, lanes = _HEAD.unpack_from(record)
    if magic != _MAGIC or not 0 <= rank <= 64:
        raise ValueError("an array does not begin as arrays do")
    *shape, size = struct.unpack_from(f"<{rank + 1}q", record, _HEAD.size)
    at = _HEAD.size + 8 * (rank + 1)
    of = _type(kind, bits, lanes).numpy
    if min(shape, default=0) < 0 or size != len(record) - at or size != int(np.prod(shape, dtype=object)) * of.itemsize:
        raise ValueError("the size of an array is not that of its elements")
    return np.frombuffer(record, of, offset=at).reshape(shape)


def _type(kind: int, bits: int, lanes: int) -> DType:
    if lanes != 1:
        raise ValueError("arrays of vectors are not read")
    if kind == 6 or (kind == 1 and bits == 1):
        return dtype("bool")
    if 7 <= kind < 7 + len(_SMALL_FLOATS):
        return dtype(_SMALL_FLOATS[kind - 7])
    return dtype(f"{_KINDS[kind]}{bits}")
