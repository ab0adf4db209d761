"""What the operators mean, by numpy: for each a reference function and inputs on which both must agree."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(7)


class Case(NamedTuple):
    """One call `R.name(*args, **attrs)` and what it must give, within a relative error of `rtol`."""

    name: str
    args: tuple[Any, ...]
    attrs: dict[str, Any]
    expected: Any
    rtol: float

    def __str__(self) -> str:
        shapes = ",".join("x".join(map(str, a.shape)) + str(a.dtype) for a in self.args if isinstance(a, np.ndarray))
        attrs = ",".join(f"{k}={v}" for k, v in self.attrs.items() if not isinstance(v, np.ndarray))
        return f"{self.name}[{shapes}{';' + attrs if attrs else ''}]"


CASES: list[Case] = []
REFERENCES: list[Callable[..., Any]] = []
"""What gave each case its expected value."""


def case(name: str, *args: Any, ref: Callable[..., Any], rtol: float = 2e-6, **attrs: Any) -> None:
    """Enter a case; the reference gets the arguments and the attributes."""
    args = tuple(np.asarray(a) if isinstance(a, np.generic) else a for a in args)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as for means of nothing
        expected = ref(*args, **attrs)
    CASES.append(Case(name, args, attrs, expected, rtol))
    REFERENCES.append(ref)


def floats(*shape: int, dtype: str = "float32") -> Array:
    """Ordinary numbers, of both signs."""
    return RNG.uniform(-3, 3, shape).astype(dtype)


def ints(*shape: int, low: int = -9, high: int = 10, dtype: str = "int32") -> Array:
    """Small integers."""
    return RNG.integers(low, high, shape).astype(dtype)


SHAPES = ((3, 4), (), (0, 3), (1,), (2, 1, 5))
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 3e38, 1e-40], "float32")


# --- one tensor, element by element -----------------------------------------------------------------------------------
def _erf(x: Array) -> Array:
    from math import erf

    return np.vectorize(erf, otypes=["float64"])(x).astype(x.dtype) if x.size else x


def _sigmoid(x: Array) -> Array:
    wide = x.astype("float64")
    return (1 / (1 + np.exp(-wide))).astype(x.dtype)


def _wide(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda x: function(x.astype("float64")).astype(x.dtype)


FLOAT_UNARY: dict[str, Callable[..., Any]] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "cos": np.cos,
    "cosh": np.cosh,
    "exp": np.exp,
    "log": np.log,
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
    "erf": _erf,
    "sigmoid": _sigmoid,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "nn.silu": _wide(lambda x: x * _sigmoid(x)),
    "nn.gelu": _wide(lambda x: 0.5 * x * (1 + _erf(x / np.sqrt(2)))),
    "nn.gelu_tanh": _wide(lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))),
    "nn.selu": _wide(lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * (np.exp(x) - 1))),
    "nn.softplus": _wide(lambda x: np.where(x > 20, x, np.log1p(np.exp(x)))),
}
ANY_UNARY: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "ceil": np.ceil,
    "floor": np.floor,
    "round": np.round,
    "trunc": np.trunc,
    "negative": np.negative,
    "sign": np.sign,
    "square": np.square,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "logical_not": np.logical_not,
    "nn.relu": lambda x: np.maximum(x, x.dtype.type(0)),
    "nn.relu6": lambda x: np.clip(x, 0, 6).astype(x.dtype),
    "zeros_like": np.zeros_like,
    "ones_like": np.ones_like,
}
INT_IDENTITY = ("ceil", "floor", "round", "trunc")


def unary() -> None:
    for name, ref in {**FLOAT_UNARY, **ANY_UNARY}.items():
        for shape in SHAPES:
            x = floats(*shape)
            if name in ("acos", "asin", "atanh"):
                x = (x / 3).astype("float32")
            case(name, np.abs(x) + 1 if name == "acosh" else x, ref=ref)
        if not name.startswith("nn."):
            case(name, SPECIAL, ref=ref)
    for name, ref in ANY_UNARY.items():
        if name not in ("isnan", "isinf", "isfinite"):
            case(name, ints(3, 4), ref=(lambda x: x) if name in INT_IDENTITY else ref)
    case("round", np.array([0.5, 1.5, 2.5, -0.5, -1.5], "float32"), ref=np.round)
    case("nn.relu", SPECIAL, ref=lambda x: np.maximum(x, np.float32(0)))
    case("bitwise_not", ints(3, 4), ref=np.invert)
    case("bitwise_not", ints(5, low=0, high=2, dtype="bool"), ref=np.invert)
    for to in ("int32", "float64", "bool", "int8", "float16"):
        case("astype", floats(3, 4), dtype=to, ref=lambda x, dtype: x.astype(dtype))
        case("astype", ints(3, 4), dtype=to, ref=lambda x, dtype: x.astype(dtype))
    for low, high in ((-1, 1), (0.5, 2.5)):
        case("clip", floats(3, 4), low, high, ref=lambda x, a, b: np.clip(x, a, b).astype(x.dtype))
    case("clip", SPECIAL, -1, 1, ref=lambda x, a, b: np.clip(x, a, b).astype(x.dtype))
    case(
        "clip", ints(9, low=0, high=200, dtype="uint8"), -5, 100, ref=lambda x, a, b: np.minimum(x, 100).astype("uint8")
    )
    case("nn.leakyrelu", floats(3, 4), alpha=0.2, ref=lambda x, alpha: np.where(x > 0, x, x * np.float32(alpha)))
    case("nn.prelu", floats(2, 3, 2), floats(3), ref=lambda x, a: np.where(x > 0, x, x * a[:, None]))
    case("nn.dropout", floats(3, 4), rate=0.3, ref=lambda x, rate: (x, np.ones_like(x)))


# --- two tensors ------------------------------------------------------------------------------------------------------
BROADCAST = (
    ((3, 4), (3, 4)),
    ((3, 4), (4,)),
    ((3, 1), (1, 4)),
    ((), (2, 3)),
    ((2, 1, 3), (5, 1)),
    ((0, 3), (1, 3)),
    ((1,), (1,)),
)
BINARY: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "floor_divide": np.floor_divide,
    "floor_mod": np.mod,
    "mod": np.fmod,
}
FLOAT_BINARY: dict[str, Callable[..., Any]] = {
    "divide": np.divide,
    "atan2": np.arctan2,
    "log_add_exp": np.logaddexp,
    "power": lambda a, b: np.power(np.abs(a), b),
}
INT_BINARY: dict[str, Callable[..., Any]] = {
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}


def _truncated(a: Array, b: Array) -> Array:
    return np.trunc(a.astype("float64") / b).astype(a.dtype)


def binary() -> None:
    for name, ref in {**BINARY, **FLOAT_BINARY}.items():
        for left, right in BROADCAST:
            a, b = floats(*left), floats(*right)
            case(name, np.abs(a) if name == "power" else a, b, ref=ref)
    for name in ("add", "subtract", "multiply", "maximum", "minimum", "equal", "less", "divide", "atan2"):
        pairs = np.meshgrid(SPECIAL, SPECIAL, indexing="ij")
        case(name, pairs[0], pairs[1], ref={**BINARY, **FLOAT_BINARY}[name])
    nonzero = ints(3, 4)
    nonzero[nonzero == 0] = 5
    for name, ref in {**BINARY, **INT_BINARY}.items():
        case(name, ints(3, 4), nonzero, ref=ref)
    case("divide", ints(3, 4), nonzero, ref=_truncated)
    case("mod", ints(3, 4), nonzero, ref=np.fmod)
    case("power", ints(3, 4, low=-3, high=4), ints(3, 4, low=0, high=4), ref=np.power)
    case("left_shift", ints(3, 4, low=0), ints(4, low=0, high=8), ref=np.left_shift)
    case("right_shift", ints(3, 4, low=-999, high=999), ints(4, low=0, high=8), ref=np.right_shift)
    case(
        "log_add_exp",
        np.array([np.inf, -np.inf, 1000.0], "float32"),
        np.array([np.inf, -np.inf, -1000.0], "float32"),
        ref=np.logaddexp,
    )
    for shapes in (((3, 4), (3, 4), (4,)), ((3, 1), (1, 4), ()), ((4,), (3, 4), (1, 4))):
        c, x, y = RNG.random(shapes[0]) < 0.5, floats(*shapes[1]), floats(*shapes[2])
        case("where", c, x, y, ref=np.where)
    case("ewise_fma", floats(3, 4), floats(3, 4), floats(3, 4), ref=lambda a, b, c: a * b + c, rtol=1e-5)


# --- reductions -------------------------------------------------------------------------------------------------------
def _as(function: Callable[..., Any]) -> Callable[..., Any]:
    """A reduction of numpy in the dtype of its input."""
    return lambda x, axis=None, keepdims=False: np.asarray(function(x, axis=_axes(axis), keepdims=keepdims)).astype(
        x.dtype
    )


def _axes(axis: Any) -> Any:
    return tuple(axis) if isinstance(axis, list) else axis


AXES: tuple[Any, ...] = (None, 0, -1, [0, -1], [1])


def reductions() -> None:
    table = {
        "sum": np.sum,
        "prod": np.prod,
        "max": np.max,
        "min": np.min,
        "mean": np.mean,
        "variance": np.var,
        "std": np.std,
    }
    for name, function in table.items():
        for axis in AXES:
            for keep in (False, True):
                case(name, floats(3, 4, 2), axis=axis, keepdims=keep, ref=_as(function), rtol=1e-5)
        case(name, floats(), ref=_as(function), rtol=1e-5)
        case(name, floats(1, 5), axis=0, ref=_as(function), rtol=1e-5)
        case(name, floats(0, 3), axis=1, ref=_as(function))
        case(name, SPECIAL[:3], ref=_as(function))
        case(
            name,
            floats(40, 50, dtype="float16"),
            axis=1,
            rtol=2e-3,
            ref=lambda x, axis, f=function: f(x.astype("float32"), axis=axis).astype("float16"),
        )
    for name in ("sum", "prod"):
        case(name, floats(3, 0), axis=1, ref=_as(table[name]))
    for name in ("sum", "max", "min"):
        case(name, ints(3, 4), axis=1, ref=_as(table[name]))
    case("prod", RNG.random((3, 4)) < 0.8, axis=1, ref=lambda x, axis: np.all(x, axis))
    case("mean", ints(3, 4), axis=1, ref=lambda x, axis: np.trunc(x.sum(axis) / 4).astype("int32"))
    for name, function in (("argmax", np.argmax), ("argmin", np.argmin)):
        for axis in (None, 0, -1, 1):
            for keep in (False, True):
                case(
                    name,
                    ints(3, 4, 2, low=0, high=3).astype("float32"),
                    axis=axis,
                    keepdims=keep,
                    ref=lambda x, axis, keepdims, f=function: f(x, axis=axis, keepdims=keepdims),
                )
        case(name, ints(5, 9, low=0, high=3), axis=1, ref=lambda x, axis, f=function: f(x, axis=axis))
        nans = floats(4, 5)
        nans[1, 3] = nans[1, 2] = nans[2, 0] = np.nan
        case(name, nans, axis=1, ref=lambda x, axis, f=function: f(x, axis=axis))
        case(name, np.full((2, 3), -np.inf, "float32"), axis=1, ref=lambda x, axis, f=function: f(x, axis=axis))
    case("collapse_sum_to", floats(4, 2, 3), (2, 1), ref=lambda x, s: x.sum((0, 2)).reshape(2, 1), rtol=1e-5)
    case("collapse_sum_like", floats(4, 2, 3), floats(3), ref=lambda x, t: x.sum((0, 1)), rtol=1e-5)
    for axis in (None, 0, -1):
        for to in (None, "float64"):
            for name, scan in (("cumsum", np.cumsum), ("cumprod", np.cumprod)):
                case(
                    name,
                    floats(3, 4),
                    axis=axis,
                    dtype=to,
                    rtol=1e-5,
                    ref=lambda x, axis, dtype, f=scan: f(x, axis=axis, dtype=dtype),
                )
    case("cumsum", floats(2, 3, 4), axis=1, ref=lambda x, axis: np.cumsum(x, axis), rtol=1e-5)
    case(
        "cumsum",
        ints(2, 3),
        axis=1,
        exclusive=True,
        ref=lambda x, axis, exclusive: np.cumsum(x, axis, dtype="int32") - x,
    )
    case("cumsum", floats(0), ref=np.cumsum)
    case(
        "cumsum", RNG.random(4) < 0.5, axis=0, dtype="int32", ref=lambda x, axis, dtype: np.cumsum(x, axis, dtype=dtype)
    )


# --- creation ---------------------------------------------------------------------------------------------------------
def creation() -> None:
    case("full", (2, 3), np.array(1.5, "float32"), ref=lambda s, v: np.full(s, v))
    case("full", (2, 0), np.array(7, "int32"), dtype="float16", ref=lambda s, v, dtype: np.full(s, v, dtype))
    case("full_like", floats(2, 3), np.array(3, "int32"), ref=lambda x, v: np.full_like(x, v))
    case("zeros", (2, 3), dtype="int8", ref=lambda s, dtype: np.zeros(s, dtype))
    case("ones", (), dtype="float32", ref=lambda s, dtype: np.ones(s, dtype))
    for bounds in ((5, 0, -2), (0, 7, 2), (3, 3, 1), (2, 9, 3), (9, 2, 3), (5,)):
        case("arange", *bounds, ref=lambda *b: np.arange(*b, dtype="int64"))
    for bounds in ((0.0, 1.0, 0.25), (1.0, 0.0, -0.3), (0.0, 1.0, 0.3)):
        case("arange", *bounds, ref=lambda *b: np.arange(*b, dtype="float32"))
    case("eye", 3, ref=lambda n: np.eye(n, dtype="float32"))
    case("eye", 2, 4, -1, dtype="int32", ref=lambda n, m, k, dtype: np.eye(n, m, k, dtype))
    case("eye_like", floats(3, 4), 1, ref=lambda x, k: np.eye(3, 4, k, "float32"))
    for k in (0, 1, -2):
        case("tril", floats(2, 3, 4), k, ref=np.tril)
        case("triu", floats(2, 3, 4), k, ref=np.triu)
    case(
        "hamming_window",
        6,
        False,
        0.54,
        0.46,
        dtype="float32",
        ref=lambda n, p, a, b, dtype: np.hamming(n).astype(dtype),
        rtol=1e-5,
    )
    case(
        "one_hot",
        ints(2, 3, low=0, high=4),
        5,
        0,
        depth=4,
        ref=lambda i, on, off, depth: np.eye(4, dtype="int64")[i] * 5,
    )
    case(
        "one_hot",
        ints(2, 3, low=0, high=4),
        1.0,
        0.0,
        depth=4,
        axis=1,
        ref=lambda i, on, off, depth, axis: np.moveaxis(np.eye(4)[i], -1, 1),
    )
    case("shape_to_tensor", (2, 3, 4), ref=lambda s: np.array(s))
    case("size", floats(2, 3), ref=lambda x: np.array(6))
    a, b, c = floats(2), floats(3), floats(4)
    for indexing in ("ij", "xy"):
        case(
            "meshgrid", (a, b, c), indexing=indexing, ref=lambda t, indexing: tuple(np.meshgrid(*t, indexing=indexing))
        )


# --- shapes -----------------------------------------------------------------------------------------------------------
def shapes() -> None:
    x = floats(2, 3, 4)
    for shape in ((4, 6), (-1,), (3, -1, 2), (24, 1), (2, 0, 4), (0, -1)):
        want = [x.shape[k] if d == 0 else d for k, d in enumerate(shape)]
        case("reshape", x, shape, ref=lambda x, s, want=want: x.reshape(want))
    case("reshape", floats(), (1, 1), ref=np.reshape)
    for shape in SHAPES:
        case("flatten", floats(*shape), ref=np.ravel)
        case("permute_dims", floats(*shape), ref=np.transpose)
    case("nn.batch_flatten", x, ref=lambda x: x.reshape(2, 12))
    for axes in ((2, 0, 1), (0, 2, 1), (-1, 0, 1)):
        case("permute_dims", x, axes, ref=np.transpose)
    for axis in (0, -1, [0, 2], [0, -1], 1):
        case("expand_dims", x, axis=axis, ref=lambda x, axis: np.expand_dims(x, _axes(axis)))
    for axis in (None, 0, [0, 2], -2):
        case(
            "squeeze",
            floats(1, 3, 1, 1),
            axis=axis if axis != -2 else [-2],
            ref=lambda x, axis: np.squeeze(x, _axes(axis)),
        )
    for shape, to in (((3, 1), (3, 4)), ((4,), (2, 3, 4)), ((), (2, 2)), ((1, 3), (0, 3))):
        case("broadcast_to", floats(*shape), to, ref=np.broadcast_to)
    for axis in (0, -1, 1):
        case("flip", x, axis=axis, ref=np.flip)
    for repeats in (2, (2, 1), (2, 1, 3), (2, 1, 1, 2), (0,)):
        case("tile", floats(2, 3), repeats, ref=np.tile)
    for axis in (None, 0, -1):
        case("repeat", floats(2, 3), 3, axis=axis, ref=lambda x, n, axis: np.repeat(x, n, axis))
    for axis in (0, 1, -1):
        parts = (floats(2, 3), floats(2, 3), floats(2, 3))
        case("concat", parts, axis=axis, ref=np.concatenate)
        case("stack", parts, axis=axis, ref=np.stack)
    case("concat", (floats(2, 3), floats(0, 3), floats(4, 3)), axis=0, ref=np.concatenate)
    case("concat", (floats(2, 3), floats(5)), axis=None, ref=lambda t, axis: np.concatenate([p.ravel() for p in t]))
    for parts, axis in ((3, 0), (2, -1), ([2, 4], 0), ([1], 1), ([2, 9, 4], 0), ([-2], 0)):
        case("split", floats(6, 4), parts, axis=axis, ref=lambda x, p, axis: tuple(np.split(x, p, axis)))
    case("split", floats(7, 3), 3, ref=lambda x, p: (x[:3], x[3:6], x[6:]))


def slices() -> None:
    x = floats(6, 5)
    for begin, end, step in (
        (1, 4, 1),
        (-3, 6, 1),
        (0, -1, 2),
        (5, -7, -1),
        (4, -100, -2),
        (0, 100, 3),
        (4, 2, 1),
        (-1, 0, -2),
        (7, 9, 1),
    ):
        case(
            "strided_slice",
            x,
            axes=(0,),
            begin=(begin,),
            end=(end,),
            strides=(step,),
            ref=lambda x, axes, begin, end, strides: x[_slice(begin[0], end[0], strides[0], 6)],
        )
    case("strided_slice", x, axes=(0, -1), begin=(1, 2), end=(5, 4), ref=lambda x, axes, begin, end: x[1:5, 2:4])
    case(
        "strided_slice",
        x,
        axes=(1,),
        begin=(1,),
        end=(4,),
        assume_inbound=True,
        ref=lambda x, axes, begin, end, assume_inbound: x[:, 1:4],
    )
    case(
        "dynamic_strided_slice",
        x,
        np.array([1, 4]),
        np.array([5, 0]),
        np.array([2, -1]),
        ref=lambda x, b, e, s: x[1:5:2, 4:0:-1],
    )

    def scatter(x: Array, src: Array, start: int, end: int, step: int, axis: int) -> Array:
        out = x.copy()
        out[(slice(None),) * axis + (slice(start, end, step),)] = src
        return out

    case("slice_scatter", x, floats(2, 5), start=1, end=5, step=2, axis=0, ref=scatter)
    case("slice_scatter", x, floats(6, 3), start=2, end=100, step=1, axis=1, ref=scatter)


def _slice(begin: int, end: int, step: int, size: int) -> slice:
    return slice(begin, None if step < 0 and end < -size else end, step)


for _family in (unary, binary, reductions, creation, shapes, slices):
    _family()
