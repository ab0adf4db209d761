"""InlinePrivateFunctions: calls of private functions become their bodies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from relaxlang.analysis.call_sites import CallSites
from relaxlang.analysis.purity import is_pure
from relaxlang.base.record import record
from relaxlang.ir import prim, relax
from relaxlang.ir.module import AnyFunc, IRModule
from relaxlang.ir.struct_info import OBJECT
from relaxlang.ir.visit import Visitor, free_vars, on, walk
from relaxlang.ops import Operators, default_operators
from relaxlang.passes.base import Pass, PassContext
from relaxlang.passes.bindings import BindingRewriter, Specialize
from relaxlang.passes.relax.fuse_ops import UNITS
from relaxlang.syntax.struct_info import BaseCheck, base_check, bound_vars, unify


@record
class InlinePrivateFunctions(Pass):
    """Put the bodies of private Relax functions in the place of their calls, and drop those that are no longer used.

    Recursive functions stay, as do the units that fusion makes. In a dataflow block only pure functions without
    conditionals are inlined. An argument of which less is known than the parameter states goes through a `match_cast`.

    Before:

        @I.ir_module
        class Module:
            @R.function
            def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
                cls = Module
                r = cls.twice(x)
                return r

            @R.function(private=True)
            def twice(a: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
                b = R.add(a, a)
                return b

    After:

        @I.ir_module
        class Module:
            @R.function
            def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
                b = R.add(x, x)
                r = b
                return r
    """

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        bodies = {n: f for n, f in mod.relax_functions() if f.is_private and not UNITS & f.attrs.keys()}
        order = _callees_first(bodies)
        functions: dict[str, AnyFunc] = dict(mod.functions)
        ready: dict[str, relax.Function] = {}
        for name in [*order, *(n for n, _ in mod.relax_functions() if n not in order)]:
            func = functions[name]
            assert isinstance(func, relax.Function)
            functions[name] = made = _Inliner(mod, default_operators(mod), ready)(func)
            if name in order:
                ready[name] = made
        inlined = mod.with_functions(functions)
        left = CallSites(inlined)
        gone = {n for n in ready if n not in left.calls and n not in left.escaped}
        return inlined.with_functions({n: f for n, f in inlined.functions.items() if n not in gone})


def _callees_first(bodies: dict[str, relax.Function]) -> list[str]:
    """The functions that do not call themselves, in whatever way, each after those that it calls."""
    calls = {
        n: {v.name for v in walk(f.body) if isinstance(v, relax.GlobalVar)} & bodies.keys() for n, f in bodies.items()
    }
    callers: dict[str, list[str]] = {n: [] for n in bodies}
    for name, called in calls.items():
        for one in called:
            callers[one].append(name)
    waiting = {n: len(c) for n, c in calls.items()}
    order = [n for n, count in waiting.items() if count == 0]
    for name in order:
        for caller in callers[name]:
            waiting[caller] -= 1
            if waiting[caller] == 0:
                order.append(caller)
    return order


class _Inliner(BindingRewriter):
    def __init__(self, mod: IRModule, operators: Operators, bodies: dict[str, relax.Function]) -> None:
        super().__init__()
        self.mod = mod
        self.operators = operators
        self.bodies = bodies

    def binding(self, binding: relax.Binding) -> Iterable[relax.Binding]:
        call = binding.value
        if not isinstance(call, relax.Call) or not isinstance(call.op, relax.GlobalVar):
            return (binding,)
        func = self.bodies.get(call.op.name)
        if func is None or len(call.args) != len(func.params) or (self.in_dataflow and not self.is_flat(func)):
            return (binding,)
        value = self.inline(func, call)
        return (binding.replace(value=value),)

    def is_flat(self, func: relax.Function) -> bool:
        """Whether a body may stand in a dataflow block."""
        bindings = [b for block in func.body.blocks for b in block.bindings]
        return func.is_pure and not any(
            isinstance(b.value, (relax.If, relax.Function)) or not is_pure(b.value, self.mod, self.operators)
            for b in bindings
        )

    def inline(self, func: relax.Function, call: relax.Call) -> relax.Expr:
        """Emit the bindings of a function in the place of a call; the value is its result."""
        dims: dict[prim.Var, prim.PrimExpr] = {}
        for param, arg in zip(func.params, call.args):
            unify(param.struct_info, arg.struct_info or OBJECT, dims)
        for var in _own_dimensions(func):
            dims.setdefault(var, type(var)(var.name, var.of))
        copy = _Copy(dims, self.in_dataflow)
        for param, arg in zip(func.params, call.args):
            info = copy.value(param.struct_info)
            if base_check(info, arg.struct_info or OBJECT) is not BaseCheck.HOLDS:
                kind = relax.DataflowVar if self.in_dataflow else relax.Var
                cast = relax.MatchCast(kind(param.name, info, span=call.span), arg, info, span=call.span)
                self.pending.append(cast)
                arg = cast.var
            copy.args[param] = arg
        for block in func.body.blocks:
            self.pending += [copy(b) for b in block.bindings]
        result: relax.Expr = copy(func.body.body)
        return result


def _own_dimensions(func: relax.Function) -> list[prim.Var]:
    """The symbolic variables that a function defines: by its parameters and by casts."""
    scan = _Dimensions()
    scan(func)
    return [*bound_vars(tuple(p.struct_info for p in func.params)), *scan.found]


class _Dimensions(Visitor):
    def __init__(self) -> None:
        self.found: dict[prim.Var, None] = {}

    @on(relax.MatchCast)
    def cast(self, node: relax.MatchCast) -> None:
        """A cast defines variables."""
        self.found.update(dict.fromkeys(free_vars(node.struct_info)))
        self(node.value)

    @on(relax.Function)
    def function(self, node: relax.Function) -> None:
        """An inner function defines variables of its own."""
        self.found.update(dict.fromkeys(bound_vars(tuple(p.struct_info for p in node.params))))
        self(node.body)


class _Copy(Specialize):
    """A copy of bindings with variables of its own; `args` stand for the parameters."""

    def __init__(self, dims: dict[prim.Var, prim.PrimExpr], in_dataflow: bool) -> None:
        super().__init__(dims)
        self.args: dict[relax.Var, relax.Expr] = {}
        self.in_dataflow = in_dataflow

    @on(relax.Var, relax.DataflowVar)
    def variable(self, node: relax.Var) -> Any:
        """The argument, or one new variable for each old one; of the kind that the place of the call asks for."""
        arg = self.args.get(node)
        if arg is not None:
            return arg
        made = self.vars.get(node)
        if made is None:
            kind = relax.DataflowVar if self.in_dataflow else relax.Var
            made = self.vars[node] = kind(node.name, self.value(node.struct_info), span=node.span)
        return made

    @on(relax.DataflowBlock)
    def block(self, node: relax.DataflowBlock) -> relax.BindingBlock:
        """A dataflow block of a branch or an inner function; its variables become plain ones."""
        return relax.BindingBlock(self.value(node.bindings), span=node.span)
