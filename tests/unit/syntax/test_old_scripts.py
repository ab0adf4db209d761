"""Scripts of the oldest releases: what they say less strictly than later ones."""

import pytest

import relaxlang
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.ir import relax

OLD = """
@I.ir_module
class Module:
    @R.function
    def log(x: R.Tensor((2,), "float32")):
        return R.call_packed("example.log", x, sinfo_args=(R.Tensor))

    @R.function
    def quiet(x: R.Tensor((2,), "float32")):
        y = R.exp(x)
        return y

    @R.function
    def main(x: R.Tensor((2,), "float32")):
        y = quiet(x)
        z = log(y)
        return z
"""


def test_functions_that_are_named_bare_are_as_pure_as_what_they_call():
    mod = relaxlang.parse(OLD)
    assert {name: f.is_pure for name, f in mod.relax_functions()} == {"log": False, "quiet": True, "main": False}
    relaxlang.assert_structural_equal(relaxlang.parse(mod.script()), mod)


@pytest.mark.parametrize(
    "text",
    [
        "@tvm.script.ir_module\nclass Module:\n    @R.function\n    def main(x: R.Tensor((2,), 'float32')):\n"
        "        return R.call_packed('example.log', x, sinfo_args=(R.Tensor))\n",
        "@R.function\ndef main(x: Tensor((2,), 'float32')):\n"
        "    return R.call_packed('example.log', x, type_args=(Tensor(ndim=1, dtype='float32')))\n",
    ],
)
def test_other_signs_of_age(text):
    mod = relaxlang.parse(text)
    assert not mod["main"].is_pure
    relaxlang.assert_structural_equal(relaxlang.parse(mod.script()), mod)


def test_later_scripts_must_say_it():
    with pytest.raises(DiagnosticError) as caught:
        relaxlang.parse(OLD.replace("= quiet(", "= Module.quiet(").replace("= log(", "= Module.log("))
    assert {d.code for d in caught.value.diagnostics} == {"RLX0440"}


def test_a_kernel_of_another_library_in_call_tir():
    mod = relaxlang.parse("""
@R.function
def main(x: R.Tensor((2,), "float32")):
    y = R.call_tir("example.kernel", (x,), (2,), dtype="float32")
    return y
""")
    value = mod["main"].body.blocks[0].bindings[0].value
    assert value.op.name == "call_dps_packed" and isinstance(value.args[0], relax.ExternFunc)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("y = R.exp(x)", "RLX0410"),
        ("with R.dataflow():\n        y = R.exp(x)\n        R.output(x)\n    return x", "RLX0401"),
    ],
)
def test_what_no_release_accepts(body, code):
    with pytest.raises(DiagnosticError) as caught:
        relaxlang.parse(f'@R.function\ndef main(x: R.Tensor((2,), "float32")):\n    {body}\n')
    assert [d.code for d in caught.value.diagnostics] == [code]


def test_the_type_of_a_result_is_that_of_the_kernel() -> None:
    """RFC 0091 states the shape alone, in front."""
    text = """
@T.prim_func
def double(A: T.Buffer((4,), "int8"), B: T.Buffer((4,), "int8")):
    for i in range(4):
        B[i] = A[i] * T.int8(2)

@R.function
def main(x: R.Tensor((4,), "int8")):
    return R.call_tir((4,), double, [x])
"""
    assert 'out_sinfo=R.Tensor((4,), "int8")' in relaxlang.parse(text).script()


def test_memory_of_rfc_0089() -> None:
    text = """
@R.function(pure=False)
def main(x: R.Tensor((4,), "float32")):
    s = relax.runtime.builtin.alloc_storage((16,), 0, "float32")
    t = relax.runtime.builtin.alloc_tensor(s, (4,), 0, "float32")
    relax.runtime.builtin.free_tensor(t)
    relax.runtime.builtin.free_storage(s)
    return x
"""
    script = relaxlang.parse(text).script()
    for name in ("alloc_storage(R.shape([16])", "alloc_tensor(s, R.prim_value(0), R.shape([4])", "kill_tensor(t)"):
        assert f"R.memory.{name}" in script


def test_a_statement_without_a_name_leaves_the_wildcard():
    text = """
@tvm.script.ir_module
class M:
    @R.function
    def f(x: Tensor[_, "float32"]) -> Object:
        relax.match_shape((a, b), x.shape)
        return relax.call_packed("my.fn", x, type_args=(Tensor[_, "float32"]))
"""
    assert str(relaxlang.parse(text)["f"].body.struct_info) == 'R.Tensor(dtype="float32")'


def test_purity_of_unknown_operators():
    mod = relaxlang.parse(OLD.replace("R.exp", "R.no_such"), check=False)
    assert "R.no_such(x)" in mod.script()


def test_the_shape_of_a_result_is_a_shape():
    text = """
@R.function(pure=False)
def main(x: R.Tensor((4,), "float32")):
    return R.call_dps_packed("f", x, x, dtype="float32")
"""
    with pytest.raises(DiagnosticError, match="the shape must be a shape value, not the value `x`"):
        relaxlang.parse(text)


def test_scalars_have_no_shape_to_match():
    text = '@R.function\ndef main(m: R.Prim("int64")):\n    R.match_shape(m, (a, b))\n    return m\n'
    with pytest.raises(DiagnosticError, match="can't be cast to"):
        relaxlang.parse(text)


def test_what_a_parameter_was_before_it_was_flattened_is_read() -> None:
    text = '@T.prim_func\ndef f(A: T.Buffer[(4,), "float32"]) -> None:\n    {}A[0] = T.float32(1)\n'
    told = text.format('T.preflattened_buffer(A, [2, 2], dtype="float32", data=A.data)\n    ')
    assert relaxlang.structural_equal(relaxlang.parse(told), relaxlang.parse(text.format("")))
