"""Relax functions from text: normal form, struct info, scopes."""

import numpy as np
import pytest

from relaxlang import DiagnosticError, VirtualMachine, build, cpu, parse, structural_equal
from relaxlang.ir import prim, relax
from relaxlang.ir.struct_info import OBJECT, FuncStructInfo, ShapeStructInfo, TensorStructInfo, TupleStructInfo

X = 'x: R.Tensor((4, n), "float32")'


def func(body: str, params: str = X, **options: object) -> relax.Function:
    """The function with these lines as its body."""
    text = f"@R.function\ndef f({params}):\n" + "".join(f"    {line}\n" for line in body.split("\n"))
    found = parse(text, **options)["f"]  # type: ignore[arg-type]
    assert isinstance(found, relax.Function)
    return found


def bindings(found: relax.Function) -> list[relax.Binding]:
    """All bindings of a function's own blocks."""
    return [b for block in found.body.blocks for b in block.bindings]


def codes(body: str, params: str = X) -> list[str]:
    """The codes under which a function is reported."""
    with pytest.raises(DiagnosticError) as raised:
        func(body, params)
    return [d.code for d in raised.value.diagnostics]


def test_operands_are_bound_in_order() -> None:
    found = func("y = R.add(R.exp(x), R.log(x))\nreturn y")
    assert [b.var.name for b in bindings(found)] == ["gv", "gv1", "y"]
    found = func("with R.dataflow():\n    y = R.exp(R.exp(x))\n    R.output(y)\nreturn y")
    first, last = bindings(found)
    assert isinstance(first.var, relax.DataflowVar) and first.var.name == "lv"
    assert type(last.var) is relax.Var and isinstance(found.body.blocks[0], relax.DataflowBlock)


def test_result_is_bound_and_inferred() -> None:
    found = func("return R.exp(x)")
    assert isinstance(found.body.body, relax.Var) and found.body.body.name == "gv"
    assert found.ret_struct_info is not None
    assert str(found.ret_struct_info) == 'R.Tensor((4, n), "float32")'


def test_dimensions_are_one_variable() -> None:
    found = func('n = T.int64()\ny = R.zeros((n, 2), "float32")\nreturn y', 'x: R.Tensor(("n", "n * 2"), "float32")')
    info = found.params[0].struct_info
    assert isinstance(info, TensorStructInfo) and info.dims is not None
    made = bindings(found)[0].var.struct_info
    assert isinstance(made, TensorStructInfo) and made.dims is not None
    assert made.dims[0] is info.dims[0] and isinstance(info.dims[1], prim.Mul)


def test_declaration_in_the_body_types_the_signature() -> None:
    found = func("n = T.int64(is_size_var=True)\nreturn x", 'x: R.Tensor(("n",), "float32")')
    info = found.params[0].struct_info
    assert isinstance(info, TensorStructInfo) and info.dims is not None and isinstance(info.dims[0], prim.SizeVar)


def test_a_name_may_be_used_before_it_stands_alone() -> None:
    found = func("h = T.int64()\nreturn x", 'x: R.Tensor(("h - 1",), "float32"), s: R.Shape(["h"])')
    shape = found.params[1].struct_info
    assert isinstance(shape, ShapeStructInfo) and shape.values is not None


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ('R.Tensor((2, n), "float32")', 'R.Tensor((2, n), "float32")'),
        ('R.Tensor[(2, n), "f32"]', 'R.Tensor((2, n), "float32")'),
        ('R.Tensor("float32")', 'R.Tensor(dtype="float32")'),
        ("R.Tensor(ndim=2)", "R.Tensor(ndim=2)"),
        ('R.Tensor[_, "float32"]', 'R.Tensor(dtype="float32")'),
        ('Tensor[(_, _), "float32"]', 'R.Tensor(dtype="float32", ndim=2)'),
        ("R.Tensor", "R.Tensor"),
        ("R.Shape([2, n])", "R.Shape([2, n])"),
        ("R.Shape(ndim=3)", "R.Shape(ndim=3)"),
        ("R.Tuple(R.Tensor, R.Object)", "R.Tuple(R.Tensor, R.Object)"),
        ("R.Callable((R.Tensor(ndim=1),), R.Object)", "R.Callable((R.Tensor(ndim=1),), R.Object, True)"),
        ('R.Prim("int64")', 'R.Prim("int64")'),
        ("R.Any", "R.Object"),
    ],
)
def test_annotations_of_all_eras(text: str, printed: str) -> None:
    assert str(func("return x", f"x: {text}").params[0].struct_info) == printed


def test_call_of_a_function_with_symbolic_parameters() -> None:
    mod = parse(
        '@R.function\ndef g(a: R.Tensor((n, m), "float32")) -> R.Tensor((m, n * 2), "float32"):\n'
        '    b = R.match_cast(a, R.Tensor((m, n * 2), "float32"))\n    return b\n\n'
        '@R.function\ndef f(x: R.Tensor((3, k), "float32")):\n    return g(x)\n'
    )
    found = mod["f"]
    assert isinstance(found, relax.Function) and str(found.ret_struct_info) == 'R.Tensor((k, 6), "float32")'


def test_a_later_function_without_a_declared_result_is_known() -> None:
    mod = parse(
        '@I.ir_module\nclass M:\n    @R.function\n    def f(x: R.Tensor((2,), "float32")):\n        return M.g(x)\n\n'
        '    @R.function\n    def g(x: R.Tensor((k,), "float32")):\n        return (x, x)\n'
    )
    found = mod["f"]
    assert isinstance(found, relax.Function) and isinstance(found.ret_struct_info, TupleStructInfo)
    assert list(mod) == ["f", "g"]


def test_conditionals_join() -> None:
    found = func("if c:\n    y = R.exp(x)\nelse:\n    y = x[0:2]\nreturn y", X + ', c: R.Tensor((), "bool")')
    value = bindings(found)[0]
    assert isinstance(value, relax.VarBinding) and isinstance(value.value, relax.If)
    assert str(value.var.struct_info) == 'R.Tensor(dtype="float32", ndim=2)'
    (binding,) = value.value.true_branch.blocks[0].bindings
    assert binding.var.name == "y" and value.value.true_branch.body is binding.var


def test_a_branch_of_a_leaf_has_no_binding() -> None:
    found = func("if c:\n    y = R.add(R.exp(x), x)\nelse:\n    y = x\nreturn y", X + ', c: R.Tensor((), "bool")')
    value = bindings(found)[0]
    assert isinstance(value, relax.VarBinding) and isinstance(value.value, relax.If)
    assert value.value.false_branch.blocks == () and value.value.false_branch.body is found.params[0]
    assert len(value.value.true_branch.blocks[0].bindings) == 2


def test_sugar() -> None:
    found = func("a, b = R.split(x, 2)\na += b\nc = a @ R.permute_dims(b)\nd = -c[0] * 2.0\nreturn d == d")
    assert str(found.ret_struct_info) == 'R.Tensor((2,), "bool")'


def test_shape_of_a_tensor_is_known() -> None:
    found = func('s = x.shape\ny = R.zeros((s[1], 2), "float32")\nreturn y')
    assert str(found.ret_struct_info) == 'R.Tensor((n, 2), "float32")'


def test_tuple_variable_as_call_tir_arguments() -> None:
    mod = parse(
        "@I.ir_module\nclass M:\n    @T.prim_func\n"
        '    def k(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):\n'
        '        B[0] = A[0]\n\n    @R.function\n    def f(a: R.Tensor((4,), "float32")):\n        t = (a,)\n'
        '        o = R.call_tir(M.k, t, out_sinfo=R.Tensor((4,), "float32"))\n        return o\n'
    )
    found = mod["f"]
    assert isinstance(found, relax.Function)
    call = bindings(found)[-1]
    assert isinstance(call, relax.VarBinding) and isinstance(call.value, relax.Call)
    assert isinstance(call.value.args[1], relax.Tuple) and len(call.value.args[1].fields) == 1


@pytest.mark.parametrize(
    "text",
    ['R.call_tir("k", [a], (4,), dtype="float32")', 'R.call_tir((4,), "k", [a], dtype="float32")',
     'R.call_tir(M.k, (a,), R.Tensor((4,), "float32"))', 'R.call_tir(M.k, a, out_ty=R.Tensor((4,), "float32"))'],
)  # fmt: skip
def test_call_tir_of_all_eras(text: str) -> None:
    mod = parse(
        "@I.ir_module\nclass M:\n    @T.prim_func\n"
        '    def k(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):\n'
        f'        B[0] = A[0]\n\n    @R.function\n    def f(a: R.Tensor((4,), "float32")):\n        return {text}\n'
    )
    found = mod["f"]
    assert isinstance(found, relax.Function) and str(found.ret_struct_info) == 'R.Tensor((4,), "float32")'


def test_match_cast_defines_dimensions() -> None:
    found = func('y = R.match_cast(x, R.Tensor((k, 2), "float32"))\nz = R.zeros((k,), "int8")\nreturn y', "x: R.Object")
    cast = bindings(found)[0]
    assert isinstance(cast, relax.MatchCast) and isinstance(cast.struct_info, TensorStructInfo)
    assert str(found.ret_struct_info) == 'R.Tensor(dtype="float32", ndim=2)'  # `k` is not known outside


def test_closures() -> None:
    text = (
        '@R.function\ndef inner(y: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):\n'
        '    return R.add(y, y)\nz = inner(R.zeros((n,), "float32"))\nreturn z'
    )
    found = func(text)
    assert isinstance(bindings(found)[0].var.struct_info, FuncStructInfo)
    assert str(found.ret_struct_info) == 'R.Tensor((n,), "float32")'


def test_constants() -> None:
    found = func('y = R.const([[1.5, 2.0]], "float16")\nreturn y')
    value = bindings(found)[0]
    assert isinstance(value, relax.VarBinding) and isinstance(value.value, relax.Constant)
    assert value.value.data.dtype == np.float16 and value.value.data.tolist() == [[1.5, 2.0]]


def test_shadowing_and_public_names() -> None:
    found = func("x = R.exp(x)\nx = R.exp(x)\nreturn x")
    assert [b.var.name for b in bindings(found)] == ["x", "x"] and bindings(found)[0].var is not bindings(found)[1].var
    assert found.attrs["global_symbol"] == "f"


def test_only_the_last_binding_of_an_output_lives_on() -> None:
    found = func("with R.dataflow():\n    y = R.exp(x)\n    y = R.exp(y)\n    R.output(y)\nreturn y")
    assert [type(b.var) for b in bindings(found)] == [relax.DataflowVar, relax.Var]


def test_without_checks_unknown_operators_are_kept() -> None:
    found = func('y = R.brand.new(x, 3, mode="fast")\nreturn y', check=False)
    value = bindings(found)[0]
    assert isinstance(value, relax.VarBinding) and isinstance(value.value, relax.Call)
    assert value.value.op == relax.Op("brand.new") and value.value.attrs["mode"] == "fast"
    assert value.var.struct_info is None


def test_parameters_of_a_module() -> None:
    text = 'N = I.param(int, 4)\nD = I.param(dtype, default="float32")\n\n'
    text += "@R.function\ndef f(x: R.Tensor((N, N * 2), D)):\n    return x\n"
    for values, printed in (
        (None, 'R.Tensor((4, 8), "float32")'),
        ({"N": "3", "D": "int8"}, 'R.Tensor((3, 6), "int8")'),
    ):
        found = parse(text, values=values)["f"]
        assert isinstance(found, relax.Function) and str(found.params[0].struct_info) == printed


@pytest.mark.parametrize("wrong", ["I.param(int, 4, default=5)", "I.param(int, defualt=4)", 'I.param(int, "four")'])
def test_a_parameter_takes_a_kind_and_a_default_of_that_kind(wrong: str) -> None:
    with pytest.raises(DiagnosticError, match="RLX0147"):
        parse(f"N = {wrong}\n")


def test_relax_macro() -> None:
    found = parse("@R.macro\ndef twice(a):\n    b = R.add(a, a)\n    return R.exp(b)\n\n"
                  '@R.function\ndef f(x: R.Tensor((4,), "float32")):\n    return twice(twice(x))\n')["f"]  # fmt: skip
    assert isinstance(found, relax.Function) and len(bindings(found)) == 4


def test_everything_wrong_is_reported_at_once() -> None:
    assert codes("a = R.nope(x)\nb = R.exp(a)\nc = undefined\nd = R.add(b, c)\nreturn d") == ["RLX0103", "RLX0101"]


def test_an_annotation_that_says_more_than_is_known_is_a_cast() -> None:
    """So is a declared result; what is impossible stays an error."""
    made = func('y: R.Tensor((4,), "float32") = R.exp(x)\nreturn y', 'x: R.Tensor((n,), "float32")')
    call, cast = bindings(made)
    assert isinstance(call, relax.VarBinding) and isinstance(cast, relax.MatchCast)
    assert str(cast.var.struct_info) == 'R.Tensor((4,), "float32")'
    text = '@R.function\ndef f(x: R.Tensor(ndim=1)) -> R.Tensor((4,), "float32"):\n    return x\n'
    mod = parse(text)
    assert "R.match_cast(x, R.Tensor((4,)" in mod.script()
    assert structural_equal(parse(mod.script()), mod)


def test_an_object_says_nothing() -> None:
    made = func('y: R.Tensor((4,), "float32") = o\nreturn y', "o: R.Object")
    assert isinstance(bindings(made)[0], relax.MatchCast)
    assert func("y: R.Object = x\nreturn y").ret_struct_info is OBJECT


def test_operators_on_bits() -> None:
    """Between truth values they are logical ones."""
    found = func(
        "a = (x > 0) & (x < 1)\nb = i ^ (i << 1)\nreturn (~a, ~b, True | a)", f'{X}, i: R.Tensor((3,), "int32")'
    )
    names = [b.value.op.name for b in bindings(found) if isinstance(b, relax.VarBinding) and hasattr(b.value, "op")]
    assert names == [
        "greater", "less", "logical_and", "left_shift", "bitwise_xor", "logical_not", "bitwise_not", "logical_or",
    ]  # fmt: skip


def test_builtins_are_for_known_values_and_operators_for_tensors() -> None:
    text = 'K = [1, 2]\n@R.function\ndef f(x: R.Tensor((sum(K), max(K)), "float32")):\n    return sum(x)\n'
    found = parse(text)["f"]
    assert str(found.params[0].struct_info) == 'R.Tensor((3, 2), "float32")'
    assert str(found.ret_struct_info) == 'R.Tensor((), "float32")'


def test_numbers_take_the_type_they_are_declared_as() -> None:
    found = func('a: R.Prim("int32") = 2\nb: R.Prim("float16") = 1.5\nc = R.prim_value(a)\nreturn (a, b, c)')
    values = [b.value.value for b in bindings(found)[:2]]
    assert [str(v.dtype) for v in values] == ["int32", "float16"]
    assert codes('a: R.Prim("int32") = 2.5\nreturn a') == ["RLX0128"]
    assert codes('a: R.Tensor((2,), "float32") = 2.5\nreturn a') == ["RLX0201"]


def test_loops_over_known_values_are_written_out() -> None:
    text = """
LAYERS = I.param(int, 2)
@R.function
def f(x: R.Tensor((4, 4), "float32"), ws: R.Tensor((LAYERS, 4, 4), "float32")):
    with R.dataflow():
        for layer, scale in enumerate([2.0] * LAYERS):
            y = R.matmul(x, ws[layer])
            if layer > 0:
                y = R.nn.relu(y)
            x = R.multiply(y, R.const(scale, "float32"))
        R.output(x)
    return x
"""
    found = parse(text, values={"LAYERS": 3})["f"]
    names = [b.value.op.name for b in bindings(found)]  # type: ignore[attr-defined, arg-type, union-attr]
    assert [n for n in names if n in ("matmul", "nn.relu")] == ["matmul", "matmul", "nn.relu", "matmul", "nn.relu"]
    assert str(found.ret_struct_info) == 'R.Tensor((4, 4), "float32")'


def test_a_faulty_loop_is_reported_once() -> None:
    assert codes("for i in range(100):\n    y = R.matmul(x, nothing)\nreturn x") == ["RLX0101"]
    assert codes("for i in 7:\n    y = x\nreturn x") == ["RLX0124"]
    assert codes("for i in x:\n    y = x\nreturn y") == ["RLX0413"]


def test_unknown_operators_print_back() -> None:
    lines = [
        "y = R.foo(x, 3, -1)",
        'z = R.nn.bar(y, (1, 2), axis=-1, mode="fast")',
        'w = R.baz(z, (x, y), None, 2.5, "s", True)',
    ]
    mod = parse("@R.function\ndef f(x: R.Object):\n    " + "\n    ".join([*lines, "return w"]) + "\n", check=False)
    text = mod.script()
    assert all(line in text for line in lines) and parse(text, check=False).script() == text


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_a_condition_is_a_bool_of_one_element(shape: tuple[int, ...]) -> None:
    text = f"""
@R.function
def main(c: R.Tensor({shape}, "bool"), x: R.Tensor((3,), "float32")):
    if c:
        y = R.multiply(x, x)
    else:
        y = R.add(x, x)
    return y
"""
    vm = VirtualMachine(build(parse(text)), cpu())
    x = np.array([1, 2, 3], "float32")
    for c, want in ((True, x * x), (False, x + x)):
        np.testing.assert_array_equal(vm["main"](np.full(shape, c), x), want)
    with pytest.raises(DiagnosticError, match="a condition is a bool"):
        parse(text.replace(f"{shape}", "(2,)", 1))


def test_a_branch_may_end_with_an_effect() -> None:
    text = """
@R.function(pure=False)
def main(c: R.Tensor((), "bool"), x: R.Object):
    if c:
        R.call_packed("a", x)
    else:
        R.call_packed("b", x)
    return x
"""
    mod = parse(text)
    assert structural_equal(parse(mod.script()), mod)


@pytest.mark.parametrize("value", ["...", "R.Tensor", "[1, [R]]", "T"])
def test_unknown_operators_take_data(value: str) -> None:
    text = f'@R.function\ndef main(x: R.Tensor((2,), "float32")):\n    y = R.no_such(x, how={value})\n    return y\n'
    with pytest.raises(DiagnosticError) as raised:
        parse(text, check=False)
    assert [d.code for d in raised.value.diagnostics] == ["RLX0225"]
