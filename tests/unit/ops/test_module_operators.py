"""Operators that a file defines for its module: they travel with it, through every pass, text and back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import relaxlang

TEXT = '''
def half(D):
    return T.cast(0.5, D)


@R.op("my.gated")
def gated(x: R.Tensor(S, D), top: float = 6.0) -> R.Tensor(S, D):
    """silu(x) / 2, at most `top`."""
    needs_float(D)
    y = R.nn.silu(x)
    return T.compute(S, lambda *i: T.min(y[*i] * half(D), T.cast(top, D)))


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((n, 4), "float32")):
        with R.dataflow():
            y = R.my.gated(x, top=0.5)
            z = R.add(y, y)
            R.output(z)
        return z
'''
X = np.linspace(-4, 4, 12, dtype="float32").reshape(3, 4)
WANT = 2 * np.minimum(X / (1 + np.exp(-X)) / 2, 0.5)


def check(mod: relaxlang.IRModule, pipeline: str = "default") -> None:
    vm = relaxlang.VirtualMachine(relaxlang.build(mod, pipeline=pipeline), relaxlang.cpu())
    np.testing.assert_allclose(vm["main"](X), WANT, rtol=1e-5)


@pytest.mark.parametrize("pipeline", ["default", "minimum"])
def test_it_compiles(pipeline: str) -> None:
    check(relaxlang.parse(TEXT), pipeline)


def test_the_interpreter_runs_it() -> None:
    np.testing.assert_allclose(relaxlang.interpret(relaxlang.parse(TEXT), "main", X), WANT, rtol=1e-5)


def test_the_text_of_the_module_holds_it() -> None:
    mod = relaxlang.parse(TEXT)
    again = relaxlang.parse(mod.script())
    relaxlang.assert_structural_equal(again, mod)
    assert again.script() == mod.script()
    check(again)


def test_two_modules_may_define_one_name_in_two_ways() -> None:
    first, second = relaxlang.parse(TEXT), relaxlang.parse(TEXT.replace("0.5, D)\n\n\n", "0.25, D)\n\n\n"))
    check(first)
    vm = relaxlang.VirtualMachine(relaxlang.build(second), relaxlang.cpu())
    np.testing.assert_allclose(vm["main"](X), 2 * np.minimum(X / (1 + np.exp(-X)) / 4, 0.5), rtol=1e-5)


def test_faults_of_its_calls_are_found_while_checking() -> None:
    with pytest.raises(relaxlang.DiagnosticError, match=r"`R\.my\.gated` has no parameter `tp`") as caught:
        relaxlang.parse(TEXT.replace("top=0.5", "tp=0.5"))
    assert caught.value.line == 19


def test_its_definitions_are_printed_as_code() -> None:
    mod = relaxlang.parse(TEXT)
    assert list(mod.operators) == ["half", "my.gated"]
    assert not mod.attrs
    text = mod.script()
    assert text.startswith('def half(D):\n    return T.cast(0.5, D)\n\n\n@R.op("my.gated")\ndef gated(')
    assert "\n\n\n@I.ir_module\nclass Module:\n    @R.function" in text


def test_two_modules_differ_by_their_operators() -> None:
    first, second = relaxlang.parse(TEXT), relaxlang.parse(TEXT.replace("0.5, D)\n\n\n", "0.25, D)\n\n\n"))
    assert not relaxlang.structural_equal(first, second)
    assert relaxlang.structural_hash(first) != relaxlang.structural_hash(second)


def test_the_operators_of_an_included_file_come_along(tmp_path: Path) -> None:
    (tmp_path / "gated.rlx").write_text(TEXT)
    main = (
        'lib = I.include("gated.rlx")\n\n\n@R.function\ndef main(x: R.Tensor((n, 4), "float32")):\n'
        "    return lib.main(x)\n"
    )
    (tmp_path / "main.rlx").write_text(main)
    mod = relaxlang.load(tmp_path / "main.rlx")
    assert list(mod.operators) == ["half", "my.gated"]
    check(mod)


def test_definitions_in_the_class_move_to_the_margin() -> None:
    text = (
        '@I.ir_module\nclass M:\n    @R.op\n    def mine(x: R.Tensor(S, D)) -> R.Tensor(S, D):\n        """several\n'
        '  lines."""\n        return T.compute(S, lambda *i: x[*i])\n\n    @R.function\n'
        '    def f(x: R.Tensor((3,), "float32")):\n        return R.mine(x)\n'
    )
    mod = relaxlang.parse(text)
    assert mod.script().startswith(
        '@R.op\ndef mine(x: R.Tensor(S, D)) -> R.Tensor(S, D):\n    """several\n  lines."""\n'
    )
    relaxlang.assert_structural_equal(relaxlang.parse(mod.script()), mod)
