"""The dataflow-pattern language: find parts of Relax functions by their structure, and rewrite them.

    from relaxlang import dpl, op

    x, w = dpl.wildcard(), dpl.is_const()
    product = dpl.is_op("matmul")(x, w)
    made = dpl.rewrite_call(product, lambda call, found: op.matmul(found[w], found[x]), func)

In: patterns, functions. Out: what was matched, functions rewritten. Read `patterns` (what they are, and how each one
matches), `making` (the functions that make them), `state` (what a match has found so far), `context` (patterns over
the bindings of a block), `rewrite` (by Python functions), `rules` (rules written as text).
"""

from __future__ import annotations

from relaxlang.builder.dpl.context import PatternContext
from relaxlang.builder.dpl.making import (
    has_attr,
    has_dtype,
    is_call_dps_packed,
    is_call_packed,
    is_call_tir,
    is_const,
    is_dfv,
    is_expr,
    is_gv,
    is_op,
    is_shape,
    is_tuple,
    is_tuple_get_item,
    is_var,
    make_fused_bias_activation_pattern,
    reject,
    wildcard,
)
from relaxlang.builder.dpl.patterns import (
    AndPattern,
    AttrPattern,
    CallPattern,
    ConstantPattern,
    DataflowVarPattern,
    DataTypePattern,
    ExprPattern,
    ExternFuncPattern,
    FunctionPattern,
    GlobalVarPattern,
    NotPattern,
    OrPattern,
    Pattern,
    PatternSeq,
    PrimArrPattern,
    SameShapeConstraint,
    ShapePattern,
    StructInfoPattern,
    TupleGetItemPattern,
    TuplePattern,
    UnorderedTuplePattern,
    VarPattern,
    WildcardPattern,
)
from relaxlang.builder.dpl.rewrite import rewrite_bindings, rewrite_call
from relaxlang.builder.dpl.rules import RewriteRule, apply_rules, read_rules, rules_of

TypePattern = StructInfoPattern

__all__ = [
    "AndPattern", "AttrPattern", "CallPattern", "ConstantPattern", "DataTypePattern", "DataflowVarPattern",
    "ExprPattern", "ExternFuncPattern", "FunctionPattern", "GlobalVarPattern", "NotPattern", "OrPattern", "Pattern",
    "PatternContext", "PatternSeq", "PrimArrPattern", "RewriteRule", "SameShapeConstraint", "ShapePattern",
    "StructInfoPattern", "TupleGetItemPattern", "TuplePattern", "TypePattern", "UnorderedTuplePattern",
    "VarPattern", "WildcardPattern", "apply_rules", "has_attr", "has_dtype", "is_call_dps_packed", "is_call_packed",
    "is_call_tir", "is_const", "is_dfv", "is_expr", "is_gv", "is_op", "is_shape", "is_tuple", "is_tuple_get_item",
    "is_var", "make_fused_bias_activation_pattern", "read_rules", "reject", "rewrite_bindings", "rewrite_call",
    "rules_of", "wildcard",
]  # fmt: skip
