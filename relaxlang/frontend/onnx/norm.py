"""Converters of normalisations."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from relaxlang.base.diagnostics import fail
from relaxlang.frontend.onnx.graph import Graph, item
from relaxlang.frontend.onnx.node import Node
from relaxlang.frontend.onnx.values import Dim, Known, Result, Value
from relaxlang.ir import relax
from relaxlang.ops import python_api as op


def batch_normalization(g: Graph, n: Node) -> Result:
    """BatchNormalization: with the given mean and variance, or in training those of the batch."""
    x = g.tensor(n.input(0))
    given = [g.tensor(n.input(k)) for k in range(1, 5)]
    training = n.flag("training_mode") if n.version >= 14 else False
    if n.version < 14 and any(n.wants(k) for k in range(1, 5)):
        n.unsupported("in training, before version 14")
    made = g.bb.emit(op.nn.batch_norm(
        x, *given, axis=1, epsilon=n.float("epsilon", 1e-5), momentum=1.0 - n.float("momentum", 0.9), training=training
    ))  # fmt: skip
    return tuple(item(made, k) for k in range(3) if n.wants(k) or k == 0)


def layer_normalization(g: Graph, n: Node) -> Result:
    """LayerNormalization over the axes from one on; the mean and the inverse deviation are further outputs."""
    x = g.tensor(n.input(0))
    dims = g.sizes(x)
    first, epsilon = g.axis(n, n.int("axis", -1), len(dims)), n.float("epsilon", 1e-5)
    axes, inner = list(range(first, len(dims))), dims[first:]
    scale = _of_shape(g, n.input(1), inner)
    bias = _of_shape(g, n.input(2), inner) if n.input(2) is not None else op.zeros(inner, g.dtype(x))
    made = op.nn.layer_norm(x, scale, bias, axes=axes, epsilon=epsilon)
    if not (n.wants(1) or n.wants(2)):
        return made
    mean = op.mean(x, axis=axes, keepdims=True)
    spread = op.variance(x, axis=axes, keepdims=True)
    return made, mean, op.rsqrt(op.add(spread, g.like(epsilon, x)))


def _of_shape(g: Graph, value: Value, wanted: Iterable[Dim]) -> relax.Expr:
    """A tensor broadcast to a shape, where it has another."""
    dims = tuple(wanted)
    have = g.sizes(value)
    if len(have) == len(dims) and all(g.equal(a, b) for a, b in zip(have, dims)):
        return g.tensor(value)
    known = tuple(d for d in dims if isinstance(d, int))
    if isinstance(value, Known) and not value.is_symbolic and len(known) == len(dims):
        try:
            return relax.Constant(np.ascontiguousarray(np.broadcast_to(value.data, known)))
        except ValueError:
            fail("RLX8003", f"the scale or bias of shape {value.data.shape} does not broadcast to {known}")
    made: relax.Expr = op.broadcast_to(g.tensor(value), dims)
    return made


def rms_normalization(g: Graph, n: Node) -> Value:
    """RMSNormalization over the axes from one on."""
    x = g.tensor(n.input(0))
    dims = g.sizes(x)
    first = g.axis(n, n.int("axis", -1), len(dims))
    scale = _of_shape(g, n.input(1), dims[first:])
    return op.nn.rms_norm(x, scale, axes=list(range(first, len(dims))), epsilon=n.float("epsilon", 1e-5))


def instance_normalization(g: Graph, n: Node) -> Value:
    """InstanceNormalization: over the spatial axes of each channel of each image."""
    x = g.tensor(n.input(0))
    return op.nn.instance_norm(
        x, g.tensor(n.input(1)), g.tensor(n.input(2)), channel_axis=1, axes=list(range(2, g.rank(x))),
        epsilon=n.float("epsilon", 1e-5),
    )  # fmt: skip


def group_normalization(g: Graph, n: Node) -> Value:
    """GroupNormalization: scale and bias are for each channel since version 21, for each group before."""
    x, groups = g.tensor(n.input(0)), n.int("num_groups")
    scale, bias = g.tensor(n.input(1)), g.tensor(n.input(2))
    channels = g.sizes_of_rank(x, 2, 8)[1]
    if groups < 1:
        n.unsupported(f"with {groups} groups")
    if n.version < 21:
        if not isinstance(channels, int):
            n.unsupported("of as many channels as are known only at run time")
        scale, bias = op.repeat(scale, channels // groups, axis=0), op.repeat(bias, channels // groups, axis=0)
    return op.nn.group_norm(
        x, scale, bias, num_groups=groups, channel_axis=1, axes=list(range(2, g.rank(x))),
        epsilon=n.float("epsilon", 1e-5),
    )  # fmt: skip
