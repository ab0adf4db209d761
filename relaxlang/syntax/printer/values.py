"""Plain values: numbers, strings, dtypes, arrays, lists and mappings, as they stand in attributes and constants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from relaxlang.base.dtype import DType, from_numpy
from relaxlang.base.node import Node
from relaxlang.ir import prim
from relaxlang.ir.module import VDevice
from relaxlang.syntax import scalars
from relaxlang.syntax.comptime_values import Closure
from relaxlang.syntax.document import Doc, bracket, concat
from relaxlang.syntax.printer.core import Printer, prints

if TYPE_CHECKING:
    import numpy as np

INLINE_ELEMENTS = 64
"""An array with more elements is written as base64 and not as a list of numbers."""


def value_doc(p: Printer, value: Any) -> Doc:
    """A value of an attribute. Scalar constants of the IR show their type (`T.int32(3)`), plain numbers do not."""
    if value is None or isinstance(value, (bool, int)):
        return str(value)
    if isinstance(value, float):
        text = scalars.float_text(value)
        return f"float({text})" if text.startswith('"') else text
    if isinstance(value, str):
        return scalars.string_text(value)
    if isinstance(value, DType):
        return f"T.{value}"
    if isinstance(value, (prim.IntImm, prim.FloatImm)):
        return typed_constant(value)
    if isinstance(value, VDevice):
        return vdevice_doc(p, value)
    if isinstance(value, Node):
        return p.doc(value)
    if isinstance(value, tuple):
        return bracket("[", [value_doc(p, v) for v in value], "]")
    if isinstance(value, Mapping):
        return mapping_doc(p, value)
    if isinstance(value, Closure) and value.node.span is not None:  # `index_map=lambda i: (i // 4, i % 4)`
        return " ".join(value.node.span.text.split())
    return _numpy_doc(p, value)


def _numpy_doc(p: Printer, value: Any) -> Doc:
    import numpy as np

    if isinstance(value, np.generic):
        return value_doc(p, value.item())
    if isinstance(value, np.ndarray):
        return array_doc(p, value)
    raise TypeError(f"nothing says how an attribute that is a {type(value).__name__} is printed")


def mapping_doc(p: Printer, items: Mapping[str, Any]) -> Doc:
    """`{"key": value}`."""
    pairs = [concat(scalars.string_text(str(k)), ": ", keyed_doc(p, str(k), v)) for k, v in items.items()]
    return bracket("{", pairs, "}")


def keyed_doc(p: Printer, key: str, value: Any) -> Doc:
    """The value of an attribute; what TVM keeps as a target is a text or a dict here."""
    doc = value_doc(p, value)
    if key.lower().endswith("target") and p.options.dialect is not None and isinstance(value, (str, Mapping)):
        return concat("T.target(", _by_tag(p, value) or doc, ")")
    return doc


def _by_tag(p: Printer, target: Any) -> Doc | None:
    """`"nvidia/nvidia-a100", host="llvm"`: a target that has a name, where nothing but its host is said besides."""
    kind = target.get("kind", "") if isinstance(target, Mapping) else ""
    if not isinstance(kind, str) or "/" not in kind or set(target) != {"kind", "host"}:
        return None
    return concat(scalars.string_text(kind), ", host=", value_doc(p, target["host"]))


def typed_constant(value: prim.IntImm | prim.FloatImm) -> str:
    """`T.int64(3)`, `T.float32(0.5)`, `T.bool(True)`."""
    if isinstance(value, prim.FloatImm):
        return f"T.{value.of}({scalars.float_text(value.value)})"
    if value.of.is_bool:
        return f"T.bool({bool(value.value)})"
    return f"T.{value.of}({value.value})"


def array_doc(p: Printer, array: np.ndarray[Any, Any]) -> Doc:
    """`I.array(…)`: a list of numbers, base64, or the name of an entry in the side file."""
    kind = from_numpy(array.dtype)
    if p.options.constants == "file" and array.size > INLINE_ELEMENTS and p.options.store is not None:
        digest = scalars.array_digest(array)
        p.options.store[digest] = array
        data: Doc = f'"{digest}"'
    else:
        listed = list_doc(array)
        if listed is not None:
            return bracket("I.array(", [listed, f'"{kind}"'], ")")
        data = f'"{scalars.array_base64(array)}"'
    shape = bracket("(", [str(n) for n in array.shape], ")", lone_comma=True)
    return bracket("I.array(", [data, f'"{kind}"', shape], ")")


def constant_doc(p: Printer, array: np.ndarray[Any, Any]) -> Doc:
    """`R.const(1.0, "float32")`, `R.const([…], "float32")`, `R.const(I.array(…))`."""
    listed = list_doc(array)
    if listed is None:
        return concat("R.const(", array_doc(p, array), ")")
    return bracket("R.const(", [listed, f'"{from_numpy(array.dtype)}"'], ")")


def list_doc(array: np.ndarray[Any, Any]) -> Doc | None:
    """A small array as a number or a nested list of numbers; None where that would be long or lose something."""
    if array.size > INLINE_ELEMENTS or array.size == 0:
        return None
    texts = scalars.number_texts(array)
    if texts is None:
        return None
    docs: list[Doc] = list(texts)
    for extent in reversed(array.shape):
        docs = [bracket("[", docs[at : at + extent], "]") for at in range(0, len(docs), extent)]
    return docs[0]


# --- devices ----------------------------------------------------------------------------------------------------------
def vdevice_doc(p: Printer, device: VDevice) -> Doc:
    """`"llvm:0"` for one of the module's devices, by kind and place among those of its kind; else spelled out."""
    kind = _kind(device.target)
    if p.module is not None and kind is not None:
        devices = p.module.global_infos.get("vdevice", ())
        for at, candidate in enumerate(d for d in devices if isinstance(d, VDevice) and _kind(d.target) == kind):
            if candidate is device or _fields(candidate) == _fields(device):
                return f'"{kind}:{at}"'
    return p.doc(device)


def _kind(target: Any) -> str | None:
    """The kind of a target in text or mapping form, when it is a plain name."""
    kind = target.get("kind") if hasattr(target, "get") else target
    return kind.split()[0] if isinstance(kind, str) and kind.strip() else None


def _fields(device: VDevice) -> tuple[Any, ...]:
    return device.target, device.vdevice_id, device.memory_scope


@prints(VDevice)
def _vdevice(p: Printer, node: VDevice) -> Doc:
    return bracket(
        "I.vdevice(", [value_doc(p, node.target), str(node.vdevice_id), scalars.string_text(node.memory_scope)], ")"
    )
