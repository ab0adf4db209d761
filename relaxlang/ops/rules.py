"""The rules that stand beside an operator's definition, run for a call: gradients, and layouts of tensors.

A gradient rule, `@R.grad("nn.relu")`, is a compile-time function of the operator's parameters (any of them, by name),
of `output`, the result of the call, and of `grad`, the derivative of the loss with respect to it. In its body tensors
are values of Relax: `R.name(…)` makes a call, and arithmetic on them is short for one. It returns the derivative with
respect to the tensor argument, a tuple when there are several, with None where there is none.

A layout rule, `@R.op(layout=follow)`, is a compile-time function of `tensors` (the tensors that a call is given, with
the `layout` in which each is kept), `attrs` (its attributes by name) and `desired` (layouts that the user wants for
calls of this operator; empty without any). It returns the layouts in which the call takes the tensors, that of its
result (a tuple of them for several results) and the attributes that change; or None when it can take plain tensors
only. The dimensions of any tensor are called A, B, C, … there, so "ABCD" is a plain tensor with four, "ACDB" one whose
second dimension is kept last, "ABCD4b" one that keeps its second dimension in blocks of 4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from relaxlang.base.dtype import DType
from relaxlang.base.source import Span
from relaxlang.ir import relax
from relaxlang.ir.prim import FloatImm, IntImm
from relaxlang.ir.struct_info import ObjectStructInfo, StructInfo, TensorStructInfo, TupleStructInfo
from relaxlang.ir.visit import free_vars
from relaxlang.ops.body import Computed, OpEvaluator
from relaxlang.ops.definition import OpDef
from relaxlang.ops.functions import CompileTimeFunction
from relaxlang.ops.namespaces import as_relax
from relaxlang.ops.unify import argument_value, tensor_value
from relaxlang.ops.values import Erased, TensorValue
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import Evaluator, error

if TYPE_CHECKING:
    from relaxlang.ops.table import Operators

Gradient = relax.Expr | None | tuple[relax.Expr | None, ...]
"""A derivative with respect to an argument (for a tuple of tensors: a tuple); None where there is none."""
Emit = Callable[[relax.Call], relax.Expr]
"""Binds a call (with its struct info) to a variable, which stands for it from now on."""

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _call(ev: OpEvaluator, rule: CompileTimeFunction, given: Mapping[str, Any], span: Span | None) -> Any:
    """The result of a rule that takes some of the values given, by name."""
    names = {p.name for p in rule.function.params if p.kind == ""}
    place = tree.Call(tree.Name(rule.function.name, span=span), (), (), span=span or rule.function.span)
    return rule.call(ev, [], {n: v for n, v in given.items() if n in names}, place)


def _not_well_made(definition: OpDef, rule: CompileTimeFunction, what: str) -> Exception:
    return error("RLX0130", f"the rule `{rule.function.name}` of `R.{definition.name}` {what}", rule.function.span)


# --- gradients --------------------------------------------------------------------------------------------------------
_OPERATORS = {
    "+": "add", "-": "subtract", "*": "multiply", "/": "divide", "**": "power", "<": "less", "<=": "less_equal",
    ">": "greater", ">=": "greater_equal", "==": "equal", "!=": "not_equal",
}  # fmt: skip


class GradientEvaluator(OpEvaluator):
    """Runs gradient rules: operators make calls, and arithmetic on tensors is short for them."""

    def __init__(self, operators: Operators, emit: Emit) -> None:
        super().__init__()
        self.operators = operators
        self.emit = emit
        self.inline = self.make

    def make(self, name: str, args: list[Any], kwargs: dict[str, Any], span: Span | None) -> Any:
        """The result of `R.name(…)`: a tensor that stands for a call of it, a tuple of tensors for several."""
        place = tree.Call(tree.Name(name, span=span), (), (), span=span)
        plain = [self.given(a, place) for a in args]
        named = {k: self.given(v, place) for k, v in kwargs.items()}
        call = self.operators.make_call(name, plain, named, self.call_span)
        if self.fresh and any(v in self.fresh for a in call.args for v in free_vars(a)):
            raise Erased
        return self.tensors_of(self.emit(call.replace(struct_info=self.operators.infer(call))))

    def given(self, value: Any, place: tree.Call) -> Any:
        """A value as an argument of a call."""
        if isinstance(value, (tuple, list)):
            return tuple(self.given(v, place) for v in value)
        return as_relax(value, place) if isinstance(value, TensorValue) else value

    def tensors_of(self, expr: relax.Expr) -> Any:
        """An expression as a rule sees it."""
        info = expr.struct_info
        if isinstance(info, TupleStructInfo):
            fields = expr.fields if isinstance(expr, relax.Tuple) else [
                relax.TupleGetItem(expr, k) for k in range(len(info.fields))
            ]  # fmt: skip
            return tuple(self.tensors_of(f) for f in fields)
        return tensor_value(self, "value", info or ObjectStructInfo(), expr)

    def binary(self, op: str, a: Any, b: Any, span: Span | None) -> Any:
        if op in _OPERATORS and (isinstance(a, TensorValue) or isinstance(b, TensorValue)):
            like = a if isinstance(a, TensorValue) else b
            return self.make(_OPERATORS[op], [self._operand(a, like), self._operand(b, like)], {}, span)
        return super().binary(op, a, b, span)

    def unary(self, op: str, a: Any, span: Span | None) -> Any:
        if op == "-" and isinstance(a, TensorValue):
            return self.make("negative", [a], {}, span)
        return super().unary(op, a, span)

    def _operand(self, value: Any, like: TensorValue) -> Any:
        """Numbers become constants of the dtype of the other side."""
        if isinstance(value, (IntImm, FloatImm)):
            value = value.value
        if not isinstance(value, (bool, int, float)):
            return value
        if not isinstance(like.dtype, DType):
            raise Erased
        import numpy as np  # checking a program needs no rule, and so no numpy

        return self.tensors_of(relax.Constant(np.array(value, like.dtype.numpy)))

    def failed_assert(self, message: str, span: Span | None) -> Exception:
        return error("RLX0210", f"the gradient of `R.{self.operator}`: {message}", self.call_span or span)


def gradient_of(
    definition: OpDef,
    call: relax.Call,
    output: relax.Expr,
    grad: relax.Expr,
    operators: Operators,
    emit: Emit | None = None,
) -> tuple[Gradient, ...]:
    """The derivatives of the loss with respect to the arguments of a call, in order.

    `output` is the result of the call, `grad` the derivative with respect to it (tuples for several results). Arguments
    that are no tensors, and those through which nothing is differentiated, have None. Calls that the rule makes go
    through `emit`; without it they are nested. Raises DiagnosticError when the operator has no gradient rule, or when
    the rule needs what is not known of the shapes.
    """
    rule = definition.gradient
    if rule is None:
        raise error(
            "RLX0212",
            f"`R.{definition.name}` has no gradient",
            call.span,
            help=f'define one with `@R.grad("{definition.name}")`',
        )
    ev = GradientEvaluator(operators, emit or (lambda made: made))
    ev.operator, ev.call_span = definition.name, call.span
    params = definition.slots(len(call.args))
    values = [argument_value(ev, definition, p, a, call) for p, a in zip(params, call.args)]
    given: dict[str, Any] = {p.name: None for p in definition.arg_params}
    for p, v in zip(params, values):
        given[p.name] = (*(given[p.name] or ()), v) if p.variadic else v
    given |= dict(call.attrs.items())
    given |= {"output": ev.tensors_of(output), "grad": ev.tensors_of(grad)}
    try:
        result = _call(ev, rule, given, call.span)
    except Erased:
        raise error(
            "RLX0211",
            f"the gradient of `R.{definition.name}` needs a shape that is not known",
            call.span,
            help='state it with `R.match_cast(x, R.Tensor((n, m), "float32"))`',
        ) from None
    tensors = [k for k, p in enumerate(definition.arg_params) if p.kinds[0] in ("tensor", "tensors")]
    of_one_tuple = len(tensors) == 1 and definition.arg_params[tensors[0]].kinds[0] == "tensors"
    several = list(result) if isinstance(result, tuple) and not of_one_tuple else [result]
    if len(several) != len(tensors):
        raise _not_well_made(definition, rule, f"must return {len(tensors)} derivatives, not {len(several)}")
    found: list[Gradient] = [None] * len(call.args)
    for k, value in zip(tensors, several):
        if k < len(call.args):
            found[k] = _derivative(definition, rule, value)
    return tuple(found)


def _derivative(definition: OpDef, rule: CompileTimeFunction, value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return tuple(_derivative(definition, rule, v) for v in value)
    if value is None:
        return None
    if not isinstance(value, TensorValue) or isinstance(value, Computed) or value.expr is None:
        raise _not_well_made(definition, rule, "must return tensors that `R.…` made")
    return value.expr


# --- layouts ----------------------------------------------------------------------------------------------------------
class Layouts(NamedTuple):
    """How a call takes its tensors: their layouts, in order; those of its results; its attributes."""

    tensors: tuple[str, ...]
    results: tuple[str, ...]
    attrs: dict[str, Any]


class KeptTensor(TensorValue):
    """A tensor that is kept in some layout; `shape` is that of the plain one."""

    kind = "tensor"

    def __init__(self, tensor: TensorValue, layout: str) -> None:
        super().__init__(tensor.name, tensor.shape, tensor.dtype, tensor.expr)
        self.layout = layout

    def attribute(self, ev: Evaluator, name: str, span: Span | None) -> Any:
        return self.layout if name == "layout" else super().attribute(ev, name, span)


def tensors_in(call: relax.Call) -> tuple[relax.Expr, ...]:
    """The tensors among the arguments of a call, those in tuples too, in order."""
    flat = [f for a in call.args for f in (a.fields if isinstance(a, relax.Tuple) else (a,))]
    return tuple(a for a in flat if isinstance(a.struct_info, TensorStructInfo))


def plain_layout(info: StructInfo | None) -> str | None:
    """The layout of a plain tensor, "ABC" for three dimensions; None when the rank is not known or beyond 26."""
    if not isinstance(info, TensorStructInfo) or not 0 <= info.ndim <= len(LETTERS):
        return None
    return LETTERS[: info.ndim]


def layouts_of(
    definition: OpDef, call: relax.Call, kept: Sequence[str], desired: tuple[str, ...] = ()
) -> Layouts | None:
    """How a call takes tensors of which the one is `kept[0]`, the next `kept[1]`, …; None: plain ones only.

    `kept` has a layout for each of `tensors_in(call)`; `desired` are the layouts that the user wants for this operator.
    Raises DiagnosticError for desired layouts that the operator cannot have.
    """
    rule = definition.layout_rule
    if rule is None:
        return None
    ev = OpEvaluator()
    ev.operator, ev.call_span = definition.name, call.span
    tensors = [
        KeptTensor(tensor_value(ev, f"x{k}", t.struct_info or ObjectStructInfo(), t), layout)
        for k, (t, layout) in enumerate(zip(tensors_in(call), kept))
    ]
    given = {"tensors": tuple(tensors), "attrs": dict(call.attrs.items()), "desired": desired}
    try:
        result = _call(ev, rule, given, call.span)
    except Erased:
        return None
    if result is None or ev.requirements:  # what is not known while compiling can't decide
        return None
    if not isinstance(result, tuple) or len(result) != 3 or len(result[0]) != len(tensors):
        raise _not_well_made(definition, rule, "must return layouts of the tensors, of the results, and attributes")
    taken, made, attrs = result
    return Layouts(tuple(taken), tuple(made) if isinstance(made, (tuple, list)) else (made,), dict(attrs))
