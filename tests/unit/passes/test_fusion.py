"""Fusion: the groups, the kernels they become, the values, and the reasons why not."""

import numpy as np
import pytest
from checking import array, check, module

import relaxlang
from relaxlang import transform as tr
from relaxlang.analysis.fusion import Rule
from relaxlang.analysis.op_pattern import OpPattern, argument_patterns, op_pattern
from relaxlang.analysis.stages import stages_of
from relaxlang.ir import prim, relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.tir import PrimFunc
from relaxlang.ir.visit import walk
from relaxlang.passes.relax.fuse_ops import explain_fusion, fusion_answers


def fused(text: str, *inputs: tuple[object, ...]) -> IRModule:
    """The module after fusion; its values are those of the text, after every step."""
    mod = tr.LegalizeOps()(module(text))
    groups = check(mod, tr.FuseOps(), *inputs)
    return check(groups, lambda m: tr.DeadCodeElimination()(tr.FuseTIR()(m)), *inputs)


def kernels(mod: IRModule, name: str = "main") -> list[str]:
    """The kernels that a function calls, in order."""
    calls = [n for n in walk(mod[name]) if isinstance(n, relax.Call) and n.op == relax.Op("call_tir")]
    return [c.args[0].name for c in calls if isinstance(c.args[0], relax.GlobalVar)]


def kernel(mod: IRModule, name: str) -> PrimFunc:
    found = mod[name]
    assert isinstance(found, PrimFunc)
    return found


def stages(mod: IRModule, name: str) -> int:
    found = stages_of(kernel(mod, name))
    assert found is not None
    return len(found.stages)


# --- patterns ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("call", "pattern"),
    [
        ("R.nn.relu(x)", OpPattern.ELEMWISE),
        ("R.add(x, b)", OpPattern.ELEMWISE),
        ("R.broadcast_to(b, (3, 4))", OpPattern.BROADCAST),
        ("R.permute_dims(x)", OpPattern.INJECTIVE),
        ("R.strided_slice(x, axes=[0], begin=[1], end=[3])", OpPattern.INJECTIVE),
        ("R.strided_slice(x, axes=[0], begin=[0], end=[2])", OpPattern.INJECTIVE),
        ("R.nn.batch_norm(x, b, b, b, b, axis=1, training=False)", OpPattern.ELEMWISE),
        ('R.take(x, R.const([1, 0], "int64"), axis=1)', OpPattern.INJECTIVE),
        ("R.split(x, 2, axis=1)", OpPattern.INJECTIVE),
        ("R.sum(x, axis=[1])", OpPattern.COMM_REDUCE),
        ("R.mean(x, axis=[0])", OpPattern.COMM_REDUCE),
        ("R.argmax(x, axis=1)", OpPattern.COMM_REDUCE),
        ("R.nn.softmax(x)", OpPattern.COMM_REDUCE),
        ("R.matmul(x, y)", OpPattern.OUT_EWISE_FUSABLE),
        ("R.cumsum(x, axis=1)", OpPattern.OPAQUE),
    ],
)
def test_patterns_from_tir(call: str, pattern: OpPattern) -> None:
    text = f"""
        @R.function
        def main(x: R.Tensor((n, 4), "float32"), y: R.Tensor((4, 5), "float32"), b: R.Tensor((4,), "float32")):
            r = {call}
            return r
        """
    mod = tr.LegalizeOps()(module(text.replace("(n, 4)", "(3, 4)")))
    ((_, func),) = mod.prim_funcs()
    assert op_pattern(func) is pattern


def test_each_argument_has_its_pattern() -> None:
    mod = tr.LegalizeOps()(
        module(
            """
            @R.function
            def main(x: R.Tensor((n, 4), "float32"), b: R.Tensor((4,), "float32")):
                r = R.add(x, b)
                return r
            """
        )
    )
    assert list(argument_patterns(kernel(mod, "add")).values()) == [OpPattern.ELEMWISE, OpPattern.BROADCAST]


def test_scheduled_kernels_are_opaque() -> None:
    mod = module(
        """
        @T.prim_func
        def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
            for i in T.parallel(8):
                with T.block("b"):
                    vi = T.axis.spatial(8, i)
                    B[vi] = A[vi]
        """
    )
    assert op_pattern(kernel(mod, "main")) is OpPattern.OPAQUE


# --- groups -----------------------------------------------------------------------------------------------------------
def test_elementwise_chain_is_one_loop_nest() -> None:
    made = fused(
        """
        @R.function
        def main(x: R.Tensor((n, 8), "float32"), b: R.Tensor((8,), "float32"), r: R.Tensor((n, 8), "float32")):
            with R.dataflow():
                h = R.nn.gelu(R.add(x, b))
                s = R.multiply(R.add(h, r), R.const(0.5, "float32"))
                R.output(s)
            return s
        """,
        (array(3, 8), array(8, seed=1), array(3, 8, seed=2)),
    )
    assert kernels(made) == ["fused_add_gelu_add1_multiply"]
    func = kernel(made, kernels(made)[0])
    assert stages(made, kernels(made)[0]) == 1 and len(func.buffer_map) == 4
    # The sum is computed once although gelu needs it twice.
    assert sum(isinstance(n, prim.Add) for n in walk(func.body)) == 2


def test_contraction_with_bias_activation_residual() -> None:
    made = fused(
        """
        @R.function
        def main(
            x: R.Tensor((n, 8), "float32"), w: R.Tensor((8, 6), "float32"), b: R.Tensor((6,), "float32"),
            r: R.Tensor((n, 6), "float32"),
        ):
            with R.dataflow():
                skip = R.nn.relu(r)
                h = R.nn.relu(R.add(R.matmul(x, w), b))
                o = R.add(h, skip)
                R.output(o)
            return o
        """,
        (array(3, 8), array(8, 6), array(6), array(3, 6)),
    )
    assert len(kernels(made)) == 1
    assert stages(made, kernels(made)[0]) == 2


def test_residual_of_one_picture() -> None:
    """Dimensions of extent 1, which broadcasting operators read at 0, keep nothing apart."""
    text = """
    @R.function
    def main(x: R.Tensor((1, 3, 4, 4), "float32"), w: R.Tensor((3, 3, 3, 3), "float32"),
             b: R.Tensor((1, 3, 1, 1), "float32")):
        with R.dataflow():
            c = R.nn.conv2d(x, w, padding=1)
            y = R.nn.relu(R.add(R.add(c, b), x))
            R.output(y)
        return y
    """
    made = fused(text, (array(1, 3, 4, 4), array(3, 3, 3, 3), array(1, 3, 1, 1)))
    assert kernels(made) == ["fused_conv2d_add_add1_relu"]


def test_what_feeds_and_follows_a_reduction() -> None:
    made = fused(
        """
        @R.function
        def main(x: R.Tensor((n, 8), "float32"), y: R.Tensor((8, n), "float32")):
            with R.dataflow():
                s = R.exp(R.sum(R.multiply(x, R.permute_dims(y)), axis=[1]))
                t = R.nn.softmax(R.add(x, R.const(1.0, "float32")))
                u = R.multiply(t, x)
                R.output(s, u)
            return (s, u)
        """,
        (array(3, 8), array(8, 3)),
    )
    assert len(kernels(made)) == 2
    assert stages(made, kernels(made)[0]) == 2


def test_reductions_along_the_same_rows() -> None:
    made = fused(
        """
        @R.function
        def main(x: R.Tensor((b, n, 6), "float32"), g: R.Tensor((6,), "float32")):
            with R.dataflow():
                m = R.mean(x, axis=[-1], keepdims=True)
                d = R.subtract(x, m)
                v = R.mean(R.multiply(d, d), axis=[-1], keepdims=True)
                s = R.sqrt(R.add(v, R.const(1e-5, "float32")))
                y = R.add(R.multiply(R.divide(d, s), g), g)
                e = R.exp(R.subtract(x, R.max(x, axis=[2], keepdims=True)))
                p = R.divide(e, R.sum(e, axis=[2], keepdims=True))
                R.output(y, p)
            return (y, p)
        """,
        (array(2, 3, 6), array(6)),
    )
    assert len(kernels(made)) == 2


def test_reductions_along_other_rows_stay_apart() -> None:
    made = fused(
        """
        @R.function
        def main(x: R.Tensor((n, n), "float32")):
            with R.dataflow():
                r = R.subtract(x, R.sum(x, axis=[1], keepdims=True))
                c = R.subtract(r, R.sum(r, axis=[0], keepdims=True))
                R.output(c)
            return c
        """,
        (array(3, 3),),
    )
    assert len(kernels(made)) == 3


def test_tuples_and_several_results() -> None:
    made = fused(
        """
        @R.function
        def main(x: R.Tensor((4, n), "float32")):
            with R.dataflow():
                a = R.exp(x)
                p = R.split(a, 2, axis=0)
                u = R.negative(p[1])
                v = R.concat([u, p[0]], axis=0)
                q = R.split(R.exp(v), 2, axis=0)
                R.output(q)
            r = q[1]
            s = q[0]
            return (r, s)
        """,
        (array(4, 3),),
    )
    assert len(kernels(made)) == 1


def test_groups_that_differ_in_constants_share_a_kernel() -> None:
    made = fused(
        """
        @R.function
        def main(x: R.Tensor((3,), "float32")):
            with R.dataflow():
                p = R.nn.relu(R.add(x, R.const([1.0, -2.0, 3.0], "float32")))
                q = R.nn.relu(R.add(x, R.const([-4.0, 5.0, -6.0], "float32")))
                s = R.nn.relu(R.add(x, R.const(2.0, "float32")))
                R.output(p, q, s)
            return (p, q, s)
        """,
        (array(3),),
    )
    used = kernels(made)
    assert len(used) == 3 and len(set(used)) == 2


def test_dimensions_that_no_tensor_defines() -> None:
    made = fused(
        """
        @R.function
        def main(rows: R.Tensor(("h - 1", 2), "float32"), w: R.Tensor((2, 5), "float32"), extra: R.Shape(["h"])):
            h = T.int64()
            with R.dataflow():
                z = R.full(R.shape([h - 1, 5]), R.const(2.5, "float32"), dtype="float32")
                o = R.add(R.matmul(rows, w), R.exp(z))
                R.output(o)
            return o
        """,
        (array(6, 2), array(2, 5), relaxlang.ShapeTuple([7])),
        (array(0, 2), array(2, 5), relaxlang.ShapeTuple([1])),
    )
    assert len(kernels(made)) == 1


def test_order_of_casts_is_kept() -> None:
    fused(
        """
        @R.function
        def main(x: R.Tensor((m, 4), "float32")) -> R.Tensor(ndim=2, dtype="float32"):
            k = T.int64()
            with R.dataflow():
                first = R.add(x, R.const(1.0, "float32"))
                sh = R.shape_of(x)
                bound = R.match_cast(sh, R.Shape([k, 4]))
                y = R.broadcast_to(R.sum(first, axis=[0], keepdims=True), R.shape([k, 4]))
                z = R.exp(y)
                R.output(z)
            return z
        """,
        (array(3, 4),),
    )


def test_effects_and_packed_calls_stay() -> None:
    mod = module(
        """
        @R.function(pure=False)
        def main(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
            with R.dataflow():
                a = R.exp(x)
                b = R.call_pure_packed("vm.builtin.copy", a, sinfo_args=R.Tensor((3,), "float32"))
                c = R.exp(R.add(b, a))
                R.output(c)
            _ = R.print(c, format="")
            return c
        """
    )
    made = check(tr.LegalizeOps()(mod), lambda m: tr.FuseTIR()(tr.FuseOps()(m)), (array(3),))
    assert len(kernels(made)) == 2


def test_users_kernels_fuse_in_branches_and_inner_functions() -> None:
    made = fused(
        """
        @T.prim_func(private=True)
        def mine(A: T.Buffer((n,), "float32"), B: T.Buffer((n,), "float32")):
            for i in range(n):
                with T.block("b"):
                    vi = T.axis.spatial(n, i)
                    B[vi] = A[vi] * A[vi] + T.float32(1)

        @R.function
        def main(c: R.Tensor((), "bool"), x: R.Tensor((k,), "float32")) -> R.Tensor((k,), "float32"):
            cls = Module
            if c:
                with R.dataflow():
                    a = R.call_tir(cls.mine, (x,), out_sinfo=R.Tensor((k,), "float32"))
                    b = R.call_tir(cls.mine, (a,), out_sinfo=R.Tensor((k,), "float32"))
                    R.output(b)
                r = b
            else:
                r = x
            return r
        """,
        (relaxlang.array(True), array(3)),
        (relaxlang.array(False), array(3)),
    )
    assert kernels(made) == ["fused_mine_mine"] and stages(made, "fused_mine_mine") == 1


def test_limit() -> None:
    lines = ["v0 = R.exp(x)", *(f"v{k} = R.add(v{k - 1}, x)" for k in range(1, 20))]
    body = "\n".join(" " * 20 + line for line in lines)
    text = f"""
            @R.function
            def main(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
                with R.dataflow():
{body}
                    R.output(v19)
                return v19
            """
    mod = tr.LegalizeOps()(module(text))
    made = check(mod, lambda m: tr.FuseTIR()(tr.FuseOps(max_depth=8)(m)), (array(3),), again=False)
    assert len(kernels(made)) == 3


# --- inlining ---------------------------------------------------------------------------------------------------------
def test_what_stands_under_a_condition_is_computed_there() -> None:
    made = fused(
        """
        @R.function
        def main(x: R.Tensor((n,), "float32"), y: R.Tensor((m,), "float32")):
            with R.dataflow():
                z = R.nn.gelu(R.concat([R.exp(x), R.negative(y)], axis=0))
                R.output(z)
            return z
        """,
        (array(3), array(2)),
        (array(0), array(2)),
    )
    assert len(kernels(made)) == 1 and stages(made, kernels(made)[0]) == 1


def test_expensive_values_are_not_computed_again() -> None:
    made = fused(
        """
        @R.function
        def main(x: R.Tensor((n,), "float32"), y: R.Tensor((n, 7), "float32")):
            with R.dataflow():
                a = R.expand_dims(R.exp(x), axis=1)
                b = R.multiply(R.add(R.exp(R.multiply(a, a)), R.const(1.0, "float32")), y)
                R.output(b)
            return b
        """,
        (array(3), array(3, 7)),
    )
    for _, func in made.prim_funcs():
        nests = stages_of(func)
        assert nests is not None
        for stage in nests.stages:
            exps = sum(isinstance(n, prim.Call) and n.op == "exp" for n in walk(stage.block.body))
            assert (
                exps == 0 or len([a for a in stage.block.iter_vars if not isinstance(a.dom.extent, prim.IntImm)]) == 1
            )


@pytest.mark.parametrize("value", [np.nan, -np.inf, 3.4e38])
def test_constants_as_numbers(value: float) -> None:
    fused(
        f"""
        @R.function
        def main(x: R.Tensor((3,), "float32")):
            with R.dataflow():
                z = R.exp(R.maximum(x, R.const(float("{value}"), "float32")))
                R.output(z)
            return z
        """.replace("3.4e+38", "3.4e38"),
        (array(3),),
    )


def test_indices_of_two_types() -> None:
    fused(
        """
        @T.prim_func(private=True)
        def shift(A: T.Buffer((4, 6), "float32"), B: T.Buffer((6, 4), "float32")):
            for i, j in T.grid(6, 4):
                with T.block("b"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[(vj + 1) % 4, 5 - vi]

        @R.function
        def main(x: R.Tensor((4, 6), "float32")):
            cls = Module
            with R.dataflow():
                a = R.call_tir(cls.shift, (R.exp(x),), out_sinfo=R.Tensor((6, 4), "float32"))
                b = R.permute_dims(R.negative(a))
                c = R.call_tir(cls.shift, (b,), out_sinfo=R.Tensor((6, 4), "float32"))
                R.output(c)
            return c
        """,
        (array(4, 6),),
    )


# --- why not ----------------------------------------------------------------------------------------------------------
def test_reasons() -> None:
    mod = module(
        """
        @R.function
        def main(x: R.Tensor((4, 4), "float32")):
            with R.dataflow():
                a = R.exp(x)
                b = R.matmul(a, x)
                c = R.permute_dims(b)
                d = R.cumsum(c, axis=0)
                e = R.negative(d)
                f = R.reshape(e, (16,))
                g = R.exp(f)
                h = R.sum(g, axis=[0])
                k = R.exp(g)
                i = R.add(k, h)
                out = R.exp(i)
                R.output(i, out)
            return (i, out)
        """
    )
    answers = {(a.producer, a.consumer): a for a in fusion_answers(mod)}
    rules = {pair: a.rule for pair, a in answers.items()}
    assert rules["a", "b"] is Rule.CONTRACTION
    assert rules["b", "c"] is Rule.NOT_ELEMENTWISE
    assert rules["c", "d"] is Rule.OPAQUE_CONSUMER
    assert rules["d", "e"] is Rule.OPAQUE
    assert rules["f", "g"] is Rule.VIEW
    assert rules["g", "h"] is Rule.ON_THE_WAY
    assert rules["i", "out"] is Rule.NEEDED
    assert rules["k", "i"] is None and answers["k", "i"].fused
    assert "`a`" in explain_fusion(mod, "b", "a").reason
    with pytest.raises(relaxlang.DiagnosticError, match="no variable of a kernel"):
        explain_fusion(mod, "a", "zz")
