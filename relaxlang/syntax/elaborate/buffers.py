"""`T.Buffer`, `T.match_buffer`, `T.alloc_buffer`, `T.decl_buffer`, `T.allocate`: buffers and memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from relaxlang.base.dtype import DType
from relaxlang.base.source import Span
from relaxlang.base.stored_array import StoredArray
from relaxlang.base.suggest import suggestion
from relaxlang.ir import prim, tir
from relaxlang.ir.prim import PrimExpr
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import Evaluator, Value, as_dtype, describe, error
from relaxlang.syntax.elaborate.carried import carried_fields
from relaxlang.syntax.elaborate.native import Names, Native, annotation_attrs
from relaxlang.syntax.elaborate.scalars import as_range, scalar
from relaxlang.syntax.elaborate.tir_access import indices_of
from relaxlang.syntax.elaborate.tir_values import TRUE, Pending

if TYPE_CHECKING:
    from relaxlang.syntax.elaborate.tir_body import BodyElaborator

names = Names("T")


def _whole(name: str, value: Any, span: Span | None) -> int:
    """A field of a buffer that is a number of bytes or elements, known while compiling; 0 when it is not given."""
    value = value.value if isinstance(value, prim.IntImm) else value
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value or 0
    raise error("RLX0122", f"`{name}` must be an integer known while compiling, not {describe(value)}", span)


class BufferSpec:
    """The fields of a buffer that still lacks its name."""

    def __init__(self, node: tree.Call | tree.Subscript, shape: Any, dtype: Any, fields: dict[str, Any]) -> None:
        span = self.span = node.span
        shape = shape if isinstance(shape, (tuple, list)) else (shape,)
        self.shape = tuple(_dimension(d, span) for d in shape)
        self.dtype = as_dtype(dtype, span)
        self.data = fields.get("data")
        self.strides = tuple(fields.get("strides") or ())
        offset = fields.get("elem_offset")
        self.elem_offset = None if offset is None else scalar(offset, span)
        self.scope = fields.get("scope") or "global"
        self.align = _whole("align", fields.get("align"), span) or -1
        self.offset_factor = _whole("offset_factor", fields.get("offset_factor"), span)
        self.layout = carried_fields({k: fields[k] for k in _GPU_FIELDS if k in fields}, span)
        self.matches = False
        self.starts_anywhere = self.offset_factor != 0 and "elem_offset" not in fields

    def make(self, body: BodyElaborator, name: str, span: Span | None) -> tir.Buffer:
        """The buffer, with a pointer of its own unless `data=` gave one."""
        data = self.data
        if isinstance(data, tir.Buffer):
            data = data.data
        if data is None:
            data = prim.Var(name, prim.HANDLE, prim.PointerType(self.dtype, self.scope), span=span)
        elif not isinstance(data, prim.Var):
            raise error("RLX0305", f"`data` must be a pointer variable, not {describe(data)}", self.span)
        scope = data.pointer.scope if data.pointer is not None and self.data is not None else self.scope
        own = self.matches and body.block is not body.root  # each buffer of a region has strides of its own
        strides = tuple(body.stride(s, self.span, own=own) for s in self.strides)
        offset = self.elem_offset
        if self.matches and self.starts_anywhere:
            offset = prim.Var(f"{name}_elem_offset", self.shape[0].dtype if self.shape else prim.INT32, span=span)
        return tir.Buffer(
            name,
            self.shape,
            self.dtype,
            data,
            strides,
            offset,
            scope,
            self.align,
            self.offset_factor,
            self.layout,
            span=span,
        )


def _dimension(value: Any, span: Span | None) -> PrimExpr:
    made = scalar(value, span)
    if not made.dtype.is_integer:
        raise error("RLX0221", f"a dimension must be an integer, not {describe(value)}", span)
    if isinstance(made, prim.IntImm) and made.value < 0:
        raise error("RLX0221", f"the dimension {made.value} is negative", span)
    return made


_FIELDS = ("data", "strides", "elem_offset", "scope", "align", "offset_factor", "buffer_type", "axis_separators")
_GPU_FIELDS = ("layout", "allocated_addr", "logical_scope")
"""What only TVM 0.26 and later say of a buffer; see `tir.Buffer.layout`."""


def spec(
    node: tree.Call | tree.Subscript, shape: Any, dtype: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> BufferSpec:
    """The fields from arguments in TVM's order: data, strides, elem_offset, scope, align, offset_factor."""
    fields = dict(zip(_FIELDS, args))
    for name, value in kwargs.items():
        if name not in _FIELDS and name not in _GPU_FIELDS:
            hint = suggestion(name, _FIELDS, node.span)
            hint["help"] = hint["help"] or "fields are " + ", ".join(_FIELDS[:6])
            raise error("RLX0114", f"a buffer has no field `{name}`", node.span, **hint)
        fields[name] = value
    return BufferSpec(node, shape, dtype, fields)


class BufferMaker(Value):
    """`T.Buffer`: `T.Buffer((n, m), "float32", …)` or the old `T.Buffer[(n, m), "float32"]`."""

    kind = "buffer type"

    def call(self, ev: Evaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
        shape = args[0] if args else kwargs.pop("shape", None)
        dtype = args[1] if len(args) > 1 else kwargs.pop("dtype", "float32")
        if shape is None:
            raise error("RLX0113", "`T.Buffer` lacks its argument `shape`", node.span)
        if isinstance(shape, (tuple, list)):
            shape = tuple(ev.quoted(d, node) if isinstance(d, str) else d for d in shape)  # type: ignore[attr-defined]
        return _undeclared(spec(node, shape, dtype, tuple(args[2:]), kwargs))

    def item(self, ev: Evaluator, index: Any, span: Span | None) -> Any:
        parts = index if isinstance(index, tuple) else (index,)
        if len(parts) != 2 or not isinstance(parts[1], (str, DType)):
            raise error(
                "RLX0113", "`T.Buffer[…]` takes a shape and a dtype", span, help='write `T.Buffer((16, 16), "float32")`'
            )
        shape, dtype = parts
        where = tree.Subscript(tree.Name("T", span=span), tree.TupleExpr((), span=span), span=span)
        return _undeclared(spec(where, shape, dtype, (), {}))


def _undeclared(of: BufferSpec) -> Pending:
    made = Pending("buffer", lambda body, name, span: of.make(body, name, span))
    made.spec = of  # type: ignore[attr-defined]
    return made


names.table["Buffer"] = names.table["buffer"] = BufferMaker()


@names("match_buffer")
def _match_buffer(
    ev: BodyElaborator,
    node: tree.Call,
    param: Any,
    shape: Any = None,
    dtype: Any = "float32",
    *args: Any,
    **fields: Any,
) -> Pending:
    if isinstance(param, (tir.BufferRegion, prim.BufferLoad, tir.Buffer)):
        return _match_region(ev, node, param, shape, dtype, args, fields)
    if not isinstance(param, prim.Var):
        raise error(
            "RLX0305", f"`T.match_buffer` needs a handle parameter or a region, not {describe(param)}", node.span
        )
    of = spec(node, shape, dtype, args, fields)
    of.matches = True

    def declare(body: BodyElaborator, name: str, span: Span | None) -> tir.Buffer:
        first = body.buffer_map.get(param)
        if first is None:
            return body.map_param(param, of.make(body, name, span), node.span)
        of.data = first.data  # a parameter that is matched again: another view of its memory
        buffer = of.make(body, name, span)
        body.wrap(lambda rest: tir.DeclBuffer(buffer, rest, span=node.span))
        return buffer

    return Pending("buffer", declare)


def _match_region(
    ev: BodyElaborator,
    node: tree.Call,
    source: Any,
    shape: Any,
    dtype: Any,
    args: tuple[Any, ...],
    fields: dict[str, Any],
) -> Pending:
    region = as_region(source, node.span)
    if shape is None:
        shape = tuple(r.extent for r in region.region)
    if len(node.args) < 3 and not any(k.name == "dtype" for k in node.keywords):
        dtype = region.buffer.dtype
    of = spec(node, shape, dtype, args, fields)
    of.matches = True
    if "scope" not in fields and len(args) < 4:
        of.scope = region.buffer.scope

    def declare(body: BodyElaborator, name: str, span: Span | None) -> tir.Buffer:
        buffer = of.make(body, name, span)
        body.block.match_buffers.append(tir.MatchBufferRegion(buffer, region, span=node.span))
        return buffer

    return Pending("buffer", declare)


def as_region(value: Any, span: Span | None) -> tir.BufferRegion:
    """`A[i, 0:16]`, `A[i, j]` or `A` (all of it) as a region."""
    if isinstance(value, tir.BufferRegion):
        return value
    if isinstance(value, prim.BufferLoad):
        ranges = []
        for index in value.indices:
            if isinstance(index, prim.Ramp):
                ranges.append(tir.Range(index.base, prim.const(index.lanes, index.base.dtype)))
            else:
                ranges.append(tir.Range(index, prim.const(1, index.dtype)))
        return tir.BufferRegion(value.buffer, tuple(ranges), span=value.span)
    if isinstance(value, tir.Buffer):
        return tir.BufferRegion(value, tuple(tir.Range(prim.const(0, d.dtype), d) for d in value.shape), span=span)
    raise error("RLX0305", f"a buffer region is expected, not {describe(value)}", span)


@names("alloc_buffer")
def _alloc_buffer(
    ev: BodyElaborator, node: tree.Call, shape: Any, dtype: Any = "float32", *args: Any, **fields: Any
) -> Pending:
    # A statement since TVM 0.24, which says `T.sblock_alloc_buffer` for what it was before.
    is_newest = any(field in fields for field in _GPU_FIELDS) or str(fields.get("scope")).startswith("trn.")
    is_statement = ev.allocates_here or is_newest
    make = _decl_buffer if is_statement else _sblock_alloc_buffer
    made: Pending = make(ev, node, shape, dtype, *args, **fields)
    return made


@names("sblock_alloc_buffer")
def _sblock_alloc_buffer(
    ev: BodyElaborator, node: tree.Call, shape: Any, dtype: Any = "float32", *args: Any, **fields: Any
) -> Pending:
    of = spec(node, shape, dtype, args, fields)

    def declare(body: BodyElaborator, name: str, span: Span | None) -> tir.Buffer:
        buffer = of.make(body, name, span)
        body.block.alloc_buffers.append(buffer)
        return buffer

    return Pending("buffer", declare)


def _one_element(name: str, usual: str) -> None:
    """A variable that is declared: memory of one element. Assigning to its name stores there."""

    def make(ev: BodyElaborator, node: tree.Call, dtype: Any = "float32", scope: Any = usual, **fields: Any) -> Pending:
        pending = _decl_buffer(ev, node, (1,), dtype, scope=scope, **fields)

        def declare(body: BodyElaborator, name: str, span: Span | None) -> prim.BufferLoad:
            buffer = pending.declare(body, name, span)
            body.variables.add(buffer)
            return prim.BufferLoad(buffer, (prim.const(0, prim.INT32),), span=span)

        return Pending("buffer", declare)

    names(name)(make)


def _scoped(name: str, scope: str) -> None:
    def make(ev: BodyElaborator, node: tree.Call, shape: Any, dtype: Any = "float32", **fields: Any) -> Pending:
        made: Pending = _alloc_buffer(ev, node, shape, dtype, scope=scope, **fields)
        return made

    names(name)(make)


_one_element("local_scalar", "local")
_one_element("shared_scalar", "shared")
_scoped("alloc_shared", "shared")
_scoped("alloc_local", "local")


@names("decl_buffer")
def _decl_buffer(
    ev: BodyElaborator, node: tree.Call, shape: Any, dtype: Any = "float32", *args: Any, **fields: Any
) -> Pending:
    notes = annotation_attrs(fields.pop("annotations", None), "T.alloc_buffer", node)
    of = spec(node, shape, dtype, args, fields)

    def declare(body: BodyElaborator, name: str, span: Span | None) -> tir.Buffer:
        if isinstance(of.data, prim.Call):  # memory that is made on the spot gets a name
            pointer = prim.Var(f"{name}_ptr", prim.HANDLE, prim.PointerType(of.dtype, of.scope), span=span)
            memory, of.data = of.data, pointer
            body.wrap(lambda rest: tir.LetStmt(pointer, memory, rest, span=node.span))
        allocates = of.data is None
        if allocates:
            of.data = prim.Var(f"{name}_ptr", prim.HANDLE, prim.PointerType(of.dtype, of.scope), span=span)
        buffer = of.make(body, name, span)
        if allocates:
            body.wrap(lambda rest: tir.Allocate(buffer.data, of.dtype, of.shape, TRUE, rest, notes, span=node.span))
        body.wrap(lambda rest: tir.DeclBuffer(buffer, rest, span=node.span))
        return buffer

    return Pending("buffer", declare)


def _undeclared_buffer(
    ev: BodyElaborator, node: tree.Call, shape: Any, dtype: Any = "float32", *args: Any, **fields: Any
) -> Pending:
    return _undeclared(spec(node, shape, dtype, args, fields))


# TVM up to 0.11: a view of existing memory, without a statement of its own.
names.table["buffer_decl"] = Native("T.buffer_decl", _undeclared_buffer)


@names("allocate")
def _allocate(
    ev: BodyElaborator,
    node: tree.Call,
    extents: Any,
    dtype: Any,
    scope: Any = "global",
    condition: Any = None,
    annotations: Any = None,
) -> Pending:
    shape = tuple(_dimension(d, node.span) for d in ev.iterate(extents, node.span))
    of, attrs = as_dtype(dtype, node.span), annotation_attrs(annotations, "T.allocate", node)
    when = TRUE if condition is None else scalar(condition, node.span, prim.BOOL)

    def declare(body: BodyElaborator, name: str, span: Span | None) -> prim.Var:
        var = prim.Var(name, prim.HANDLE, prim.PointerType(of, scope), span=span)
        body.wrap(lambda rest: tir.Allocate(var, of, shape, when, rest, attrs, span=node.span))
        body.flat_shapes[var] = shape
        return var

    return Pending("allocation", declare)


@names("allocate_const", "alloc_const")
def _allocate_const(
    ev: BodyElaborator, node: tree.Call, data: Any, dtype: Any, extents: Any, annotations: Any = None
) -> Pending:
    import numpy as np

    shape = tuple(_dimension(d, node.span) for d in ev.iterate(extents, node.span))
    of, attrs = as_dtype(dtype, node.span), annotation_attrs(annotations, "T.allocate_const", node)
    if isinstance(data, StoredArray):
        data = data.read()
    values = data if isinstance(data, np.ndarray) else np.array(_plain_values(data, node.span), of.numpy)

    def declare(body: BodyElaborator, name: str, span: Span | None) -> prim.Var:
        var = prim.Var(name, prim.HANDLE, prim.PointerType(of), span=span)
        body.wrap(lambda rest: tir.AllocConst(var, of, shape, values, rest, attrs, span=node.span))
        body.flat_shapes[var] = shape
        return var

    return Pending("constant", declare)


def _plain_values(data: Any, span: Span | None) -> Any:
    if isinstance(data, (list, tuple)):
        return [_plain_values(d, span) for d in data]
    if isinstance(data, (prim.IntImm, prim.FloatImm)):
        return data.value
    if isinstance(data, (bool, int, float)):
        return data
    raise error("RLX0128", f"constant data must be numbers, not {describe(data)}", span)


@names("realize")
def _realize(ev: BodyElaborator, node: tree.Call, region: Any, scope: Any = "global", condition: Any = None) -> Pending:
    if isinstance(region, tir.Buffer):
        raise error("RLX0305", "`T.realize` takes a region of a buffer", node.span, help=f"write `{region.name}[0:n]`")
    of = as_region(region, node.span)
    when = TRUE if condition is None else scalar(condition, node.span, prim.BOOL)

    def declare(body: BodyElaborator, name: str, span: Span | None) -> None:
        def wrap(rest: tir.Stmt) -> tir.Stmt:
            inner = tir.BufferRealize(of.buffer, of.region, when, rest, span=node.span)
            if scope == of.buffer.scope:
                return inner
            return tir.AttrStmt(of.buffer, "realize_scope", prim.StringImm(scope), inner, span=node.span)

        body.wrap(wrap)

    return Pending("realization", declare)


@names("buffer_store", "BufferStore")
def _buffer_store(
    ev: BodyElaborator, node: tree.Call, buffer: Any, value: Any, indices: Any, predicate: Any = None
) -> tir.Stmt:
    if not isinstance(buffer, tir.Buffer):
        raise error("RLX0305", f"a buffer is expected, not {describe(buffer)}", node.span)
    at = indices_of(buffer, ev.iterate(indices, node.span), node.span)
    where = None if predicate is None else scalar(predicate, node.span)
    return tir.BufferStore(buffer, scalar(value, node.span, buffer.dtype), tuple(at), where, span=node.span)


def range_of(value: Any, span: Span | None) -> tir.Range:
    """A slice or a point of an index, as a range."""
    if isinstance(value, slice):
        if value.start is None or value.stop is None:
            raise error("RLX0303", "a slice of a buffer needs both ends", span)
        return as_range((value.start, value.stop), span)
    at = scalar(value, span)
    return tir.Range(at, prim.const(1, at.dtype))
