"""The functions that make patterns: `is_op("add")(wildcard(), is_const())`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from relaxlang.base.arguments import checked
from relaxlang.base.dtype import DType
from relaxlang.builder.dpl.patterns import (
    AttrPattern,
    CallPattern,
    ConstantPattern,
    DataflowVarPattern,
    DataTypePattern,
    ExprPattern,
    ExternFuncPattern,
    GlobalVarPattern,
    NotPattern,
    Pattern,
    PrimArrPattern,
    TupleGetItemPattern,
    TuplePattern,
    UnorderedTuplePattern,
    VarPattern,
    WildcardPattern,
)
from relaxlang.ir import relax
from relaxlang.ir.prim import PrimExpr


@checked
def wildcard() -> WildcardPattern:
    """Anything."""
    return WildcardPattern()


@checked
def is_op(name: str) -> ExprPattern:
    """An operator (`add`, `nn.relu`; `relax.add` is the same), to be called: `is_op("add")(x, y)`."""
    return ExprPattern(relax.Op(name.removeprefix("relax.")))


@checked
def is_expr(expr: relax.Expr) -> ExprPattern:
    """An expression that is structurally equal to `expr`."""
    return ExprPattern(expr)


@checked
def is_var(name: str = "") -> VarPattern:
    """A variable."""
    return VarPattern(name)


@checked
def is_dfv(name: str = "") -> DataflowVarPattern:
    """A variable of a dataflow block."""
    return DataflowVarPattern(name)


@checked
def is_gv(name: str = "") -> GlobalVarPattern:
    """A function of the module."""
    return GlobalVarPattern(name)


@checked
def is_const() -> ConstantPattern:
    """A tensor constant."""
    return ConstantPattern()


@checked
def is_tuple(fields: Sequence[Pattern], unordered: bool = False) -> TuplePattern:
    """A tuple that is written out."""
    return UnorderedTuplePattern(fields) if unordered else TuplePattern(fields)


@checked
def is_tuple_get_item(tuple_value: Pattern, index: int | None = None) -> TupleGetItemPattern:
    """A field of a tuple."""
    return TupleGetItemPattern(tuple_value, index)


@checked
def is_shape(shape: Sequence[int | PrimExpr]) -> PrimArrPattern:
    """A shape value."""
    return PrimArrPattern(shape)


@checked
def has_dtype(of: DType | str, pattern: Pattern | None = None) -> DataTypePattern:
    """A tensor of an element type."""
    return (pattern or wildcard()).has_dtype(of)


@checked
def has_attr(attrs: Mapping[str, Any], pattern: Pattern | None = None) -> AttrPattern:
    """A call or function with attributes."""
    return (pattern or wildcard()).has_attr(attrs)


@checked
def reject(pattern: Pattern) -> NotPattern:
    """Anything that does not fit `pattern`."""
    return NotPattern(pattern)


def _args(args: Pattern | Sequence[Pattern] | None) -> Pattern:
    return wildcard() if args is None else args if isinstance(args, Pattern) else TuplePattern(args)


@checked
def is_call_tir(
    name: str, args: Pattern | Sequence[Pattern] | None = None, tir_vars: Pattern | None = None
) -> CallPattern:
    """A `call_tir` of a kernel ("": of any); `args` are its tensors, or a pattern for their tuple."""
    values = [GlobalVarPattern(name), _args(args)]
    return is_op("call_tir")(*values, *([] if tir_vars is None else [tir_vars]))


@checked
def is_call_dps_packed(name: str, args: Pattern | Sequence[Pattern] | None = None) -> CallPattern:
    """A `call_dps_packed` of a packed function ("": of any)."""
    return is_op("call_dps_packed")(ExternFuncPattern(name), _args(args))


@checked
def is_call_packed(name: str, args: Sequence[Pattern] | None = None) -> CallPattern:
    """A `call_packed` of a packed function ("": of any)."""
    return CallPattern(ExternFuncPattern(name), args)


@checked
def make_fused_bias_activation_pattern(
    op_name: str, with_bias: bool = False, activation: str | None = None
) -> CallPattern:
    """`activation(op(x, w) + bias)`, the parts that are asked for."""
    out = is_op(op_name)(wildcard(), wildcard())
    if with_bias:
        out = is_op("add")(out, wildcard())
    return is_op(activation)(out) if activation else out
