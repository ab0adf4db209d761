"""Shape rules of operators with windows, layouts and options against apache-tvm (see `test_infer_oracle`)."""

from __future__ import annotations

import pytest
from random_calls import CALLS
from test_infer_oracle import Dice, agree, ours, theirs

pytestmark = pytest.mark.extra("tvm")
ROUNDS = 40

# What TVM infers though it cannot be computed, or computes from shapes that do not fit: windows longer than the padded
# input, dtypes that an operator has no meaning for, batches and numbers of slopes that differ, axes to squeeze that are
# not 1, more elements of an axis than it has.
STRICT = {
    "nn.conv1d", "nn.conv2d", "nn.conv3d", "nn.max_pool2d", "nn.avg_pool2d", "image.grid_sample", "nn.prelu",
    "bitwise_not", "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "atan2", "log_add_exp",
    "squeeze", "topk", "scatter_elements", "sort", "argsort",
}  # fmt: skip
# What TVM refuses though there is a meaning: paddings of the output up to the dilation, indices into a flattened
# tensor, flat masks of attention, tensors of one dimension as a batch, dimensions that differ by a symbol.
GENEROUS = {
    "nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose", "take", "nn.attention", "nn.batch_flatten",
    "ewise_fma", "dequantize",
}  # fmt: skip
# Where numbers mean what numpy means: logical operators give bools, "xy" exchanges the first two dimensions of a grid.
# A split into one part is a tuple here, a tensor in TVM.
OTHERWISE = {"logical_not", "logical_and", "logical_or", "logical_xor", "meshgrid", "split"}


@pytest.mark.parametrize("name", sorted(CALLS.keys() - OTHERWISE))
def test_shape_rules_agree_with_tvm(name: str) -> None:
    faults, agreed = [], 0
    for seed in range(ROUNDS):
        args, attrs = CALLS[name](Dice(seed * 1000 + len(name)))
        mine, other = ours(name, args, attrs), theirs(name, args, attrs)
        if mine is None or other is None:
            allowed = STRICT if mine is None else GENEROUS
            if (mine is None) != (other is None) and name not in allowed:
                faults.append(f"{args} {attrs}: {'relaxlang' if mine is None else 'tvm'} refuses it")
        elif difference := agree(mine, *other):
            faults.append(f"{args} {attrs}: {difference}")
        else:
            agreed += 1
    assert not faults, "\n".join(faults)
    assert agreed
