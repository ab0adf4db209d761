"""Contradictions: refused when a strict text is read, warned of in other ones, and never built."""

import numpy as np
import pytest

import relaxlang
from relaxlang.analysis.contradictions import contradictions
from relaxlang.analysis.well_formed import well_formed
from relaxlang.base.diagnostics import Diagnostic, DiagnosticError

KERNEL = """
    @T.prim_func
    def twice(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            B[i] = A[i] * T.float32(2)

    @R.function
    def half(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
        y = R.multiply(x, R.const(0.5, "float32"))
        return y
"""
FAULTS = {
    'y: R.Tensor((5,), "float32") = R.exp(x)': "RLX0201",
    'y = R.call_tir(M.twice, (x, x), out_sinfo=R.Tensor((8,), "float32"))': "RLX0207",
    "y = M.half(x, x)": "RLX0207",
    "y = M.half(x)": "RLX0208",
    'y = R.call_tir(M.twice, (x,), out_sinfo=R.Tensor((8,), "float32"))': "RLX0209",
}


def module(decorator: str, line: str, result: str = "R.Object") -> str:
    body = (
        f'    @R.function\n    def main(x: R.Tensor((4,), "float32")) -> {result}:\n        {line}\n        return y\n'
    )
    return f"@{decorator}\nclass M:{KERNEL}\n{body}"


@pytest.mark.parametrize(("line", "code"), FAULTS.items())
def test_a_strict_text_is_refused(line: str, code: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        relaxlang.parse(module("I.ir_module", line))
    assert [(d.level, d.code, d.span.line) for d in caught.value.diagnostics] == [("error", code, 15)]


@pytest.mark.parametrize("decorator", ["tvm.script.ir_module", "I.ir_module(check_well_formed=False)"])
@pytest.mark.parametrize(("line", "code"), FAULTS.items())
def test_others_are_read_with_a_warning_and_not_built(decorator: str, line: str, code: str) -> None:
    found: list[Diagnostic] = []
    mod = relaxlang.parse(module(decorator, line), warnings=found.append)
    assert [(d.level, d.code, d.span.line) for d in found] == [("warning", code, 15)]
    relaxlang.assert_structural_equal(relaxlang.parse(mod.script()), mod)
    with pytest.raises(DiagnosticError) as caught:
        relaxlang.build(mod)
    assert [(d.level, d.code, d.span.line) for d in caught.value.diagnostics] == [("error", code, 15)]


def test_what_all_releases_looked_for_stays_an_error() -> None:
    line = """y = R.call_tir_inplace(M.twice, (x, x), [0, 0], [R.Tensor((4,), "float32"), R.Tensor((4,), "float32")])"""
    with pytest.raises(DiagnosticError, match="two results are written over the same argument"):
        relaxlang.parse(module("tvm.script.ir_module", line))


def test_a_result_that_is_declared_otherwise() -> None:
    mod = relaxlang.parse(module("tvm.script.ir_module", "y = R.exp(x)", 'R.Tensor((5,), "float32")'))
    assert [d.code for d in contradictions(mod)] == ["RLX0201"]


def test_calls_of_a_module_that_a_program_made() -> None:
    mod = relaxlang.parse(module("I.ir_module", "y = R.exp(x)"))
    other = relaxlang.parse(module("I.ir_module", 'y = R.zeros((8,), "float32")'))
    narrow = relaxlang.parse(module("I.ir_module", "y = M.half(R.zeros((8,), 'float32'))").replace("(8,)", "(4,)"))
    assert not contradictions(mod) and not contradictions(other)
    mixed = mod.with_function("main", narrow["main"])
    assert {d.code for d in well_formed(mixed) if d.level == "error"} == {"RLX0208"}
    with pytest.raises(DiagnosticError):
        relaxlang.build(mixed)


def test_lowered_programs_say_less_of_tensors_than_kernels_take() -> None:
    """What is missing is checked at run time."""
    text = module("I.ir_module", "y = R.zeros((8,), 'float32')\n        _ = M.twice(x, y)", "R.Object")
    text = text.replace('x: R.Tensor((4,), "float32")', 'x: R.Tensor(dtype="float32")')
    text = text.replace("    @R.function\n    def main", "    @R.function(pure=False)\n    def main")
    mod = relaxlang.parse(text)
    assert 'R.match_cast(x, R.Tensor((8,), "float32"))' in mod.script()
    vm = relaxlang.VirtualMachine(relaxlang.build(mod), relaxlang.cpu())
    np.testing.assert_array_equal(vm["main"](np.ones(8, "float32")), np.full(8, 2, "float32"))
    with pytest.raises(relaxlang.RelaxlangError):
        vm["main"](np.ones(4, "float32"))
