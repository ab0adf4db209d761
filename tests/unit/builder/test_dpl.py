"""The pattern language: what each pattern matches, and rewriting, checked by values."""

from __future__ import annotations

from textwrap import indent
from typing import Any

import numpy as np
import pytest

import relaxlang
from relaxlang import dpl, op
from relaxlang.analysis.well_formed import well_formed
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.base.dtype import dtype
from relaxlang.ir import prim, relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.struct_info import tensor_info

F32 = dtype("float32")


def module(text: str) -> IRModule:
    return relaxlang.parse("@I.ir_module\nclass Module:\n" + indent(text.strip("\n"), "    ") + "\n")


def main(mod: IRModule) -> relax.Function:
    func = mod["main"]
    assert isinstance(func, relax.Function)
    return func


def bindings(func: relax.Function) -> list[relax.Binding]:
    return [b for block in func.body.blocks for b in block.bindings]


def ops(func: relax.Function) -> list[str]:
    """The operators that a function calls, in order."""
    calls = [b.value for b in bindings(func) if isinstance(b.value, relax.Call)]
    return [getattr(c.op, "name", "?") for c in calls]


def same_values(before: IRModule, after: relax.Function, *args: Any) -> IRModule:
    """The module with `main` replaced: in order, and of the same values."""
    mod = before.with_function("main", after)
    assert [d for d in well_formed(mod) if d.level == "error"] == [], mod.script()
    relaxlang.assert_structural_equal(relaxlang.parse(mod.script()), mod)
    want, got = (relaxlang.interpret(m, "main", *args) for m in (before, mod))
    for a, b in zip(want if isinstance(want, tuple) else [want], got if isinstance(got, tuple) else [got]):
        np.testing.assert_allclose(b, a, rtol=1e-5)
    return mod


# --- one expression ---------------------------------------------------------------------------------------------------
N = prim.Var("n", prim.INT64)
X = relax.Var("x", tensor_info((N, prim.IntImm(prim.INT64, 4)), F32))
Y = relax.DataflowVar("y", tensor_info((N, prim.IntImm(prim.INT64, 4)), F32))
CALL = op.add(X, op.nn.relu(Y))
SOFTMAX = op.nn.softmax(X, axis=1)
KERNEL = relax.Call(relax.Op("call_tir"), (relax.GlobalVar("k"), relax.Tuple((X, Y))), sinfo_args=(X.struct_info,))
PACKED = relax.Call(relax.ExternFunc("p"), (X,))
W = dpl.wildcard


@pytest.mark.parametrize("pattern, expr, fits", [
    (dpl.is_op("add")(W(), W()), CALL, True),
    (dpl.is_op("relax.add")(W(), dpl.is_op("nn.relu")(W())), CALL, True),
    (dpl.is_op("add")(dpl.is_op("nn.relu")(W()), W()), CALL, False),
    (dpl.is_op("add")(W()), CALL, False),
    (dpl.is_op("add")(varg_default_wildcard=True), CALL, True),
    (dpl.is_op("add")(dpl.is_var("x"), W()), CALL, True),
    (dpl.is_op("add")(dpl.is_var("z"), W()), CALL, False),
    (dpl.is_op("add")(dpl.is_dfv(), W()), CALL, False),
    (dpl.is_dfv("y"), Y, True),
    (dpl.is_gv("k"), relax.GlobalVar("k"), True),
    (dpl.is_gv("q"), relax.GlobalVar("k"), False),
    (dpl.is_const(), relaxlang.const(1.0), True),
    (dpl.is_const(), X, False),
    (dpl.is_expr(relaxlang.const(1.0)), relaxlang.const(1.0), True),
    (dpl.is_expr(relaxlang.const(1.0)), relaxlang.const(2.0), False),
    (dpl.is_tuple([W(), dpl.is_const()]), relax.Tuple((X, relaxlang.const(1.0))), True),
    (dpl.is_tuple([dpl.is_const(), W()]), relax.Tuple((X, relaxlang.const(1.0))), False),
    (dpl.is_tuple([dpl.is_const(), W()], unordered=True), relax.Tuple((X, relaxlang.const(1.0))), True),
    (dpl.is_tuple_get_item(W(), 1), relax.TupleGetItem(X, 1), True),
    (W()[0], relax.TupleGetItem(X, 1), False),
    (dpl.is_const() | dpl.is_var(), X, True),
    (dpl.is_const() | dpl.is_var("z"), X, False),
    (dpl.is_var() & dpl.is_dfv(), Y, True),
    (dpl.is_var() & dpl.is_dfv(), X, False),
    (~dpl.is_const(), X, True),
    (dpl.reject(dpl.is_var()), X, False),
    (dpl.has_dtype("float32"), X, True),
    (dpl.has_dtype("float16", dpl.is_var()), X, False),
    (W().has_shape((N, 4)), X, True),
    (W().has_shape((N + N - N, 4)), X, True),
    (W().has_shape((4, N)), X, False),
    (W().has_struct_info(tensor_info(None, F32, 2)), X, True),
    (W().has_struct_info(relaxlang.struct_info('R.Tensor((m, 4), "float32")')), X, True),
    (W().has_struct_info(relaxlang.struct_info('R.Tensor((m, m), "float32")')), X, False),
    (dpl.has_attr({"axis": 1}), SOFTMAX, True),
    (dpl.is_op("nn.softmax")(W()).has_attr({"axis": 0}), SOFTMAX, False),
    (dpl.is_shape((N, 4)), relax.ShapeExpr((N, prim.IntImm(prim.INT64, 4))), True),
    (dpl.is_shape((N, 5)), relax.ShapeExpr((N, prim.IntImm(prim.INT64, 4))), False),
    (dpl.is_call_tir("k"), KERNEL, True),
    (dpl.is_call_tir("k", [dpl.is_var("x"), W()]), KERNEL, True),
    (dpl.is_call_tir("", [W()]), KERNEL, False),
    (dpl.is_call_packed("p", [W()]), PACKED, True),
    (dpl.is_call_packed("q"), PACKED, False),
    (dpl.make_fused_bias_activation_pattern("matmul", True, "nn.relu"), CALL, False),
])  # fmt: skip
def test_match(pattern: dpl.Pattern, expr: relax.Expr, fits: bool) -> None:
    assert pattern.match(expr) is fits


def test_what_occurs_twice_is_one_value() -> None:
    x = W()
    assert dpl.is_op("add")(x, x).match(op.add(X, X))
    assert not dpl.is_op("add")(x, x).match(op.add(X, Y))
    a, b = W(), W()
    a.same_shape_as(b)
    assert dpl.is_op("add")(a, b).match(op.add(X, Y))
    assert not dpl.is_op("add")(a, b).match(op.add(X, relaxlang.const(1.0)))


def test_variables_are_looked_through_and_alternatives_tried_again() -> None:
    values = {Y: op.exp(X)}
    inner = W()
    found = dpl.is_op("add")(W(), dpl.is_op("exp")(inner)).extract_matched_expr(op.add(X, Y), values)
    assert found is not None and found[inner] is X
    # The first alternative matches alone, and only the second lets the rest match.
    x = W()
    either = (dpl.is_op("nn.relu")(x) | dpl.is_op("nn.relu")(W())) & W()
    assert dpl.is_op("add")(either, x).match(op.add(op.nn.relu(X), Y))


def test_functions() -> None:
    func = main(module("@R.function\ndef main(x: R.Tensor((2,), 'float32')):\n    y = R.exp(x)\n    return y"))
    x = dpl.is_var()
    assert dpl.FunctionPattern([x], dpl.is_op("exp")(x)).match(func)
    assert not dpl.FunctionPattern([x], dpl.is_op("log")(x)).match(func)


# --- several bindings -------------------------------------------------------------------------------------------------
BLOCK = """
@R.function
def main(x: R.Tensor((n, 4), "float32"), w: R.Tensor((4, 4), "float32"), v: R.Tensor((4, 4), "float32")):
    with R.dataflow():
        a = R.matmul(x, w)
        b = R.nn.relu(a)
        c = R.matmul(x, v)
        d = R.nn.relu(c)
        e = R.add(c, d)
        R.output(b, e)
    return (b, e)
"""


def test_context_finds_uses() -> None:
    block = main(module(BLOCK)).body.blocks[0]
    with dpl.PatternContext() as context:
        product, relu = dpl.is_op("matmul")(W(), W()), dpl.is_op("nn.relu")(W())
        product >> relu
    found = context.match_dfb(block)
    assert found is not None and (found[product].name, found[relu].name) == ("a", "b")  # `c` has another user
    with dpl.PatternContext() as context:
        product, total = dpl.is_op("matmul")(W(), W()), dpl.is_op("add")(W(), W())
        product.used_by(total, 1)
    assert context.match_dfb(block) is None
    with dpl.PatternContext() as context:
        product, relu, total = dpl.is_op("matmul")(W(), W()), dpl.is_op("nn.relu")(W()), dpl.is_op("add")(W(), W())
        product ^ relu ^ total
        product ^ total
    found = context.match_dfb(block)
    assert found is not None and [found[p].name for p in (product, relu, total)] == ["c", "d", "e"]
    with pytest.raises(DiagnosticError, match="RLX0450"):
        W() ^ W()


def test_rewrite_bindings_merges_products() -> None:
    mod = module(BLOCK)
    with dpl.PatternContext() as context:
        x, w1, w2 = W(), W(), W()
        left, right = dpl.is_op("matmul")(x, w1), dpl.is_op("matmul")(x, w2)

    def merge(found: Any, values: Any) -> Any:
        both = op.matmul(found[x], op.concat((found[w1], found[w2]), axis=1))
        parts = op.split(both, 2, axis=1)
        return {found[left]: relax.TupleGetItem(parts, 0), found[right]: relax.TupleGetItem(parts, 1)}

    made = dpl.rewrite_bindings(context, merge, main(mod))
    assert ops(made).count("matmul") == 1
    args = [np.random.default_rng(0).standard_normal(s).astype("float32") for s in ((3, 4), (4, 4), (4, 4))]
    same_values(mod, made, *args)


def test_rewriting_that_does_not_end() -> None:
    with dpl.PatternContext() as context:
        relu = dpl.is_op("nn.relu")(W())
    with pytest.raises(DiagnosticError, match="RLX0452"):
        dpl.rewrite_bindings(
            context, lambda found, values: {found[relu]: op.nn.relu(op.nn.relu(values[found[relu]].args[0]))},
            main(module(BLOCK)),
        )  # fmt: skip


# --- rewriting calls --------------------------------------------------------------------------------------------------
def test_rewrite_call_sees_what_it_made() -> None:
    mod = module("""
@R.function
def main(c: R.Tensor((), "bool"), x: R.Tensor((n,), "float32")):
    zero = R.const(0, "float32")
    a = R.add(x, zero)
    b = R.add(a, zero)
    if c:
        d = R.exp(R.add(b, zero))
    else:
        d = R.negative(b)
    return d
""")
    x = W()
    plus_zero = dpl.is_op("add")(x, dpl.is_expr(relaxlang.const(0.0)))
    made = dpl.rewrite_call(plus_zero, lambda call, found: found[x], main(mod))
    assert "add" not in str(made)
    for c in (True, False):
        same_values(mod, made, np.array(c), np.arange(3, dtype="float32"))


def test_a_vaguer_value_is_checked() -> None:
    mod = module("""
@R.function
def main(x: R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32"):
    with R.dataflow():
        y = R.nn.relu(x)
        R.output(y)
    return y
""")
    x = W()

    def rewriter(call: relax.Expr, found: Any) -> relax.Expr:
        packed = relax.Tuple((found[x],))
        vague = (tensor_info(None, None, 2),)
        args = (relax.ExternFunc("test.clamp"), *packed.fields)
        return relax.Call(relax.Op("call_pure_packed"), args, sinfo_args=vague)

    relaxlang.register_func("test.clamp", lambda a: np.maximum(np.asarray(a), 0), override=True)
    made = dpl.rewrite_call(dpl.is_op("nn.relu")(x), rewriter, main(mod))
    assert isinstance(bindings(made)[-1], relax.MatchCast)
    same_values(mod, made, np.array([[1, -2, 3, -4]], "float32"))
