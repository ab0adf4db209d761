"""Random calls of the operators that take windows, layouts, several tensors of related shapes, or options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from test_infer_oracle import Call, Dice, Tensor

CALLS: dict[str, Callable[[Dice], Call]] = {}


def calls(*names: str) -> Callable[[Callable[[Dice], Call]], Callable[[Dice], Call]]:
    """Enter a maker of calls under these operators."""

    def enter(make: Callable[[Dice], Call]) -> Callable[[Dice], Call]:
        CALLS.update(dict.fromkeys(names, make))
        return make

    return enter


def maybe(dice: Dice, chance: float = 0.15) -> bool:
    """Whether to do something unusual."""
    return dice.random.random() < chance


# --- layouts ----------------------------------------------------------------------------------------------------------
def layouts(letters: str, inner: str) -> list[str]:
    """Layouts of a tensor with these dimensions: plain ones, in other orders, and with blocks of `inner` dimensions."""
    a, b = inner[0], inner[-1]
    spatial = letters[2:]
    return [
        letters, letters, letters[0] + spatial + letters[1], letters[0] + spatial[::-1] + letters[1],
        f"{letters}2{b.lower()}", f"{letters}4{b.lower()}", f"{letters[0]}{spatial}{letters[1]}2{b.lower()}",
        f"{letters}2{a.lower()}2{b.lower()}", f"{letters}2{letters[-1].lower()}",
    ]  # fmt: skip


def laid_out(dims: dict[str, Any], layout: str) -> Tensor:
    """A tensor with given dimensions in a layout; a block of a variable is one that is known."""
    shape: list[Any] = []
    number = ""
    blocks: dict[str, int] = {}
    for c in layout:
        if c.isdigit():
            number += c
        elif c.islower():
            blocks[c.upper()], number = int(number), ""
    for c in layout:
        if c.isupper():
            d, block = dims[c], blocks.get(c, 1)
            shape.append(d if block == 1 or isinstance(d, str) else -(-d // block))
        elif c.islower():
            shape.append(blocks[c.upper()])
    return Tensor(*shape)


def sizes(dice: Dice, axes: str, low: int, high: int) -> dict[str, int]:
    return {c: dice.random.randint(low, high) for c in axes}


def each(dice: Dice, count: int, choices: list[int]) -> Any:
    """One number for all dimensions, or one for each; now and then a wrong number of them."""
    if maybe(dice, 0.4):
        return dice.random.choice(choices)
    wrong = dice.random.choice([-1, 1]) if maybe(dice, 0.05) else 0
    return tuple(dice.random.choice(choices) for _ in range(max(count + wrong, 1)))


def padding(dice: Dice, count: int) -> Any:
    return each(dice, dice.random.choice([count, 2 * count]), [0, 1, 2])


def _convolution(axes: str, transposed: bool) -> Callable[[Dice], Call]:
    kernel = "IO" if transposed else "OI"

    def make(dice: Dice) -> Call:
        groups = dice.random.choice([1, 1, 1, 2])
        data_layout = dice.random.choice(layouts("NC" + axes, "NC"))
        kernel_layout = dice.random.choice(layouts(kernel + axes, kernel))
        channels = dice.random.choice([4, 8])
        dims = {"N": dice.dim(), "C": channels, **sizes(dice, axes, 4, 9)}
        inner = channels if transposed else channels // groups
        weight = {"I": inner if not maybe(dice, 0.08) else inner + 4, "O": dice.random.choice([4, 8, 6])}
        weight |= sizes(dice, axes, 1, 3)
        count = len(axes)
        attrs = {
            "strides": each(dice, count, [1, 2, 3]), "padding": padding(dice, count),
            "dilation": each(dice, count, [1, 1, 2]), "groups": groups, "data_layout": data_layout,
            "kernel_layout": kernel_layout,
            "out_layout": dice.random.choice([None, None, *layouts("NC" + axes, "NC")]),
            "out_dtype": dice.random.choice([None, "float16", "float64"]),
        }  # fmt: skip
        if transposed:
            attrs["output_padding"] = each(dice, count, [0, 0, 1])
        return [laid_out(dims, data_layout), laid_out(weight, kernel_layout)], attrs

    return make


def _pooling(axes: str, averages: bool) -> Callable[[Dice], Call]:
    def make(dice: Dice) -> Call:
        layout = dice.random.choice(layouts("NC" + axes, "NC"))
        dims = {"N": dice.dim(), "C": dice.random.choice([4, 8]), **sizes(dice, axes, 4, 10)}
        count = len(axes)
        return [laid_out(dims, layout)], {
            "pool_size": each(dice, count, [1, 2, 3]), "strides": each(dice, count, [1, 2, 3]),
            "padding": padding(dice, count), "dilation": each(dice, count, [1, 1, 2]), "ceil_mode": maybe(dice, 0.5),
            "count_include_pad": averages and maybe(dice, 0.5), "layout": layout,
            "out_layout": dice.random.choice([None, None, *layouts("NC" + axes, "NC")]),
        }  # fmt: skip

    return make


def _adaptive(axes: str) -> Callable[[Dice], Call]:
    def make(dice: Dice) -> Call:
        layout = dice.random.choice(layouts("NC" + axes, "NC"))
        dims = {"N": dice.dim(), "C": 4, **sizes(dice, axes, 4, 10)}
        size = None if maybe(dice) else each(dice, len(axes), [1, 2, 3])
        return [laid_out(dims, layout)], {
            "output_size": size, "layout": layout,
            "out_layout": dice.random.choice([None, None, *layouts("NC" + axes, "NC")]),
        }  # fmt: skip

    return make


for _axes in ("W", "HW", "DHW"):
    _n = len(_axes)
    calls(f"nn.conv{_n}d")(_convolution(_axes, False))
    calls(f"nn.conv{_n}d_transpose")(_convolution(_axes, True))
    calls(f"nn.max_pool{_n}d")(_pooling(_axes, False))
    calls(f"nn.avg_pool{_n}d")(_pooling(_axes, True))
    calls(f"nn.adaptive_avg_pool{_n}d")(_adaptive(_axes))


def _resizing(axes: str) -> Callable[[Dice], Call]:
    def make(dice: Dice) -> Call:
        layout = dice.random.choice(layouts("NC" + axes, "NC"))
        dims = {"N": dice.dim(), "C": dice.dim(), **sizes(dice, axes, 2, 8)}
        count = len(axes) if not maybe(dice, 0.1) else len(axes) + dice.random.choice([-1, 1])
        return [laid_out(dims, layout), tuple(dice.random.randint(1, 9) for _ in range(count))], {
            "layout": layout, "method": dice.random.choice(["linear", "nearest_neighbor", "cubic"]),
            "out_dtype": dice.random.choice([None, None, "float16"]),
        }  # fmt: skip

    return make


calls("image.resize2d")(_resizing("HW"))
calls("image.resize3d")(_resizing("DHW"))


@calls("image.grid_sample")
def _grid_sample(dice: Dice) -> Call:
    layout = dice.random.choice(["NCHW", "NHWC", "NCHW2c"])
    n = dice.dim()
    data = laid_out({"N": n, "C": 4, "H": dice.dim(), "W": dice.dim()}, layout)
    grid = Tensor(n if not maybe(dice) else dice.dim(), 2 if not maybe(dice, 0.1) else 3, dice.dim(), dice.dim())
    return [data, grid], {"layout": layout, "method": dice.random.choice(["bilinear", "nearest", "bicubic"])}


@calls("image.affine_grid")
def _affine_grid(dice: Dice) -> Call:
    return [
        Tensor(dice.dim(), 2, 3 if not maybe(dice) else 2),
        (dice.random.randint(1, 5), dice.random.randint(1, 5)),
    ], {}


@calls("vision.roi_align", "vision.roi_pool")
def _regions(dice: Dice) -> Call:
    attrs = {"pooled_size": each(dice, 2, [1, 2, 3]), "spatial_scale": 0.5, "layout": "NCHW"}
    return [
        dice.tensor(4, 4) if not maybe(dice) else dice.tensor(3, 5),
        Tensor(dice.dim(), 5 if not maybe(dice) else 4),
    ], attrs


# --- normalisation ----------------------------------------------------------------------------------------------------
def _along(shape: tuple[Any, ...], axes: list[int], dice: Dice) -> Tensor:
    """Values for some axes of a tensor; now and then of another shape."""
    rank = len(shape)
    dims = [shape[a] if -rank <= a < rank else 2 for a in axes]
    return Tensor(*dims) if not maybe(dice, 0.08) else Tensor(*dims[:-1], 5)


@calls("nn.layer_norm")
def _layer_norm(dice: Dice) -> Call:
    shape = dice.shape(1, 4)
    axes = sorted(dice.random.sample(range(len(shape)), dice.random.randint(1, len(shape))))
    axes = axes if maybe(dice, 0.5) else [a - len(shape) for a in axes]
    given = _along(shape, axes, dice)
    return [Tensor(*shape), given, given], {"axes": axes if len(axes) > 1 or maybe(dice, 0.5) else axes[0]}


@calls("nn.rms_norm")
def _rms_norm(dice: Dice) -> Call:
    args, attrs = _layer_norm(dice)
    return args[:2], attrs


@calls("nn.group_norm")
def _group_norm(dice: Dice) -> Call:
    shape = (dice.dim(), dice.random.choice([4, 6, "m"]), dice.dim(), dice.dim())
    channel, axes = dice.random.choice([1, 1, 1, -3, 2]), dice.random.choice([[2, 3], [-1, -2], [2], [1, 2], [4]])
    given = _along(shape, [channel], dice)
    attrs = {"num_groups": dice.random.choice([1, 2, 3]), "channel_axis": channel, "axes": axes}
    return [Tensor(*shape), given, given], attrs


@calls("nn.instance_norm")
def _instance_norm(dice: Dice) -> Call:
    shape = dice.shape(4, 4)
    given = _along(shape, [1], dice)
    return [Tensor(*shape), given, given], {"channel_axis": 1, "axes": dice.random.choice([[2, 3], [-1, -2], [2]])}


@calls("nn.batch_norm")
def _batch_norm(dice: Dice) -> Call:
    shape = dice.shape(1, 4)
    axis = dice.axis(len(shape))
    given = _along(shape, [axis], dice)
    return [Tensor(*shape), given, given, given, given], {"axis": axis, "training": maybe(dice, 0.5)}


@calls("nn.prelu")
def _prelu(dice: Dice) -> Call:
    shape = dice.shape(1, 4)
    axis = dice.axis(len(shape))
    return [Tensor(*shape), _along(shape, [axis], dice)], {"axis": axis}


# --- attention, losses ------------------------------------------------------------------------------------------------
@calls("nn.attention")
def _attention(dice: Dice) -> Call:
    b, s, t, n, h = dice.dim(), dice.dim(), dice.dim(), dice.random.choice([2, 4]), dice.random.choice([4, 8])
    heads = n if not maybe(dice) else dice.random.choice([1, 3])
    q, k, v = Tensor(b, s, n, h), Tensor(b, t, heads, h), Tensor(b, t, heads, dice.random.choice([h, 6]))
    bias = dice.random.choice([None, None, Tensor(b, n, s, t), Tensor(b, 1, s, t), Tensor(1, n, 1, t), Tensor(b, t)])
    return [q, k, v, *([bias] if bias is not None else [])], {}


@calls("nn.nll_loss")
def _nll_loss(dice: Dice) -> Call:
    shape = dice.shape(1, 4)
    target = shape[:1] + shape[2:] if len(shape) > 1 else ()
    if maybe(dice, 0.1):
        target = dice.shape(0, 2)
    classes = shape[1] if len(shape) > 1 else shape[0]
    weights = [] if maybe(dice, 0.5) else [Tensor(classes)]
    return [Tensor(*shape), Tensor(*target, of="int64"), *weights], {
        "reduction": dice.random.choice(["none", "sum", "mean"])
    }


@calls("nn.cross_entropy_with_logits")
def _cross_entropy(dice: Dice) -> Call:
    shape = dice.shape(1, 2)
    return [Tensor(*shape), Tensor(*(shape if not maybe(dice) else dice.shape(1, 2)))], {}


@calls("nn.leakyrelu", "nn.softplus", "nn.selu", "nn.gelu_tanh", "tan", "asinh", "logical_not", "bitwise_not", "trunc")
@calls("isfinite", "isinf", "acosh", "atan", "atanh", "cosh", "sinh", "cos", "asin", "exp", "floor")
def _unary(dice: Dice) -> Call:
    return [dice.tensor(of=dice.of())], {}


@calls("nn.dropout")
def _dropout(dice: Dice) -> Call:
    return [dice.tensor()], {"rate": 0.5}


@calls("nn.pad")
def _pad(dice: Dice) -> Call:
    x = dice.tensor(1, 4)
    count = 2 * len(x.shape) if not maybe(dice, 0.1) else 2 * len(x.shape) - 1
    return [x, [dice.random.randint(0, 3) for _ in range(count)]], {}


@calls("nn.pixel_shuffle")
def _pixel_shuffle(dice: Dice) -> Call:
    return [Tensor(*dice.shape(0, 2), dice.random.choice([4, 8, 9]), dice.dim(), dice.dim())], {
        "upscale_factor": dice.random.choice([1, 2, 3])
    }


@calls("nn.batch_flatten", "flatten")
def _flatten(dice: Dice) -> Call:
    return [dice.tensor(0, 4)], {}


# --- elementwise, with several tensors --------------------------------------------------------------------------------
@calls("mod", "floor_mod", "minimum", "not_equal", "less_equal", "greater", "logical_and", "bitwise_xor", "left_shift")
@calls("right_shift", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "atan2", "log_add_exp")
def _binary(dice: Dice) -> Call:
    of = dice.of()
    a = dice.tensor(of=of)
    b = [d if dice.random.random() < 0.7 else 1 for d in a.shape[dice.random.randint(0, len(a.shape)) :]]
    return [a, Tensor(*b, of=of)], {}


@calls("where")
def _where(dice: Dice) -> Call:
    shape = dice.shape(0, 3)
    parts = [
        [d if dice.random.random() < 0.7 else 1 for d in shape[dice.random.randint(0, len(shape)) :]] for _ in "abc"
    ]
    return [Tensor(*parts[0], of="bool"), Tensor(*parts[1]), Tensor(*parts[2])], {}


@calls("ewise_fma")
def _fma(dice: Dice) -> Call:
    x = dice.tensor(0, 3)
    return [x, x, x if not maybe(dice) else dice.tensor(0, 3)], {}


@calls("astype")
def _astype(dice: Dice) -> Call:
    return [dice.tensor(of=dice.of()), dice.of()], {}


# --- shapes -----------------------------------------------------------------------------------------------------------
@calls("reshape")
def _reshape(dice: Dice) -> Call:
    x = Tensor(*[dice.random.choice([2, 3, 4, 6]) for _ in range(dice.random.randint(1, 3))])
    shape = dice.random.choice([(-1,), (2, -1), (-1, 3), (0, -1), (4, 6), (2, 2, -1), (0, 0, -1), (-1, -1)])
    return [x, shape], {}


@calls("squeeze")
def _squeeze(dice: Dice) -> Call:
    shape = [d if maybe(dice, 0.5) else 1 for d in dice.shape(1, 4)]
    return [Tensor(*shape)], {"axis": dice.axes(len(shape))}


@calls("broadcast_to")
def _broadcast_to(dice: Dice) -> Call:
    shape = [dice.random.choice([1, 2, 3]) for _ in range(dice.random.randint(0, 3))]
    to = [dice.random.choice([2, 3])] * dice.random.randint(0, 1) + [
        d if d != 1 or maybe(dice, 0.3) else 3 for d in shape
    ]
    return [Tensor(*shape), tuple(to)], {}


@calls("collapse_sum_to")
def _collapse(dice: Dice) -> Call:
    shape = [dice.random.choice([1, 2, 3]) for _ in range(dice.random.randint(0, 3))]
    to = [d if maybe(dice, 0.6) else 1 for d in shape[dice.random.randint(0, len(shape)) :]]
    return [Tensor(*shape), tuple(to)], {}


@calls("collapse_sum_like")
def _collapse_like(dice: Dice) -> Call:
    shape = [dice.random.choice([1, 2, 3]) for _ in range(dice.random.randint(0, 3))]
    to = [d if maybe(dice, 0.6) else 1 for d in shape[dice.random.randint(0, len(shape)) :]]
    return [Tensor(*shape), Tensor(*to)], {}


@calls("tile")
def _tile(dice: Dice) -> Call:
    return [dice.tensor(0, 3), [dice.random.randint(1, 3) for _ in range(dice.random.randint(1, 4))]], {}


@calls("repeat")
def _repeat(dice: Dice) -> Call:
    x = dice.tensor(0, 3)
    return [x, dice.random.randint(1, 3)], {"axis": dice.random.choice([None, dice.axis(len(x.shape))])}


@calls("tril", "triu", "eye_like")
def _triangle(dice: Dice) -> Call:
    return [dice.tensor(1, 4)], {"k": dice.random.randint(-2, 2)}


@calls("meshgrid")
def _meshgrid(dice: Dice) -> Call:
    return [tuple(dice.tensor(1, 1) for _ in range(dice.random.randint(1, 3)))], {
        "indexing": dice.random.choice(["ij", "xy"])
    }


@calls("concat")
def _concat(dice: Dice) -> Call:
    shape = dice.shape(1, 3)
    axis = dice.axis(len(shape))
    at = axis % len(shape)
    parts = [Tensor(*(shape[:at] + (dice.dim(),) + shape[at + 1 :])) for _ in range(dice.random.randint(1, 3))]
    return [tuple(parts)], {"axis": axis}


@calls("split")
def _split(dice: Dice) -> Call:
    x = Tensor(dice.random.choice([6, 7, "n", 1]), dice.dim())
    parts = dice.random.choice([1, 2, 3, [1, 3], [2], [3, 9], [0, 2]])
    return [x, parts], {"axis": dice.random.choice([0, -2])}


@calls("strided_slice")
def _strided_slice(dice: Dice) -> Call:
    x = dice.tensor(1, 3)
    axes = dice.random.sample(range(len(x.shape)), dice.random.randint(1, len(x.shape)))
    r = dice.random.randint
    return [x], {
        "axes": axes, "begin": [r(-3, 3) for _ in axes], "end": [r(-3, 8) for _ in axes],
        "strides": dice.random.choice([None, [dice.random.choice([1, 1, 2, -1]) for _ in axes]]),
    }  # fmt: skip


# --- indices ----------------------------------------------------------------------------------------------------------
@calls("take")
def _take(dice: Dice) -> Call:
    x = dice.tensor(1, 3)
    return [x, dice.tensor(0, 2, of=dice.random.choice(["int64", "int32", "float32"]))], {
        "axis": dice.random.choice([None, dice.axis(len(x.shape))]),
        "mode": dice.random.choice(["fast", "wrap", "clip"]),
    }  # fmt: skip


@calls("gather_nd")
def _gather_nd(dice: Dice) -> Call:
    x = dice.tensor(1, 4)
    return [x, Tensor(*dice.shape(0, 2), dice.random.randint(1, len(x.shape) + 1), of="int64")], {
        "batch_dims": dice.random.choice([0, 0, 1])
    }


@calls("scatter_elements")
def _scatter_elements(dice: Dice) -> Call:
    shape = dice.shape(1, 3)
    other = shape if not maybe(dice) else dice.shape(1, 3)
    return [Tensor(*shape), Tensor(*shape, of="int64"), Tensor(*other)], {
        "axis": dice.axis(len(shape)), "reduction": dice.random.choice(["update", "add", "mul", "min", "max", "mean"]),
    }  # fmt: skip


@calls("scatter_nd")
def _scatter_nd(dice: Dice) -> Call:
    shape = dice.shape(1, 3)
    depth = dice.random.randint(1, len(shape))
    lead = dice.shape(0, 2)
    updates = (*lead, *shape[depth:]) if not maybe(dice) else dice.shape(0, 3)
    return [Tensor(*shape), Tensor(*lead, depth, of="int64"), Tensor(*updates)], {}


@calls("one_hot")
def _one_hot(dice: Dice) -> Call:
    return [dice.tensor(0, 3, of="int64"), 1, 0, dice.random.randint(1, 4)], {"axis": dice.axis(3)}


@calls("index_tensor")
def _index_tensor(dice: Dice) -> Call:
    x = dice.tensor(1, 3)
    shape = dice.shape(0, 2)
    return [x, tuple(Tensor(*shape, of="int64") for _ in range(dice.random.randint(1, len(x.shape))))], {}


@calls("slice_scatter")
def _slice_scatter(dice: Dice) -> Call:
    start, end, step = dice.random.randint(0, 3), dice.random.randint(3, 6), dice.random.choice([1, 2])
    length = -(-(end - start) // step) if not maybe(dice) else 5
    return [Tensor(6, 4), Tensor(length, 4), start, end, step], {"axis": dice.random.choice([0, -2])}


@calls("reverse_sequence")
def _reverse_sequence(dice: Dice) -> Call:
    x = dice.tensor(2, 3)
    return [x, Tensor(x.shape[0] if not maybe(dice) else dice.dim(), of="int64")], {"seq_axis": 1, "batch_axis": 0}


# --- the rest ---------------------------------------------------------------------------------------------------------
@calls("einsum")
def _einsum(dice: Dice) -> Call:
    d = {c: dice.dim() for c in "ijkb"}
    text = dice.random.choice(["ij,jk->ik", "bij,bjk->bik", "ij->ji", "ii->i", "ij->", "ij,jk", "i,j->ij", "ij,kj"])
    operands = tuple(Tensor(*[d[c] for c in part]) for part in text.split("->")[0].split(","))
    return [operands, text], {}


@calls("outer")
def _outer(dice: Dice) -> Call:
    return [dice.tensor(1, 1) if not maybe(dice) else dice.tensor(0, 2), dice.tensor(1, 1)], {}


@calls("quantize", "dequantize")
def _quantize(dice: Dice) -> Call:
    shape = dice.shape(1, 3)
    axis = dice.axis(len(shape))
    one = _along(shape, [axis], dice) if maybe(dice, 0.6) else Tensor()
    return [Tensor(*shape), one, Tensor(*one.shape, of="int8")], {"axis": axis}


@calls("sort", "argsort")
def _sort(dice: Dice) -> Call:
    x = dice.tensor(1, 3)
    return [x], {"axis": dice.axis(len(x.shape)), "descending": maybe(dice, 0.5)}


@calls("topk")
def _topk(dice: Dice) -> Call:
    x = dice.tensor(1, 3)
    return [x], {
        "k": dice.random.choice([-1, 1, 2, 3]), "axis": dice.axis(len(x.shape)),
        "ret_type": dice.random.choice(["both", "values", "indices"]), "dtype": dice.random.choice(["int32", "int64"]),
    }  # fmt: skip


@calls("median")
def _median(dice: Dice) -> Call:
    x = dice.tensor(1, 3)
    return [x], {"axis": dice.random.choice([None, [dice.axis(len(x.shape))]]), "keepdims": maybe(dice, 0.5)}


@calls("bucketize")
def _bucketize(dice: Dice) -> Call:
    return [dice.tensor(0, 3), dice.tensor(1, 1) if not maybe(dice) else dice.tensor(2, 2)], {
        "out_int32": maybe(dice, 0.5), "right": maybe(dice, 0.5),
    }  # fmt: skip


@calls("unique")
def _unique(dice: Dice) -> Call:
    x = dice.tensor(1, 3)
    flags = {f"return_{n}": maybe(dice, 0.5) for n in ("index", "inverse", "counts")}
    return [x], {"sorted": True, "axis": dice.random.choice([None, dice.axis(len(x.shape))]), **flags}


@calls("nonzero")
def _nonzero(dice: Dice) -> Call:
    return [dice.tensor(0, 3)], {}
