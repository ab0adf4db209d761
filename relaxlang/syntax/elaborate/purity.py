"""Purity in scripts that are older than purity.

TVM has marked functions with side effects, `@R.function(pure=False)`, since the middle of 2023. Scripts before that
are recognised by what they name bare: the module's functions (`R.call_tir(add, …)`, where later ones say `cls.add`) and
struct info (`Tensor`); or by `@tvm.script.ir_module`. Their functions are as pure as what they call.
"""

from __future__ import annotations

from relaxlang.ir import relax
from relaxlang.ir.attrs import EMPTY
from relaxlang.ir.module import AnyFunc
from relaxlang.ir.struct_info import FuncStructInfo
from relaxlang.ir.visit import walk
from relaxlang.syntax.core_ops import CORE_OPS
from relaxlang.syntax.operators import OperatorTable


def with_effects(functions: dict[str, AnyFunc], names: list[str], operators: OperatorTable) -> frozenset[str]:
    """Those of the Relax functions `names` that have side effects, by what they call. (One that is forced to be pure is
    not older than purity.)"""
    names = [name for name in names if not getattr(functions[name], "attrs", EMPTY).get("relax.force_pure", False)]
    calls = {name: [n for n in walk(functions[name]) if isinstance(n, relax.Call)] for name in names}
    impure: set[str] = set()
    before = -1
    while len(impure) != before:
        before = len(impure)
        impure |= {name for name in names if any(_has_effect(c, functions, impure, operators) for c in calls[name])}
    return frozenset(impure)


def _has_effect(call: relax.Call, functions: dict[str, AnyFunc], impure: set[str], operators: OperatorTable) -> bool:
    op = call.op
    if isinstance(op, relax.Op):
        core = CORE_OPS.get(op.name)
        if core is not None:
            return not (core.pure or core.quiet)
        return operators.has(op.name) and not operators.is_pure(op.name)  # of an unknown one nothing is known
    if isinstance(op, relax.GlobalVar):
        callee = functions.get(op.name)
        return not (isinstance(callee, relax.Function) and callee.is_pure) or op.name in impure
    info = op.struct_info
    return not (isinstance(info, FuncStructInfo) and info.purity)
