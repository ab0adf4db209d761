"""Parts of programs that back ends compute: found, joined, replaced; the same values afterwards, in every mode."""

import numpy as np
import pytest

import relaxlang
from relaxlang import dpl
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.ir.relax import Function
from relaxlang.passes.back_end import CompositePattern
from relaxlang.transform import FuseOpsByPattern, MergeCompositeFunctions, PassContext, RunCodegen, pipeline

MLP = """
@R.function
def main(x: R.Tensor((n, 4), "float32"), w: R.Tensor((8, 4), "float32"), b: R.Tensor((8,), "float32"),
         w2: R.Tensor((8, 8), "float32")):
    with R.dataflow():
        wt = R.permute_dims(w)
        y = R.matmul(x, wt)
        z = R.add(b, y)
        h = R.nn.gelu(z)
        o = R.matmul(h, w2)
        s = R.nn.softmax(o, axis=-1)
        q = R.reshape(s, (n, 2, 4))
        R.output(q, h)
    return (q, h)
"""
SHAPES = ((3, 4), (8, 4), (8,), (8, 8))
BACK_ENDS = ["blas", pytest.param("onnx_runtime", marks=pytest.mark.extra("onnxruntime"))]


def arrays(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    generator = np.random.default_rng(0)
    return [generator.standard_normal(s).astype("float32") for s in shapes]


def one_call(params: str, call: str) -> relaxlang.IRModule:
    body = f"    with R.dataflow():\n        y = {call}\n        R.output(y)\n    return y"
    return relaxlang.parse(f"@R.function\ndef main({params}):\n{body}")


def attributes(mod: relaxlang.IRModule, name: str) -> list[str]:
    return [str(f.attrs[name]) for _, f in mod.relax_functions() if name in f.attrs]


def check_same(mod: relaxlang.IRModule, made: relaxlang.IRModule, args: list[np.ndarray]) -> None:
    built = relaxlang.build(made)
    wanted = relaxlang.interpret(mod, "main", *args)
    vm = relaxlang.VirtualMachine(built, exec_mode="bytecode")
    for got in (relaxlang.interpret(made, "main", *args), built["main"](*args), vm["main"](*args)):
        for one, other in zip(*((r if isinstance(r, tuple) else (r,)) for r in (got, wanted)), strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("name", BACK_ENDS)
def test_the_same_values(name: str, tmp_path) -> None:
    mod, args = relaxlang.parse(MLP), arrays(*SHAPES)
    made = pipeline(f"fuse-ops-by-pattern{{back_end={name}}},merge-composite-functions,run-codegen")(mod)
    assert "relaxlang." + name in made.script() and not attributes(made, "Codegen") + attributes(made, "Composite")
    relaxlang.assert_structural_equal(relaxlang.parse(made.script(constants="inline")), made)
    check_same(mod, made, args)
    check_same(mod, FuseOpsByPattern(back_end=name)(mod), args)
    check_same(mod, pipeline(f"fuse-ops-by-pattern{{back_end={name}}},run-codegen")(mod), args)
    path = tmp_path / "made.rlxe"
    relaxlang.build(made).export_library(path)
    loaded, wanted = relaxlang.load_module(path)["main"](*args), relaxlang.interpret(mod, "main", *args)
    np.testing.assert_allclose(loaded[0], wanted[0], rtol=1e-5, atol=1e-6)


def test_pieces_of_blas() -> None:
    made = FuseOpsByPattern(back_end="blas")(relaxlang.parse(MLP))
    assert attributes(made, "Composite") == ["blas.matmul_bias_transposed", "blas.matmul"]
    assert attributes(FuseOpsByPattern(back_end="blas", annotate_codegen=True)(relaxlang.parse(MLP)), "Codegen") == [
        "blas", "blas",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "shapes, call",
    [
        (((5, 2, 3), (3, 4)), "R.matmul(a, b)"),
        (((5, 2, 3), (5, 3, 4)), "R.matmul(a, b)"),
        (((2, 3), (5, 3, 4)), "R.matmul(a, b)"),
        (((5, 1, 2, 3), (4, 3, 2)), "R.matmul(a, b)"),
        (((3, 2), (3, 4)), "R.matmul(R.permute_dims(a), b)"),
        (((3, 2), (4, 3)), "R.matmul(R.permute_dims(a), R.permute_dims(b))"),
        (((5, 2, 3), (5, 4, 3)), "R.matmul(a, R.permute_dims(b, axes=(0, 2, 1)))"),
        (((2, 3), (3, 4), (2, 1)), "R.add(R.matmul(a, b), c)"),
        (((5, 2, 3), (3, 4), (5, 1, 4)), "R.add(c, R.matmul(a, b))"),
        (((0, 3), (3, 4), (4,)), "R.add(R.matmul(a, b), c)"),
        (((2, 0), (0, 4), (4,)), "R.add(R.matmul(a, b), c)"),
        (((2, 0), (0, 4)), "R.matmul(a, b)"),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products(shapes, call: str, dtype: str) -> None:
    params = ", ".join(f'{n}: R.Tensor({s}, "{dtype}")' for n, s in zip("abc", shapes))
    mod = one_call(params, call)
    made = pipeline("fuse-ops-by-pattern{back_end=blas},run-codegen")(mod)
    assert made.script().count("relaxlang.blas.matmul") == 1 and "R.matmul" not in made.script()
    assert "permute_dims" not in made.script()
    check_same(mod, made, [a.astype(dtype) for a in arrays(*shapes)])


@pytest.mark.parametrize(
    "params, call",
    [
        ('a: R.Tensor((2, 3), "int32"), b: R.Tensor((3, 4), "int32")', "R.matmul(a, b)"),
        ('a: R.Tensor((3,), "float32"), b: R.Tensor((3, 4), "float32")', "R.matmul(a, b)"),
        ('a: R.Tensor((2, 3), "float16"), b: R.Tensor((3, 4), "float16")', 'R.matmul(a, b, out_dtype="float32")'),
    ],
)
def test_products_that_are_none_for_blas(params: str, call: str) -> None:
    mod = one_call(params, call)
    assert FuseOpsByPattern(back_end="blas")(mod) is mod


def test_what_is_used_outside_stays_outside() -> None:
    mod = relaxlang.parse("""
@R.function
def main(x: R.Tensor((n, 4), "float32"), w: R.Tensor((4, 4), "float32")):
    with R.dataflow():
        y = R.matmul(x, w)
        z = R.add(y, y)
        u = R.add(y, z)
        R.output(z, u)
    return (z, u)
""")
    made = FuseOpsByPattern(back_end="blas")(mod)
    assert attributes(made, "Composite") == ["blas.matmul"]
    check_same(mod, RunCodegen()(made), arrays((3, 4), (4, 4)))


def test_patterns_of_ones_own() -> None:
    mod = relaxlang.parse(MLP)
    x, w = dpl.wildcard(), dpl.wildcard()
    product = dpl.is_op("matmul")(x, w)
    seen = []

    def wanted(match) -> bool:
        seen.append([b.var.name for b in match.bindings])
        return match.found[x].name == "h"

    made = FuseOpsByPattern([("my.matmul", product, wanted)])(mod)
    assert attributes(made, "Composite") == ["my.matmul"] and seen == [["o"], ["y"]]
    made = FuseOpsByPattern((CompositePattern("my.act", dpl.is_op("nn.gelu")(product | dpl.wildcard())),))(mod)
    assert attributes(made, "Composite") == ["my.act"]
    with pytest.raises(DiagnosticError, match="RLX3151"):
        FuseOpsByPattern(("my.matmul",))(mod)


@pytest.mark.parametrize("bind", [True, False])
def test_constants(bind: bool) -> None:
    text = """
@R.function
def main(x: R.Tensor((2, 2), "float32")):
    with R.dataflow():
        y = R.matmul(x, R.const([[1.0, 2.0], [3.0, 4.0]], "float32"))
        R.output(y)
    return y
"""
    mod = relaxlang.parse(text)
    made = FuseOpsByPattern(back_end="blas", bind_constants=bind)(mod)
    func = next(f for n, f in made.relax_functions() if n != "main")
    assert len(func.params) == (1 if bind else 2)
    check_same(mod, RunCodegen()(made), arrays((2, 2)))


def test_groups_have_nothing_between_them() -> None:
    mod = relaxlang.parse("""
@R.function
def main(x: R.Tensor((n,), "float32")):
    with R.dataflow():
        a = R.exp(x)
        b = R.sin(a)
        c = R.tanh(a)
        d = R.add(b, c)
        e = R.exp(d)
        R.output(e, c)
    return (e, c)
""")
    taken = [("my.op", dpl.is_op(n)(varg_default_wildcard=True)) for n in ("exp", "tanh", "add")]
    made = MergeCompositeFunctions()(FuseOpsByPattern(taken)(mod))
    assert attributes(made, "Codegen") == ["my", "my"]
    groups = {n: f for n, f in made.relax_functions() if "Codegen" in f.attrs}
    assert sorted(len(f.body.blocks[0].bindings) for f in groups.values()) == [2, 3]
    check_same(mod, made, arrays((5,)))


class Doubler:
    """A back end that takes every `exp` and gives a function of Python."""

    name = "doubler"
    takes_whole_functions = True

    def patterns(self):
        return [CompositePattern("doubler.exp", dpl.is_op("exp")(dpl.wildcard()))]

    def version(self):
        return "1"

    def generate(self, name: str, func: Function, options) -> Function:
        by = f"R.const({options['by']}, 'float32')"
        return one_call('x: R.Tensor((n,), "float32")', f"R.multiply(x, {by})")["main"]


def test_a_back_end_of_ones_own() -> None:
    mod = one_call('x: R.Tensor((n,), "float32")', "R.exp(x)")
    with PassContext(back_ends=[Doubler()]):
        made = RunCodegen({"doubler": {"by": 2.0}})(FuseOpsByPattern(back_end="doubler")(mod))
    np.testing.assert_array_equal(relaxlang.build(made)["main"](np.ones(3, "float32")), [2, 2, 2])


def test_back_ends_that_are_not_there() -> None:
    mod = relaxlang.parse(MLP)
    with pytest.raises(DiagnosticError, match=r"RLX3150.*\n.*did you mean `blas`"):
        FuseOpsByPattern(back_end="blast")(mod)
    with pytest.raises(DiagnosticError, match="RLX3150"):
        RunCodegen({"cublas": {}})(mod)
    x = dpl.wildcard()
    with pytest.raises(DiagnosticError, match="RLX3150"):
        RunCodegen()(FuseOpsByPattern([("other.op", dpl.is_op("nn.gelu")(x))])(mod))


NETWORK = """
@R.function
def main(x: R.Tensor((n, 3, 9, 8), "float32"), w: R.Tensor((4, 3, 3, 3), "float32"), g: R.Tensor((6,), "float32")):
    with R.dataflow():
        a = R.nn.conv2d(x, w, strides=(1, 1), padding=(1, 0, 1, 0))
        b = R.nn.relu(a)
        c = R.nn.max_pool2d(b, pool_size=(3, 2), strides=(3, 2))
        d = R.nn.avg_pool2d(b, pool_size=(3, 2), strides=(3, 2), padding=(1, 1, 1, 1), count_include_pad=False)
        e = R.concat((c, R.maximum(c, R.const(0.5, "float32"))), axis=1)
        f = R.mean(d, axis=(2, 3), keepdims=False)
        h = R.nn.layer_norm(b, g, g, axes=[-1])
        i = R.nn.silu(R.sqrt(R.abs(h)))
        j = R.sum(i, axis=-1, keepdims=True)
        k = R.nn.log_softmax(R.permute_dims(e, axes=(0, 2, 3, 1)), axis=2)
        R.output(f, j, k)
    return (f, j, k)
"""


@pytest.mark.extra("onnxruntime")
def test_operators_in_onnx() -> None:
    mod = relaxlang.parse(NETWORK)
    made = FuseOpsByPattern(back_end="onnx_runtime")(mod)
    assert len(attributes(made, "Composite")) == 14
    made = RunCodegen()(MergeCompositeFunctions()(made))
    assert made.script().count("call_dps_packed") == 1
    check_same(mod, made, arrays((2, 3, 9, 8), (4, 3, 3, 3), (6,)))
