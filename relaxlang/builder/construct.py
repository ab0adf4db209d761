"""Making the leaves of a program in Python: variables, constants, shapes, and struct info from its text."""

from __future__ import annotations

from typing import Any

from relaxlang.base.arguments import checked
from relaxlang.base.diagnostics import Diagnostics, RelaxlangError, fail
from relaxlang.base.dtype import DType, dtype, from_numpy
from relaxlang.base.recursion import deep_recursion
from relaxlang.base.source import Source
from relaxlang.ir import prim, relax
from relaxlang.ir.prim import INT64, PrimExpr
from relaxlang.ir.struct_info import OBJECT, StructInfo
from relaxlang.ops import default_operators
from relaxlang.syntax.comptime import Scope
from relaxlang.syntax.elaborate.annotations import struct_info as as_struct_info
from relaxlang.syntax.elaborate.dims import define_dimensions
from relaxlang.syntax.elaborate.namespaces import root_scope
from relaxlang.syntax.elaborate.relax_body import RelaxElaborator
from relaxlang.syntax.elaborate.unit import Unit
from relaxlang.syntax.parser import parse_expression

Dims = dict[str, prim.Var]
"""Symbolic dimensions by name."""


@checked
def struct_info(text: str, dims: Dims | None = None) -> StructInfo:
    """The struct info that an annotation states: `R.Tensor((n, 4), "float32")`.

    A name that stands alone as a dimension is the variable of that name in `dims`, or a new one that is added there.
    """
    known = {} if dims is None else dims
    diagnostics = Diagnostics()
    with deep_recursion():
        node = parse_expression(Source("<struct info>", text), diagnostics)
        diagnostics.check()
        assert node is not None
        ev = RelaxElaborator(Unit(diagnostics, default_operators(), {}, True))
        ev.scope = Scope(dict(known), root_scope())
        known.update(define_dimensions([node], {}, ev.scope))
        return as_struct_info(ev.expr(node, ev.scope), node.span)


@checked
def var(name: str, info: StructInfo | str = OBJECT, dims: Dims | None = None) -> relax.Var:
    """A variable; `info` is struct info or its text, see `struct_info`."""
    return relax.Var(name, struct_info(info, dims) if isinstance(info, str) else info)


@checked
def dim(name: str) -> prim.Var:
    """A symbolic dimension."""
    return prim.Var(name, INT64)


@checked
def const(value: Any, of: DType | str | None = None) -> relax.Constant:
    """A tensor constant from a number, a list or a numpy array; without `of`, numbers are float32, int32 or bool."""
    import numpy as np

    if of is None and isinstance(value, (bool, int, float)):
        of = "bool" if isinstance(value, bool) else "int32" if isinstance(value, int) else "float32"
    try:
        made = np.array(value, dtype=None if of is None else dtype(of).numpy)
        if not made.dtype.hasobject:
            from_numpy(made.dtype)
            return relax.Constant(made)
    except OverflowError:
        fail("RLX0129", f"`{value}` is out of range for `{of}`")
    except RelaxlangError:
        raise
    except (TypeError, ValueError):
        pass  # said below, in the words of this language
    fail("RLX0451", f"a constant is a number or an array of numbers, not `{type(value).__name__}`")


@checked
def shape(*dims: int | PrimExpr) -> relax.ShapeExpr:
    """A shape value."""
    return relax.ShapeExpr(tuple(prim.cast(prim.as_prim(d, INT64), INT64) for d in dims))


def as_expr(value: Any) -> relax.Expr:
    """A Python value as an expression: numbers and scalar expressions are scalars, arrays constants, tuples tuples."""
    if isinstance(value, relax.Expr):
        return value
    if isinstance(value, (tuple, list)):
        return relax.Tuple(tuple(as_expr(v) for v in value))
    if isinstance(value, (bool, int, float)):
        of = prim.BOOL if isinstance(value, bool) else INT64 if isinstance(value, int) else prim.FLOAT32
        return relax.PrimValue(prim.const(value, of))
    if isinstance(value, PrimExpr):
        return relax.PrimValue(value)
    if isinstance(value, str):
        return relax.StringImm(value)
    if isinstance(value, DType):
        return relax.DataTypeImm(value)
    if hasattr(value, "__array__"):
        return const(value)
    fail("RLX0451", f"{type(value).__name__} is no value of Relax")
