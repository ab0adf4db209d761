"""Kernels are elaborated once per signature: of other arguments, with the caller's own dimensions."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

from relaxlang.ir import prim, relax
from relaxlang.ir.prim import INT64
from relaxlang.ir.struct_info import TensorStructInfo, tensor_info
from relaxlang.ir.visit import free_vars
from relaxlang.ops import default_operators, table
from relaxlang.ops.kernel import Kernel

OPERATORS = default_operators()
F32: Any = prim.const(0.0, "float32").dtype


def kernel(name: str, *args: relax.Expr, **attrs: Any) -> Kernel:
    call = OPERATORS.make_call(name, list(args), attrs, None)
    made = OPERATORS.lower(call.replace(struct_info=OPERATORS.infer(call)))
    assert isinstance(made, Kernel)
    return made


def tensor(*dims: int | prim.Var, name: str = "x") -> relax.Var:
    return relax.Var(
        name, tensor_info(tuple(d if isinstance(d, prim.Var) else prim.IntImm(INT64, d) for d in dims), F32)
    )


def test_another_call_has_the_same_function_and_its_own_arguments() -> None:
    x, y, z = tensor(3, 5), tensor(3, 5, name="y"), tensor(3, 5, name="z")
    one, two = kernel("subtract", x, y), kernel("subtract", z, x)
    assert one.func is two.func
    assert one.args == (x, y) and two.args == (z, x)
    assert kernel("subtract", x, x).func is not one.func
    assert kernel("subtract", tensor(3, 6), tensor(3, 6)).func is not one.func


def test_symbolic_dimensions_are_the_callers() -> None:
    first, second, other = prim.Var("n", INT64), prim.Var("n", INT64), prim.Var("m", INT64)
    one, two = kernel("nn.softmax", tensor(first, 7)), kernel("nn.softmax", tensor(second, 7))
    assert one.func is two.func
    assert (
        isinstance(two.out, TensorStructInfo) and two.out.dims is not None and list(free_vars(two.out.dims)) == [second]
    )
    assert kernel("nn.softmax", tensor(other, 7)).func is not one.func  # it is printed with another name
    same = kernel("add", tensor(first, 7), tensor(first, 7))
    mixed = kernel("add", tensor(first, 7), tensor(other, 7))
    assert same.func is not mixed.func


def test_attributes_count_as_they_are_written() -> None:
    x = tensor(2, 3, 4)
    assert kernel("sum", x, axis=1).func is kernel("sum", x, axis=1).func
    assert kernel("sum", x, axis=1).func is not kernel("sum", x, axis=2).func
    assert kernel("sum", x, axis=1).func is not kernel("sum", x, axis=1, keepdims=True).func


def test_shapes_and_scalars_count_by_value() -> None:
    def shape(*values: int) -> relax.ShapeExpr:
        return relax.ShapeExpr(tuple(prim.IntImm(INT64, v) for v in values))

    x, one, two = tensor(4, 6), prim.const(1, "int64"), prim.const(2, "int64")
    assert kernel("reshape", x, shape(8, 3)).func is kernel("reshape", tensor(4, 6), shape(8, 3)).func
    assert kernel("reshape", x, shape(8, 3)).func is not kernel("reshape", x, shape(3, 8)).func
    limits = relax.PrimValue(one), relax.PrimValue(two)
    assert kernel("clip", x, *limits).func is kernel("clip", x, *limits).func
    assert kernel("clip", x, *limits).func is not kernel("clip", x, limits[0], limits[0]).func


def test_weights_are_not_kept_alive() -> None:
    data = np.zeros((11, 13), "float32")
    gone = weakref.ref(data)
    kernel("add", tensor(11, 13), relax.Constant(data))
    del data
    gc.collect()
    assert gone() is None


def test_a_result_is_inferred_once_and_in_the_callers_dimensions(monkeypatch: pytest.MonkeyPatch) -> None:
    def infer(*args: relax.Expr) -> Any:
        return OPERATORS.infer(OPERATORS.make_call("matmul", list(args), {}, None))

    first, second = prim.Var("rows", INT64), prim.Var("rows", INT64)
    known = infer(tensor(first, 5), tensor(5, 11))
    monkeypatch.setattr(table, "infer_call", None)  # what is known is not inferred again
    again = infer(tensor(second, 5, name="other"), tensor(5, 11))
    assert known.dims == (first, prim.IntImm(INT64, 11)) and again.dims == (second, prim.IntImm(INT64, 11))
    with pytest.raises(TypeError):
        infer(tensor(first, 5), tensor(5, 12))
