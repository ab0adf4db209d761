"""The printer on IR made by hand: names, fragments, options, dialects. What text can say, `tests/rlx/print` tests."""

import re
from itertools import pairwise

import numpy as np
import pytest

import relaxlang
from relaxlang.base.diagnostics import DiagnosticError, RelaxlangError
from relaxlang.base.dtype import dtype
from relaxlang.ir import prim, relax, tir
from relaxlang.ir import struct_info as si
from relaxlang.ir.attrs import Attrs
from relaxlang.ir.module import IRModule
from relaxlang.ir.structural import assert_structural_equal
from relaxlang.syntax.printer import render_node, script

F32, I64, TRUE = dtype("float32"), dtype("int64"), prim.IntImm(prim.BOOL, 1)


def dim(value):
    return prim.IntImm(I64, value)


def i32(value):
    return prim.IntImm(prim.INT32, value)


def buffer(name, *shape, data=None, **fields):
    data = prim.Var(name, prim.HANDLE, prim.PointerType(F32)) if data is None else data
    return tir.Buffer(name, shape, F32, data, **fields)


def function(*params, bindings=(), result=None, **attrs):
    body = relax.seq_expr(bindings, result if result is not None else params[0])
    return relax.Function(params, body, None, attrs=Attrs(attrs))


def lines(node, **options):
    return [line.strip() for line in script(node, **options).splitlines()]


# --- names ------------------------------------------------------------------------------------------------------------
def test_names_are_unique_kept_and_legal():
    info = si.tensor_info((dim(2),), F32)
    hints = ["x", "x", "x_1", "lambda", "R", "cls", "Module", "a.b", "2nd", "", "_", "_", "été", "range"]
    variables = [relax.Var(hint, info) for hint in hints]
    bindings = [relax.VarBinding(new, old) for old, new in pairwise(variables)]
    module = IRModule({"f": function(variables[0], bindings=bindings, result=variables[-1], global_symbol="f")})
    expected = ["x_1", "x_1_1", "lambda_1", "R_1", "cls_1", "Module_1", "a_b", "_2nd", "v", "_", "_1", "été", "range_1"]
    again = relaxlang.parse(module.script())
    for text in (module.script(), again.script()):
        assert [line.split(" = ")[0].strip() for line in text.splitlines()[4:-1]] == expected
    assert_structural_equal(again, relaxlang.parse(again.script()))


def test_an_inner_scope_never_takes_a_name_that_is_used_in_it():
    outer, inner = prim.Var("i"), prim.Var("i")
    a = buffer("A", i32(8))
    store = tir.BufferStore(a, prim.FloatImm(F32, 0.0), (prim.Add(outer, inner),))
    nest = tir.For(outer, i32(1), i32(2), "serial", tir.For(inner, i32(0), i32(4), "serial", store))
    after = tir.For(prim.Var("i"), i32(0), i32(4), "serial", tir.Evaluate(i32(0)))
    assert lines(tir.SeqStmt((nest, after))) == [
        "for i in range(1, 3):", "for i_1 in range(4):", "A[i + i_1] = T.float32(0.0)", "for i in range(4):",
        "T.evaluate(0)"]  # fmt: skip


def test_dimensions_do_not_take_the_names_of_functions():
    f = function(relax.Var("x", si.tensor_info((prim.Var("f", I64), prim.Var("max", I64)), F32)), global_symbol="f")
    assert 'def f(x: R.Tensor((f_1, max_1), "float32")):' in lines(IRModule({"f": f}))


def test_function_names_that_are_no_identifiers():
    x = relax.Var("x")
    call = relax.Call(relax.GlobalVar("a.b"), (x,))
    module = IRModule({"a.b": function(x), "class": function(relax.Var("y"), result=call)})
    text = module.script()
    assert '@R.function(private=True, name="a.b")\n    def a_b(' in text
    assert '@R.function(private=True, name="class")\n    def class_1(' in text
    assert 'return cls["a.b"](x)' in text


# --- what is declared, and where --------------------------------------------------------------------------------------
def test_buffers_that_nothing_declares_are_declared_behind_their_memory():
    pointer = prim.Var("p", prim.HANDLE, prim.PointerType(F32, "shared"))
    view = buffer("V", i32(4), data=pointer, scope="shared")
    loop = prim.Var("i")
    store = tir.BufferStore(view, prim.FloatImm(F32, 1.0), (loop,))
    body = tir.Allocate(pointer, F32, (i32(4),), TRUE, tir.For(loop, i32(0), i32(4), "serial", store))
    assert lines(tir.PrimFunc((), body, {}))[2:] == [
        'p = T.allocate([4], "float32", "shared")',
        'V = T.Buffer((4,), "float32", data=p, scope="shared")',
        "for i in range(4):",
        "V[i] = T.float32(1.0)",
    ]


def test_a_handle_that_the_body_uses_is_a_parameter_of_its_own():
    handle, a = prim.Var("a", prim.HANDLE), buffer("A", i32(4))
    check = tir.Evaluate(prim.Call(prim.BOOL, "isnullptr", (handle,)))
    assert lines(tir.PrimFunc((handle,), check, {handle: a}))[1:] == [
        "def main(a: T.handle):", 'A = T.match_buffer(a, (4,), "float32")', "T.isnullptr(a)"]  # fmt: skip


def test_scoped_statements_are_flat_only_where_they_end_their_scope():
    x, y = prim.Var("x"), prim.Var("y")
    first = tir.LetStmt(x, i32(1), tir.Evaluate(x))
    last = tir.LetStmt(y, i32(2), tir.Evaluate(y))
    assert lines(tir.SeqStmt((first, last))) == [
        "with T.LetStmt(1) as x:", "T.evaluate(x)", "y: T.int32 = 2", "T.evaluate(y)"]  # fmt: skip


def test_a_let_whose_variable_is_used_outside_of_it():
    x = prim.Var("x")
    let = tir.LetStmt(x, i32(1), tir.Evaluate(x))
    for body in (tir.SeqStmt((let, tir.Evaluate(x))), tir.SeqStmt((tir.Evaluate(x), let))):
        mod = IRModule({"main": tir.PrimFunc((), body, {}, attrs=Attrs({"global_symbol": "main"}))})
        text = mod.script()
        assert "        x = T.int32()\n" in text and "with T.LetStmt(1, var=x):" in text
        assert_structural_equal(relaxlang.parse(text), mod)


# --- fragments --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("node", "text"),
    [
        ((prim.Var("n", I64) + 1) * 2, "(n + 1) * 2"),
        (prim.const(2**64 - 1, "uint64"), "T.uint64(18446744073709551615)"),
        (si.tensor_info((dim(1), prim.Var("n", I64) * 2), F32), 'R.Tensor((1, n * 2), "float32")'),
        (relax.Tuple((relax.Var("x"),)), "(x,)"),
        (relax.TupleGetItem(relax.Tuple((relax.Var("x"), relax.Var("y"))), 1), "(x, y)[1]"),
        (relax.Constant(np.zeros((0, 3), "float32")), 'R.const(I.array("", "float32", (0, 3)))'),
        (tir.Evaluate(prim.Call(prim.INT32, "call_extern", (prim.StringImm("f"),))), 'T.call_extern("int32", "f")'),
        (relax.Call(relax.ExternFunc("f"), (), Attrs({"flag": True})), 'R.call_packed("f", flag=True)'),
    ],
)
def test_fragments(node, text):
    assert script(node) == text
    assert str(node) == text or isinstance(node, tir.Evaluate)


def test_an_expression_that_needs_lines_is_bound_first():
    x = relax.Var("x")
    branch = relax.SeqExpr((), x)
    inner = function(relax.Var("y"))
    assert lines(relax.Tuple((relax.If(x, branch, branch), inner))) == [
        "if x:", "value = x", "else:", "value = x",
        "@R.function", "def inner(y: R.Object):", "return y", "(value, inner)",
    ]  # fmt: skip


# --- options ----------------------------------------------------------------------------------------------------------
def test_types_all_and_needed():
    info = si.tensor_info((dim(2),), F32)
    x, y, z = relax.Var("x", info), relax.Var("y", info), relax.Var("z", si.tensor_info(None, F32))
    f = function(x, bindings=[relax.VarBinding(y, x), relax.VarBinding(z, x)], result=z)
    assert lines(f)[2:4] == ["y = x", 'z: R.Tensor(dtype="float32") = x']
    assert lines(f, types="all")[2] == 'y: R.Tensor((2,), "float32") = x'


def test_large_constants_inline_and_in_a_side_file():
    data = np.arange(100, dtype="float32")
    store = {}
    by_name = script(relax.Constant(data), constants="file", store=store)
    assert [array.tobytes() for array in store.values()] == [data.tobytes()] and next(iter(store)) in by_name
    module = IRModule({"f": function(relax.Var("x"), result=relax.Constant(data), global_symbol="f")})
    back = relaxlang.parse(module.script())["f"].body.body.data
    assert back.tobytes() == data.tobytes() and back.dtype == data.dtype


def test_the_source_map_and_underlining():
    x = relax.Var("x")
    call = relax.Call(relax.Op("exp"), (x,), struct_info=x.struct_info)
    f = function(x, bindings=[relax.VarBinding(relax.Var("y"), call)])
    place = render_node(f, positions=True).find(call)
    assert script(f)[place.start : place.end] == "R.exp(x)"
    assert script(f, underline=[call], context=0).splitlines()[1:3] == ["    y = R.exp(x)", "        ^^^^^^^^"]


def test_wrong_options_are_named():
    for options, words in (
        ({"dialekt": "x"}, "did you mean `dialect`"),
        ({"dialect": "tvm-0.28"}, "did you mean `tvm-0.27`"),
        ({"types": "some"}, "needed, all"),
        ({"constants": "file"}, "needs `store`"),
    ):
        with pytest.raises(RelaxlangError, match=words):
            script(i32(1), **options)


# --- dialects ---------------------------------------------------------------------------------------------------------
PROGRAM = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def k(A: T.Buffer((n,), "float32"), B: T.Buffer((n,), "float32")):
        T.func_attr({"tir.noalias": True})
        for i in range(n):
            with T.block("b"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi]

    @R.function
    def main(x: R.Tensor((n * 2, n), "float32"), y: R.Tensor((n,), "float32")) -> R.Object:
        cls = Module
        z = R.call_tir(cls.k, (y,), out_sinfo=R.Tensor((n,), "float32"))
        return z
"""


@pytest.mark.parametrize(
    ("dialect", "expected"),
    [
        ("tvm-0.22", ["n = T.int64()", 'A = T.match_buffer(A_handle, (n,), "float32")', 'with T.block("b"):',
                      'def main(x: R.Tensor(("n * 2", "n"), "float32"), y: R.Tensor(("n",), "float32")) -> R.Object:']),
        ("tvm-0.27", ['n = TypeVar("n")', "@T.prim_func(private=True, s_tir=True)", 'with T.sblock("b"):',
                      'T.func_attr({"tirx.noalias": True})',
                      'def main(x: R.Tensor(("n * 2", n), "float32"), y: R.Tensor((n,), "float32")) -> R.Any:',
                      'z = R.call_tir(cls.k, (y,), out_ty=R.Tensor((n,), "float32"))']),
    ],
)  # fmt: skip
def test_dialects(dialect, expected):
    module = relaxlang.parse(PROGRAM)
    printed = lines(module, dialect=dialect)
    for line in expected:
        assert line in printed
    assert_structural_equal(relaxlang.parse(module.script(dialect=dialect)), module)


# --- depth ------------------------------------------------------------------------------------------------------------
def test_deep_expressions_print_and_too_deep_ones_are_a_diagnostic():
    x = prim.Var("x")
    left, right = x, x
    for _ in range(10_000):
        left, right = prim.Add(left, x), prim.Add(x, right)
    assert script(left).count("+") == 10_000
    assert script(right).endswith("x" + ")" * 9_999)
    for _ in range(100_000):
        right = prim.Add(x, right)
    with pytest.raises(DiagnosticError, match="RLX9002"):
        script(right)


def test_long_chains_of_lets_do_not_nest():
    body = tir.Evaluate(i32(0))
    for k in range(20_000):
        body = tir.LetStmt(prim.Var(f"x{k}"), i32(k), body)
    assert script(body).count("\n") == 20_000


def test_a_branch_whose_last_binding_is_a_leaf_says_so_with_an_annotation():
    condition, x, y, z = (relax.Var(name, si.tensor_info((), dtype("bool"))) for name in "cxyz")
    bound = relax.seq_expr([relax.VarBinding(z, x)], z)
    choice = relax.If(condition, bound, relax.SeqExpr((), x), y.struct_info)
    f = function(condition, x, bindings=[relax.VarBinding(y, choice)], result=y)
    assert lines(f)[2:6] == ["if c:", 'y: R.Tensor((), "bool") = x', "else:", "y = x"]
    module = IRModule({"f": f.replace(ret_struct_info=y.struct_info)})
    assert_structural_equal(relaxlang.parse(module.script()), module)


def test_rewrite_rules_are_printed_as_such() -> None:
    rule = """@R.rewriter
class Double:
    @R.function
    def pattern(x: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
        gv = R.add(x, x)
        return gv

    @R.function
    def replacement(x: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
        gv = R.multiply(x, R.const(2.0, "float32"))
        return gv
"""
    alone = relaxlang.parse(rule)
    assert alone.script() == rule and list(alone.rules) == ["Double"]
    module = "@I.ir_module\nclass M:\n    @R.function\n    def f(x: R.Object) -> R.Object:\n        return x\n"
    both = relaxlang.parse(f"{rule}\n\n{module}")
    assert both.script() == f"{rule}\n\n{module}"
    assert not relaxlang.structural_equal(both, relaxlang.parse(module))


def test_colors_add_nothing_else() -> None:
    mod = relaxlang.parse('@R.function\ndef f(x: R.Tensor((2,), "float32")):\n    return R.add(x, R.const(1.0))\n')
    text = mod.script(color=True)
    assert re.sub(r"\033\[[0-9;]*m", "", text) == mod.script()
    assert '\033[32m"float32"\033[0m' in text and "\033[35mdef\033[0m" in text


def test_a_tuple_that_is_printed_at_run_time_stays_one_value() -> None:
    head = '@R.function(pure=False)\ndef main(x: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")):\n'
    module = relaxlang.parse(head + "    R.print(R.tuple(x))\n    R.assert_op(c, R.tuple(x, x))\n    return x\n")
    again = relaxlang.parse(module.script())
    assert_structural_equal(module, again)
