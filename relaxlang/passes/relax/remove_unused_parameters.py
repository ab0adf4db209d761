"""RemoveUnusedParameters: private functions take only what they use."""

from __future__ import annotations

from relaxlang.analysis.call_sites import CallSites
from relaxlang.analysis.uses import variable_uses
from relaxlang.base.record import record
from relaxlang.ir import prim, relax
from relaxlang.ir.module import AnyFunc, IRModule
from relaxlang.ir.struct_info import OBJECT, ShapeStructInfo, shape_info
from relaxlang.ir.visit import Rewriter, free_vars, on, substitute, walk
from relaxlang.passes.base import Pass, PassContext
from relaxlang.syntax.struct_info import BaseCheck, base_check, bound_vars, unify


@record
class RemoveUnusedParameters(Pass):
    """Remove the parameters of private functions that are not used, and the arguments of their calls.

    Symbolic dimensions that only such parameters define are handed over as one shape. A parameter stays where a call's
    argument is not known to fit it: its check is a use.

    Before:

        @I.ir_module
        class Module:
            @R.function
            def main(x: R.Tensor((n,), "float32"), y: R.Tensor((3,), "float32")) -> R.Tensor((n, 3), "float32"):
                cls = Module
                r = cls.rows(x, x, y)
                return r

            @R.function(private=True)
            def rows(
                a: R.Tensor((n,), "float32"), b: R.Tensor((n,), "float32"), y: R.Tensor((3,), "float32")
            ) -> R.Tensor((n, 3), "float32"):
                z = R.broadcast_to(y, (n, 3))
                return z

    After:

        @I.ir_module
        class Module:
            @R.function
            def main(x: R.Tensor((n,), "float32"), y: R.Tensor((3,), "float32")) -> R.Tensor((n, 3), "float32"):
                cls = Module
                r = cls.rows(y, R.shape([n]))
                return r

            @R.function(private=True)
            def rows(y: R.Tensor((3,), "float32"), symbols: R.Shape([n])) -> R.Tensor((n, 3), "float32"):
                z = R.broadcast_to(y, (n, 3))
                return z
    """

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        sites = CallSites(mod)
        plans = {}
        for name, func in sites.private(mod).items():
            plan = _plan(func, sites.calls[name])
            if plan is not None:
                plans[name] = plan
        if not plans:
            return mod
        functions: dict[str, AnyFunc] = dict(mod.functions)
        for name, plan in plans.items():
            functions[name] = plan.function
        shorten = _Shorten(plans)
        for name, old in functions.items():
            if isinstance(old, relax.Function):
                functions[name] = shorten(old)
        return mod.with_functions(functions)


@record
class _Plan:
    """The function with fewer parameters; `kept` are the places of those that stay, `symbols` what is handed over."""

    old: relax.Function
    function: relax.Function
    kept: tuple[int, ...]
    symbols: tuple[prim.Var, ...]


def _plan(func: relax.Function, calls: list[relax.Call]) -> _Plan | None:
    """What can go, or None."""
    uses = variable_uses(func)
    kept = [k for k, p in enumerate(func.params) if uses[p] or not all(_fits(func, call, k) for call in calls)]
    needed = symbols_used(func)
    for k, param in enumerate(func.params):
        # A shape that defines what is needed is as good as the shape that would take its place.
        if k not in kept and isinstance(param.struct_info, ShapeStructInfo):
            defined = set(bound_vars(tuple(func.params[i].struct_info for i in kept)))
            if any(v in needed and v not in defined for v in bound_vars((param.struct_info,))):
                kept = sorted([*kept, k])
    if len(kept) == len(func.params):
        return None
    infos = tuple(func.params[k].struct_info for k in kept)
    defined = set(bound_vars(infos))
    own = bound_vars(tuple(p.struct_info for p in func.params))
    missing = tuple(v for v in own if v not in defined and (v in needed or v in free_vars(infos)))
    if missing and len(kept) == len(func.params) - 1 and not _gains(func, kept):
        return None
    params = [func.params[k] for k in kept]
    if missing:
        params.append(relax.Var("symbols", shape_info(missing)))
    return _Plan(func, func.replace(params=tuple(params)), tuple(kept), missing)


def _gains(func: relax.Function, kept: list[int]) -> bool:
    """Whether the one parameter that goes is more than a shape."""
    return any(not isinstance(p.struct_info, ShapeStructInfo) for k, p in enumerate(func.params) if k not in kept)


def _fits(func: relax.Function, call: relax.Call, k: int) -> bool:
    """Whether argument `k` of a call is known to be what the parameter states."""
    if len(call.args) != len(func.params):
        return False
    mapping = _mapping(func, call)
    wanted = substitute(func.params[k].struct_info, mapping)
    return base_check(wanted, call.args[k].struct_info or OBJECT) is BaseCheck.HOLDS


def _mapping(func: relax.Function, call: relax.Call) -> dict[prim.Var, prim.PrimExpr]:
    """What the symbolic dimensions of a function are in one call."""
    mapping: dict[prim.Var, prim.PrimExpr] = {}
    for param, arg in zip(func.params, call.args):
        unify(param.struct_info, arg.struct_info or OBJECT, mapping)
    return mapping


def symbols_used(func: relax.Function) -> set[prim.Var]:
    """The symbolic variables that the body and the result of a function mention."""
    found = {n for n in walk(func.body) if isinstance(n, prim.Var)}
    if func.ret_struct_info is not None:
        found.update(free_vars(func.ret_struct_info))
    for node in walk(func.body):
        if isinstance(node, relax.Binding):
            found.update(free_vars(node.var.struct_info))
    return found


class _Shorten(Rewriter):
    """Drops arguments, adds shapes."""

    def __init__(self, plans: dict[str, _Plan]) -> None:
        self.plans = plans

    @on(relax.Call)
    def call(self, node: relax.Call) -> relax.Call:
        """A call of a function whose parameters changed."""
        plan = self.plans.get(node.op.name) if isinstance(node.op, relax.GlobalVar) else None
        if plan is None:
            return self.below(node)
        args = [node.args[k] for k in plan.kept]
        if plan.symbols:
            mapping = _mapping(plan.old, node)
            args.append(relax.ShapeExpr(tuple(mapping[v] for v in plan.symbols)))
        assert isinstance(node.op, relax.GlobalVar)
        callee = node.op.replace(struct_info=plan.function.struct_info)
        return node.replace(op=callee, args=tuple(args))
