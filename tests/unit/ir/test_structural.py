"""Structural equality: what counts, what does not, and where the first difference is."""

import struct

import numpy as np
import pytest

from relaxlang.base.dtype import dtype
from relaxlang.ir import prim, relax, tir
from relaxlang.ir import struct_info as si
from relaxlang.ir.attrs import Attrs
from relaxlang.ir.module import IRModule
from relaxlang.ir.structural import (
    StructuralDifference,
    assert_structural_equal,
    first_difference,
    structural_equal,
    structural_hash,
)

F32, I64 = dtype("float32"), dtype("int64")


def dim(value):
    return prim.IntImm(I64, value)


def buffer(name, *shape):
    data = prim.Var(name, prim.HANDLE, prim.PointerType(F32))
    return tir.Buffer(name, shape, F32, data)


def relu(names="xyn", *, op="nn.relu", last=None, attrs=()):
    """`def f(x: R.Tensor((n, 4))): y = R.nn.relu(x); return y`, with the given names."""
    x_name, y_name, n_name = names
    n = prim.Var(n_name, I64)
    info = si.tensor_info((n, dim(4) if last is None else last), F32)
    x, y = relax.Var(x_name, info), relax.Var(y_name, info)
    body = relax.seq_expr([relax.VarBinding(y, relax.Call(relax.Op(op), (x,), struct_info=info))], y)
    return relax.Function((x,), body, info, attrs=Attrs(dict(attrs)))


def copy_kernel(names="ABi", *, kind="serial", block="copy", swap=False):
    a, b, i = names
    source, target, loop, axis = buffer(a, dim(8)), buffer(b, dim(8)), prim.Var(i, I64), prim.Var("v" + i, I64)
    index = loop if swap else axis
    store = tir.BufferStore(target, prim.BufferLoad(source, (index,)), (axis,))
    made = tir.Block((tir.IterVar(axis, tir.Range(dim(0), dim(8)), "spatial"),), None, None, block, store)
    nest = tir.For(loop, dim(0), dim(8), kind, tir.BlockRealize((loop,), prim.IntImm(prim.BOOL, 1), made))
    p, q = prim.Var("p", prim.HANDLE), prim.Var("q", prim.HANDLE)
    return tir.PrimFunc((p, q), nest, {p: source, q: target})


def constant(values, of="float32"):
    return relax.Constant(np.array(values, of))


# --- equal ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("left", "right"),
    [
        (relu("xyn"), relu("abm")),
        (copy_kernel("ABi"), copy_kernel("CDk")),
        (relu(attrs={"a": 1, "b": (1, 2)}.items()), relu(attrs={"b": (1, 2), "a": 1}.items())),
        (IRModule({"f": relu(), "k": copy_kernel()}), IRModule({"k": copy_kernel("XYz"), "f": relu("uvw")}, name="M")),
        (constant([1.0, -0.0, np.nan]), constant([1.0, -0.0, np.nan])),
    ],
    ids=["function", "kernel", "attributes", "module", "constant"],
)
def test_names_and_orders_do_not_count(left, right):
    assert structural_equal(left, right)
    assert structural_hash(left) == structural_hash(right)
    assert_structural_equal(left, right)


def test_inferred_struct_info_of_calls_does_not_count():
    x = relax.Var("x")
    call = relax.Call(relax.Op("add"), (x, x))
    assert structural_equal(call, call.replace(struct_info=si.OBJECT))


# --- different --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("left", "right", "path"),
    [
        (relu(), relu(op="exp"), "body.blocks[0].bindings[0].value.op.name"),
        (relu(), relu(last=dim(5)), "params[0].struct_info.shape[1].value"),
        (relu(attrs=[("a", 1)]), relu(attrs=[("a", True)]), 'attrs["a"]'),
        (relu(attrs=[("global_symbol", "f")]), relu(), "attrs"),
        (copy_kernel(), copy_kernel(kind="parallel"), "body.kind"),
        (copy_kernel(), copy_kernel(block="other"), "body.body.block.name_hint"),
        (copy_kernel(), copy_kernel(swap=True), "body.body.block.body.value.indices[0]"),
        (IRModule({"f": relu()}), IRModule({"g": relu()}), ""),
        (IRModule({"f": relu()}), IRModule({"f": relu(op="exp")}), "f.body.blocks[0].bindings[0].value.op.name"),
        (constant([0.0]), constant([-0.0]), ""),
        (constant([1]), constant([1], "float64"), ""),
        (constant([[1.0]]), constant([1.0]), ""),
    ],
)
def test_first_difference_names_the_place(left, right, path):
    found = first_difference(left, right)
    assert found is not None and found.path == path
    assert not structural_equal(left, right)
    assert structural_hash(left) != structural_hash(right)


def test_nan_payloads_differ():
    quiet = struct.unpack("<d", (0x7FF8000000000001).to_bytes(8, "little"))[0]
    assert not structural_equal(prim.FloatImm(F32, float("nan")), prim.FloatImm(F32, quiet))
    assert structural_equal(prim.FloatImm(F32, quiet), prim.FloatImm(F32, quiet))


def test_dataflow_block_is_no_plain_block():
    x = relax.Var("x")
    binding = relax.VarBinding(x, relax.StringImm("a"))
    assert not structural_equal(relax.BindingBlock((binding,)), relax.DataflowBlock((binding,)))


def test_one_variable_against_two():
    a, b, c = (relax.Var(name) for name in "abc")
    twice = relax.Function((a, b), relax.SeqExpr((), relax.Tuple((a, a))), None)
    crossed = relax.Function((b, c), relax.SeqExpr((), relax.Tuple((b, c))), None)
    found = first_difference(twice, crossed)
    assert found is not None and found.path == "body.body.fields[1]"
    assert "another one, `c`" in found.reason


# --- free variables ---------------------------------------------------------------------------------------------------
def test_free_variables_are_equal_to_themselves_only():
    a, b = prim.Var("a"), prim.Var("a")
    assert structural_equal(a + 1, a + 1)
    assert not structural_equal(a + 1, b + 1)
    assert structural_equal(a + 1, b + 1, map_free_vars=True)
    assert not structural_equal(prim.Add(a, b), prim.Add(b, b), map_free_vars=True)


def test_a_variable_holding_a_shape_is_used_and_not_bound():
    shape, other = relax.Var("s", si.shape_info(ndim=2)), relax.Var("t", si.shape_info(ndim=2))
    first = relax.Function((shape, relax.Var("x", si.tensor_info(shape, F32))), relax.SeqExpr((), shape), None)
    second = relax.Function((other, relax.Var("x", si.tensor_info(other, F32))), relax.SeqExpr((), other), None)
    assert structural_equal(first, second)
    third = relax.Function((other, relax.Var("x", si.tensor_info(shape, F32))), relax.SeqExpr((), other), None)
    assert not structural_equal(first, third)


def test_undeclared_buffers_are_known_by_their_memory():
    def kernel():
        pointer = prim.Var("p", prim.HANDLE, prim.PointerType(F32))
        view = tir.Buffer("V", (dim(4),), F32, pointer)
        store = tir.BufferStore(view, prim.FloatImm(F32, 1.0), (dim(0),))
        one = prim.IntImm(prim.BOOL, 1)
        return tir.PrimFunc((), tir.Allocate(pointer, F32, (dim(4),), one, store), {})

    assert structural_equal(kernel(), kernel())


# --- depth and text ---------------------------------------------------------------------------------------------------
def test_deep_trees_do_not_recurse():
    def chain(start):
        expr = start
        for _ in range(50_000):
            expr = prim.Add(expr, prim.IntImm(prim.INT32, 1))
        return expr

    left, right = chain(prim.Var("x")), chain(prim.Var("y"))
    assert structural_equal(left, right, map_free_vars=True)
    assert not structural_equal(left, right)
    assert isinstance(structural_hash(left), int)


def test_assertion_shows_both_texts_with_the_place_underlined():
    with pytest.raises(StructuralDifference) as caught:
        assert_structural_equal(IRModule({"f": relu()}), IRModule({"f": relu(op="exp")}))
    text = str(caught.value)
    assert "at `f.body.blocks[0].bindings[0].value.op.name`: `'nn.relu'` against `'exp'`" in text
    left, right = text.split("right:")
    assert "y = R.nn.relu(x)\n            ^^^^" in left
    assert "y = R.exp(x)\n            ^^^^" in right


def test_modules_are_closed():
    def module(name):
        free = prim.Var(name, I64)
        return IRModule({"f": relax.Function((), relax.SeqExpr((), relax.ShapeExpr((free, free))), None)})

    assert structural_equal(module("m"), module("k"))
    assert structural_hash(module("m")) == structural_hash(module("k"))
    assert not structural_equal(module("m")["f"], module("k")["f"])


def test_dimensions_of_function_types_are_their_own():
    def callable_over(n):
        return si.FuncStructInfo((si.tensor_info((n,), F32),), si.tensor_info((n,), F32))

    n, m = prim.Var("n", I64), prim.Var("m", I64)
    shared = relax.Var("f", si.TupleStructInfo((callable_over(n), callable_over(n))))
    separate = relax.Var("f", si.TupleStructInfo((callable_over(n), callable_over(m))))
    assert structural_equal(shared, separate, map_free_vars=True)
    outer = relax.Var("f", si.TupleStructInfo((si.tensor_info((n,)), callable_over(n))))
    other = relax.Var("f", si.TupleStructInfo((si.tensor_info((m,)), callable_over(n))))
    assert not structural_equal(outer, other, map_free_vars=True)


def test_functions_of_a_module_share_no_variables():
    def identity(n):
        x = relax.Var("x", si.tensor_info((n,), F32))
        return relax.Function((x,), relax.SeqExpr((), x), x.struct_info)

    n, m = prim.Var("n", I64), prim.Var("m", I64)
    shared = IRModule({"f": identity(n), "g": identity(n)})
    separate = IRModule({"f": identity(n), "g": identity(m)})
    assert structural_equal(shared, separate)
    assert structural_hash(shared) == structural_hash(separate)


def test_a_variable_that_is_bound_twice_counts_as_two() -> None:
    x = prim.Var("x", prim.INT32)
    y, z = prim.Var("y", prim.INT32), prim.Var("z", prim.INT32)

    def pair(first: prim.Var, second: prim.Var) -> prim.PrimExpr:
        lets = [prim.Let(v, prim.const(1, prim.INT32), v + 1) for v in (first, second)]
        return prim.Mul(lets[0], prim.Let(z, lets[1], z * 2))

    assert structural_equal(pair(x, x), pair(x, y))
    assert structural_hash(pair(x, x)) == structural_hash(pair(x, y))


def test_dimensions_of_a_local_function_end_with_it() -> None:
    mine, n = prim.Var("n", prim.INT64), prim.Var("n", prim.INT64)

    def module(of_local: prim.Var, of_type: prim.Var) -> relax.Function:
        x = relax.Var("x", si.ShapeStructInfo((of_local,)))
        local = relax.Function((x,), relax.SeqExpr((), x), si.ShapeStructInfo((of_local,)), True)
        own = si.FuncStructInfo((si.ShapeStructInfo((of_type,)),), si.ShapeStructInfo((of_type,)), True)
        f, y = relax.Var("f", local.struct_info), relax.Var("y", own)
        block = relax.BindingBlock((relax.VarBinding(f, local), relax.VarBinding(y, f)))
        return relax.Function((), relax.SeqExpr((block,), y), own, True)

    assert structural_equal(module(n, n), module(n, mine))
    assert structural_hash(module(n, n)) == structural_hash(module(n, mine))
