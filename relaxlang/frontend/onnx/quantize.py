"""Converters of quantized arithmetic: real = scale * (quantized - zero point)."""

from __future__ import annotations

import numpy as np

from relaxlang.base.dtype import DType
from relaxlang.frontend.onnx.graph import Graph
from relaxlang.frontend.onnx.node import Node
from relaxlang.frontend.onnx.types import element_type
from relaxlang.frontend.onnx.values import Value
from relaxlang.frontend.onnx.window import convolution
from relaxlang.ir import relax
from relaxlang.ops import python_api as op


def _zero(g: Graph, value: Value, of: DType) -> relax.Expr:
    """A zero point; 0 where it is left out."""
    return relax.Constant(np.zeros((), dtype=of.numpy)) if value is None else g.tensor(value)


def _whole(g: Graph, n: Node, value: relax.Expr, axis: int, like: relax.Expr) -> relax.Expr:
    """A parameter that is one for each block along an axis, repeated for each element."""
    size = g.sizes(like)[axis]
    repeated = op.repeat(value, n.int("block_size"), axis=axis)
    return g.bb.emit(op.strided_slice(repeated, [axis], [0], [size]))


def _in_blocks(n: Node) -> bool:
    return n.int("block_size", 0) > 0


def _parameter(g: Graph, value: relax.Expr, axis: int, rank: int) -> relax.Expr:
    """A scale or zero point of one dimension, shaped so that it broadcasts along an axis."""
    if g.rank(value) != 1:
        return value
    shape: list[object] = [1] * rank
    shape[axis] = g.sizes(value)[0]
    made: relax.Expr = op.reshape(value, tuple(shape))
    return made


def quantize_linear(g: Graph, n: Node) -> Value:
    """QuantizeLinear: to the type of the zero point, or `output_dtype`, or uint8."""
    x, scale = g.tensor(n.input(0)), g.tensor(n.input(1))
    if n.input(2) is not None:
        to = g.dtype(n.input(2))
    elif n.int("output_dtype", 0):
        to = element_type(n.int("output_dtype"), "the result")
    else:
        to = element_type(2, "the result")
    x = x if g.dtype(x).is_float else op.astype(x, "float32")
    if _in_blocks(n):
        return _quantize_blocks(g, n, x, scale, to)
    axis = n.int("axis", 1) if g.rank(scale) == 1 and g.rank(x) else -1
    return op.quantize(x, scale, _zero(g, n.input(2), to), axis=axis, out_dtype=to)


def _quantize_blocks(g: Graph, n: Node, x: relax.Expr, scale: relax.Expr, to: DType) -> Value:
    if not to.is_integer:
        n.unsupported(f"in blocks, to {to}")
    axis = g.axis(n, n.int("axis", 1), g.rank(x))
    steps = op.round(op.divide(op.astype(x, "float32"), op.astype(_whole(g, n, scale, axis, x), "float32")))
    if n.input(2) is not None:
        steps = op.add(steps, op.astype(_whole(g, n, g.tensor(n.input(2)), axis, x), "float32"))
    limits = np.iinfo(to.numpy)
    return op.astype(op.clip(steps, float(limits.min), float(limits.max)), to)


def dequantize_linear(g: Graph, n: Node) -> Value:
    """DequantizeLinear: to the type of the scale."""
    x, scale = g.tensor(n.input(0)), g.tensor(n.input(1))
    if _in_blocks(n):
        axis = g.axis(n, n.int("axis", 1), g.rank(x))
        steps = op.astype(x, g.dtype(scale))
        if n.input(2) is not None:
            steps = op.subtract(steps, op.astype(_whole(g, n, g.tensor(n.input(2)), axis, x), g.dtype(scale)))
        return op.multiply(steps, _whole(g, n, scale, axis, x))
    axis = n.int("axis", 1) if g.rank(scale) == 1 and g.rank(x) else -1
    return op.dequantize(x, scale, _zero(g, n.input(2), g.dtype(x)), axis=axis, out_dtype=g.dtype(scale))


def _centred(g: Graph, value: Value, zero: Value, axis: int | None = None) -> relax.Expr:
    """Quantized numbers without their zero point, as int32."""
    x = g.tensor(value)
    wide = op.astype(x, "int32")
    if zero is None:
        return wide
    shift = op.astype(g.tensor(zero), "int32")
    return op.subtract(wide, shift if axis is None else _parameter(g, shift, axis, g.rank(x)))


def _product(g: Graph, a: Value, a_zero: Value, b: Value, b_zero: Value) -> relax.Expr:
    """The product of quantized matrices without their zero points, in int32. Of bytes the numbers themselves are
    multiplied, which is faster, and what the zero points add is taken away: zero times the sums of the other side."""
    rows = max(g.rank(a) - 2, 0)
    if min(g.rank(a), g.rank(b)) < 2 or {g.dtype(a).bits, g.dtype(b).bits} != {8}:
        left, right = _centred(g, a, a_zero, rows), _centred(g, b, b_zero, -1)
        product: relax.Expr = op.matmul(left, right)
        return product
    x, y, to = g.tensor(a), g.tensor(b), g.dtype(b)
    zero = None if a_zero is None else _parameter(g, op.astype(g.tensor(a_zero), "int32"), rows, g.rank(a))
    if g.dtype(a) is not to:  # other signs: numbers and zero point moved by 128
        step = -128 if to.is_int else 128
        flipped = op.bitwise_xor(x, relax.Constant(np.array(0x80, "uint8").view(g.dtype(a).numpy)))
        x = g.bb.emit(op.astype(flipped, to))
        moved = relax.Constant(np.array(step, "int32"))
        zero = moved if zero is None else op.add(zero, moved)
    product = op.matmul(x, y, out_dtype="int32")
    if zero is not None:
        columns = g.bb.emit(op.sum(op.astype(y, "int32"), axis=-2, keepdims=True))
        product = op.subtract(product, op.multiply(zero, columns))
    if b_zero is not None:
        wide = op.astype(x, "int32")
        sums = g.bb.emit(op.sum(wide if zero is None else op.subtract(wide, zero), axis=-1, keepdims=True))
        shift = _parameter(g, op.astype(g.tensor(b_zero), "int32"), -1, g.rank(b))
        product = op.subtract(product, op.multiply(sums, shift))
    return product


def matmul_integer(g: Graph, n: Node) -> Value:
    """MatMulInteger: in int32."""
    return _product(g, n.input(0), n.input(2), n.input(1), n.input(3))


def conv_integer(g: Graph, n: Node) -> Value:
    """ConvInteger: in int32."""
    weight = g.bb.emit(_centred(g, n.input(1), n.input(3), 0))
    return convolution(g, n, _centred(g, n.input(0), n.input(2)), weight)


def _requantized(g: Graph, sums: relax.Expr, scales: tuple[relax.Expr, ...], zero: Value, of: DType) -> Value:
    """int32 sums times scales[0] * scales[1] / scales[2], rounded, plus a zero point."""
    factor = op.divide(op.multiply(op.astype(scales[0], "float32"), op.astype(scales[1], "float32")),
                       op.astype(scales[2], "float32"))  # fmt: skip
    real = op.multiply(op.astype(sums, "float32"), factor)
    one = relax.Constant(np.ones((), dtype=np.float32))
    return op.quantize(real, one, _zero(g, zero, of), out_dtype=of)


def qlinear_matmul(g: Graph, n: Node) -> Value:
    """QLinearMatMul: inputs a, its scale and zero point; b, its scale and zero point; those of the result."""
    rows = max(g.rank(n.input(0)) - 2, 0)
    sums = _product(g, n.input(0), n.input(2), n.input(3), n.input(5))
    rank = g.rank(sums)
    scales = (
        _parameter(g, g.tensor(n.input(1)), rows, rank), _parameter(g, g.tensor(n.input(4)), -1, rank),
        g.tensor(n.input(6)),
    )  # fmt: skip
    return _requantized(g, sums, scales, n.input(7), g.dtype(n.input(7)))


def qlinear_conv(g: Graph, n: Node) -> Value:
    """QLinearConv: the weight's scale may be for each output channel; the bias is int32."""
    weight = g.bb.emit(_centred(g, n.input(3), n.input(5), 0))
    sums = convolution(g, n, _centred(g, n.input(0), n.input(2)), weight)
    rank = g.rank(sums)
    if n.input(8) is not None:
        sums = op.add(sums, _parameter(g, g.tensor(n.input(8)), 1, rank))
    scales = (g.tensor(n.input(1)), _parameter(g, g.tensor(n.input(4)), 1, rank), g.tensor(n.input(6)))
    return _requantized(g, sums, scales, n.input(7), g.dtype(n.input(7)))
