"""LambdaLift: functions inside functions become functions of the module."""

from __future__ import annotations

from typing import Any

from relaxlang.analysis.uses import expressions
from relaxlang.base.record import record
from relaxlang.ir import prim, relax
from relaxlang.ir.attrs import EMPTY
from relaxlang.ir.module import AnyFunc, IRModule
from relaxlang.ir.struct_info import OBJECT, FuncStructInfo, shape_info
from relaxlang.ir.visit import Rewriter, Visitor, free_vars, on, walk
from relaxlang.passes.base import Pass, PassContext
from relaxlang.passes.bindings import specialize


@record
class LambdaLift(Pass):
    """Move inner functions to the module; one that captures variables becomes a closure over them.

    Captured variables (and, as one shape, captured symbolic dimensions) are added behind the function's parameters.

    Before:

        @I.ir_module
        class Module:
            @R.function
            def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
                @R.function
                def inner(y: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
                    z = R.add(y, x)
                    return z
                r = inner(x)
                return r

    After:

        @I.ir_module
        class Module:
            @R.function
            def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
                cls = Module
                inner: R.Callable((R.Tensor((4,), "float32"),), R.Tensor((4,), "float32")) = R.make_closure(
                    cls.main_inner, (x,)
                )
                r: R.Tensor((4,), "float32") = inner(x)
                return r

            @R.function(private=True)
            def main_inner(y: R.Tensor((4,), "float32"), x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
                z = R.add(y, x)
                return z
    """

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        functions: dict[str, AnyFunc] = dict(mod.functions)
        for name, func in mod.relax_functions():
            if any(isinstance(e, relax.Function) for e in expressions(func.body)):
                lifter = _Lifter(functions, name)
                functions[name] = func.replace(body=lifter(func.body))
        return mod.with_functions(functions)


class _Lifter(Rewriter):
    def __init__(self, functions: dict[str, AnyFunc], owner: str) -> None:
        self.functions = functions
        self.owner = owner
        self.selves: dict[relax.Var, relax.Expr] = {}

    @on(relax.VarBinding)
    def binding(self, node: relax.VarBinding) -> relax.VarBinding:
        """Lift the function that is bound; it may refer to itself by the variable."""
        if isinstance(node.value, relax.Function):
            return node.replace(value=self.lift(node.value, node.var))
        return self.below(node)

    @on(relax.Function)
    def function(self, node: relax.Function) -> relax.Expr:
        """Lift a function that is used without being bound first."""
        return self.lift(node, None)

    @on(relax.Var, relax.DataflowVar)
    def var(self, node: relax.Var) -> relax.Expr:
        """A variable; inside a recursive function, its own name."""
        return self.selves.get(node, node)

    def lift(self, func: relax.Function, var: relax.Var | None) -> relax.Expr:
        """Move `func` to the module and give the value that stands for it."""
        captured, symbols = captures(func, var)
        name = self._name(var.name if var is not None else "lambda")
        extra = [relax.Var(v.name, v.struct_info) for v in captured]
        shape = relax.Var("symbols", shape_info(tuple(symbols))) if symbols else None
        params = (*func.params, *extra, *((shape,) if shape is not None else ()))
        outside: tuple[relax.Expr, ...] = tuple(captured)
        if shape is not None:
            outside += (relax.ShapeExpr(tuple(symbols)),)
        callee = relax.GlobalVar(name, FuncStructInfo(None, OBJECT, func.is_pure))
        self.functions[name] = func  # holds the place, so that names stay unique while the body is lifted
        inside = dict(zip(captured, extra))
        if var is not None:
            inner_values = (*extra, *((shape,) if shape is not None else ()))
            self.selves[var] = _closure(callee, inner_values, func)
        body = self(_Rename(inside)(func.body))
        lifted = relax.Function(
            params, body, func.ret_struct_info, func.is_pure, func.attrs.without("global_symbol"), span=func.span
        )
        lifted = self.functions[name] = _own_symbols(lifted)
        if var is not None:
            del self.selves[var]
        return _closure(callee.replace(struct_info=lifted.struct_info), outside, func)

    def _name(self, hint: str) -> str:
        name, n = f"{self.owner}_{hint}", 0
        while name in self.functions:
            n += 1
            name = f"{self.owner}_{hint}_{n}"
        return name


def _closure(callee: relax.GlobalVar, values: tuple[relax.Expr, ...], func: relax.Function) -> relax.Expr:
    if not values:
        return callee.replace(struct_info=func.struct_info)
    return relax.Call(
        relax.Op("make_closure"), (callee, relax.Tuple(values)), EMPTY, (), func.struct_info, span=func.span
    )


def _own_symbols(func: relax.Function) -> relax.Function:
    """The function with symbolic variables of its own, none shared with the function that it was inside."""
    scan = _Scan()
    scan(func)
    return specialize(func, {v: type(v)(v.name, v.of, span=v.span) for v in scan.symbols})


class _Rename(Rewriter):
    def __init__(self, names: dict[relax.Var, relax.Var]) -> None:
        self.names = names

    @on(relax.Var, relax.DataflowVar)
    def var(self, node: relax.Var) -> relax.Var:
        """The new name of a captured variable."""
        return self.names.get(node, node)


def captures(func: relax.Function, own: relax.Var | None) -> tuple[list[relax.Var], list[prim.Var]]:
    """The variables, and the symbolic dimensions, that a function uses but does not define, in order of first use.

    `own` is the name by which it calls itself.
    """
    scan = _Scan()
    scan(func)
    used = [v for v in scan.used if v not in scan.defined and v is not own]
    return used, [v for v in scan.symbols if v not in scan.bound]


class _Scan(Visitor):
    def __init__(self) -> None:
        self.used: dict[relax.Var, None] = {}
        self.defined: set[relax.Var] = set()
        self.symbols: dict[prim.Var, None] = {}
        self.bound: set[prim.Var] = set()

    @on(relax.Var, relax.DataflowVar)
    def var(self, node: relax.Var) -> None:
        """A use."""
        self.used[node] = None

    @on(prim.Var, prim.SizeVar)
    def symbol(self, node: prim.Var) -> None:
        """A use of a symbolic dimension."""
        self.symbols[node] = None

    @on(relax.Function)
    def function(self, node: relax.Function) -> None:
        """Parameters define variables and symbolic dimensions."""
        for param in node.params:
            self.defined.add(param)
            self.bound.update(bound_symbols(param.struct_info))
            self.symbols.update(dict.fromkeys(free_vars(param.struct_info)))
        self(node.body)
        if node.ret_struct_info is not None:
            self.symbols.update(dict.fromkeys(free_vars(node.ret_struct_info)))

    @on(relax.VarBinding)
    def binding(self, node: relax.VarBinding) -> None:
        """A binding defines its variable."""
        self.defined.add(node.var)
        self.symbols.update(dict.fromkeys(free_vars(node.var.struct_info)))
        self(node.value)

    @on(relax.MatchCast)
    def match_cast(self, node: relax.MatchCast) -> None:
        """A match_cast may define symbolic dimensions too."""
        self.defined.add(node.var)
        self.symbols.update(dict.fromkeys(free_vars(node.struct_info)))
        self.bound.update(bound_symbols(node.struct_info))
        self(node.value)


def bound_symbols(info: Any) -> list[prim.Var]:
    """The symbolic variables that stand alone as a dimension or value in a struct info; functions' inner ones aside."""
    from relaxlang.ir.struct_info import PrimStructInfo, ShapeStructInfo, TensorStructInfo, lone_var

    found: list[prim.Var] = []
    for node in walk(info):
        values: tuple[Any, ...] = ()
        if isinstance(node, TensorStructInfo):
            values = node.dims or ()
        elif isinstance(node, ShapeStructInfo):
            values = node.values or ()
        elif isinstance(node, PrimStructInfo):
            values = () if node.value is None else (node.value,)
        found += [v for v in map(lone_var, values) if v is not None]
    return found
