"""Element types, tensors and shapes of ONNX as those of the language."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from relaxlang.base.diagnostics import fail
from relaxlang.base.dtype import DType, from_numpy

_NAMES = {number: name for name, number in TensorProto.DataType.items()}
_UNSUPPORTED = ("STRING", "COMPLEX64", "COMPLEX128", "UINT4", "INT4", "UINT2", "INT2", "FLOAT4E2M1", "FLOAT6E2M3",
                "FLOAT6E3M2", "UNDEFINED")  # fmt: skip


def element_type(number: int, what: str) -> DType:
    """The type of a number of `TensorProto.DataType`; RLX8006 when the language has none. `what` has it."""
    name = _NAMES.get(number)
    if name is None or name in _UNSUPPORTED:
        fail("RLX8006", f"{what} has elements of a type that is not supported: {(name or str(number)).lower()}")
    return from_numpy(helper.tensor_dtype_to_np_dtype(number))


def tensor_data(tensor: Any, what: str) -> np.ndarray[Any, Any]:
    """The array of a `TensorProto`. RLX8003 when it has another length than its shape says."""
    element_type(tensor.data_type, what)
    if tensor.HasField("segment"):
        fail("RLX8006", f"{what} is stored in segments")
    if tensor.data_location == TensorProto.EXTERNAL:
        fail("RLX8004", f"{what} lies in a further file, and the model was given without its path",
             help="pass the path of the model")  # fmt: skip
    try:
        made = numpy_helper.to_array(tensor)
    except (ValueError, TypeError) as fault:
        fail("RLX8003", f"{what} has not as many elements as its shape {tuple(tensor.dims)} says: {fault}")
    if made.size != math.prod(tensor.dims):
        fail("RLX8003", f"{what} has {made.size} elements, its shape is {tuple(tensor.dims)}")
    made.flags.writeable = False
    return made
