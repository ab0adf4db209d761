"""Calls that are carried as they are written: those of the languages for GPU kernels, which no back end here runs.

Arguments that are no scalars become calls of their own, whose names begin with `carried.`: a list, a region of a
buffer, a keyword. So passes see every expression and buffer in them, and the printer writes them as they were. The same
holds for buffers that are made of others (`A.view(8, 4)`): what makes them is the layout of the new buffer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from relaxlang.base.dtype import DType
from relaxlang.base.source import Span
from relaxlang.ir import prim, tir
from relaxlang.ir.intrinsics import carried_type, is_opaque
from relaxlang.ir.prim import PrimExpr
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import Closure, Evaluator, Value, as_dtype, error
from relaxlang.syntax.elaborate.scalars import call_args
from relaxlang.syntax.elaborate.tir_values import Pending
from relaxlang.syntax.scalars import string_text

if TYPE_CHECKING:
    from relaxlang.syntax.elaborate.tir_body import BodyElaborator

VIEWS = frozenset("view sub permute local tile rearrange elem_offset_of".split())
"""Attributes of buffers since TVM 0.26 that make another buffer of the same memory, by its layout."""

WHOLE = ("Tx.", "tile.", "thread.", "warp.", "wg.", "warpgroup.", "cta.", "cluster.")
"""What begins the names of calls that work on tiles: a buffer among their arguments is one, not its pointer."""


class Opaque(Value):
    """An intrinsic that is carried as it is written: one of `ir.intrinsics.CARRIED`, or, in a module that is read
    without checking, any name that relaxlang does not know."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.kind = f"unknown `{name}`"

    def is_suggested(self, name: str) -> bool:
        return False

    def attribute(self, ev: Evaluator, name: str, span: Span | None) -> Any:
        return Opaque(f"{self.name}.{name}")

    def item(self, ev: Evaluator, index: Any, span: Span | None) -> Any:
        if not isinstance(index, str):
            parts = index if isinstance(index, tuple) else (index,)
            return _made("subscript", (prim.StringImm(self.name), *(carried(p, span) for p in parts)), span)
        return Opaque(f"{self.name}[{string_text(index)}]")  # `T.ptx["ld.global.v4.s32"](…)`

    def call(self, ev: Evaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
        name, given = self.name.removeprefix("T."), kwargs.pop("dtype", None)
        of = carried_type(name, args) if given is None else prim.VOID if given == "" else as_dtype(given, node.span)
        whole = name.startswith(WHOLE)  # there a buffer stands for itself, elsewhere for its pointer
        values = [carried(a, node.span, whole) for a in args]
        for key, value in kwargs.items():
            values.append(_made("keyword", (prim.StringImm(key), carried(value, node.span, whole)), node.span))
        return prim.Call(of, name, tuple(values), span=node.span)


class View(Pending):
    """What one of `VIEWS` makes of a buffer, as it is written: `A.view(8, 4).sub[:, 1]`. A name for it is a buffer,
    whose shape is not known here."""

    def __init__(self, expr: PrimExpr, base: tir.Buffer, of: DType) -> None:
        super().__init__("buffer", self._named)
        self.expr = expr
        self.base = base
        self.of = of

    def attribute(self, ev: Evaluator, name: str, span: Span | None) -> Any:
        if name not in VIEWS:
            raise error("RLX0102", f"a view of `{self.base.name}` has no attribute `{name}`", span)
        return View(_made("attribute", (self.expr, prim.StringImm(name)), span), self.base, self.of)

    def item(self, ev: Evaluator, index: Any, span: Span | None) -> Any:
        parts = index if isinstance(index, tuple) else (index,)
        return View(_made("index", (self.expr, *(carried(p, span) for p in parts)), span), self.base, self.of)

    def call(self, ev: Evaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
        values = [carried(a, node.span) for a in args]
        values += [_made("keyword", (prim.StringImm(k), carried(v, node.span)), node.span) for k, v in kwargs.items()]
        made = _made("call", (self.expr, *values), node.span)
        if isinstance(self.expr, prim.Call) and self.expr.args[1:] == (prim.StringImm("elem_offset_of"),):
            return made.replace(of=prim.INT32)
        of = carried_type("", args)
        return View(made, self.base, self.of if of is prim.HANDLE else of)

    def _named(self, body: BodyElaborator, name: str, span: Span | None) -> tir.Buffer:
        base = self.base
        buffer = tir.Buffer(name, (), self.of, base.data, scope=base.scope, layout=self.expr, span=span)
        body.wrap(lambda rest: tir.DeclBuffer(buffer, rest, span=span))
        return buffer


def view_of(buffer: tir.Buffer, span: Span | None) -> View:
    """A buffer as the start of a view."""
    return View(carried(buffer, span, True), buffer, buffer.dtype)


def carried(value: Any, span: Span | None, whole: bool = False) -> PrimExpr:
    """An argument as an expression; `whole`: a buffer is carried as such."""
    if value is None:
        return _made("none", (), span)
    if isinstance(value, View):
        return value.expr
    if isinstance(value, Opaque):
        return _made("name", (prim.StringImm(value.name),), span)
    if isinstance(value, Closure):
        return _made("name", (prim.StringImm(_lambda_text(value.node, span)),), span)
    if isinstance(value, (list, tuple)):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return _made(kind, tuple(carried(v, span, whole) for v in value), span)
    if isinstance(value, slice):
        parts = (value.start, value.stop, *(() if value.step is None else (value.step,)))
        return _made("slice", tuple(carried(p, span) for p in (*parts, None)[:3]), span)
    if isinstance(value, dict):
        pairs = [_made("keyword", (prim.StringImm(str(k)), carried(v, span, whole)), span) for k, v in value.items()]
        return _made("dict", tuple(pairs), span)
    if isinstance(value, tir.BufferRegion):
        first = prim.BufferLoad(value.buffer, tuple(r.min for r in value.region))
        return _made("region", (first, *(r.extent for r in value.region)), span)
    if isinstance(value, tir.Buffer) and whole:
        first = prim.BufferLoad(value, tuple(prim.const(0, d.dtype) for d in value.shape))
        return _made("buffer", (first,), span)
    return call_args([value], span)[0]


def _lambda_text(node: tree.Lambda, span: Span | None) -> str:
    """A lambda as it is written, which may not use names from around it: they can be others when it is printed."""
    own = {parameter.name for parameter in node.params}
    for part in tree.parts_of(node.body):
        if isinstance(part, tree.Name) and part.id not in own and part.id not in ("T", "Tx"):
            raise error("RLX0321", f"a lambda that is carried as it is written cannot use `{part.id}`", part.span)
    return " ".join(node.span.text.split()) if node.span is not None else ""


def carried_fields(fields: Mapping[str, Any], span: Span | None) -> PrimExpr | None:
    """What is said of a buffer beyond the fields that relaxlang knows: a layout alone, or several fields by name."""
    if not fields.keys() - {"layout"}:
        return carried(fields["layout"], span) if fields else None
    words = [_made("keyword", (prim.StringImm(k), carried(v, span)), span) for k, v in fields.items()]
    return _made("fields", tuple(words), span)


def _made(kind: str, args: tuple[PrimExpr, ...], span: Span | None) -> PrimExpr:
    made: PrimExpr = prim.Call(prim.HANDLE, f"carried.{kind}", args, span=span)
    return made


def is_carried(value: PrimExpr) -> bool:
    """Whether a value is a carried call that does not state its type, which may be any then."""
    return isinstance(value, prim.Call) and value.of is prim.HANDLE and is_opaque(value.op)


def part_of(value: PrimExpr, index: int, span: Span | None) -> PrimExpr:
    """`T.cta_id([4, 2])[index]`: one of the coordinates that such a call gives."""
    made: PrimExpr = prim.Call(prim.INT32, "carried.item", (value, prim.const(index, prim.INT32)), span=span)
    return made
