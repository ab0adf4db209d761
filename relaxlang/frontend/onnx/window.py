"""Converters of what slides a window over images: convolutions and pooling, in 1, 2 and 3 dimensions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from relaxlang.frontend.onnx.graph import Graph
from relaxlang.frontend.onnx.node import Node
from relaxlang.frontend.onnx.values import Dim, Known, Value
from relaxlang.ir import prim, relax
from relaxlang.ops import python_api as op

_AXES = {1: "W", 2: "HW", 3: "DHW"}
_CONV = {1: op.nn.conv1d, 2: op.nn.conv2d, 3: op.nn.conv3d}
_TRANSPOSED = {1: op.nn.conv1d_transpose, 2: op.nn.conv2d_transpose, 3: op.nn.conv3d_transpose}
_MAX = {1: op.nn.max_pool1d, 2: op.nn.max_pool2d, 3: op.nn.max_pool3d}
_AVERAGE = {1: op.nn.avg_pool1d, 2: op.nn.avg_pool2d, 3: op.nn.avg_pool3d}


class Window:
    """What the attributes of a window say: its size, and strides, dilations and padding (all before, then all after)
    for each of `count` axes."""

    def __init__(self, g: Graph, n: Node, dims: tuple[Dim, ...], kernel: tuple[int, ...]) -> None:
        self.count = len(kernel)
        self.kernel = kernel
        self.strides: tuple[int, ...] = n.ints("strides", (1,) * self.count)
        self.dilations: tuple[int, ...] = n.ints("dilations", (1,) * self.count)
        self.padding: tuple[Dim, ...] = n.ints("pads", (0,) * (2 * self.count))
        lengths = {len(self.strides), len(self.dilations), len(self.padding) / 2}
        if lengths != {self.count} or len(dims) != self.count:
            n.unsupported(f"with attributes for another number of axes than the {self.count} of the window")
        if min((*self.kernel, *self.strides, *self.dilations), default=1) < 1:
            n.unsupported("with sizes, strides or dilations below 1")
        how = n.string("auto_pad", "NOTSET")
        if how in ("SAME_UPPER", "SAME_LOWER"):
            self.padding = self._same(g, dims, how == "SAME_LOWER")
        elif how == "VALID":
            self.padding = (0,) * (2 * self.count)

    def _same(self, g: Graph, dims: tuple[Dim, ...], more_before: bool) -> tuple[Dim, ...]:
        """The padding that makes the output ceil(size / stride) long."""
        before: list[Dim] = []
        after: list[Dim] = []
        for d, k, s, dilation in zip(dims, self.kernel, self.strides, self.dilations):
            reach = (k - 1) * dilation + 1
            if isinstance(d, int):
                total: Dim = max((-(-d // s) - 1) * s + reach - d, 0)
                small: Dim = total // 2
            else:
                steps = prim.FloorDiv(*prim.match(d + (s - 1), s)) - 1
                total = g.simplify(prim.Max(*prim.match(steps * s + reach - d, 0)))
                small = g.simplify(total // 2 if isinstance(total, int) else prim.FloorDiv(*prim.match(total, 2)))
            large = g.simplify(total - small)
            before.append(large if more_before else small)
            after.append(small if more_before else large)
        return (*before, *after)


def _spatial(g: Graph, n: Node, x: relax.Expr) -> tuple[Dim, ...]:
    """The dimensions after batch and channel."""
    dims = g.sizes(x)
    if len(dims) - 2 not in _AXES:
        n.unsupported(f"of a tensor with {len(dims)} dimensions")
    return dims[2:]


def with_bias(g: Graph, x: relax.Expr, bias: Value) -> relax.Expr:
    """`x` plus one number for each channel, its second dimension."""
    if bias is None:
        return x
    size = g.sizes_of_rank(bias, 1)[0]
    shape = (-1, *([1] * (g.rank(x) - 2)))
    if isinstance(bias, Known) and not bias.is_symbolic and not g.keep_parameters:
        added: relax.Expr = relax.Constant(bias.data.reshape(1, *shape))
    else:
        added = op.reshape(g.tensor(bias), (1, size, *([1] * (g.rank(x) - 2))))
    made: relax.Expr = op.add(x, added)
    return made


def _kernel(g: Graph, n: Node, weight: Value) -> tuple[int, ...]:
    """The window of a convolution: the attribute, or else the weight's shape."""
    dims = g.sizes(weight)[2:]
    known = tuple(d for d in dims if isinstance(d, int))
    if len(known) != len(dims):
        n.unsupported("with a weight whose shape is not known")
    if n.has("kernel_shape") and n.ints("kernel_shape") != known:
        n.unsupported(f"with a weight of another shape than `kernel_shape` says: {known}")
    return known


def conv(g: Graph, n: Node) -> Value:
    """Conv."""
    return with_bias(g, convolution(g, n, g.tensor(n.input(0)), n.input(1)), n.input(2))


def convolution(g: Graph, n: Node, x: relax.Expr, weight: Value) -> relax.Expr:
    """The convolution that a node's attributes ask for."""
    w = Window(g, n, _spatial(g, n, x), _kernel(g, n, weight))
    axes = _AXES[w.count]
    made: relax.Expr = g.bb.emit(_CONV[w.count](
        x, g.tensor(weight), strides=w.strides, padding=w.padding, dilation=w.dilations, groups=n.int("group", 1),
        data_layout="NC" + axes, kernel_layout="OI" + axes,
    ))  # fmt: skip
    return made


def conv_transpose(g: Graph, n: Node) -> Value:
    """ConvTranspose; `output_shape` states the result's size instead of the padding."""
    x = g.tensor(n.input(0))
    spatial = _spatial(g, n, x)
    kernel = _kernel(g, n, n.input(1))
    w = Window(g, n, (1,) * len(kernel), kernel)
    extra = n.ints("output_padding", (0,) * w.count)
    if len(extra) != w.count:
        n.unsupported(f"with an `output_padding` of {len(extra)} numbers for {w.count} axes")
    padding, more = w.padding, [0] * w.count
    if n.has("output_shape") or n.string("auto_pad", "NOTSET").startswith("SAME"):
        wanted = n.ints("output_shape", ())[-w.count :]
        if wanted and len(wanted) != w.count:
            n.unsupported(f"with an `output_shape` of {len(wanted)} numbers for {w.count} axes")
        before: list[Dim] = []
        after: list[Dim] = []
        for k, d in enumerate(spatial):
            if not isinstance(d, int):
                n.unsupported("with `output_shape` for a dimension that is not known")
            size = wanted[k] if wanted else d * w.strides[k]
            total = w.strides[k] * (d - 1) + extra[k] + (kernel[k] - 1) * w.dilations[k] + 1 - size
            more[k], total = max(-total, 0), max(total, 0)
            upper = n.string("auto_pad", "NOTSET") == "SAME_UPPER"
            before.append(total // 2 if upper else total - total // 2)
            after.append(total - total // 2 if upper else total // 2)
        padding = (*before, *after)
    # What is added at the end may not reach the stride in the operator; the rest are plain zeros.
    kept = tuple(e if e < s or e < d else 0 for e, s, d in zip(extra, w.strides, w.dilations))
    more = [m + e - k for m, e, k in zip(more, extra, kept)]
    axes = _AXES[w.count]
    made = g.bb.emit(_TRANSPOSED[w.count](
        x, g.tensor(n.input(1)), strides=w.strides, padding=padding, output_padding=kept, dilation=w.dilations,
        groups=n.int("group", 1), data_layout="NC" + axes, kernel_layout="IO" + axes,
    ))  # fmt: skip
    if any(more):
        made = g.bb.emit(op.nn.pad(made, [0, 0, 0, 0, *(v for m in more for v in (0, m))], "constant", 0.0))
    return with_bias(g, made, n.input(2))


# --- pooling ----------------------------------------------------------------------------------------------------------
def _pool(g: Graph, n: Node, x: relax.Expr, operators: dict[int, Any], **options: Any) -> relax.Expr:
    w = Window(g, n, _spatial(g, n, x), n.ints("kernel_shape"))
    made: relax.Expr = operators[w.count](
        x, pool_size=w.kernel, strides=w.strides, padding=w.padding, dilation=w.dilations,
        ceil_mode=n.flag("ceil_mode"), layout="NC" + _AXES[w.count], **options,
    )  # fmt: skip
    return made


def max_pool(g: Graph, n: Node) -> Value:
    """MaxPool, without the indices."""
    if n.wants(1):
        n.unsupported("with the indices as a second output")
    return _pool(g, n, g.tensor(n.input(0)), _MAX)


def average_pool(g: Graph, n: Node) -> Value:
    """AveragePool: the padding counts only with `count_include_pad`."""
    return _pool(g, n, g.tensor(n.input(0)), _AVERAGE, count_include_pad=n.flag("count_include_pad"))


def lp_pool(g: Graph, n: Node) -> Value:
    """LpPool: the norm of each window."""
    x, p = g.tensor(n.input(0)), n.int("p", 2)
    if p < 1:
        n.unsupported(f"with a norm of order {p}")
    power = op.power(op.abs(x), g.like(p, x))
    mean = _pool(g, n, power, _AVERAGE, count_include_pad=True)
    total = op.multiply(mean, g.like(math.prod(n.ints("kernel_shape")), x))
    return op.power(total, g.like(1 / p, x))


def _over_space(call: Any) -> Any:
    def convert(g: Graph, n: Node) -> Value:
        x = g.tensor(n.input(0))
        made: Value = call(x, axis=list(range(2, g.rank(x))), keepdims=True)
        return made

    return convert


global_average_pool, global_max_pool = _over_space(op.mean), _over_space(op.max)


def local_response_normalization(g: Graph, n: Node) -> Value:
    """LRN: x / (bias + alpha / size * the sum of squares of neighbouring channels) ** beta."""
    x, size = g.tensor(n.input(0)), n.int("size")
    rank, channels = g.rank(x), g.sizes_of_rank(x, 2, 8)[1]
    if size < 1:
        n.unsupported(f"over {size} channels")
    before = (size - 1) // 2
    widths = [0] * (2 * rank)
    widths[2], widths[3] = before, size - 1 - before
    squares = g.bb.emit(op.nn.pad(op.multiply(x, x), widths, "constant", 0.0))
    total = None
    for k in range(size):
        part = op.strided_slice(squares, [1], [k], [g.simplify(channels + k)])
        total = part if total is None else op.add(total, part)
    scale = g.like(n.float("alpha", 0.0001) / size, x)
    base = op.add(g.like(n.float("bias", 1.0), x), op.multiply(scale, total))
    return op.divide(x, op.power(base, g.like(n.float("beta", 0.75), x)))


# --- padding ----------------------------------------------------------------------------------------------------------
_MODES = {"constant": "constant", "reflect": "reflect", "edge": "edge", "wrap": "circular"}


def pad(g: Graph, n: Node) -> Value:
    """Pad; a negative width takes elements away. The widths were an attribute until version 10."""
    x = g.tensor(n.input(0))
    rank, mode = g.rank(x), n.string("mode", "constant")
    if mode not in _MODES:
        n.unsupported(f"in the mode `{mode}`")
    pads = n.ints("pads") if n.version < 11 else g.dims(n.input(1), "the pads")
    axes = g.axes(n, g.ints(n.input(3), "the axes"), rank) if n.input(3) is not None else tuple(range(rank))
    if len(pads) != 2 * len(axes):
        n.unsupported(f"with {len(pads)} widths for {len(axes)} axes")
    widths: list[Dim] = [0] * (2 * rank)
    for k, a in enumerate(axes):
        begin, end = pads[k], pads[len(axes) + k]
        cut = (begin if isinstance(begin, int) and begin < 0 else 0, end if isinstance(end, int) and end < 0 else 0)
        if any(cut):
            x = op.strided_slice(x, [a], [-cut[0]], [g.simplify(g.sizes(x)[a] + cut[1])])
        widths[2 * a], widths[2 * a + 1] = begin if not cut[0] else 0, end if not cut[1] else 0
    if all(isinstance(w, int) and w == 0 for w in widths):
        return x
    value: float | int = 0
    if n.version < 11:
        value = n.float("value", 0.0)
    elif n.input(2) is not None and mode == "constant":
        if not isinstance(n.input(2), Known):
            inside = op.astype(op.nn.pad(op.ones_like(x, "uint8"), widths, "constant", 0), "bool")
            return op.where(inside, op.nn.pad(x, widths, "constant", 0), op.reshape(g.tensor(n.input(2)), ()))
        given = g.constant(n.input(2), "the padding's value").reshape(-1)
        value = given[0].item() if given.size else 0
    if g.dtype(x).is_bool:
        return op.astype(op.nn.pad(op.astype(x, "uint8"), widths, _MODES[mode], int(value)), "bool")
    return op.nn.pad(x, widths, _MODES[mode], float(value) if g.dtype(x).is_float else int(value))


def col_to_image(g: Graph, n: Node) -> Value:
    """Col2Im: columns laid back into an image, with sums where they overlap."""
    x = g.tensor(n.input(0))
    image, block = g.ints(n.input(1), "the image's shape"), g.ints(n.input(2), "the block's shape")
    w = Window(g, n, image, block)
    batch, columns, _ = g.sizes_of_rank(x, 3)
    if w.count not in _AXES or not isinstance(columns, int):
        n.unsupported("of blocks with more than 3 dimensions")
    count, pads = math.prod(block), n.ints("pads", (0,) * (2 * w.count))
    channels = columns // count
    room = [image[k] + pads[k] + pads[w.count + k] - w.dilations[k] * (block[k] - 1) - 1 for k in range(w.count)]
    lanes = [room[k] // w.strides[k] + 1 for k in range(w.count)]
    # A transposed convolution with one channel for each element of the block lays each where it belongs.
    laid = op.reshape(x, (batch, columns, *lanes))
    one_hot = np.zeros((columns, 1, *block), dtype=g.dtype(x).numpy)
    for c in range(columns):
        one_hot[c].reshape(-1)[c % count] = 1
    axes = _AXES[w.count]
    lost = [room[k] % w.strides[k] for k in range(w.count)]
    return op.reshape(
        _TRANSPOSED[w.count](
            laid, relax.Constant(one_hot), strides=w.strides, padding=w.padding, output_padding=tuple(lost),
            dilation=w.dilations, groups=channels, data_layout="NC" + axes, kernel_layout="IO" + axes,
        ),
        (batch, channels, *image),
    )  # fmt: skip
