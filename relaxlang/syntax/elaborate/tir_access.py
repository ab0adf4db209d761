"""Access to memory by name: `T.load`, `T.store`, and the methods `access_ptr`, `vload` and `vstore` of buffers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.base.source import Span
from relaxlang.ir import prim, tir
from relaxlang.ir.intrinsics import is_view
from relaxlang.ir.prim import PrimExpr
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import Evaluator, as_dtype, describe, error
from relaxlang.syntax.elaborate.native import Names
from relaxlang.syntax.elaborate.scalars import scalar

if TYPE_CHECKING:
    from relaxlang.syntax.elaborate.tir_body import BodyElaborator

names = Names("T")


# --- accesses of the oldest scripts -----------------------------------------------------------------------------------
@names("load")
def _load(ev: BodyElaborator, node: tree.Call, dtype: Any, buffer: Any, index: Any, predicate: Any = None) -> PrimExpr:
    of = as_dtype(dtype, node.span)
    at = index if isinstance(index, (list, tuple)) else [index]
    return prim.BufferLoad(
        ev.flat_buffer(buffer, of.scalar, node.span), tuple(scalar(i, node.span) for i in at), span=node.span
    )


@names("store")
def _store(ev: BodyElaborator, node: tree.Call, buffer: Any, index: Any, value: Any, predicate: Any = None) -> tir.Stmt:
    stored = scalar(value, node.span)
    at = tuple(scalar(i, node.span) for i in (index if isinstance(index, (list, tuple)) else [index]))
    return tir.BufferStore(ev.flat_buffer(buffer, stored.dtype.scalar, node.span), stored, at, span=node.span)


def indices_of(buffer: tir.Buffer, at: Any, span: Span | None, lanes: int = 1) -> list[PrimExpr]:
    """The indices of an element: one for each dimension, or any number where the shape is not known. With `lanes` those
    of a vector along the last dimension."""
    indices = [scalar(i, span) for i in (at if isinstance(at, (list, tuple)) else [at])]
    for index in indices:
        if not (index.dtype.is_integer or index.dtype.is_bool):
            raise error("RLX0302", f"an index of `{buffer.name}` must be an integer, not `{index.dtype}`", span)
    if len(indices) != len(buffer.shape) and not is_view(buffer.layout):
        raise wrong_count(buffer, len(indices), span)
    if lanes > 1 and not indices:
        raise error("RLX0303", f"`{buffer.name}` has no dimension, and no vectors", span)
    if lanes > 1 and indices[-1].dtype.lanes == 1:
        indices[-1] = prim.Ramp(indices[-1], prim.const(1, indices[-1].dtype), lanes)
    return indices


def wrong_count(buffer: tir.Buffer, given: int, span: Span | None) -> DiagnosticError:
    """The error of an access with another number of indices than the buffer has dimensions."""
    return error("RLX0301", f"`{buffer.name}` has {buffer.ndim} dimensions, {given} indices were given", span)


# --- methods of buffers -----------------------------------------------------------------------------------------------
_MASKS = {"r": 1, "w": 2, "rw": 3, "wr": 3}


def access_ptr(ev: Evaluator, node: tree.Call, buffer: tir.Buffer, args: list[Any], kwargs: dict[str, Any]) -> PrimExpr:
    """`A.access_ptr("r", offset=0, extent=None)`: a pointer into a buffer, for so many elements, to read or write."""
    fields = _fields("access_ptr", "access_mask ptr_type content_lanes offset extent", args, kwargs, node)
    mask = _mask(fields.get("access_mask"), node)
    offset: Any = scalar(fields.get("offset", 0), node.span)
    if buffer.elem_offset is not None:
        offset = buffer.elem_offset + offset
    extent = fields.get("extent")
    if extent is None:
        size: Any = 1
        for dim in buffer.shape:
            size = dim * size
        extent = size - offset
    lanes = fields.get("content_lanes", 1)
    if not isinstance(lanes, int) or lanes < 1:
        raise error("RLX0116", f"`content_lanes` is a positive integer, not {describe(lanes)}", node.span)
    of = buffer.dtype if lanes == 1 else buffer.dtype.with_lanes(lanes)
    element = prim.Call(of, "type_annotation", (), span=node.span)
    values = (element, buffer.data, offset, scalar(extent, node.span), prim.const(mask, "int32"))
    return prim.Call(prim.HANDLE, "tvm_access_ptr", values, span=node.span)


def _fields(method: str, parameters: str, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> dict[str, Any]:
    """The arguments of a method by the names of its parameters."""
    known = parameters.split()
    if len(args) > len(known):
        raise error("RLX0113", f"`{method}` takes at most {len(known)} arguments, {len(args)} were given", node.span)
    for keyword in node.keywords:
        if keyword.name not in known or keyword.name in known[: len(args)]:
            word = "gets `{}` twice" if keyword.name in known else "has no parameter `{}`"
            raise error("RLX0114", f"`{method}` {word.format(keyword.name)}", node.span)
    return dict(zip(known, args)) | kwargs


def _mask(given: Any, node: tree.Call) -> int:
    """1 to read, 2 to write, 3 for both: what may be said in letters, too."""
    mask = _MASKS.get(given) if isinstance(given, str) else given
    if isinstance(mask, bool) or not isinstance(mask, int) or not 1 <= mask <= 3:
        raise error("RLX0116", '`access_ptr` takes "r", "w" or "rw"', node.span)
    return mask


def vload(ev: Evaluator, node: tree.Call, buffer: tir.Buffer, args: list[Any], kwargs: dict[str, Any]) -> PrimExpr:
    """`A.vload([i, j], "float32x4", predicate=None)`: a load of an element or, with lanes in the type, of a vector."""
    fields = _fields("vload", "begin dtype predicate", args, kwargs, node)
    of = fields.get("dtype")
    lanes = 1 if of in (None, "") else as_dtype(of, node.span).lanes // buffer.dtype.lanes
    indices = indices_of(buffer, fields.get("begin", ()), node.span, lanes)
    where = fields.get("predicate")
    return prim.BufferLoad(buffer, tuple(indices), None if where is None else scalar(where, node.span), span=node.span)


def vstore(ev: Evaluator, node: tree.Call, buffer: tir.Buffer, args: list[Any], kwargs: dict[str, Any]) -> tir.Stmt:
    """`A.vstore([i, j], value, predicate=None)`: a store of an element, or of a vector with a `T.Ramp` as last
    index."""
    fields = _fields("vstore", "begin value predicate", args, kwargs, node)
    value = scalar(fields.get("value"), node.span, buffer.dtype)
    indices = indices_of(buffer, fields.get("begin", ()), node.span, value.dtype.lanes // buffer.dtype.lanes)
    where = fields.get("predicate")
    return tir.BufferStore(
        buffer, value, tuple(indices), None if where is None else scalar(where, node.span), span=node.span
    )


def ptr_to(ev: Evaluator, node: tree.Call, buffer: tir.Buffer, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """`A.ptr_to([i, j])`: the address of an element."""
    if len(args) != 1 or kwargs:
        raise error("RLX0113", "`ptr_to` takes the indices of an element, as a list", node.span)
    indices = indices_of(buffer, ev.iterate(args[0], node.span), node.span)
    load = prim.BufferLoad(buffer, tuple(indices), span=node.span)
    return prim.Call(prim.HANDLE, "address_of", (load,), span=node.span)


METHODS: dict[str, Callable[..., Any]] = {
    "access_ptr": access_ptr,
    "ptr_to": ptr_to,
    "vload": vload,
    "vstore": vstore,
}
