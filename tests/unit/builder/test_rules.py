"""Rewrite rules as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relaxlang
from relaxlang import dpl
from relaxlang.analysis.well_formed import well_formed
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.base.source import Source
from relaxlang.ir.module import IRModule

RULES = """
@R.rewriter
class DoubleIsAdd:
    @R.function
    def pattern(x: R.Tensor((n, m), "float32")):
        y = R.multiply(x, R.const(2, "float32"))
        return y

    @R.function
    def replacement(x: R.Tensor((n, m), "float32")):
        z = R.zeros((n, m), "float32")
        y = R.add(R.add(x, z), x)
        return y

@R.rewriter
class OneProduct:
    @R.function
    def pattern(x: R.Tensor((n, k), "float32"), a: R.Tensor((k, p), "float32"), b: R.Tensor((k, q), "float32")):
        u = R.matmul(x, a)
        v = R.matmul(x, b)
        return (u, v)

    @R.function
    def replacement(x: R.Tensor((n, k), "float32"), a: R.Tensor((k, p), "float32"), b: R.Tensor((k, q), "float32")):
        y = R.matmul(x, R.concat((a, b), axis=1))
        u = R.strided_slice(y, axes=[1], begin=[0], end=[p])
        v = R.strided_slice(y, axes=[1], begin=[p], end=[p + q])
        return (u, v)
"""
MODULE = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((n, 4), "float32"), a: R.Tensor((4, 3), "float32"), b: R.Tensor((4, 5), "float32")):
        with R.dataflow():
            t = R.multiply(x, R.const(2, "float32"))
            u = R.matmul(t, a)
            e = R.exp(u)
            f = R.sum(e)
            v = R.matmul(t, R.multiply(b, f))
            w = R.matmul(t, b)
            R.output(e, v, w)
        return (e, v, w)
"""


def rules(text: str) -> list[dpl.RewriteRule]:
    return dpl.read_rules(Source("rules.rlx", text))


def same(before: IRModule, after: IRModule, *args: Any) -> None:
    assert [d for d in well_formed(after) if d.level == "error"] == [], after.script()
    relaxlang.assert_structural_equal(relaxlang.parse(after.script()), after)
    for a, b in zip(relaxlang.interpret(before, "main", *args), relaxlang.interpret(after, "main", *args)):
        np.testing.assert_allclose(b, a, rtol=1e-4)


def test_rules_apply_to_values_and_to_several_at_once() -> None:
    mod = relaxlang.parse(MODULE)
    made = dpl.apply_rules(mod, rules(RULES))
    text = made.script()
    assert "R.zeros(R.shape([n, 4])" in text  # the pattern's dimensions are the function's
    assert text.count("R.matmul") == 2 and "begin=[3], end=[8]" in text
    args = [np.random.default_rng(1).uniform(-1, 1, s).astype("float32") for s in ((2, 4), (4, 3), (4, 5))]
    same(mod, made, *args)


def test_rules_that_do_not_fit_change_nothing() -> None:
    mod = relaxlang.parse("@R.function\ndef main(x: R.Tensor((n,), 'float32')):\n"
                          "    y = R.multiply(x, R.const(2, 'float32'))\n    return y\n")  # fmt: skip
    assert dpl.apply_rules(mod, rules(RULES)) is mod  # one dimension, the rule asks for two


def test_rules_stand_beside_a_module_and_run_as_a_pass(tmp_path: Path) -> None:
    path = tmp_path / "both.rlx"
    path.write_text(RULES + MODULE)
    mod = relaxlang.load(path)
    assert list(mod.functions) == ["main"]
    made = relaxlang.lower(mod, f'apply-rewrites{{file="{path}"}}')
    relaxlang.assert_structural_equal(made, dpl.apply_rules(mod, rules(RULES)))


def test_rounds() -> None:
    text = """
@R.rewriter
class Shorter:
    @R.function
    def pattern(x: R.Tensor):
        y = R.exp(R.log(x))
        return y

    @R.function
    def replacement(x: R.Tensor):
        return x
"""
    mod = relaxlang.parse("@R.function\ndef main(x: R.Tensor((n,), 'float32')):\n"
                          "    y = R.exp(R.log(R.exp(R.log(x))))\n    return y\n")  # fmt: skip
    made = dpl.apply_rules(mod, rules(text), rounds=5)
    assert "exp" not in made.script()


@pytest.mark.parametrize("body, words", [
    ("class A:\n    @R.function\n    def pattern(x: R.Object):\n        return x\n", "has no function `replacement`"),
    ("class A:\n    @R.function\n    def pattern(x: R.Tensor):\n        return x\n"
     "    @R.function\n    def replacement(x: R.Tensor):\n        return x\n", "must be computed"),
    ("class A:\n    @R.function\n    def pattern(x: R.Tensor):\n        y = R.exp(x)\n        return y\n"
     "    @R.function\n    def replacement(x: R.Tensor, y: R.Tensor):\n        return x\n", "numbers of parameters"),
    ("class A:\n    @R.function\n    def pattern(x: R.Tensor):\n        y = R.exp(x)\n        return y\n"
     "    @R.function\n    def replacement(x: R.Tensor):\n        return (x, x)\n", "numbers of results"),
])  # fmt: skip
def test_what_is_no_rule(body: str, words: str) -> None:
    with pytest.raises(DiagnosticError, match="RLX0453") as caught:
        rules("@R.rewriter\n" + body)
    assert words in caught.value.diagnostics[0].message
