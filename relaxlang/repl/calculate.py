"""Expressions at the prompt: the language's own evaluator, with tensors at hand.

A tensor stands in an expression as a variable of Relax whose struct info is the tensor's. What the expression computes
becomes the body of one function, which is compiled and called; what makes tensors (`rand(2, 3)`) runs at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from relaxlang.analysis.purity import is_pure
from relaxlang.analysis.uses import referenced_functions
from relaxlang.arith import Analyzer
from relaxlang.base.diagnostics import Diagnostics
from relaxlang.base.dtype import DType
from relaxlang.base.recursion import deep_recursion
from relaxlang.base.source import Source, Span
from relaxlang.ir import prim, relax
from relaxlang.ir.attrs import Attrs
from relaxlang.ir.module import IRModule, function_info
from relaxlang.ir.struct_info import StructInfo, TupleStructInfo
from relaxlang.ops import Operators
from relaxlang.repl.define import declare_functions
from relaxlang.repl.values import MAKERS, headline, info_of
from relaxlang.runtime.ndarray import ShapeTuple
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import BUILTINS, Evaluator, Scope, Value, describe, error
from relaxlang.syntax.elaborate.module_ref import ModuleRef
from relaxlang.syntax.elaborate.namespaces import root_scope
from relaxlang.syntax.elaborate.relax_body import COMPOUND, RelaxElaborator
from relaxlang.syntax.elaborate.unit import Unit
from relaxlang.syntax.parser import parse_expression

RESULT = "expression"
"""The name of the function that an expression becomes."""


class Computation(NamedTuple):
    """What remains to be done for a value: call the function `name` of a module with arguments."""

    module: IRModule
    name: str
    args: tuple[Any, ...]


Run = Callable[[Computation], Any]


class Calculator(RelaxElaborator):
    """Evaluates expressions over the values of `names` and the functions of a module.

    `run` does a `Computation`; `seed` begins the sequence of random tensors, `draws` counts them. All errors are
    DiagnosticErrors that point into the expression.
    """

    def __init__(
        self, module: IRModule, operators: Operators, names: Mapping[str, Any], run: Run, draws: int = 0
    ) -> None:
        super().__init__(Unit(Diagnostics(), operators, {}, True))
        self.module = module
        self.run = run
        self.draws = draws
        self.leaves: dict[relax.Var, Any] = {}
        self.unit.name = module.name
        root = root_scope()
        root.names.update(MAKERS)
        functions = Scope(declare_functions(self.unit, module), root)
        functions.names.setdefault(module.name, ModuleRef(self.unit))
        self.scope = Scope({}, functions)
        for name, value in names.items():
            self.scope.names[name] = self.operand(value, name)

    # --- values in, values out ----------------------------------------------------------------------------------------
    def draw(self) -> int:
        """The seed of the next random tensor."""
        self.draws += 1
        return self.draws - 1

    def leaf(self, value: Any, name: str) -> relax.Var:
        """A variable that stands for a value."""
        var = relax.Var(name, info_of(value))
        self.leaves[var] = value
        return var

    def operand(self, value: Any, name: str) -> Any:
        """A value of the session as the evaluator takes it."""
        if isinstance(value, (np.ndarray, ShapeTuple)):
            return self.leaf(value, name)
        if isinstance(value, Mapping):
            return {key: self.operand(v, key) for key, v in value.items()}
        if isinstance(value, (tuple, list)):
            return type(value)(self.operand(v, name) for v in value)
        return value

    def read(self, span: Span) -> Any:
        """The value of the expression at `span`, with what it computes left to `concrete`."""
        diagnostics = self.unit.diagnostics
        with deep_recursion():
            node = parse_expression(span.source, diagnostics, span.start, span.end)
            diagnostics.check()
            assert node is not None  # otherwise an error was reported
            return self.value(node)

    def value(self, node: tree.Expr) -> Any:
        """The value of an expression's tree."""
        with deep_recursion():
            made = self.evaluate(node, self.scope)
            self.unit.diagnostics.check()
            return made

    def concrete(self, value: Any, span: Span | None) -> Any:
        """The value with everything computed: tensors, shapes, Python's own values, and tuples, lists, dicts of them.

        RLX7105 for what is no value: namespaces, functions, struct info.
        """
        if isinstance(value, relax.Var) and value in self.leaves:
            return self.leaves[value]
        if isinstance(value, relax.ShapeExpr) and all(isinstance(d, prim.IntImm) for d in value.values):
            return ShapeTuple([d.value for d in value.values if isinstance(d, prim.IntImm)])
        if isinstance(value, relax.PrimValue):
            value = value.value
        if isinstance(value, prim.PrimExpr):
            value = Analyzer().simplify(value)
        if isinstance(value, (prim.IntImm, prim.FloatImm)):
            return bool(value.value) if value.dtype.is_bool else value.value
        if isinstance(value, (relax.StringImm, relax.DataTypeImm)):
            return value.value
        if isinstance(value, relax.Constant):
            return value.data
        if isinstance(value, (relax.GlobalVar, relax.ExternFunc)):
            help = f"call it, as in `{value.name}(…)`, or let `:run {value.name}` make up arguments"
            raise error("RLX7105", f"`{value.name}` is a function", span, help=help)
        if isinstance(value, relax.Expr):
            return self.run(self.computation(value))
        if isinstance(value, dict):
            return {k: self.concrete(v, span) for k, v in value.items()}
        if isinstance(value, (tuple, list)) and not isinstance(value, ShapeTuple):
            if any(isinstance(v, (*COMPOUND, relax.Tuple)) for v in value):
                return self.run(self.computation(self.lift(value, span)))
            return type(value)(self.concrete(v, span) for v in value)
        if value is None or isinstance(value, (bool, int, float, str, DType, ShapeTuple, np.ndarray)):
            return value
        raise error("RLX7105", f"{_said(value)} is no value", span)

    def callee(self, node: tree.Expr, scope: Scope) -> Any:
        """As in the language, where `sum` is an operator; at the prompt it also sums plain numbers."""
        found = super().callee(node, scope)
        if isinstance(node, tree.Name) and node.id in BUILTINS and scope.find(node.id) is None:
            return _Overloaded(BUILTINS[node.id], found)
        return found

    def invoke(self, function: relax.Expr, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> relax.Call:
        """As in the language; at the prompt arguments may also be given by the names of a function's parameters."""
        known = self.module.functions.get(function.name) if isinstance(function, relax.GlobalVar) else None
        if isinstance(known, relax.Function) and kwargs:
            names = [p.name for p in known.params]
            for name in names[len(args) :]:
                if name not in kwargs:
                    raise error("RLX0113", f"the call lacks the argument `{name}`", node.span,
                                help="`:run` makes up what is missing")  # fmt: skip
            args = [*args, *(kwargs.pop(name) for name in names[len(args) :])]
            for name in kwargs:
                what = "has a value already" if name in names else "is no parameter of it"
                raise error("RLX0114", f"`{name}` {what}", node.span)
        return super().invoke(function, args, kwargs, node)

    def computation(self, value: relax.Expr) -> Computation:
        """The program that computes an expression: a function of the leaves that it uses, beside the functions of the
        module that it calls."""
        direct = self._direct(value)
        if direct is not None:
            return direct
        result = value if isinstance(value, (relax.Var, relax.Tuple)) else self.emit(value, "result")
        self.frame.close()
        body = relax.SeqExpr(tuple(self.frame.blocks), result)
        used = _variables(body)
        params = tuple(v for v in self.leaves if v in used)
        name = self.module.unique_name(RESULT)
        pure = is_pure(body, self.module, _operators(self.unit))
        function = relax.Function(params, body, result.struct_info, pure, Attrs({"global_symbol": name}))
        callees = referenced_functions(self.module.with_function(name, function), [name])
        functions = {n: f for n, f in self.module.functions.items() if n in callees}
        program = self.module.with_functions(functions)
        return Computation(program.with_function(name, function), name, tuple(self.leaves[p] for p in params))

    def _direct(self, value: relax.Expr) -> Computation | None:
        """A mere call of a function of the module with leaves: there is nothing to be made, the module does."""
        if not isinstance(value, relax.Call) or not isinstance(value.op, relax.GlobalVar) or self.frame.bindings:
            return None
        if not all(isinstance(a, relax.Var) and a in self.leaves for a in value.args):
            return None
        if not isinstance(self.module.functions.get(value.op.name), relax.Function):
            return None
        return Computation(self.module, value.op.name, tuple(self.leaves[a] for a in value.args))  # type: ignore[index]

    def kind(self, value: Any) -> str:
        """What a value is, in the language's words, without computing it."""
        if isinstance(value, relax.GlobalVar) and value.name in self.module:
            return str(function_info(self.module[value.name]))
        if isinstance(value, relax.Expr):
            return str(value.struct_info)
        if isinstance(value, (tuple, list)):
            infos = [v.struct_info for v in value if isinstance(v, relax.Expr)]
            known = tuple(i for i in infos if i is not None)
            if value and len(known) == len(value):
                return str(TupleStructInfo(known))
        if isinstance(value, (StructInfo, prim.PrimExpr)):
            return str(value) if isinstance(value, StructInfo) else str(value.dtype)
        return _said(value) if isinstance(value, Value) else headline(value)


class _Overloaded(Value):
    """A function of compile-time evaluation and an operator of the same name: the arguments decide."""

    def __init__(self, plain: Value, operator: Value) -> None:
        self.plain = plain
        self.operator = operator
        self.kind = plain.kind

    def call(self, ev: Evaluator, args: list[Any], kwargs: dict[str, Any], node: tree.Call) -> Any:
        computed = any(isinstance(a, relax.Expr) for a in (*args, *kwargs.values()))
        return (self.operator if computed else self.plain).call(ev, args, kwargs, node)


def parse_call(source: Source, span: Span) -> tree.Expr:
    """The tree of the expression at `span`."""
    diagnostics = Diagnostics()
    node = parse_expression(source, diagnostics, span.start, span.end)
    diagnostics.check()
    assert node is not None
    return node


def _operators(unit: Unit) -> Operators:
    assert isinstance(unit.operators, Operators)
    return unit.operators


def _said(value: Any) -> str:
    return describe(value) if not isinstance(value, StructInfo) else f"the struct info `{value}`"


def _variables(body: relax.SeqExpr) -> set[relax.Var]:
    from relaxlang.ir.visit import walk

    return {n for n in walk(body) if isinstance(n, relax.Var)}
