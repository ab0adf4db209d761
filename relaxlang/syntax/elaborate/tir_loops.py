"""`T.serial`, `T.grid`, `T.thread_binding`, …: loops."""

from __future__ import annotations

from typing import Any

from relaxlang.base.source import Span
from relaxlang.ir import prim, tir
from relaxlang.ir.prim import PrimExpr
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import Evaluator, as_dtype, error
from relaxlang.syntax.elaborate.native import Names, annotation_attrs
from relaxlang.syntax.elaborate.scalars import as_range, extent_between, operand, scalar
from relaxlang.syntax.elaborate.tir_values import Loop

names = Names("T")


def loop_over(
    kind: tir.ForKind,
    args: tuple[Any, ...],
    node: tree.Call,
    annotations: Any = None,
    thread: str | None = None,
    step: Any = None,
) -> Loop:
    """The loop of `range(stop)`, `range(start, stop)` or `range(start, stop, step)`."""
    if not 1 <= len(args) <= 3:
        raise error("RLX0113", f"a loop takes 1 to 3 bounds, {len(args)} were given", node.span)
    if len(args) == 3:
        step = args[2]
    bounds = [operand(a, node.span, *args[:2]) for a in args[:2]]
    for bound in bounds:
        of = bound.dtype if isinstance(bound, PrimExpr) else prim.FLOAT32 if isinstance(bound, float) else prim.INT32
        if not of.is_integer:
            raise error("RLX0309", f"a loop bound must be an integer, not `{of}`", node.span)
    if len(bounds) == 1:
        extent = scalar(bounds[0], node.span)
        domain = tir.Range(prim.const(0, extent.dtype), extent)
    else:
        start, stop = prim.match(bounds[0], bounds[1])
        domain = tir.Range(start, extent_between(start, stop))
    stride = None if step is None else scalar(step, node.span, domain.extent.dtype)
    if isinstance(stride, prim.IntImm) and stride.value == 1:
        stride = None
    if stride is not None:  # the extent of a loop counts its iterations
        domain = tir.Range(domain.min, _turns(domain.extent, stride))
    return Loop(kind, [domain], annotation_attrs(annotations, f"T.{kind}", node), thread, stride)


def _turns(length: PrimExpr, stride: PrimExpr) -> PrimExpr:
    """How many steps of `stride` it takes to cover `length`; exact multiples, as they are printed, are undone."""
    if isinstance(length, prim.Mul) and length.b == stride:
        return length.a
    if isinstance(stride, prim.IntImm) and stride.value > 0:
        return (length + (stride.value - 1)) // stride
    zero = prim.const(0, stride.dtype)
    return zero - (zero - length) // stride


def loop_with(kind: tir.ForKind, args: tuple[Any, ...], node: tree.Call, words: dict[str, Any]) -> Loop:
    """A loop with keyword arguments; those that are none of its own are annotations. `unroll` is an annotation too, and
    `dtype` the type of the variable."""
    step, unroll, of = (words.pop(word, None) for word in ("step", "unroll", "dtype"))
    annotations = {**(words.pop("annotations", None) or {}), **words}
    if unroll is not None:
        annotations.update({"disable_unroll": True} if unroll is False else {"pragma_unroll": unroll})
    if of is not None:
        args = tuple(prim.cast(scalar(a, node.span), as_dtype(of, node.span)) for a in args)
    return loop_over(kind, args, node, annotations, step=step)


def _loop(kind: tir.ForKind, *spellings: str) -> None:
    def make(ev: Evaluator, node: tree.Call, start: Any, stop: Any = None, **words: Any) -> Loop:
        return loop_with(kind, (start,) if stop is None else (start, stop), node, words)

    names(*spellings)(make)


_loop("serial", "serial")
_loop("parallel", "parallel")
_loop("vectorized", "vectorized", "vectorize")
_loop("unroll", "unroll", "unrolled")


@names("thread_binding")
def _thread_binding(
    ev: Evaluator, node: tree.Call, start: Any, stop: Any = None, thread: Any = None, *, annotations: Any = None
) -> Loop:
    if thread is None and isinstance(stop, str):
        stop, thread = None, stop
    if not isinstance(thread, str):
        raise error("RLX0113", "`T.thread_binding` needs a thread tag", node.span, help='write `thread="threadIdx.x"`')
    return loop_over("thread_binding", (start,) if stop is None else (start, stop), node, annotations, thread)


@names("grid")
def _grid(ev: Evaluator, node: tree.Call, *extents: Any) -> Loop:
    return Loop("serial", [_grid_domain(e, node.span) for e in extents])


def _grid_domain(extent: Any, span: Span | None) -> tir.Range:
    """An extent, or a pair of a start and an extent."""
    if not isinstance(extent, tuple) or len(extent) != 2:
        return as_range(extent, span)
    return tir.Range(*prim.match(scalar(extent[0], span), scalar(extent[1], span)))
