"""Converters of operators that ONNX Runtime adds when it optimises a model (domain `com.microsoft`)."""

from __future__ import annotations

from relaxlang.frontend.onnx.graph import Graph
from relaxlang.frontend.onnx.node import Node
from relaxlang.frontend.onnx.values import Result, Value
from relaxlang.ir import relax
from relaxlang.ops import python_api as op


def _biased(g: Graph, n: Node) -> relax.Expr:
    """The first input plus the second, where it is given."""
    x = g.tensor(n.input(0))
    return x if n.input(1) is None else op.add(x, g.tensor(n.input(1)))


def gelu(g: Graph, n: Node) -> Value:
    """Gelu, and BiasGelu: of the sum with a bias."""
    return op.nn.gelu(_biased(g, n))


def fast_gelu(g: Graph, n: Node) -> Value:
    """FastGelu: by tanh, of the sum with an optional bias."""
    return op.nn.gelu_tanh(_biased(g, n))


def quick_gelu(g: Graph, n: Node) -> Value:
    """QuickGelu: x * sigmoid(alpha * x)."""
    x = g.tensor(n.input(0))
    return op.multiply(x, op.sigmoid(op.multiply(x, g.like(n.float("alpha", 1.702), x))))


def fused_matmul(g: Graph, n: Node) -> Value:
    """FusedMatMul: alpha times the product, of operands whose last two axes may be exchanged first."""
    if n.flag("transBatchA") or n.flag("transBatchB"):
        n.unsupported("with batch axes that are exchanged")
    operands = []
    for k, flag in enumerate(("transA", "transB")):
        x = g.tensor(n.input(k))
        rank = g.rank(x)
        if n.flag(flag) and rank > 1:
            x = op.permute_dims(x, [*range(rank - 2), rank - 1, rank - 2])
        operands.append(x)
    made, alpha = op.matmul(*operands), n.float("alpha", 1.0)
    return made if alpha == 1.0 else op.multiply(made, g.like(alpha, made))


def _skipped(g: Graph, n: Node, bias: int) -> relax.Var:
    """The input plus what skipped a layer, plus a bias where it is given."""
    total = op.add(g.tensor(n.input(0)), g.tensor(n.input(1)))
    return g.bb.emit(total if n.input(bias) is None else op.add(total, g.tensor(n.input(bias))))


def skip_layer_normalization(g: Graph, n: Node) -> Result:
    """SkipLayerNormalization: input, skip, gamma, beta, bias. The fourth output is the sum that is normalised."""
    total = _skipped(g, n, 4)
    if n.wants(1) or n.wants(2):
        n.unsupported("with the mean or the deviation as an output")
    beta = g.tensor(n.input(3)) if n.input(3) is not None else op.zeros(g.sizes(n.input(2)), g.dtype(total))
    made = op.nn.layer_norm(total, g.tensor(n.input(2)), beta, axes=[-1], epsilon=n.float("epsilon", 1e-12))
    return made, None, None, total


def skip_rms_normalization(g: Graph, n: Node) -> Result:
    """SkipSimplifiedLayerNormalization: input, skip, gamma, bias. The fourth output is the sum that is normalised."""
    total = _skipped(g, n, 3)
    if n.wants(1) or n.wants(2):
        n.unsupported("with the mean or the deviation as an output")
    made = op.nn.rms_norm(total, g.tensor(n.input(2)), axes=[-1], epsilon=n.float("epsilon", 1e-12))
    return made, None, None, total
