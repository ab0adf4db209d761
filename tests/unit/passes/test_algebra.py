"""Passes that rewrite algebra: values, and where they keep away."""

from typing import Any

import numpy as np
import pytest
from checking import array, assert_same, check, module

import relaxlang
from relaxlang import transform as tr
from relaxlang.interp import Interpreter
from relaxlang.ir import relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.visit import walk


def count(mod: IRModule, op: str, name: str = "main") -> int:
    """How many calls of an operator a function has."""
    return sum(isinstance(n, relax.Call) and n.op == relax.Op(op) for n in walk(mod[name]))


# --- CombineParallelMatmul --------------------------------------------------------------------------------------------
def test_three_products_of_one_stack() -> None:
    made = check(
        """
        @R.function
        def main(
            x: R.Tensor((b, n, 8), "float32"), q: R.Tensor((8, 4), "float32"), k: R.Tensor((8, 6), "float32"),
            v: R.Tensor((8, 4), "float32"), late: R.Tensor((4, 8), "float32"),
        ):
            with R.dataflow():
                a = R.matmul(x, q)
                c = R.nn.relu(a)
                d = R.matmul(x, k)
                w = R.permute_dims(late)
                e = R.matmul(x, w)
                f = R.matmul(x, v)
                R.output(a, c, d, e, f)
            return (a, c, d, e, f)
        """,
        tr.CombineParallelMatmul(),
        (array(2, 3, 8), array(8, 4), array(8, 6), array(8, 4, seed=3), array(4, 8)),
    )
    # The product with `w` stays: `w` is made after the first product.
    assert count(made, "matmul") == 2


def test_products_with_symbolic_columns_stay() -> None:
    mod = module(
        """
        @R.function
        def main(x: R.Tensor((2, 8), "float32"), q: R.Tensor((8, k), "float32"), r: R.Tensor((8, k), "float32")):
            a = R.matmul(x, q)
            b = R.matmul(x, r)
            return (a, b)
        """
    )
    assert tr.CombineParallelMatmul()(mod) is mod


# --- AdjustMatmulOrder ------------------------------------------------------------------------------------------------
def test_chains_in_both_directions() -> None:
    made = check(
        """
        @R.function
        def main(
            x: R.Tensor((n, 64), "float32"), a: R.Tensor((64, 2), "float32"), b: R.Tensor((2, 64), "float32"),
            u: R.Tensor((100, 64), "float32"), v: R.Tensor((64, 100), "float32"), w: R.Tensor((100, 1), "float32"),
        ):
            with R.dataflow():
                p = R.matmul(a, b)
                q = R.matmul(x, p)
                r = R.matmul(u, v)
                s = R.matmul(r, w)
                R.output(q, s)
            return (q, s)
        """,
        lambda m: tr.DeadCodeElimination()(tr.AdjustMatmulOrder()(m)),
        (array(3, 64), array(64, 2), array(2, 64), array(100, 64), array(64, 100), array(100, 1)),
        rtol=1e-3,
        atol=1e-3,
    )
    assert count(made, "matmul") == 4


def test_order_that_depends_on_a_dimension_stays() -> None:
    mod = module(
        """
        @R.function
        def main(x: R.Tensor((n, 8), "float32"), a: R.Tensor((8, 8), "float32"), b: R.Tensor((8, 8), "float32")):
            p = R.matmul(x, a)
            q = R.matmul(p, b)
            return q
        """
    )
    assert tr.AdjustMatmulOrder()(mod) is mod


# --- batch norm -------------------------------------------------------------------------------------------------------
NORM = """
    @R.function
    def main(
        x: R.Tensor((n, 2, 5, 5), "float32"), w: R.Tensor((3, 2, 3, 3), "float32"), g: R.Tensor((3,), "float32"),
        b: R.Tensor((3,), "float32"), m: R.Tensor((3,), "float32"), v: R.Tensor((3,), "float32"),
    ):
        with R.dataflow():
            c = R.nn.conv2d(x, w, padding=(1, 1))
            t = R.nn.batch_norm(c, g, b, m, v, axis=1, epsilon=0.001, training=False OPTIONS)
            y = R.nn.relu(t[0])
            z = t[1]
            R.output(y, z)
        return (y, z)
    """
NORM_ARGS = (
    array(2, 2, 5, 5),
    array(3, 2, 3, 3),
    array(3),
    array(3, seed=1),
    array(3, seed=2),
    np.abs(array(3, seed=3)),
)


@pytest.mark.parametrize("options", ["", ", center=False", ", scale=False"])
@pytest.mark.parametrize("name", ["DecomposeOpsForInference", "FoldBatchnormToConv2D"])
def test_batch_norm(name: str, options: str) -> None:
    text = NORM.replace(" OPTIONS", options)
    made = check(
        text, lambda m: tr.DeadCodeElimination()(getattr(tr, name)()(m)), NORM_ARGS, rtol=1e-4, atol=1e-5, again=False
    )
    assert count(made, "nn.conv2d") == 1
    if name == "DecomposeOpsForInference":
        assert count(made, "nn.batch_norm") == 0


def test_training_stays() -> None:
    mod = module(NORM.replace("training=False OPTIONS", "training=True"))
    assert tr.DecomposeOpsForInference()(mod) is mod
    assert tr.FoldBatchnormToConv2D()(mod) is mod


# --- LiftTransformParams ----------------------------------------------------------------------------------------------
def test_weights_are_transformed_once() -> None:
    mod = module(
        """
        @R.function
        def main(x: R.Tensor((n, 4), "float32"), w: R.Tensor((3, 4), "float32"), b: R.Tensor((3,), "float32")):
            R.func_attr({"num_input": 1})
            with R.dataflow():
                t = R.permute_dims(w)
                u = R.multiply(t, R.const(2, "float32"))
                c = R.negative(b)
                y = R.add(R.matmul(x, u), c)
                z = R.add(y, b)
                s = R.zeros((3,), "float32")
                R.output(z, s, u)
            return (z, s, u)
        """
    )
    made = tr.LiftTransformParams()(mod)
    assert count(made, "permute_dims") == 0 and count(made, "permute_dims", "main_transform_params") == 1
    x, w, b = array(2, 4), array(3, 4), array(3)
    new: Any = Interpreter(made, verify=True).run("main_transform_params", (w, b))
    got = Interpreter(made, verify=True).run("main", x, *new)
    assert_same(got, Interpreter(mod).run("main", x, w, b))
    relaxlang.assert_structural_equal(tr.LiftTransformParams()(made), made)


# --- FuseTransposeMatmul ----------------------------------------------------------------------------------------------
def test_transposed_sides_are_read_in_place() -> None:
    mod = module(
        """
        @R.function
        def main(x: R.Tensor((k, n), "float32"), w: R.Tensor((m, k), "float32"), v: R.Tensor((m, k), "float32")):
            with R.dataflow():
                t = R.permute_dims(w)
                y = R.matmul(R.permute_dims(x), t)
                u = R.permute_dims(v)
                z = R.matmul(y, R.permute_dims(t))
                s = R.add(R.sum(u), R.const(1, "float32"))
                R.output(y, z, s)
            return (y, z, s)
        """
    )
    legal = tr.LegalizeOps()(mod)
    made = check(legal, tr.FuseTransposeMatmul(), (array(4, 2), array(3, 4), array(3, 4)), rtol=1e-4)
    # The second transposition of `t`; `t` has two uses, `u` no contraction behind it, and `x` may be large.
    assert calls(made) == calls(legal) - 1


@pytest.mark.parametrize("size, joined", [(512, 2), (1024, 1)])
def test_large_factors_are_not_read_across_their_lines(size: int, joined: int) -> None:
    mod = module(
        f"""
        @R.function
        def main(x: R.Tensor(({size}, {size}), "float32"), w: R.Tensor(({size}, {size}), "float32")):
            with R.dataflow():
                y = R.matmul(R.permute_dims(x), R.permute_dims(w))
                R.output(y)
            return y
        """
    )
    legal = tr.LegalizeOps()(mod)
    assert calls(tr.FuseTransposeMatmul()(legal)) == calls(legal) - joined


def test_heads_are_read_where_they_are() -> None:
    mod = module(
        """
        @R.function
        def main(q: R.Tensor((1, n, 3, 8), "float32"), k: R.Tensor((1, m, 3, 8), "float32")):
            with R.dataflow():
                y = R.matmul(R.permute_dims(q, (0, 2, 1, 3)), R.permute_dims(k, (0, 2, 3, 1)))
                R.output(y)
            return y
        """
    )
    legal = tr.LegalizeOps()(mod)
    made = check(legal, tr.FuseTransposeMatmul(), (array(1, 5, 3, 8), array(1, 7, 3, 8)), rtol=1e-4)
    assert calls(made) == 1


def calls(mod: IRModule) -> int:
    """How many kernels the main function calls."""
    return sum(isinstance(n, relax.Call) and n.op == relax.Op("call_tir") for n in walk(mod["main"]))


# --- ToMixedPrecision -------------------------------------------------------------------------------------------------
MIXED = """
    @R.function
    def main(x: R.Tensor((n, 8), "float32"), w: R.Tensor((8, 4), "float32"), b: R.Tensor((4,), "float32")):
        with R.dataflow():
            m = R.matmul(x, w)
            r = R.nn.relu(R.multiply(m, R.const(2, "float32")))
            h = R.add(r, b)
            y = R.matmul(r, R.permute_dims(w))
            s = R.nn.softmax(y)
            R.output(h, s)
        return (h, s)
    """


@pytest.mark.parametrize(("half", "out"), [("float16", "float32"), ("float16", "float16"), ("bfloat16", "bfloat16")])
def test_half_precision(half: str, out: str) -> None:
    near = 0.02 if half == "float16" else 0.2
    made = check(
        MIXED, tr.ToMixedPrecision(dtype=half, out_dtype=out), (array(3, 8), array(8, 4), array(4)),
        rtol=near, atol=near, again=False,
    )  # fmt: skip
    kinds = {
        str(b.var.struct_info)
        for b in _bindings(made)
        if b.value.__class__ is relax.Call and b.value.op == relax.Op("nn.relu")
    }
    assert all((out in kind) for kind in kinds)


OWN = '''
@R.op("my.scaled", precision="PRECISION")
def scaled(x: R.Tensor(S, D)) -> R.Tensor(S, D):
    """3 * x"""
    return T.compute(S, lambda *i: x[*i] * T.cast(3, D))


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4, 8), "float32"), w: R.Tensor((8, 4), "float32")):
        with R.dataflow():
            m = R.matmul(x, w)
            p = R.split(m, 2, axis=1)
            s = R.concat((p[1], R.my.scaled(p[0])), axis=1)
            i = R.take(s, R.const([1, 0], "int64"), axis=0)
            y = R.greater(i, R.const(0, "float32"))
            R.output(i, y)
        return (i, y)
'''


@pytest.mark.parametrize(("precision", "casts"), [("follow", 3), ("always", 3), ("never", 4)])
def test_operators_say_in_which_precision_they_are_computed(precision: str, casts: int) -> None:
    before = relaxlang.parse(OWN.replace("PRECISION", precision))
    made = check(
        before, tr.ToMixedPrecision(out_dtype="float16"), (array(4, 8), array(8, 4)), rtol=0.05, atol=0.05, again=False
    )
    kinds = [
        b.value.op.name for b in _bindings(made) if isinstance(b.value, relax.Call) and isinstance(b.value.op, relax.Op)
    ]
    assert kinds.count("astype") == casts, made.script()


@pytest.mark.parametrize("out", ["float32", "float16"])
def test_operators_that_leave_no_choice_of_their_result(out: str) -> None:
    text = """
    @R.function
    def main(q: R.Tensor((1, 4, 2, 8), "float32"), b: R.Tensor((1, 2, 4, 4), "float32")):
        a = R.nn.attention(q, q, q, b)
        o = R.outer(R.reshape(a, (64,)), R.reshape(b, (32,)))
        return o
    """
    made = check(
        text,
        tr.ToMixedPrecision(out_dtype=out),
        (array(1, 4, 2, 8), array(1, 2, 4, 4)),
        rtol=0.02,
        atol=0.02,
        again=False,
    )
    kinds = [
        b.value.op.name for b in _bindings(made) if isinstance(b.value, relax.Call) and isinstance(b.value.op, relax.Op)
    ]
    halves = [b for b in _bindings(made) if "float16" in str(b.var.struct_info)]
    assert {"nn.attention", "outer"} <= set(kinds) and len(halves) >= 4


def test_named_inputs_become_half_precision() -> None:
    made = tr.ToMixedPrecision(fp16_input_names=("x",))(module(MIXED))
    x, w, b = array(3, 8), array(8, 4), array(4)
    got = Interpreter(made, verify=True).run("main", x.astype("float16"), w, b)
    assert_same(got, Interpreter(module(MIXED)).run("main", x, w, b), rtol=0.02, atol=0.02)


def _bindings(mod: IRModule) -> list[relax.Binding]:
    main = mod["main"]
    assert isinstance(main, relax.Function)
    return [b for block in main.body.blocks for b in block.bindings]
