"""ConvertLayout: values stay, and tensors are moved only where they must be."""

from __future__ import annotations

import numpy as np
import pytest
from checking import array, check, module

import relaxlang
from relaxlang import transform as tr
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.ir import relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.visit import walk

NHWC = {"nn.conv2d": ["NHWC", "OHWI"]}
BLOCKS = {"nn.conv2d": ["NCHW4c", "OIHW4i4o"]}


def moves(mod: IRModule) -> int:
    """How many tensors are moved."""
    return sum(
        isinstance(n, relax.Call) and n.op in (relax.Op("permute_dims"), relax.Op("layout_transform"))
        for f in mod.functions.values()
        for n in walk(f)
    )


RESIDUAL = """
    @R.function
    def main(
        x: R.Tensor((n, 4, 4, 4), "float32"), w: R.Tensor((4, 4, 3, 3), "float32"), b: R.Tensor((4,), "float32"),
    ):
        with R.dataflow():
            bias = R.reshape(b, (1, 4, 1, 1))
            a = R.nn.conv2d(x, w, padding=1)
            t = R.nn.batch_norm(a, b, b, b, R.abs(b), axis=1, training=False)
            r = R.nn.relu(t[0])
            c = R.add(R.nn.conv2d(r, w, padding=1), bias)
            s = R.add(c, r)
            p = R.nn.max_pool2d(s, pool_size=(2, 2), strides=2)
            k = R.concat((p, R.nn.avg_pool2d(s, pool_size=(2, 2), strides=2)), axis=1)
            m = R.mean(k, axis=[2, 3])
            y = R.nn.softmax(m)
            R.output(y)
        return y
    """
INPUTS = (array(2, 4, 4, 4), array(4, 4, 3, 3), array(4))


def test_a_residual_network_moves_its_input_and_weights_alone() -> None:
    made = check(RESIDUAL, tr.ConvertLayout(NHWC), INPUTS, rtol=1e-4, atol=1e-5)
    assert moves(made) == 3  # x, w and the bias


def test_blocks_of_channels() -> None:
    made = check(RESIDUAL, tr.ConvertLayout(BLOCKS), INPUTS, rtol=1e-4, atol=1e-5, again=False)
    assert 'data_layout="NCHW4c"' in made.script() and 'layout="NCHW4c"' in made.script()
    vm = relaxlang.VirtualMachine(relaxlang.build(made), relaxlang.cpu())
    want = relaxlang.interpret(module(RESIDUAL), "main", *INPUTS)
    np.testing.assert_allclose(vm["main"](*INPUTS), want, rtol=1e-4, atol=1e-5)


def test_blocks_that_do_not_divide_are_not_made() -> None:
    text = RESIDUAL.replace("(4, 4, 3, 3)", "(6, 6, 3, 3)").replace("(n, 4,", "(n, 6,").replace("(4,)", "(6,)")
    text = text.replace("(1, 4, 1, 1)", "(1, 6, 1, 1)")
    assert moves(tr.ConvertLayout(BLOCKS)(module(text))) == 0


def test_compiled_with_nhwc() -> None:
    vm = relaxlang.VirtualMachine(relaxlang.build(tr.ConvertLayout(NHWC)(module(RESIDUAL))), relaxlang.cpu())
    want = relaxlang.interpret(module(RESIDUAL), "main", *INPUTS)
    np.testing.assert_allclose(vm["main"](*INPUTS), want, rtol=1e-4, atol=1e-5)


FOLLOWERS = [
    ("R.split(a, 2, axis=1)[1]", 3),
    ("R.permute_dims(a, axes=[0, 2, 3, 1])", 2),
    ("R.reshape(a, (n, -1))", 3),
    ("R.squeeze(R.mean(a, axis=[2, 3], keepdims=True), axis=[2, 3])", 2),
    ("R.strided_slice(a, axes=[1], begin=[0], end=[2])", 3),
    ("R.nn.pad(a, (0, 0, 0, 0, 1, 2, 0, 1))", 3),
    ("R.where(R.greater(a, R.const(0, 'float32')), a, x)", 3),
    ("R.nn.layer_norm(a, b, b, axes=[1])", 3),
    ("R.nn.group_norm(a, b, b, num_groups=2, channel_axis=1, axes=[2, 3])", 3),
    ("R.image.resize2d(a, (8, 2))", 3),
    ("R.nn.prelu(a, b)", 3),
    ("R.argmax(a, axis=1)", 2),
    ("R.nn.adaptive_avg_pool2d(a, output_size=1)", 3),
    ("R.squeeze(R.expand_dims(a, axis=[1, -1]), axis=[1])", 3),
    ("R.sum(R.stack((a, a), axis=2), axis=2)", 3),
    ("R.tile(a, (1, 2, 1))", 3),
    ("R.nn.rms_norm(a, b, axes=[1])", 3),
    ("R.gather_elements(a, R.astype(R.greater(a, R.const(0, 'float32')), 'int64'), axis=1)", 3),
    ("R.nn.dropout(a)[0]", 3),
    ("R.flip(R.cumsum(a, axis=2), axis=1)", 3),
]  # fmt: skip
ONE = """
    @R.function
    def main(
        x: R.Tensor((n, 4, 4, 4), "float32"), w: R.Tensor((4, 4, 3, 3), "float32"), b: R.Tensor((4,), "float32"),
    ):
        with R.dataflow():
            a = R.nn.conv2d(x, w, padding=1)
            y = LAST
            R.output(y)
        return y
    """


@pytest.mark.parametrize(("last", "count"), FOLLOWERS)
def test_what_follows_a_convolution(last: str, count: int) -> None:
    made = check(ONE.replace("LAST", last), tr.ConvertLayout(NHWC), INPUTS, rtol=1e-4, atol=1e-5)
    assert moves(made) == count, made.script()


@pytest.mark.parametrize("last", [last for last, _ in FOLLOWERS])
def test_what_follows_a_convolution_in_blocks(last: str) -> None:
    check(ONE.replace("LAST", last), tr.ConvertLayout(BLOCKS), INPUTS, rtol=1e-4, atol=1e-5, again=False)


def test_blocks_that_a_result_would_not_fill() -> None:
    text = """
    @R.function
    def main(x: R.Tensor((1, 4, 6, 6), "float32"), w: R.Tensor((4, 4, 1, 1), "float32")):
        with R.dataflow():
            a = R.nn.conv2d(x, w)
            p = R.nn.max_pool2d(a, pool_size=(2, 2))
            R.output(p)
        return p
    """
    rows = tr.ConvertLayout({"nn.conv2d": ["NCHW2h", "OIHW"]})
    made = check(text, rows, (array(1, 4, 6, 6), array(4, 4, 1, 1)), rtol=1e-4, again=False)
    assert "R.Tensor((1, 4, 5, 5), " in made.script()


def test_branches_and_tuples() -> None:
    text = """
    @R.function
    def main(
        x: R.Tensor((2, 4, 4, 4), "float32"), w: R.Tensor((4, 4, 3, 3), "float32"), c: R.Tensor((), "bool"),
    ):
        a = R.nn.conv2d(x, w, padding=1)
        if c:
            p = R.nn.relu(a)
            t = R.nn.conv2d(p, w)
        else:
            q = R.nn.conv2d(a, w)
            t = R.negative(q)
        z = R.nn.conv2d(a, w)
        return (t, (z, a))
    """
    x, w, _ = INPUTS
    check(text, tr.ConvertLayout(NHWC), (x, w, np.array(True)), (x, w, np.array(False)), rtol=1e-4, atol=1e-5)


def test_layouts_of_single_calls_and_text() -> None:
    mod = module(RESIDUAL)
    as_text = relaxlang.passes.pipelines.pipeline("convert-layout{desired_layouts=[[relax.nn.conv2d, NHWC, OHWI]]}")
    relaxlang.assert_structural_equal(as_text(mod), tr.ConvertLayout(NHWC)(mod))
    padded_only = tr.ConvertLayout(layout_cb=lambda call: NHWC if call.attrs.get("padding") == (1, 1) else {})
    relaxlang.assert_structural_equal(padded_only(mod), mod)
    relaxlang.assert_structural_equal(tr.ConvertLayout(layout_cb=lambda call: NHWC)(mod), tr.ConvertLayout(NHWC)(mod))


def test_other_operators() -> None:
    text = """
    @R.function
    def main(x: R.Tensor((1, 4, 5), "float32"), w: R.Tensor((4, 2, 3), "float32")):
        y = R.nn.conv1d_transpose(x, w, strides=2)
        z = R.tanh(y)
        return z
    """
    wanted = {"nn.conv1d_transpose": ["NWC", "IWO", "NCW"]}
    made = check(text, tr.ConvertLayout(wanted), (array(1, 4, 5), array(4, 2, 3)), rtol=1e-4)
    assert moves(made) == 2


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"nn.conv2b": ["NHWC", "OHWI"]}, "no operator `nn.conv2b`"),
        ({"nn.conv2d": ["NHWX", "OHWI"]}, "each letter"),
        ({"nn.conv2d": ["NHWC"]}, "layouts of data and kernel"),
    ],
)
def test_layouts_that_there_are_not(wanted: dict[str, list[str]], words: str) -> None:
    with pytest.raises(DiagnosticError, match=words):
        tr.ConvertLayout(wanted)(module(RESIDUAL))
