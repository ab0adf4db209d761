"""Converters of operators on elements: arithmetic, comparisons, logic, activations, types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relaxlang.base.dtype import DType, dtype
from relaxlang.frontend.onnx.folding import MAX_FOLDED, cast_known
from relaxlang.frontend.onnx.graph import Graph
from relaxlang.frontend.onnx.node import Node
from relaxlang.frontend.onnx.types import element_type
from relaxlang.frontend.onnx.values import Known, Value
from relaxlang.ir import relax
from relaxlang.ops import python_api as op

Call = Callable[..., relax.Expr]


def _unary(call: Any) -> Callable[[Graph, Node], Value]:
    """The converter to an operator of one tensor."""

    def convert(g: Graph, n: Node) -> Value:
        made: relax.Expr = call(g.tensor(n.input(0)))
        return made

    return convert


def _binary(call: Any) -> Callable[[Graph, Node], Value]:
    """The converter to an operator of two tensors that broadcast."""

    def convert(g: Graph, n: Node) -> Value:
        made: relax.Expr = call(g.tensor(n.input(0)), g.tensor(n.input(1)))
        return made

    return convert


def _fold_left(call: Any) -> Callable[[Graph, Node], Value]:
    """The converter of an operator of any number of tensors to one of two."""

    def convert(g: Graph, n: Node) -> Value:
        made = g.tensor(n.input(0))
        for value in n.inputs[1:]:
            made = call(made, g.tensor(value))
        return made

    return convert


absolute, negate, ceil, floor = _unary(op.abs), _unary(op.negative), _unary(op.ceil), _unary(op.floor)
exp, log, sqrt, sign, round_even = _unary(op.exp), _unary(op.log), _unary(op.sqrt), _unary(op.sign), _unary(op.round)
erf, sigmoid, tanh, relu = _unary(op.erf), _unary(op.sigmoid), _unary(op.tanh), _unary(op.nn.relu)
sin, cos, tan, sinh, cosh = _unary(op.sin), _unary(op.cos), _unary(op.tan), _unary(op.sinh), _unary(op.cosh)
asin, acos, atan = _unary(op.asin), _unary(op.acos), _unary(op.atan)
asinh, acosh, atanh = _unary(op.asinh), _unary(op.acosh), _unary(op.atanh)
is_nan, logical_not, bitwise_not = _unary(op.isnan), _unary(op.logical_not), _unary(op.bitwise_not)

add, subtract, multiply, divide = _binary(op.add), _binary(op.subtract), _binary(op.multiply), _binary(op.divide)
equal, less, greater = _binary(op.equal), _binary(op.less), _binary(op.greater)
less_equal, greater_equal = _binary(op.less_equal), _binary(op.greater_equal)
logical_and, logical_or, logical_xor = _binary(op.logical_and), _binary(op.logical_or), _binary(op.logical_xor)
bitwise_and, bitwise_or, bitwise_xor = _binary(op.bitwise_and), _binary(op.bitwise_or), _binary(op.bitwise_xor)

maximum, minimum, sum_of = _fold_left(op.maximum), _fold_left(op.minimum), _fold_left(op.add)


def mean_of(g: Graph, n: Node) -> Value:
    """Mean: of several tensors, element by element."""
    total = sum_of(g, n)
    return op.divide(total, g.like(len(n.inputs), n.input(0)))


def modulo(g: Graph, n: Node) -> Value:
    """Mod: with the sign of the divisor, or (`fmod`) of the dividend."""
    a, b = g.tensor(n.input(0)), g.tensor(n.input(1))
    return op.mod(a, b) if n.flag("fmod") else op.floor_mod(a, b)


def power(g: Graph, n: Node) -> Value:
    """Pow: the exponent may be of another type than the result."""
    a, b = g.tensor(n.input(0)), g.tensor(n.input(1))
    base, exponent = g.dtype(a), g.dtype(b)
    if base is exponent:
        return op.power(a, b)
    if base.is_float or exponent.is_integer:
        return op.power(a, op.astype(b, base))
    return op.astype(op.power(op.astype(a, exponent), b), base)


def bit_shift(g: Graph, n: Node) -> Value:
    """BitShift: bits that leave are lost."""
    a, b = g.tensor(n.input(0)), g.tensor(n.input(1))
    return op.left_shift(a, b) if n.string("direction") == "LEFT" else op.right_shift(a, b)


def reciprocal(g: Graph, n: Node) -> Value:
    """1 / x."""
    x = g.tensor(n.input(0))
    return op.divide(g.like(1, x), x)


def is_inf(g: Graph, n: Node) -> Value:
    """Whether x is infinite, with a sign that counts."""
    x = g.tensor(n.input(0))
    positive, negative = n.flag("detect_positive", True), n.flag("detect_negative", True)
    if positive and negative:
        return op.isinf(x)
    if not positive and not negative:
        return op.zeros_like(x, "bool")
    zero = g.like(0, x)
    return op.logical_and(op.isinf(x), op.greater(x, zero) if positive else op.less(x, zero))


def where(g: Graph, n: Node) -> Value:
    """Where the condition holds x, else y."""
    return op.where(g.tensor(n.input(0)), g.tensor(n.input(1)), g.tensor(n.input(2)))


def clip(g: Graph, n: Node) -> Value:
    """Clip: the bounds were attributes until version 10, and are tensors since; each may be left out."""
    x = g.tensor(n.input(0))
    if n.version < 11:
        return op.clip(x, n.float("min", -3.4028234663852886e38), n.float("max", 3.4028234663852886e38))
    bounds = [n.input(1), n.input(2)]
    numbers = [
        float(b.data.reshape(-1)[0]) for b in bounds if isinstance(b, Known) and not b.is_symbolic and b.data.size
    ]
    if g.dtype(x).is_float and len(numbers) == 2 and g.dtype(x).bits >= 32:
        return op.clip(x, *numbers)
    if bounds[0] is not None:
        x = op.maximum(x, g.tensor(bounds[0]))
    return x if bounds[1] is None else op.minimum(x, g.tensor(bounds[1]))


# --- types ------------------------------------------------------------------------------------------------------------
def identity(g: Graph, n: Node) -> Value:
    """The value itself."""
    return n.input(0)


def cast(g: Graph, n: Node) -> Value:
    """Cast."""
    return _converted(g, n, element_type(n.int("to"), "the result of `Cast`"))


def cast_like(g: Graph, n: Node) -> Value:
    """CastLike: to the type of the second tensor."""
    return _converted(g, n, g.dtype(n.input(1)))


def _converted(g: Graph, n: Node, to: DType) -> Value:
    value = n.input(0)
    of = g.dtype(value)
    if of is to:
        return value
    known = cast_known(value, to) if isinstance(value, Known) and value.data.size <= MAX_FOLDED else None
    if known is not None:
        return known
    x = g.tensor(value)
    if to.bits == 8 and to.is_float and n.flag("saturate", True):
        limit = float(np.array(_largest(to), dtype=np.float32))
        return op.astype(op.clip(op.astype(x, "float32"), -limit, limit), to)
    return op.astype(x, to)


def _largest(of: DType) -> float:
    import ml_dtypes

    finfo: Any = ml_dtypes.finfo
    return float(finfo(of.numpy).max)


# --- activations ------------------------------------------------------------------------------------------------------
def leaky_relu(g: Graph, n: Node) -> Value:
    """LeakyRelu."""
    return op.nn.leakyrelu(g.tensor(n.input(0)), n.float("alpha", 0.01))


def prelu(g: Graph, n: Node) -> Value:
    """PRelu: the slope broadcasts to x."""
    x, slope = g.tensor(n.input(0)), g.tensor(n.input(1))
    return op.where(op.less(x, g.like(0, x)), op.multiply(slope, x), x)


def elu(g: Graph, n: Node) -> Value:
    """Elu: alpha * (exp(x) - 1) where x is negative."""
    x = g.tensor(n.input(0))
    low = op.multiply(g.like(n.float("alpha", 1.0), x), op.subtract(op.exp(x), g.like(1, x)))
    return op.where(op.less(x, g.like(0, x)), low, x)


def celu(g: Graph, n: Node) -> Value:
    """Celu: max(0, x) + min(0, alpha * (exp(x / alpha) - 1))."""
    x, alpha = g.tensor(n.input(0)), n.float("alpha", 1.0)
    low = op.subtract(op.exp(op.divide(x, g.like(alpha, x))), g.like(1, x))
    return op.add(op.maximum(x, g.like(0, x)), op.minimum(op.multiply(g.like(alpha, x), low), g.like(0, x)))


def selu(g: Graph, n: Node) -> Value:
    """Selu: gamma * (x where positive, else alpha * (exp(x) - 1))."""
    x = g.tensor(n.input(0))
    alpha, gamma = n.float("alpha", 1.67326319217681884765625), n.float("gamma", 1.05070102214813232421875)
    low = op.multiply(g.like(alpha, x), op.subtract(op.exp(x), g.like(1, x)))
    return op.multiply(g.like(gamma, x), op.where(op.less_equal(x, g.like(0, x)), low, x))


def gelu(g: Graph, n: Node) -> Value:
    """Gelu, exact or by tanh."""
    x = g.tensor(n.input(0))
    return op.nn.gelu_tanh(x) if n.string("approximate", "none") == "tanh" else op.nn.gelu(x)


def hard_sigmoid(g: Graph, n: Node) -> Value:
    """HardSigmoid: alpha * x + beta, limited to [0, 1]."""
    x = g.tensor(n.input(0))
    return _hard_sigmoid(g, x, n.float("alpha", 0.2), n.float("beta", 0.5))


def _hard_sigmoid(g: Graph, x: relax.Expr, alpha: float, beta: float) -> relax.Expr:
    made: relax.Expr = op.clip(op.add(op.multiply(x, g.like(alpha, x)), g.like(beta, x)), 0.0, 1.0)
    return made


def hard_swish(g: Graph, n: Node) -> Value:
    """HardSwish: x times the hard sigmoid with 1/6 and 1/2."""
    x = g.tensor(n.input(0))
    return op.multiply(x, _hard_sigmoid(g, x, 1 / 6, 0.5))


def softplus(g: Graph, n: Node) -> Value:
    """Softplus: log(1 + exp(x)), without overflow."""
    x = g.tensor(n.input(0))
    return op.log_add_exp(x, g.like(0, x))


def softsign(g: Graph, n: Node) -> Value:
    """Softsign: x / (1 + |x|)."""
    x = g.tensor(n.input(0))
    return op.divide(x, op.add(g.like(1, x), op.abs(x)))


def thresholded_relu(g: Graph, n: Node) -> Value:
    """ThresholdedRelu: x above alpha, else 0."""
    x = g.tensor(n.input(0))
    return op.where(op.greater(x, g.like(n.float("alpha", 1.0), x)), x, g.like(0, x))


def mish(g: Graph, n: Node) -> Value:
    """Mish: x * tanh(softplus(x))."""
    x = g.tensor(n.input(0))
    return op.multiply(x, op.tanh(op.log_add_exp(x, g.like(0, x))))


def dropout(g: Graph, n: Node) -> Value | tuple[Value, ...]:
    """Dropout: x itself, since models run for their results; the mask keeps everything."""
    training = n.input(2)
    if training is not None and (not isinstance(training, Known) or bool(training.only)):
        ratio = n.input(1)
        if not (isinstance(ratio, Known) and float(ratio.only) == 0.0):
            n.unsupported("in training")
    if not n.wants(1):
        return n.input(0)
    return n.input(0), op.ones_like(g.tensor(n.input(0)), dtype("bool"))
