"""Rewrite rules as text: what to look for, and what to put in its place, both as functions of Relax.

    @R.rewriter
    class DoubleIsAdd:
        @R.function
        def pattern(x: R.Tensor((n, m), "float32")):
            y = R.multiply(x, R.const(2, "float32"))
            return y

        @R.function
        def replacement(x: R.Tensor((n, m), "float32")):
            y = R.add(x, x)
            return y

Parameters stand for any value whose struct info implies the one stated, symbolic dimensions for what they meet first.
Attributes, constants and packed functions must be equal. A pattern that returns a tuple finds several values of one
dataflow block at once, which the replacement's tuple replaces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from relaxlang.arith import Analyzer
from relaxlang.base.arguments import checked
from relaxlang.base.diagnostics import Diagnostics, fail
from relaxlang.base.recursion import deep_recursion
from relaxlang.base.source import Source, Span
from relaxlang.builder.dpl.patterns import (
    AttrPattern,
    CallPattern,
    ExprPattern,
    Pattern,
    PrimArrPattern,
    StructInfoPattern,
    TupleGetItemPattern,
    TuplePattern,
    WildcardPattern,
)
from relaxlang.builder.dpl.rewrite import Proposal, Replacement, rewrite_blocks, rewrite_values
from relaxlang.builder.dpl.state import State, Values
from relaxlang.builder.infer import Inference
from relaxlang.ir import prim, relax
from relaxlang.ir.attrs import Attrs
from relaxlang.ir.module import IRModule
from relaxlang.ir.visit import Substitute, on, walk
from relaxlang.ops import Operators, default_operators
from relaxlang.ops.signature import plain
from relaxlang.syntax import tree
from relaxlang.syntax.elaborate.decorators import decorator_name
from relaxlang.syntax.parse import parse_source
from relaxlang.syntax.parser import parse_surface


class RewriteRule:
    """A rule: two functions of the same parameters. RLX0453 when they make no rule."""

    @checked
    def __init__(
        self, name: str, pattern: relax.Function, replacement: relax.Function, span: Span | None = None
    ) -> None:
        self.name = name
        self.replacement = replacement
        if len(pattern.params) != len(replacement.params):
            fail("RLX0453", f"`{name}`: `pattern` and `replacement` take different numbers of parameters", span)
        self.params: list[Pattern] = []
        self.parts: dict[relax.Var, Pattern] = {}
        for param in pattern.params:
            value = WildcardPattern()
            self.params.append(value)
            self.parts[param] = StructInfoPattern(value, param.struct_info)
        for block in pattern.body.blocks:
            for binding in block.bindings:
                if not isinstance(binding, relax.VarBinding):
                    fail("RLX0453", f"`{name}`: a pattern has no `match_cast`", binding.span or span)
                self.parts[binding.var] = self._part(binding.value)
        result = self._stripped(pattern.body.body, pattern)
        self.is_tuple = isinstance(result, relax.Tuple)
        self.outputs = [self._part(r) for r in (result.fields if isinstance(result, relax.Tuple) else (result,))]
        if any(isinstance(o, StructInfoPattern) for o in self.outputs) or not self.outputs:
            fail("RLX0453", f"`{name}`: the result of `pattern` must be computed", span)
        given = self._stripped(replacement.body.body, replacement)
        count = len(given.fields) if isinstance(given, relax.Tuple) else 1
        if self.is_tuple != isinstance(given, relax.Tuple) or count != len(self.outputs):
            fail("RLX0453", f"`{name}`: `pattern` and `replacement` give different numbers of results", span)
        self.results = given.fields if isinstance(given, relax.Tuple) else (given,)

    @staticmethod
    def _stripped(result: relax.Expr, func: relax.Function) -> relax.Expr:
        """A result, or the tuple that it is bound to."""
        values = {b.var: b.value for block in func.body.blocks for b in block.bindings}
        while isinstance(result, relax.Var) and isinstance(values.get(result), (relax.Var, relax.Tuple)):
            result = values[result]
        return result

    def _part(self, value: relax.Expr) -> Pattern:
        """The pattern that an expression of the pattern function is."""
        if isinstance(value, relax.Var):
            return self.parts[value]
        if isinstance(value, relax.Call):
            call = CallPattern(ExprPattern(value.op), [self._part(a) for a in value.args])
            return AttrPattern(call, value.attrs) if value.attrs else call
        if isinstance(value, relax.Tuple):
            return TuplePattern([self._part(f) for f in value.fields])
        if isinstance(value, relax.TupleGetItem):
            return TupleGetItemPattern(self._part(value.tuple_value), value.index)
        if isinstance(value, relax.ShapeExpr):
            return PrimArrPattern(value.values)
        if isinstance(value, (relax.If, relax.Function, relax.SeqExpr)):
            fail("RLX0453", f"`{self.name}`: a pattern is made of calls, tuples and constants", value.span)
        return ExprPattern(value)

    # --- applying -----------------------------------------------------------------------------------------------------
    @checked
    def apply(self, func: relax.Function, mod: IRModule) -> relax.Function:
        """A function of a module with the rule applied wherever it matches."""
        infer = Inference(mod.functions, default_operators(mod))
        if self.is_tuple:
            return rewrite_blocks(func, partial(self._proposals, infer), mod)
        return rewrite_values(func, partial(self._replaced, infer), mod)

    def _replaced(self, infer: Inference, value: relax.Expr, values: Values, dataflow: bool) -> Replacement | None:
        state = next(self.outputs[0].search(value, State(values)), None)
        if state is None:
            return None
        bindings, results = self._instance(state, infer, relax.DataflowVar if dataflow else relax.Var)
        # The last binding's value takes the place of the matched one, without a variable of its own.
        if bindings and bindings[-1].var is results[0] and isinstance(bindings[-1], relax.VarBinding):
            return bindings[:-1], bindings[-1].value
        return bindings, results[0]

    def _proposals(self, infer: Inference, block: relax.DataflowBlock, values: Values) -> Iterator[Proposal]:
        inside = {b.var: b.value for b in block.bindings}
        for state, found in self._matches(0, State({**values, **inside}), list(inside), ()):
            if not _needs([state.found[p] for p in self.params], inside) & set(found):
                bindings, results = self._instance(state, infer, relax.DataflowVar)
                yield bindings, dict(zip(found, results))

    def _matches(
        self, at: int, state: State, candidates: list[relax.Var], found: tuple[relax.Var, ...]
    ) -> Iterator[tuple[State, tuple[relax.Var, ...]]]:
        """Every way in which the outputs match different variables."""
        if at == len(self.outputs):
            yield state, found
            return
        for var in candidates:
            if var not in found:
                for made in self.outputs[at].search(var, state):
                    yield from self._matches(at + 1, made, candidates, (*found, var))

    def _instance(
        self, state: State, infer: Inference, kind: type[relax.Var]
    ) -> tuple[list[relax.Binding], list[relax.Expr]]:
        """The replacement's bindings in terms of what was matched, and its results."""
        dims = dict(state.dims)
        args = {p: state.found[w] for p, w in zip(self.replacement.params, self.params)}
        for param, arg in args.items():
            _unify(param, arg, dims)
        copy = _Copy(dims, args, kind)
        made: list[relax.Binding] = []
        for block in self.replacement.body.blocks:
            for binding in block.bindings:
                value = copy(binding.value)
                if isinstance(value, relax.Call):
                    value = value.replace(struct_info=infer(value))
                if isinstance(binding, relax.MatchCast):
                    made.append(copy(binding))
                    continue
                var = kind(binding.var.name, infer(value), span=binding.span)
                copy.vars[binding.var] = var
                made.append(relax.VarBinding(var, value, span=binding.span))
        return made, [copy(r) for r in self.results]


def _needs(exprs: list[relax.Expr], inside: Values) -> set[relax.Var]:
    """The variables of a block that expressions are computed from."""
    found: set[relax.Var] = set()
    work: list[relax.Expr] = list(exprs)
    while work:
        for node in walk(work.pop()):
            if isinstance(node, relax.Var) and node in inside and node not in found:
                found.add(node)
                work.append(inside[node])
    return found


def _unify(param: relax.Var, arg: relax.Expr, dims: dict[prim.Var, prim.PrimExpr]) -> None:
    from relaxlang.ir.struct_info import OBJECT
    from relaxlang.syntax.struct_info import unify

    unify(param.struct_info, arg.struct_info or OBJECT, dims)


class _Copy(Substitute):
    """A copy of bindings: arguments for parameters, new variables for the others, dimensions replaced."""

    def __init__(
        self, dims: dict[prim.Var, prim.PrimExpr], args: dict[relax.Var, relax.Expr], kind: type[relax.Var]
    ) -> None:
        super().__init__(dims)
        self.vars: dict[relax.Var, relax.Expr] = dict(args)
        self.kind = kind

    @on(relax.Var, relax.DataflowVar)
    def variable(self, node: relax.Var) -> relax.Expr:
        """An argument, or one new variable for each old one."""
        if node not in self.vars:
            self.vars[node] = self.kind(node.name, self.value(node.struct_info), span=node.span)
        return self.vars[node]

    @on(relax.ShapeExpr)
    def shape(self, node: relax.ShapeExpr) -> relax.ShapeExpr:
        """A shape whose dimensions are in simplest form."""
        made = self.below(node)
        return made if made is node else made.replace(values=tuple(_simplest(v) for v in made.values))

    @on(relax.Call)
    def call(self, node: relax.Call) -> relax.Call:
        """A call whose attributes are plain values where they have become constants."""
        made = self.below(node)
        if made.attrs is not node.attrs:
            made = made.replace(attrs=Attrs({k: plain(_simplest(v)) for k, v in made.attrs.items()}))
        return made


def _simplest(value: Any) -> Any:
    """Scalar expressions simplified, in tuples too."""
    if isinstance(value, tuple):
        return tuple(_simplest(v) for v in value)
    return Analyzer().simplify(value) if isinstance(value, prim.PrimExpr) else value


# --- reading and running ----------------------------------------------------------------------------------------------
@checked
def read_rules(source: Source, operators: Operators | None = None) -> list[RewriteRule]:
    """The rules of a text: its classes under `@R.rewriter`, in order. Whatever else it holds is left alone.

    `operators` are those that it may name, by default the standard library's. Raises `DiagnosticError` for what is
    wrong with the text or a rule.
    """
    diagnostics = Diagnostics()
    with deep_recursion():
        surface = parse_surface(source, diagnostics)
    diagnostics.check()
    return [_rule(source, s, operators or default_operators()) for s in surface.body if is_rule(s)]


def is_rule(stmt: tree.Stmt) -> bool:
    """Whether a statement is a class under `@R.rewriter`."""
    return isinstance(stmt, tree.ClassDef) and any(decorator_name(d) == "R.rewriter" for d in stmt.decorators)


def _rule(source: Source, stmt: tree.Stmt, operators: Operators) -> RewriteRule:
    assert isinstance(stmt, tree.ClassDef) and stmt.span is not None
    last = stmt.decorators[-1].span
    assert last is not None
    mod = parse_source(source, operators=operators, part=(last.end, stmt.span.end))
    return _of_module(stmt.name, mod, stmt.span)


def _of_module(name: str, mod: IRModule, span: Span | None = None) -> RewriteRule:
    """The rule that two functions of a module make."""
    pattern, replacement = mod.functions.get("pattern"), mod.functions.get("replacement")
    if not isinstance(pattern, relax.Function) or not isinstance(replacement, relax.Function):
        missing = "replacement" if isinstance(pattern, relax.Function) else "pattern"
        fail("RLX0453", f"the rule `{name}` has no function `{missing}`", span)
    return RewriteRule(name, pattern, replacement, span)


@checked
def rules_of(mod: IRModule) -> list[RewriteRule]:
    """The rules that a module's own text states, in order."""
    return [_of_module(name, rule) for name, rule in mod.rules.items()]


@checked
def apply_rules(mod: IRModule, rules: Sequence[RewriteRule], rounds: int = 1) -> IRModule:
    """A module with rules applied to all its Relax functions, one after the other; `rounds` times, or until nothing
    changes."""
    for _ in range(rounds):
        before = mod
        for name, func in mod.relax_functions():
            for rule in rules:
                func = rule.apply(func, mod)
            mod = mod.with_function(name, func) if func is not mod[name] else mod
        if mod is before:
            break
    return mod
