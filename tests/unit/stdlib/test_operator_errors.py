"""Calls that an operator refuses: the diagnostic names the operator and what is wrong, at the line of the call."""

from __future__ import annotations

import pytest

import relaxlang
from tests.unit.stdlib.cases import CASES
from tests.unit.stdlib.harness import OPERATORS, Dims, Inputs

HEADER = """@I.ir_module
class Module:
    @R.function
    def main(
        x: R.Tensor((2, 4), "float32"), y: R.Tensor((3, 5), "float32"), i: R.Tensor((2,), "int64"), s: R.Tensor((), "float32"),
        image: R.Tensor((1, 4, 8, 8), "float32"), w: R.Tensor((6, 3, 3, 3), "float32"), unknown: R.Tensor(ndim=2),
    ):
        o = {}
        return o
"""  # noqa: E501
CALLS = {
    # ranks and shapes
    "R.add(x, y)": ("RLX0210", "cannot broadcast dimension 2 with 3"),
    "R.matmul(x, y)": ("RLX0210", "inner dimensions differ: 4 of `x1` and 3 of `x2`"),
    "R.matmul(s, x)": ("RLX0210", "a scalar has no matrix product"),
    "R.nn.conv2d(x, w)": ("RLX0210", "`data` must have 4 dimensions, not 2"),
    "R.reshape(x, (3, 3))": ("RLX0210", "8 elements cannot be reshaped to (3, 3), which is 9"),
    "R.reshape(x, (-1, -1))": ("RLX0210", "only one dimension can be -1"),
    "R.reshape(x, (3, -1))": ("RLX0210", "8 elements cannot be reshaped"),
    "R.broadcast_to(x, (3, 4))": ("RLX0210", "dimension 2 cannot be broadcast to 3"),
    "R.concat((x, y))": ("RLX0210", "dimension 1 differs: 4 and 5"),
    "R.stack((x, y))": ("RLX0210", "dimension 0 differs: 2 and 3"),
    "R.tril(i)": ("RLX0203", "`x` must have at least 2 dimensions, not 1"),
    "R.full((2,), x)": ("RLX0202", "`fill_value` must have 0 dimensions, not 2"),
    "R.nn.layer_norm(x, i, i, axes=[0])": ("RLX0204", "`data` is float32 but `gamma` is int64"),
    'R.einsum((x, y), "ij,jk->ik")': ("RLX0210", "cannot broadcast dimension 4 with 3"),
    'R.einsum((x,), "ijk->i")': ("RLX0210", "an operand of 2 dimensions cannot be"),
    # dtypes
    "R.add(x, i)": ("RLX0204", "`x1` is float32 but `x2` is int64"),
    "R.exp(i)": ("RLX0210", "a floating-point tensor is needed, not int64"),
    "R.take(x, x, axis=0)": ("RLX0210", "an integer or bool tensor is needed, not float32"),
    "R.where(x, x, x)": ("RLX0204", "`condition` must be bool, not float32"),
    "R.concat((x, i))": ("RLX0210", "different dtypes: float32 and int64"),
    'R.astype(x, "floot32")': ("RLX0205", "`floot32` is not a dtype"),
    # axes
    "R.nn.softmax(x, axis=2)": ("RLX0210", "axis 2 is out of range for a tensor with 2 dimensions"),
    "R.sum(x, axis=[0, -2])": ("RLX0210", "axis (0, -2) occurs twice"),
    "R.permute_dims(x, (0, 0))": ("RLX0210", "`axes` is no permutation: (0, 0)"),
    "R.squeeze(x, axis=0)": ("RLX0210", "axis 0 cannot be removed: it is 2, not 1"),
    "R.expand_dims(x, axis=4)": ("RLX0210", "axis 4 is out of range"),
    "R.topk(x, k=9)": ("RLX0210", "`k` is 9, the axis has 4 elements"),
    'R.max(R.zeros((2, 0), "float32"), axis=1)': ("RLX0210", "axis 1 is empty"),
    # attributes
    "R.sum(x, axis=1.5)": ("RLX0206", "`axis` of `R.sum` must be an int or a tuple of ints, not `1.5`"),
    'R.nn.softmax(x, axis="a")': ("RLX0206", "`axis` of `R.nn.softmax` must be an int"),
    "R.nn.pad(x, (1, -1, 0, 0))": ("RLX0210", "`pad_width` must not be negative, not -1"),
    "R.nn.pad(x, (1, 1))": ("RLX0210", "`pad_width` needs 4 values, 2 were given"),
    'R.nn.pad(x, (1, 1, 1, 1), pad_mode="up")': ("RLX0210", "`pad_mode` is one of constant"),
    'R.nn.pad(x, (2, 0, 0, 0), pad_mode="reflect")': ("RLX0210", "2 elements cannot be mirrored from 2"),
    "R.strided_slice(x, [0], [0], [1], [0])": ("RLX0210", "a stride must be an integer that is not 0"),
    "R.nn.conv2d(image, w)": ("RLX0210", "the input has 4 channels, `weight` takes 3 (3 in each group)"),
    "R.nn.conv2d(image, w, groups=0)": ("RLX0210", "`groups` must be positive, not 0"),
    "R.nn.conv2d(image, w, strides=0)": ("RLX0210", "`strides` must be positive, not 0"),
    "R.nn.conv2d(image, w, padding=-1)": ("RLX0210", "`padding` must not be negative, not -1"),
    "R.nn.conv2d(image, w, padding=(1, 1, 1))": ("RLX0210", "`padding` needs 1, 2 or 4 values, 3 were given"),
    'R.nn.conv2d(image, w, data_layout="NCWW")': ("RLX0210", '`data_layout` must have each letter of "NCHW" once'),
    "R.nn.max_pool2d(image, pool_size=2, strides=0)": ("RLX0210", "`strides` must be positive, not 0"),
    "R.nn.max_pool2d(image, pool_size=9)": ("RLX0210", "the window is longer than the padded input: 9 and 8"),
    "R.split(x, 0)": ("RLX0210", "the number of parts must be positive"),
    "R.arange(0, 5, 0)": ("RLX0210", "`step` must not be 0"),
    "R.one_hot(i, 1, 0, depth=-3)": ("RLX0210", "`depth` must be positive, not -3"),
    'R.topk(x, ret_type="all")': ("RLX0210", "`ret_type` is one of both, values, indices, not all"),
    'R.nn.attention(image, image, image, causal_mask="Up")': ("RLX0210", "`causal_mask` is"),
    'R.image.resize2d(image, (3, 3), method="best")': ("RLX0210", "`method` is one of nearest_neighbor"),
    "R.image.resize2d(image, (0, 3))": ("RLX0210", "`size` must be positive, not 0"),
    'R.sum(x, axis=("a", "b"))': ("RLX0206", "`axis` of `R.sum` must be an int or a tuple of ints, not a tuple"),
    'R.full((2,), s, dtype="handle")': ("RLX0206", "`dtype` of `R.full` must be a dtype of elements"),
    'R.astype(x, "void")': ("RLX0206", "`dtype` of `R.astype` must be a dtype"),
    "R.image.resize2d(image, (3, 3), roi=(0.0, 1.0))": ("RLX0210", "`roi` needs 4 values, 2 were given"),
    'R.take(x, i, axis=0, mode="up")': ("RLX0210", '`mode` is "fast", "clip", "wrap" or "nan", not up'),
    'R.scatter_nd(x, i, x, reduction="mean")': (
        "RLX0210",
        "`reduction` is one of update, add, mul, max, min, not mean",
    ),
    "R.inspect.tensor_shape_i(x, axis=5)": ("RLX0210", "axis 5 is out of range"),
    "R.collapse_sum_like(y, x)": ("RLX0210", "dimension 3 does not collapse to 2"),
    "R.nn.attention(image, image, image, window_size=0)": ("RLX0210", "`window_size` must be positive, not 0"),
    "R.grad.take_backward(x, x, i, axis=1)": ("RLX0210", "dimension 1 of `output_grad` must be 2, not 4"),
    "R.grad.max_pool2d_backward(image, image, pool_size=2)": (
        "RLX0210",
        "dimension 2 of `output_grad` must be 7, not 8",
    ),
    "R.layout_transform(s, index_map=lambda i: (i,))": ("RLX1051", "the index map takes 1 indices, and 0 are given"),
    # arguments
    "R.nn.relu()": ("RLX0113", "`R.nn.relu` lacks its argument `data`"),
    "R.nn.relu(x, x)": ("RLX0113", "`R.nn.relu` takes at most 1 argument, 2 were given"),
    "R.nn.relu(x, data=x)": ("RLX0113", "`R.nn.relu` got `data` twice"),
    "R.sum(x, axs=1)": ("RLX0114", "`R.sum` has no parameter `axs`"),
    "R.nn.relu6x(x)": ("RLX0103", "there is no operator `R.nn.relu6x`"),
    'R.sum("a")': ("RLX0206", "`x` of `R.sum` must be a tensor"),
    "-R.tuple(x, Module.main)": ("RLX0206", "`x` of `R.negative` must be a tensor, not `R.Tuple("),
    "R.sum(x, axis=y)": ("RLX0206", "`axis` of `R.sum` must be an int or a tuple of ints"),
    "R.sum(Module.main)": ("RLX0206", "`x` of `R.sum` must be a tensor, not `R.Callable("),
}


@pytest.mark.parametrize("call", CALLS)
def test_the_call_is_refused(call: str) -> None:
    code, words = CALLS[call]
    with pytest.raises(relaxlang.DiagnosticError) as caught:
        relaxlang.parse(HEADER.format(call), "call.rlx")
    first = caught.value.diagnostics[0]
    assert first.code == code
    assert words in first.message
    assert first.span is not None and first.span.line == 8
    assert call.removeprefix("-").split("(")[0] in str(caught.value)


def test_both_tensors_are_labelled_where_they_are_declared() -> None:
    with pytest.raises(relaxlang.DiagnosticError) as caught:
        relaxlang.parse(HEADER.format("R.add(x, y)"))
    labels = [(label.span.text, label.text) for label in caught.value.diagnostics[0].labels]
    assert labels == [
        ('x: R.Tensor((2, 4), "float32")', "`x1`: (2, 4) float32"),
        ('y: R.Tensor((3, 5), "float32")', "`x2`: (3, 5) float32"),
    ]


def test_the_user_is_offered_the_parameter_that_was_meant() -> None:
    with pytest.raises(relaxlang.DiagnosticError) as caught:
        relaxlang.parse(HEADER.format("R.sum(x, axs=1)"))
    assert caught.value.diagnostics[0].help == "did you mean `axis`?"


def test_an_operator_that_is_not_known_enough_says_so_when_it_is_compiled() -> None:
    mod = relaxlang.parse(HEADER.format("R.nn.relu(unknown)"))
    with pytest.raises(relaxlang.DiagnosticError, match="the rank or dtype of `data` is not known"):
        relaxlang.build(mod)


def test_requirements_are_checked_at_run_time_where_shapes_are_symbols() -> None:
    import numpy as np

    mod = relaxlang.parse("""@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((n, 4), "float32"), y: R.Tensor((m, 4), "float32")):
        o = R.add(x, y)
        return o
""")
    vm = relaxlang.VirtualMachine(relaxlang.build(mod), relaxlang.cpu())
    two, three, one = (np.ones((n, 4), "float32") for n in (2, 3, 1))
    assert vm["main"](two, one).shape == (2, 4)
    with pytest.raises(relaxlang.RelaxlangError, match="cannot broadcast dimension n with m"):
        vm["main"](two, three)


WRONG: dict[str, tuple[object, ...]] = {
    "int": ("a", 1.5, 1 << 70, (1, 2)), "ints": (("a",), ((1,),), (0.5,), "NCHW"), "floats": (("a",), "b"),
    "float": ("a", (1.0,)), "bool": (5, "yes"), "str": (3,), "dtype": ("floot", 7, "handle"), "index_map": (3,),
}  # fmt: skip
FIRST = {case.name: case for case in reversed(CASES)}


@pytest.mark.parametrize("name", sorted(FIRST))
def test_every_attribute_says_what_it_must_be(name: str) -> None:
    case, definition = FIRST[name], OPERATORS.get(name)
    given = {**dict(zip([p.name for p in definition.params], case.args)), **case.attrs}
    for param in definition.attr_params:
        for value in (v for k in param.kinds for v in WRONG[k]):
            if ("ints" in param.kinds and value == (1, 2)) or ("float" in param.kinds and value in (1.5, 1 << 70)):
                continue
            with pytest.raises(relaxlang.DiagnosticError) as caught:
                OPERATORS.infer(Inputs(Dims("static")).call(name, (), {**given, param.name: value}))
            assert f"`{param.name}` of `R.{name}`" in caught.value.diagnostics[0].message
