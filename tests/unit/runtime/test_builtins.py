"""The builtins, one by one."""

import numpy as np
import programs
import pytest

from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.base.dtype import dtype
from relaxlang.runtime import builtins as vm_builtins
from relaxlang.runtime import checks
from relaxlang.runtime.builtins import BUILTINS
from relaxlang.runtime.ndarray import ShapeTuple, array

F32 = dtype("float32")
CONTEXT = checks.err_ctx("parameter `x` of `f`", 'R.Tensor((n, m * 2, (a, b)[0]), "float32")')


def call(name, *args):
    return BUILTINS[name](*args)


def code(name, *args):
    with pytest.raises(DiagnosticError) as caught:
        call(name, *args)
    return caught.value.diagnostics[0].code


def test_match_and_make_shape():
    heap = call("vm.builtin.alloc_shape_heap", None, 4)
    call("vm.builtin.match_shape", ShapeTuple((7, 8, 9)), heap, 3, 1, 2, 2, 0, 0, 9, CONTEXT)
    assert list(heap) == [0, 0, 7, 0]
    call("vm.builtin.match_shape", array([[1.0] * 5] * 7), heap, 2, 3, 2, 1, 0, CONTEXT)
    shape = call("vm.builtin.make_shape", heap, 3, 1, 2, 0, 11, 1, 0)
    assert shape == ShapeTuple((7, 11, 5)) and type(shape) is ShapeTuple
    assert call("vm.builtin.make_shape", heap, 0) == ()
    assert code("vm.builtin.match_shape", ShapeTuple((6,)), heap, 1, 3, 2, CONTEXT) == "RLX6005"
    assert code("vm.builtin.match_shape", ShapeTuple((6,)), heap, 1, 0, 5, CONTEXT) == "RLX6005"
    assert code("vm.builtin.match_shape", ShapeTuple((6,)), heap, 2, 0, 5, 0, 6, CONTEXT) == "RLX6004"
    assert code("vm.builtin.alloc_shape_heap", None, -1) == "RLX6006"


def test_prim_values():
    heap = call("vm.builtin.alloc_shape_heap", None, 1)
    call("vm.builtin.match_prim_value", 5, heap, 1, 0, CONTEXT)
    call("vm.builtin.match_prim_value", 5, heap, 3, 0, CONTEXT)
    call("vm.builtin.match_prim_value", 9, heap, 2, 0, CONTEXT)
    assert call("vm.builtin.make_prim_value", heap, 1, 0) == 5 and call("vm.builtin.make_prim_value", heap, 0, 3) == 3
    assert code("vm.builtin.match_prim_value", 6, heap, 3, 0, CONTEXT) == "RLX6005"
    assert code("vm.builtin.match_prim_value", 6, heap, 0, 5, CONTEXT) == "RLX6005"


def test_names_of_dimensions_come_from_the_annotation():
    assert [checks.dim_name(CONTEXT, i) for i in range(4)] == ["n", "m * 2", "(a, b)[0]", None]
    assert checks.dim_name("x: R.Shape([n, 4])", 1) == "4" and checks.dim_name("x: R.Object", 0) is None


def test_checks_without_a_wish():
    call("vm.builtin.check_tensor_info", array([1.0]), -1, None, CONTEXT)
    call("vm.builtin.check_tensor_info", array([1.0]), -1, dtype("void"), CONTEXT)
    call("vm.builtin.check_shape_info", ShapeTuple([1]), -1, CONTEXT)
    call("vm.builtin.check_prim_value_info", 1, None, CONTEXT)
    call("vm.builtin.check_func_info", print, CONTEXT)
    assert code("vm.builtin.check_func_info", 3, CONTEXT) == "RLX6002"
    assert code("vm.builtin.check_tuple_info", ShapeTuple([1, 2]), 2, CONTEXT) == "RLX6002"


@pytest.mark.parametrize(
    ("value", "name", "fits"),
    [(1, "int8", True), (128, "int8", False), (-1, "uint8", False), (True, "bool", True), (1, "bool", False),
     (1, "float32", True), (1.0, "int64", False), (True, "int64", False), (0.5, "float16", True)],
)  # fmt: skip
def test_check_prim_value_info(value, name, fits):
    if fits:
        call("vm.builtin.check_prim_value_info", value, dtype(name), CONTEXT)
    else:
        assert code("vm.builtin.check_prim_value_info", value, dtype(name), CONTEXT) == "RLX6003"


def test_storage_and_tensors():
    storage = call("vm.builtin.alloc_storage", None, ShapeTuple([64]), 0, dtype("uint8"), "global")
    x = call("vm.builtin.alloc_tensor", storage, 0, ShapeTuple([2, 4]), F32)
    y = call("vm.builtin.alloc_tensor", storage, 32, ShapeTuple([8]), F32)
    x[:], y[:] = 1, 2
    assert x.sum() == 8 and y._address == x._address + 32 == y.__array_interface__["data"][0]
    assert code("vm.builtin.alloc_tensor", storage, 32, ShapeTuple([9]), F32) == "RLX6006"
    assert code("vm.builtin.alloc_tensor", storage, 0, ShapeTuple([1 << 40, 1 << 40]), F32) == "RLX6006"
    assert code("vm.builtin.alloc_tensor", storage, 0, ShapeTuple([-2]), F32) == "RLX6006"
    assert code("vm.builtin.alloc_tensor", storage, -4, ShapeTuple([1]), F32) == "RLX6006"
    assert code("vm.builtin.alloc_storage", None, ShapeTuple([-1]), 0, F32, "global") == "RLX6006"
    assert code("vm.builtin.alloc_storage", None, ShapeTuple([1 << 62]), 0, F32, "global") == "RLX6006"


def test_reshape_and_shapes():
    x = array(np.arange(6))
    y = call("vm.builtin.reshape", x, ShapeTuple([2, 3]))
    assert y.tolist() == [[0, 1, 2], [3, 4, 5]] and y._address == x._address
    assert code("vm.builtin.reshape", x, ShapeTuple([4])) == "RLX6018"
    assert code("vm.builtin.reshape", x, ShapeTuple([-2, -3])) == "RLX6018"
    assert call("vm.builtin.shape_of", y) == ShapeTuple([2, 3])
    assert call("vm.builtin.tensor_to_shape", x) == ShapeTuple(range(6))
    assert call("relax.run.shape_to_tensor", ShapeTuple([4, 5])).tolist() == [4, 5]
    assert code("vm.builtin.tensor_to_shape", y) == "RLX6018"
    assert code("vm.builtin.tensor_to_shape", array([1.5])) == "RLX6018"


def test_small_ones():
    assert call("vm.builtin.copy", 5) == 5 and call("vm.builtin.null_value") is None
    assert call("vm.builtin.make_tuple", 1, 2) == (1, 2) and call("vm.builtin.tuple_getitem", (1, 2), 1) == 2
    assert code("vm.builtin.tuple_getitem", (1, 2), 2) == "RLX6018"
    x = array([1])
    assert call("vm.builtin.to_device", x, 1, 0) is x and code("vm.builtin.to_device", x, 2, 0) == "RLX6016"
    call("vm.builtin.memory_manager.clear")


def test_conditions():
    assert call("vm.builtin.read_if_cond", array(True)) is True and call("vm.builtin.read_if_cond", array(0)) is False
    assert call("vm.builtin.read_if_cond", True) is True and call("vm.builtin.read_if_cond", array([[False]])) is False
    assert code("vm.builtin.read_if_cond", array([True, True])) == "RLX6018"
    assert code("vm.builtin.read_if_cond", None) == "RLX6018"


def test_call_tir_dyn():
    kernel = programs.kernels()["half"]
    with pytest.raises(DiagnosticError, match="even"):
        call("vm.builtin.call_tir_dyn", kernel, array([1] * 3, "int8"), array([1], "int8"), ShapeTuple([]))
    scale, out = programs.kernels()["scale"], array(0, "int64")
    call("vm.builtin.call_tir_dyn", scale, array(5, "int64"), out, ShapeTuple([3]))
    assert out == 15


def test_print(capsys):
    call("relax.run.print", "", array([1, 2]), 3, ShapeTuple([4, 5]))
    call("relax.run.print", "{} and {{{}}} then {0}", 1, "two")
    assert capsys.readouterr().out == "[1 2] 3 (4, 5)\n1 and {two} then 1\n"
    assert code("relax.run.print", "{} {}", 1) == "RLX6018"
    call("relax.run.print", "{0.__class__} {!r}", 1)
    assert capsys.readouterr().out == "{0.__class__} {!r}\n"


def test_assert_op():
    call("relax.run.assert_op", array(True), "never")
    call("relax.run.assert_op", True)
    for args, text in [((array(False), "x is {}", 3), "assertion failed: x is 3"), ((False,), "assertion failed")]:
        with pytest.raises(DiagnosticError) as caught:
            call("relax.run.assert_op", *args)
        assert caught.value.diagnostics[0].message == text and caught.value.diagnostics[0].code == "RLX6009"
    assert code("relax.run.assert_op", array([True]), "") == "RLX6018"
    assert code("relax.run.assert_op", array(1.0), "") == "RLX6018"


def test_trim():
    values, shape = array([3, 1, 1, 2]), array([1, 3])
    assert call("relax.run.trim", values, shape).tolist() == [[3, 1, 1]]
    one, other = call("relax.run.trim", values, array([0]), values, array([4]))
    assert one.shape == (0,) and other.tolist() == [3, 1, 1, 2]
    assert not np.shares_memory(other, values)
    for wrong in ([5], [-1, -1], [2, 3]):
        assert code("relax.run.trim", values, array(wrong)) == "RLX6018"


def test_names_are_those_of_the_field():
    assert {"vm.builtin.invoke_closure", "vm.builtin.make_closure", "vm.builtin.check_tuple_info"} <= BUILTINS.keys()
    assert vm_builtins.MatchShapeCode.ASSERT_EQUAL_TO_LOAD == 3 and vm_builtins.MakeShapeCode.LOAD_SHAPE == 1
