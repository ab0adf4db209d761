"""Shape rules against apache-tvm: the same calls on random shapes, with constants and with variables.

Both must infer the same dtype and rank, and where both know a dimension it must have the same value for values of the
variables. Where one refuses a call the other must refuse it too, unless `STRICT` says why not. Knowing
more than TVM is fine. Tensors of different dtypes are not mixed: TVM lets some pairs through, relaxlang none.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.base.dtype import dtype
from relaxlang.interp import Interpreter
from relaxlang.interp.expr import Frame
from relaxlang.ir import prim, relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.prim import INT64
from relaxlang.ir.struct_info import StructInfo, TensorStructInfo, TupleStructInfo, tensor_info
from relaxlang.ops import default_operators

pytestmark = pytest.mark.extra("tvm")
OPERATORS = default_operators()
ROUNDS = 60
SIZES = {"n": 4, "m": 6}


class Tensor:
    """An argument: its dimensions are ints, or names of variables."""

    def __init__(self, *shape: int | str, of: str = "float32") -> None:
        self.shape = shape
        self.of = of

    def __repr__(self) -> str:
        return f"{self.of}{self.shape}"


# --- random calls -----------------------------------------------------------------------------------------------------
class Dice:
    """Random arguments, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def dim(self) -> int | str:
        """A dimension: mostly a small number, sometimes 1 or a variable."""
        return self.random.choice([1, 2, 3, 4, 6, "n", "m"])

    def shape(self, low: int = 0, high: int = 4) -> tuple[int | str, ...]:
        """A shape of a random rank."""
        return tuple(self.dim() for _ in range(self.random.randint(low, high)))

    def tensor(self, low: int = 0, high: int = 4, of: str = "float32") -> Tensor:
        """A tensor of a random shape."""
        return Tensor(*self.shape(low, high), of=of)

    def axis(self, rank: int) -> int:
        """An axis, sometimes one beyond the range."""
        return (
            self.random.randint(-rank, rank)
            if self.random.random() < 0.2
            else self.random.randint(-rank, max(rank - 1, 0))
        )

    def axes(self, rank: int) -> Any:
        """None, an axis, or several."""
        pick = self.random.random()
        if pick < 0.25 or rank == 0:
            return None
        if pick < 0.6:
            return self.axis(rank)
        return [self.axis(rank) for _ in range(self.random.randint(1, rank))]

    def of(self) -> str:
        """A dtype."""
        return self.random.choice(["float32", "float16", "int32", "int64", "bool"])


Call = tuple[list[Any], dict[str, Any]]
MAKERS: dict[str, Callable[[Dice], Call]] = {}


def calls(*names: str) -> Callable[[Callable[[Dice], Call]], Callable[[Dice], Call]]:
    """Enter a maker of calls under these operators."""

    def enter(make: Callable[[Dice], Call]) -> Callable[[Dice], Call]:
        MAKERS.update(dict.fromkeys(names, make))
        return make

    return enter


@calls(
    "exp",
    "log",
    "sqrt",
    "rsqrt",
    "tanh",
    "sigmoid",
    "erf",
    "sin",
    "acos",
    "nn.gelu",
    "nn.silu",
    "abs",
    "negative",
    "ceil",
    "round",
    "isnan",
    "square",
    "sign",
    "nn.relu",
    "zeros_like",
    "ones_like",
)
def _unary(dice: Dice) -> Call:
    return [dice.tensor(of=dice.of())], {}


@calls("add", "subtract", "multiply", "divide", "maximum", "power", "equal", "less", "greater_equal", "floor_divide")
def _binary(dice: Dice) -> Call:
    of = dice.of()
    a = dice.tensor(of=of)
    b = [d if dice.random.random() < 0.7 else dice.dim() for d in a.shape[dice.random.randint(0, len(a.shape)) :]]
    return [a, Tensor(*b, of=of)], {}


@calls("sum", "prod", "max", "min", "mean", "variance", "std")
def _reduce(dice: Dice) -> Call:
    x = dice.tensor(0, 4, of=dice.random.choice(["float32", "float16"]))
    return [x], {"axis": dice.axes(len(x.shape)), "keepdims": dice.random.random() < 0.5}


@calls("argmax", "argmin")
def _arg(dice: Dice) -> Call:
    x = dice.tensor(1, 4)
    return [x], {"axis": dice.random.choice([None, dice.axis(len(x.shape))]), "keepdims": dice.random.random() < 0.5}


@calls("nn.softmax", "nn.log_softmax", "flip", "sort", "argsort")
def _axis(dice: Dice) -> Call:
    x = dice.tensor(1, 4)
    return [x], {"axis": dice.axis(len(x.shape))}


@calls("cumsum", "cumprod")
def _scan(dice: Dice) -> Call:
    x = dice.tensor(1, 3, of=dice.random.choice(["float32", "int32"]))
    return [x], {
        "axis": dice.random.choice([None, dice.axis(len(x.shape))]),
        "dtype": dice.random.choice([None, "float64"]),
    }


@calls("matmul")
def _matmul(dice: Dice) -> Call:
    k = dice.dim()
    batch = dice.shape(0, 2)
    a = (*batch, dice.dim(), k) if dice.random.random() < 0.8 else (k,)
    other = k if dice.random.random() < 0.85 else dice.dim()
    b = (*batch[dice.random.randint(0, len(batch)) :], other, dice.dim()) if dice.random.random() < 0.8 else (other,)
    return [Tensor(*a), Tensor(*b)], {"out_dtype": dice.random.choice([None, "float64"])}


@calls("permute_dims")
def _permute(dice: Dice) -> Call:
    x = dice.tensor(0, 4)
    axes = list(range(len(x.shape)))
    dice.random.shuffle(axes)
    return [x], {"axes": dice.random.choice([None, axes])}


@calls("expand_dims")
def _expand(dice: Dice) -> Call:
    x = dice.tensor(0, 3)
    return [x], {"axis": dice.random.choice([dice.axis(len(x.shape) + 1), [0, -1]])}


@calls("concat", "stack")
def _join(dice: Dice) -> Call:
    x = dice.tensor(1, 3)
    return [(x, x, x)], {"axis": dice.axis(len(x.shape))}


@calls("split")
def _split(dice: Dice) -> Call:
    x = Tensor(6, 4)
    return [x, dice.random.choice([2, 3, [1, 3], [2]])], {"axis": dice.axis(2)}


@calls("take")
def _take(dice: Dice) -> Call:
    x = dice.tensor(1, 3)
    return [x, dice.tensor(0, 2, of="int64")], {"axis": dice.axis(len(x.shape))}


@calls("tile", "repeat")
def _repeat(dice: Dice) -> Call:
    return [dice.tensor(1, 3), dice.random.randint(1, 3)], {}


@calls("gather_elements")
def _gather(dice: Dice) -> Call:
    shape = dice.shape(1, 3)
    return [Tensor(*shape), Tensor(*shape, of="int64")], {"axis": dice.axis(len(shape))}


@calls("nn.conv2d")
def _conv2d(dice: Dice) -> Call:
    groups = dice.random.choice([1, 1, 2])
    layout = dice.random.choice(["NCHW", "NHWC"])
    dims = {"N": dice.dim(), "C": 4, "H": dice.random.randint(3, 12), "W": dice.random.randint(3, 12)}
    channels = 4 // groups if dice.random.random() < 0.9 else 3
    weight = Tensor(6, channels, dice.random.randint(1, 3), dice.random.randint(1, 3))
    return [Tensor(*[dims[c] for c in layout]), weight], {
        "strides": dice.random.choice([1, 2, (2, 1)]),
        "padding": dice.random.choice([0, 1, (1, 0), (1, 0, 2, 1)]),
        "dilation": dice.random.choice([1, 2]),
        "groups": groups,
        "data_layout": layout,
    }


@calls("nn.max_pool2d", "nn.avg_pool2d")
def _pool2d(dice: Dice) -> Call:
    return [Tensor(dice.dim(), 3, dice.random.randint(4, 12), dice.random.randint(4, 12))], {
        "pool_size": dice.random.choice([2, 3, (3, 2)]),
        "strides": dice.random.choice([1, 2, 3]),
        "padding": dice.random.choice([0, 1]),
        "ceil_mode": dice.random.random() < 0.5,
    }


@calls("nn.conv2d_transpose")
def _transposed(dice: Dice) -> Call:
    stride = dice.random.choice([1, 2, 3])
    return [
        Tensor(dice.dim(), 4, dice.random.randint(3, 8), dice.random.randint(3, 8)),
        Tensor(4, 3, dice.random.randint(1, 3), 3),
    ], {
        "strides": stride,
        "padding": dice.random.choice([0, 1]),
        "output_padding": dice.random.randint(0, stride),
    }


@calls("strided_slice")
def _slice(dice: Dice) -> Call:
    begin, end = dice.random.randint(-8, 8), dice.random.randint(-8, 8)
    step = dice.random.choice([1, 1, 2, -1, -2, 3])
    return [Tensor(dice.random.choice([6, "n", 1]), 4)], {
        "axes": [0],
        "begin": [begin],
        "end": [end],
        "strides": [step],
    }


@calls("topk")
def _topk(dice: Dice) -> Call:
    return [Tensor(dice.dim(), 6)], {
        "k": dice.random.randint(1, 4),
        "ret_type": dice.random.choice(["both", "values", "indices"]),
    }


# --- both sides -------------------------------------------------------------------------------------------------------
def ours(name: str, args: list[Any], attrs: dict[str, Any]) -> StructInfo | None:
    """What relaxlang infers; None when it refuses the call."""
    variables = {v: prim.SizeVar(v, INT64) for v in SIZES}

    def convert(value: Any) -> Any:
        if isinstance(value, tuple) and any(isinstance(v, Tensor) for v in value):
            return tuple(convert(v) for v in value)
        if not isinstance(value, Tensor):
            return value
        dims = tuple(variables[d] if isinstance(d, str) else prim.IntImm(INT64, d) for d in value.shape)
        return relax.Var("x", tensor_info(dims, dtype(value.of)))

    try:
        return OPERATORS.infer(OPERATORS.make_call(name, [convert(a) for a in args], attrs, None))
    except DiagnosticError:
        return None


def theirs(name: str, args: list[Any], attrs: dict[str, Any]) -> Any:
    """What apache-tvm infers; None when it refuses the call."""
    import tvm
    from tvm import relax as rx
    from tvm.script import relax as R

    variables = {v: tvm.tirx.Var(v, "int64") for v in SIZES}

    def convert(value: Any) -> Any:
        if isinstance(value, tuple) and any(isinstance(v, Tensor) for v in value):
            return [convert(v) for v in value]
        if not isinstance(value, Tensor):
            return value
        return rx.Var("x", R.Tensor([variables[d] if isinstance(d, str) else d for d in value.shape], value.of))

    op = rx.op
    for part in name.split("."):
        op = getattr(op, part)
    try:
        return rx.BlockBuilder().normalize(op(*[convert(a) for a in args], **attrs)).ty, variables
    except (tvm.error.InternalError, ValueError, TypeError, RuntimeError, IndexError, AssertionError):
        return None


def our_dims(info: TensorStructInfo) -> list[int] | None:
    """The dimensions for the values in SIZES."""
    if info.dims is None:
        return None
    frame = Frame(Interpreter(IRModule({})), _Env())
    with np.errstate(all="ignore"):
        return [int(frame(d)) for d in info.dims]


class _Env(dict):  # type: ignore[type-arg]
    def __missing__(self, var: prim.Var) -> Any:
        return np.int64(SIZES[var.name])


def their_dims(info: Any, variables: dict[str, Any]) -> list[int] | None:
    """The dimensions for the values in SIZES."""
    from tvm import sym, tirx

    if info.shape is None:
        return None
    analyzer = sym.Analyzer()
    for name, var in variables.items():
        analyzer.bind(var, tirx.const(SIZES[name], "int64"))
    return [max(int(analyzer.simplify(d)), 0) for d in info.shape]  # an empty slice has a negative length in TVM


def agree(mine: StructInfo, other: Any, variables: dict[str, Any]) -> str:
    """What differs; "" when nothing does."""
    if isinstance(mine, TupleStructInfo):
        fields = list(other.fields)
        if len(fields) != len(mine.fields):
            return f"{len(mine.fields)} results, not {len(fields)}"
        return "; ".join(filter(None, (agree(m, o, variables) for m, o in zip(mine.fields, fields))))
    assert isinstance(mine, TensorStructInfo)
    if str(mine.dtype) != str(other.dtype):
        return f"dtype {mine.dtype}, not {other.dtype}"
    if mine.ndim != other.ndim and other.ndim != -1:
        return f"rank {mine.ndim}, not {other.ndim}"
    known, expected = our_dims(mine), their_dims(other, variables)
    if expected is not None and known is None:
        return "the shape is not known"
    return "" if expected is None or known == expected else f"shape {known}, not {expected}"


# Calls that relaxlang refuses and TVM lets pass: axes beyond the rank of sorts, scans and flips, and shapes that cannot
# be broadcast when a dimension further right is not decided; kernels longer than the padded input.
STRICT = frozenset(
    {
        "argsort",
        "sort",
        "cumsum",
        "cumprod",
        "flip",
        "power",
        "add",
        "subtract",
        "multiply",
        "divide",
        "maximum",
        "equal",
        "less",
        "greater_equal",
        "floor_divide",
        "nn.conv2d",
    }
)


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_shape_rules_agree_with_tvm(name: str) -> None:
    faults = []
    for seed in range(ROUNDS):
        args, attrs = MAKERS[name](Dice(seed * 1000 + len(name)))
        mine, other = ours(name, args, attrs), theirs(name, args, attrs)
        said = f"{args} {attrs}"
        if mine is None or other is None:
            if (mine is None) != (other is None) and not (mine is None and name in STRICT):
                faults.append(f"{said}: {'relaxlang' if mine is None else 'tvm'} refuses it")
        elif difference := agree(mine, *other):
            faults.append(f"{said}: {difference}")
    assert not faults, "\n".join(faults)
