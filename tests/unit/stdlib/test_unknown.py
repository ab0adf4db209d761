"""What is not known of the arguments: inference says less and nothing false, and ranks alone are enough to compile."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relaxlang.base.dtype import from_numpy
from relaxlang.ir import prim
from relaxlang.ir.prim import INT64
from relaxlang.ir.struct_info import OBJECT, StructInfo, TensorStructInfo, TupleStructInfo, tensor_info
from tests.unit.stdlib.cases import CASES
from tests.unit.stdlib.harness import OPERATORS, Dims, Inputs, evaluate, run
from tests.unit.stdlib.table import Case
from tests.unit.stdlib.test_values import check

ONE_EACH = list({case.name: case for case in CASES}.values())
# Whether a dimension is 1, or how many coordinates there are, decides the rank of their results.
NEED_SHAPES = ("squeeze", "gather_nd", "scatter_nd", "inspect.tensor_shape_i", "inspect.tensor_stride_i")


class Vague(Dims):
    """Struct info that lacks something."""

    def info(self, array: np.ndarray[Any, Any]) -> Any:
        of, dims = from_numpy(array.dtype), tuple(prim.IntImm(INT64, n) for n in array.shape)
        return {
            "no shape": tensor_info(None, of, array.ndim),
            "no rank": tensor_info(None, of),
            "no dtype": tensor_info(dims, None),
            "rank alone": tensor_info(None, None, array.ndim),
            "nothing": tensor_info(),
            "an object": OBJECT,
        }[self.kind]


def consistent(info: StructInfo, value: Any) -> None:
    """What is inferred must be true of the value."""
    if isinstance(info, TupleStructInfo):
        for field, part in zip(info.fields, value, strict=True):
            consistent(field, part)
    elif isinstance(info, TensorStructInfo):
        assert info.ndim in (-1, np.ndim(value))
        assert info.dtype is None or info.dtype.numpy == np.asarray(value).dtype
        assert info.dims is None or tuple(evaluate(d, {}) for d in info.dims) == np.shape(value)


@pytest.mark.parametrize("lacks", ["no shape", "no rank", "no dtype", "rank alone", "nothing", "an object"])
@pytest.mark.parametrize("case", ONE_EACH, ids=str)
def test_inference_says_less_and_nothing_false(case: Case, lacks: str) -> None:
    call = Inputs(Vague(lacks)).call(case.name, case.args, case.attrs)
    consistent(OPERATORS.infer(call), case.expected)


@pytest.mark.parametrize("case", [c for c in CASES if c.name not in NEED_SHAPES], ids=str)
def test_ranks_are_enough(case: Case) -> None:
    check(run(case.name, *case.args, dims="ranks", **case.attrs), case.expected, case.rtol)
