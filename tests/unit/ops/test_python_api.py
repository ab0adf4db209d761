"""Operators as Python functions."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from relaxlang import op
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.base.dtype import dtype
from relaxlang.ir import prim, relax
from relaxlang.ir.prim import INT64
from relaxlang.ir.struct_info import TensorStructInfo, tensor_info

N = prim.Var("n", INT64)
X = relax.Var("x", tensor_info((N, prim.IntImm(INT64, 4)), dtype("float32")))


def test_a_call_has_struct_info_and_defaults() -> None:
    call = op.nn.softmax(X)
    assert isinstance(call.op, relax.Op) and call.op.name == "nn.softmax"
    assert call.attrs["axis"] == -1
    assert isinstance(call.struct_info, TensorStructInfo) and call.struct_info.dims == X.struct_info.dims  # type: ignore[attr-defined]


def test_calls_nest_and_arrays_are_constants() -> None:
    call = op.add(op.nn.relu(X), np.ones((4,), "float32"))
    assert isinstance(call.args[1], relax.Constant)
    assert call.struct_info.dims == X.struct_info.dims  # type: ignore[union-attr, attr-defined]


def test_names_documentation_and_signatures_come_from_the_definitions() -> None:
    assert "softmax" in dir(op.nn) and "nn" in dir(op) and "add" in dir(op)
    assert op.nn.softmax.__doc__.startswith("R.nn.softmax(data, axis=-1)")
    assert str(inspect.signature(op.sum)) == "(x, axis=None, keepdims=False)"
    assert str(inspect.signature(op.print)) == "(*values, format='')"
    assert str(inspect.signature(op.eye)) == "(n, m='n', k=0, dtype='float32')"
    assert repr(op.nn.relu) == "<operator R.nn.relu(data)>"


def test_unknown_names_and_wrong_arguments() -> None:
    with pytest.raises(AttributeError, match=r"there is no operator `nn\.rleu`"):
        op.nn.rleu  # noqa: B018
    with pytest.raises(DiagnosticError, match="axis 2 is out of range"):
        op.nn.softmax(X, axis=2)
