"""The short text of a tensor's struct info is what the printer writes."""

from __future__ import annotations

import pytest

from relaxlang.base.dtype import DType, dtype
from relaxlang.ir import prim
from relaxlang.ir.struct_info import StructInfo, tensor_info

SHAPES = [(), (1,), (3, 4), (1, 3, 224, 224), (0, -2), (10**9,) * 4, (10**18,) * 8]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", ["float32", "bool", "float8_e4m3fn", None])
@pytest.mark.parametrize("of", [prim.INT64, prim.INT32], ids=str)
def test_short_texts(shape: tuple[int, ...], kind: str | None, of: DType) -> None:
    info = tensor_info(tuple(prim.IntImm(of, n) for n in shape), None if kind is None else dtype(kind))
    assert str(info) == StructInfo.__str__(info)
