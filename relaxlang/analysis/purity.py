"""Which expressions of Relax have side effects."""

from __future__ import annotations

from relaxlang.ir import relax
from relaxlang.ir.module import IRModule, function_info
from relaxlang.ir.struct_info import FuncStructInfo
from relaxlang.ir.tir import PrimFunc
from relaxlang.syntax.core_ops import CORE_OPS
from relaxlang.syntax.operators import OperatorTable


def is_pure_call(call: relax.Call, mod: IRModule, operators: OperatorTable) -> bool:
    """Whether a call has no side effect: it may be dropped, duplicated, or moved."""
    op = call.op
    if isinstance(op, relax.Op):
        core = CORE_OPS.get(op.name)
        return core.pure if core is not None else operators.is_pure(op.name)
    if isinstance(op, relax.GlobalVar) and op.name in mod:
        target = function_info(mod[op.name])
        return isinstance(target, FuncStructInfo) and target.purity
    info = op.struct_info
    return isinstance(info, FuncStructInfo) and info.purity


def is_pure(value: relax.Expr, mod: IRModule, operators: OperatorTable) -> bool:
    """Whether evaluating an expression has no side effect. A function as a value is pure, whatever its calls do."""
    if isinstance(value, relax.Call):
        return is_pure_call(value, mod, operators)
    if isinstance(value, relax.If):
        return is_pure(value.true_branch, mod, operators) and is_pure(value.false_branch, mod, operators)
    if isinstance(value, relax.SeqExpr):
        # A match_cast checks something, and a failed check is an effect.
        bindings = [b for block in value.blocks for b in block.bindings]
        return all(isinstance(b, relax.VarBinding) and is_pure(b.value, mod, operators) for b in bindings)
    return True


def is_prim_func(value: relax.Expr, mod: IRModule) -> bool:
    """Whether a callee is a function of TensorIR."""
    return isinstance(value, relax.GlobalVar) and value.name in mod and isinstance(mod[value.name], PrimFunc)
