"""After every prefix of the default pipeline a `minimum` build gives the same values."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checking import array, assert_same, module

import relaxlang
from relaxlang.ir import relax
from relaxlang.ir.module import IRModule
from relaxlang.passes.pipelines import PIPELINES, pipeline

EXAMPLES = Path(__file__).parents[3] / "examples"
TEXTS = {
    "encoder": """
        @R.function
        def main(x: R.Tensor((b, n, 8), "float32"), w: R.Tensor((8, 24), "float32"), g: R.Tensor((8,), "float32")):
            qkv = R.matmul(R.nn.layer_norm(x, g, g, axes=[-1]), w)
            parts = R.split(qkv, 3, axis=2)
            q = R.permute_dims(R.reshape(parts[0], (b, n, 2, 4)), (0, 2, 1, 3))
            k = R.permute_dims(R.reshape(parts[1], (b, n, 2, 4)), (0, 2, 3, 1))
            v = R.permute_dims(R.reshape(parts[2], (b, n, 2, 4)), (0, 2, 1, 3))
            s = R.nn.softmax(R.multiply(R.matmul(q, k), R.const(0.5, "float32")))
            o = R.reshape(R.permute_dims(R.matmul(s, v), (0, 2, 1, 3)), (b, n, 8))
            r = R.add(x, R.nn.gelu(o))
            return (r, s)
        """,
    "branches": """
        @R.function
        def main(c: R.Tensor((), "bool"), x: R.Tensor((n, 4), "float32")):
            y = R.exp(x)
            if c:
                a = R.reshape(y, (n * 4,))
                z = R.reshape(R.add(a, a), (n, 4))
            else:
                z = R.nn.relu(R.add(y, R.const([1, 2, 3, 4], "float32")))
            return (z, y)
        """,
    "recursion": """
        @R.function(private=True)
        def power(k: R.Tensor((), "int64"), x: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
            cls = Module
            more = R.greater(k, R.const(1, "int64"))
            if more:
                y = cls.power(R.subtract(k, R.const(1, "int64")), x)
                r = R.multiply(R.add(y, x), R.const(0.5, "float32"))
            else:
                r = x
            return r

        @R.function
        def main(k: R.Tensor((), "int64"), x: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
            cls = Module
            @R.function
            def inner(v: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
                w = R.add(R.exp(v), x)
                return w
            p = cls.power(k, x)
            r = inner(p)
            return r
        """,
    "shapes": """
        @R.function
        def main(x: R.Tensor((n, 6), "float32"), s: R.Shape(["k"]), u: R.Tensor(ndim=1, dtype="float32")):
            k = T.int64()
            m = T.int64()
            w = R.match_cast(u, R.Tensor((m,), "float32"))
            f = R.full(R.shape([k, m]), R.const(2, "float32"), dtype="float32")
            a = R.add(R.multiply(f, w), R.const(1, "float32"))
            b = R.sum(R.exp(x), axis=[1])
            q = R.unique(w)
            return (a, R.shape([n, m, k * 2]), R.negative(R.flatten(x)), b, q)
        """,
}


def inputs_of(name: str) -> tuple[IRModule, list[tuple[Any, ...]]]:
    """A module and the arguments to run it with."""
    if name in ("digits", "digits_conv"):
        mod, weights = relaxlang.load(EXAMPLES / f"{name}.rlx"), np.load(EXAMPLES / f"{name}_weights.npz")
        main = mod["main"]
        assert isinstance(main, relax.Function)
        rest = [weights[p.name] for p in main.params[1:]]
        images = [array(7, 64), array(1, 64)] if name == "digits" else [array(3, 1, 8, 8)]
        return mod, [(i, *rest) for i in images]
    arguments: dict[str, list[tuple[Any, ...]]] = {
        "encoder": [(array(2, 3, 8), array(8, 24), array(8)), (array(1, 1, 8), array(8, 24), array(8))],
        "branches": [(relaxlang.array(True), array(3, 4)), (relaxlang.array(False), array(3, 4))],
        "recursion": [(relaxlang.array(np.int64(3)), array(4)), (relaxlang.array(np.int64(1)), array(4))],
        "shapes": [(array(2, 6), relaxlang.ShapeTuple([3]), array(5))],
    }
    return module(TEXTS[name]), arguments[name]


@pytest.mark.parametrize("name", ["digits", "digits_conv", *TEXTS])
def test_every_prefix(name: str) -> None:
    mod, inputs = inputs_of(name)
    wants = [relaxlang.interpret(mod, "main", *args) for args in inputs]
    steps = pipeline("default").passes
    seen = None
    for count in range(len(steps) + 1):
        mod = steps[count - 1](mod) if count else mod
        if mod is seen:
            continue
        seen = mod
        relaxlang.assert_structural_equal(relaxlang.parse(mod.script()), mod)
        run = relaxlang.VirtualMachine(relaxlang.build(mod, pipeline="minimum"), relaxlang.cpu())["main"]
        for args, want in zip(inputs, wants):
            kept = [np.array(a) if isinstance(a, np.ndarray) else a for a in args]
            assert_same(run(*args), want, rtol=1e-4, atol=1e-5)
            for a, k in zip(args, kept):
                if isinstance(a, np.ndarray):
                    np.testing.assert_array_equal(a, k)


def test_minimum_is_what_it_was() -> None:
    assert PIPELINES["minimum"] == ("to-non-dataflow", "call-tir-rewrite", "vm-memory-lower", "vm-shape-lower")
