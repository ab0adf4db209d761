"""Converters of matrix products."""

from __future__ import annotations

import numpy as np

from relaxlang.frontend.onnx.graph import Graph
from relaxlang.frontend.onnx.node import Node
from relaxlang.frontend.onnx.values import Known, Value
from relaxlang.ir import relax
from relaxlang.ops import python_api as op


def matmul(g: Graph, n: Node) -> Value:
    """MatMul, as numpy's."""
    return op.matmul(g.tensor(n.input(0)), g.tensor(n.input(1)))


def transposed(g: Graph, value: Value) -> relax.Expr:
    """A matrix with its axes exchanged; a constant at once."""
    if isinstance(value, Known) and not value.is_symbolic and not g.keep_parameters:
        return relax.Constant(np.ascontiguousarray(value.data.T))
    made: relax.Expr = op.permute_dims(g.tensor(value), [1, 0])
    return made


def gemm(g: Graph, n: Node) -> Value:
    """Gemm: alpha * A B + beta * C."""
    a = transposed(g, n.input(0)) if n.flag("transA") else g.tensor(n.input(0))
    b = transposed(g, n.input(1)) if n.flag("transB") else g.tensor(n.input(1))
    alpha, beta = n.float("alpha", 1.0), n.float("beta", 1.0)
    made = op.matmul(a, b)
    if alpha != 1.0:
        made = op.multiply(made, g.like(alpha, a))
    if n.input(2) is None or beta == 0.0:
        return made
    c = g.tensor(n.input(2))
    return op.add(made, c if beta == 1.0 else op.multiply(c, g.like(beta, c)))


def einsum(g: Graph, n: Node) -> Value:
    """Einsum."""
    return op.einsum(tuple(g.tensor(v) for v in n.inputs), n.string("equation").replace(" ", ""))


def det(g: Graph, n: Node) -> Value:
    """Det of matrices of 2 by 2 and 3 by 3."""
    x = g.tensor(n.input(0))
    rank, size = g.rank(x), g.sizes_of_rank(x, 2, 8)[-1]
    if not isinstance(size, int) or size not in (2, 3):
        n.unsupported("of matrices larger than 3 by 3")
    rows = [[op.squeeze(op.strided_slice(x, [rank - 2, rank - 1], [i, j], [i + 1, j + 1]), [rank - 2, rank - 1])
             for j in range(size)] for i in range(size)]  # fmt: skip

    def minor(a: int, b: int, c: int, d: int) -> relax.Expr:
        """Of rows a and b and columns c and d."""
        made: relax.Expr = op.subtract(op.multiply(rows[a][c], rows[b][d]), op.multiply(rows[a][d], rows[b][c]))
        return made

    if size == 2:
        return minor(0, 1, 0, 1)
    first = op.subtract(op.multiply(rows[0][0], minor(1, 2, 1, 2)), op.multiply(rows[0][1], minor(1, 2, 0, 2)))
    return op.add(first, op.multiply(rows[0][2], minor(1, 2, 0, 1)))
