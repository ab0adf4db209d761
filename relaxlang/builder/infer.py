"""The struct info of any expression of Relax: operators, structural operators, functions, packed calls."""

from __future__ import annotations

from relaxlang.base.diagnostics import fail
from relaxlang.ir import prim, relax
from relaxlang.ir.module import AnyFunc, function_info
from relaxlang.ir.prim import PrimExpr
from relaxlang.ir.struct_info import OBJECT, FuncStructInfo, StructInfo, TupleStructInfo
from relaxlang.ops import Operators
from relaxlang.syntax.core_ops import CORE_OPS
from relaxlang.syntax.struct_info import call_result, least_upper_bound, unify


class Inference:
    """Infers struct info; `functions` are the module's, by name."""

    def __init__(self, functions: dict[str, AnyFunc], operators: Operators) -> None:
        self.functions = functions
        self.operators = operators

    def __call__(self, value: relax.Expr) -> StructInfo:
        """The struct info of an expression whose operands have theirs. Raises DiagnosticError for a misfit."""
        if isinstance(value, relax.Call):
            return self.call(value)
        if isinstance(value, relax.If):
            return least_upper_bound(value.true_branch.struct_info or OBJECT, value.false_branch.struct_info or OBJECT)
        if isinstance(value, relax.GlobalVar) and value.struct_info is None:
            return function_info(self.functions[value.name]) if value.name in self.functions else OBJECT
        return value.struct_info or OBJECT

    def call(self, call: relax.Call) -> StructInfo:
        """The struct info of a call's result."""
        op = call.op
        if isinstance(op, relax.Op):
            core = CORE_OPS.get(op.name)
            return self.operators.infer(call) if core is None else core.infer(call)
        if isinstance(op, relax.ExternFunc):
            if call.sinfo_args:
                return call.sinfo_args[0] if len(call.sinfo_args) == 1 else TupleStructInfo(call.sinfo_args)
            return op.struct_info.ret if isinstance(op.struct_info, FuncStructInfo) else OBJECT
        info = self(op)
        if not isinstance(info, FuncStructInfo):
            return call.sinfo_args[0] if call.sinfo_args else OBJECT
        if info.params is None:
            return call.sinfo_args[0] if call.sinfo_args else info.ret
        if len(info.params) != len(call.args):
            name = getattr(op, "name", "the function")
            fail("RLX0207", f"`{name}` takes {len(info.params)} arguments, {len(call.args)} were given", call.span)
        mapping: dict[prim.Var, PrimExpr] = {}
        for param, arg in zip(info.params, call.args):
            unify(param, arg.struct_info or OBJECT, mapping)
        return call_result(info, mapping)
