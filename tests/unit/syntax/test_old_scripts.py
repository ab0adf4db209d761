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
