"""Every gradient rule of the library against finite differences, in float64 and through the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import OPERATORS, Dims, Inputs, run

from relaxlang.interp import Interpreter
from relaxlang.ir import relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.struct_info import TupleStructInfo

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(11)


def f(*shape: int, low: float = -2.0, high: float = 2.0) -> Array:
    return RNG.uniform(low, high, shape)


def p(*shape: int) -> Array:
    return f(*shape, low=0.5)


X, V, I4 = f(2, 3), f(3), f(2, 4, 5, 4)
CASES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    *[(n, (f(2, 3),), {}) for n in ("abs", "asinh", "atan", "ceil", "cos", "cosh", "erf", "exp", "floor", "negative")],
    *[(n, (f(2, 3),), {}) for n in ("round", "sigmoid", "sign", "sin", "sinh", "square", "tan", "tanh", "trunc")],
    *[(n, (p(2, 3),), {}) for n in ("log", "rsqrt", "sqrt")],
    *[(n, (f(2, 3, low=-0.9, high=0.9),), {}) for n in ("acos", "asin", "atanh")],
    ("acosh", (f(4, low=1.2, high=3.0),), {}),
    ("astype", (f(3),), {"dtype": "float64"}),
    ("clip", (f(9), -1.0, 1.0), {}),
    *[(n, (f(2, 1, 3), f(4, 1)), {}) for n in ("add", "subtract", "multiply", "maximum", "minimum", "log_add_exp")],
    *[(n, (p(2, 3), p(3)), {}) for n in ("divide", "power", "atan2")],
    ("where", (X > 0, f(2, 3), f(3)), {}),
    ("ewise_fma", (f(2, 3), f(2, 3), f(2, 3)), {}),
    *[(n, (f(2, 3, 4),), {"axis": [0, -1]}) for n in ("sum", "mean", "variance", "std", "max", "min")],
    *[(n, (f(2, 3),), {"keepdims": True}) for n in ("sum", "mean", "variance", "std", "max", "min")],
    ("cumsum", (f(2, 3),), {"axis": 1}),
    ("reshape", (f(2, 3), (3, -1)), {}),
    ("flatten", (f(2, 3),), {}),
    ("nn.batch_flatten", (f(2, 3, 2),), {}),
    ("permute_dims", (f(2, 3, 4),), {"axes": [2, 0, 1]}),
    ("permute_dims", (f(2, 3, 4),), {}),
    ("expand_dims", (f(2, 3),), {"axis": [0, 2]}),
    ("squeeze", (f(2, 1, 3),), {"axis": [1]}),
    ("broadcast_to", (f(2, 1), (4, 2, 3)), {}),
    ("collapse_sum_to", (f(4, 2, 3), (2, 1)), {}),
    ("flip", (f(2, 3),), {"axis": 0}),
    ("concat", ((f(2, 3), f(2, 1), f(2, 2)),), {"axis": 1}),
    ("concat", ((f(2, 3),),), {"axis": 1}),
    ("stack", ((f(2, 3), f(2, 3)),), {"axis": 1}),
    ("split", (f(2, 6), [2, 3]), {"axis": 1}),
    ("split", (f(2, 6), 3), {"axis": -1}),
    ("strided_slice", (f(4, 5), [1], [-4], [4]), {}),
    ("strided_slice", (f(4, 5), [0, 1], [1, 0], [3, 9]), {}),
    ("take", (f(4, 3), np.array([[1, 0], [1, 3]])), {"axis": 0}),
    ("gather_elements", (f(3, 2), np.array([[0, 2], [0, 1]])), {"axis": 0}),
    ("full", ((2, 3), f()), {}),
    ("full_like", (np.zeros((2, 3), "float32"), f()), {"dtype": "float64"}),
    ("tril", (f(3, 3),), {"k": 1}),
    ("triu", (f(2, 3, 3),), {}),
    *[
        ("matmul", (f(*a), f(*b)), {})
        for a, b in (((2, 3), (3, 4)), ((3,), (3, 4)), ((2, 3), (3,)), ((3,), (3,)), ((2, 1, 2, 3), (4, 3, 2)))
    ],
    ("outer", (f(2), f(3)), {}),
    ("matmul", (f(3), f(2, 3, 4)), {}),
    *[
        ("einsum", (tuple(f(*s) for s in shapes), text), {})
        for text, *shapes in (
            ("ij,jk->ik", (2, 3), (3, 4)), ("...ij,jk", (2, 1, 3), (3, 2)), ("ij->i", (2, 3)),
            ("i,j,k->ik", (2,), (3,), (2,)), ("ij,ij->i", (2, 3), (2, 1)), ("b...,b...->...", (2, 3), (2, 1)),
        )
    ],
    *[(f"nn.{n}", (f(2, 5),), {}) for n in ("relu", "relu6", "leakyrelu", "gelu")],
    *[(f"nn.{n}", (f(2, 5),), {}) for n in ("gelu_tanh", "silu", "selu", "softplus")],
    ("nn.prelu", (f(2, 3, 2), f(3)), {"axis": 1}),
    *[(f"nn.{n}", (f(2, 3, 2),), {"axis": 1}) for n in ("softmax", "log_softmax")],
    ("nn.layer_norm", (f(2, 3, 4), f(3, 4), f(3, 4)), {"axes": [1, 2]}),
    ("nn.layer_norm", (f(2, 3, 4), f(3), f(3)), {"axes": [1]}),
    ("nn.rms_norm", (f(2, 3, 4), f(4)), {"axes": [-1]}),
    ("nn.pad", (f(2, 3), (1, 0, 0, 2)), {}),
    ("nn.nll_loss", (f(3, 4), np.array([0, 3, 1])), {}),
    ("nn.nll_loss", (f(3, 4), np.array([0, 3, 1]), p(4)), {"reduction": "none"}),
    ("nn.cross_entropy_with_logits", (f(3, 4), f(3, 4)), {}),
    ("nn.max_pool2d", (I4,), {"pool_size": (2, 2), "strides": 2, "padding": (0, 1), "ceil_mode": True}),
    ("nn.avg_pool2d", (I4,), {"pool_size": (2, 2), "strides": 1, "padding": 1, "count_include_pad": True}),
    ("nn.max_pool1d", (f(2, 3, 7),), {"pool_size": 3, "strides": 2, "padding": 1}),
    ("nn.avg_pool1d", (f(2, 7, 3),), {"pool_size": 2, "strides": 2, "padding": (0, 1), "layout": "NWC"}),
    ("prod", (f(2, 3, 4),), {"axis": [0, -1]}),
    ("prod", (f(2, 3) * [[0, 1, 1], [0, 0, 1]],), {"axis": 1, "keepdims": True}),
    ("nn.instance_norm", (f(2, 3, 4), f(3), f(3)), {"channel_axis": 1, "axes": [2]}),
    ("nn.group_norm", (f(2, 4, 3), f(4), f(4)), {"num_groups": 2, "channel_axis": 1, "axes": [2]}),
    *[("nn.batch_norm", (f(4, 3, 2), f(3), f(3), f(3), p(3)), {"axis": 1, "training": t}) for t in (False, True)],
    ("nn.conv1d", (f(2, 4, 6), f(6, 2, 3)), {"groups": 2, "strides": 2, "padding": 1}),
    ("nn.conv2d", (I4, f(3, 4, 2, 3)), {"strides": (2, 1), "padding": (1, 0, 0, 2), "dilation": (1, 2)}),
    ("nn.conv3d", (f(1, 2, 3, 4, 3), f(2, 1, 2, 2, 1)), {"groups": 2, "strides": (1, 2, 1)}),
    ("nn.conv1d_transpose", (f(2, 4, 5), f(4, 3, 3)), {"groups": 2, "strides": 2, "padding": 1, "output_padding": 1}),
    ("nn.conv2d_transpose", (f(1, 2, 3, 4), f(2, 3, 2, 3)), {"strides": (2, 1), "padding": (1, 0, 0, 2)}),
    ("nn.conv3d_transpose", (f(1, 2, 2, 3, 2), f(2, 1, 2, 2, 1)), {"dilation": (1, 2, 1)}),
    ("grad.start_checkpoint", (f(3),), {}),
    ("grad.end_checkpoint", (f(3),), {}),
]  # fmt: skip
# Nothing is differentiated through these arguments: the weights of a loss, a tensor that gives its shape alone.
NOT_TAKEN = {"nn.nll_loss": 2, "full_like": 0}
# Nor through any argument of these.
CONSTANT: list[tuple[str, tuple[Any, ...]]] = [
    *[(n, (X, V)) for n in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")],
    *[(n, (X,)) for n in ("zeros_like", "ones_like", "grad.no_grad")],
    *[(n, ((2, 3), "float64")) for n in ("zeros", "ones")],
]


def flat(value: Any) -> list[Array]:
    return list(value) if isinstance(value, tuple) else [value]


def gradients(name: str, args: tuple[Any, ...], attrs: dict[str, Any], seeds: list[Array], dims: str) -> list[Any]:
    """The derivatives of the sum of results times seeds, for each argument, by the rule."""
    inputs = Inputs(Dims(dims))
    call = inputs.call(name, args, attrs)
    info = OPERATORS.infer(call)
    bindings: list[relax.Binding] = []

    def emit(made: relax.Call) -> relax.Expr:
        var = relax.Var(f"v{len(bindings)}", made.struct_info)
        bindings.append(relax.VarBinding(var, made))
        return var

    output = emit(call.replace(struct_info=info))
    given = [inputs._argument(s) for s in seeds]
    grad = relax.Tuple(tuple(given)) if isinstance(info, TupleStructInfo) else given[0]
    found = OPERATORS.gradient(call.replace(struct_info=info), output, grad, emit)
    leaves = [one for d in found for one in (d if isinstance(d, tuple) else (d,))]
    wanted = tuple(one for one in leaves if one is not None)
    func = relax.Function(tuple(inputs.arrays), relax.seq_expr(tuple(bindings), relax.Tuple(wanted)), None)
    values = iter(Interpreter(IRModule({"main": func}), OPERATORS.lower).run("main", *inputs.arrays.values()))
    return [None if one is None else np.asarray(next(values)) for one in leaves]


def moved(args: tuple[Any, ...], which: int, by: Array) -> tuple[Any, ...]:
    """The arguments with one of their arrays moved; those in tuples are counted too."""
    count, made = 0, []
    for a in args:
        parts = list(a) if isinstance(a, tuple) and a and isinstance(a[0], np.ndarray) else [a]
        for k, part in enumerate(parts):
            parts[k] = np.asarray(part + by) if count == which else part
            count += 1
        made.append(tuple(parts) if isinstance(a, tuple) and a and isinstance(a[0], np.ndarray) else parts[0])
    return tuple(made)


def check(name: str, args: tuple[Any, ...], attrs: dict[str, Any], dims: str) -> None:
    seeds = [RNG.uniform(0.5, 1.5, y.shape) for y in flat(run(name, *args, **attrs))]
    arrays = [x for a in args for x in (a if isinstance(a, tuple) and a and isinstance(a[0], np.ndarray) else (a,))]
    found = gradients(name, args, attrs, seeds, dims)
    assert any(d is not None for d in found)
    for k, (x, derivative) in enumerate(zip(arrays, found)):
        if not isinstance(x, np.ndarray) or x.dtype.kind != "f":
            assert derivative is None
            continue
        if derivative is None:
            assert NOT_TAKEN.get(name) == k
            continue
        assert derivative.shape == x.shape and derivative.dtype == x.dtype
        way, h = RNG.uniform(-1, 1, x.shape), 1e-6
        above, below = (flat(run(name, *moved(args, k, s * h * way), **attrs)) for s in (1, -1))
        slope = sum(float(((a - b) * s).sum()) for a, b, s in zip(above, below, seeds)) / (2 * h)
        np.testing.assert_allclose((derivative * way).sum(), slope, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize(("name", "args", "attrs"), CASES, ids=[f"{c[0]}-{k}" for k, c in enumerate(CASES)])
def test_finite_differences(name: str, args: tuple[Any, ...], attrs: dict[str, Any]) -> None:
    check(name, args, attrs, "static")


SYMBOLIC = ("add", "mean", "matmul", "nn.softmax", "nn.layer_norm", "variance", "nn.nll_loss", "max")


@pytest.mark.parametrize(("name", "args", "attrs"), [c for c in CASES if c[0] in SYMBOLIC])
def test_symbolic_shapes(name: str, args: tuple[Any, ...], attrs: dict[str, Any]) -> None:
    check(name, args, attrs, "symbolic")


@pytest.mark.parametrize(("name", "args"), CONSTANT)
def test_results_that_nothing_moves(name: str, args: tuple[Any, ...]) -> None:
    assert all(d is None for d in gradients(name, args, {}, [np.ones((2, 3))], "static"))


def test_every_rule_is_tested() -> None:
    rules = {n for n in OPERATORS.names() if OPERATORS.get(n).gradient is not None}
    assert rules == {c[0] for c in (*CASES, *CONSTANT)}
