"""Errors about nodes that stand in no file point into the printed module."""

from dataclasses import dataclass

import pytest

import relaxlang
from relaxlang.base.diagnostics import DiagnosticError, fail
from relaxlang.ir import relax
from relaxlang.ir.visit import walk
from relaxlang.passes.base import Pass
from relaxlang.passes.relax.legalize_ops import LegalizeOps
from relaxlang.syntax.printer.locate import locate

MODULE = relaxlang.parse(
    '@R.function\ndef main(x: R.Tensor((4, 4), "float32")):\n    y = R.matmul(x, x)\n    return y\n'
)


def call(module) -> relax.Call:
    return next(n for n in walk(module["main"]) if isinstance(n, relax.Call))


@dataclass(frozen=True)
class Failing(Pass):
    """Complains about a call: the one of the module, or one that it has just made."""

    own: bool = False

    def run(self, mod, ctx):
        """Fail."""
        node = call(mod).replace(args=()) if self.own else call(mod)
        fail("RLX3110", "this call is bad", None, node=node)


def test_locate():
    span = locate(call(MODULE), MODULE, "<here>")
    assert span.text.startswith("R.matmul(x, x") and str(span) == "<here>:5:13"
    assert locate(relax.Var("other"), MODULE) is None


def test_an_error_of_a_pass():
    with pytest.raises(DiagnosticError) as caught:
        Failing()(LegalizeOps()(MODULE))
    text = str(caught.value)
    assert "--> <before failing>:" in text and "y = R.call_tir(cls.matmul, (x, x)" in text and "^^^^" in text


def test_an_error_about_a_node_that_was_just_made():
    with pytest.raises(DiagnosticError) as caught:
        Failing(own=True)(MODULE)
    assert caught.value.diagnostics[0].span is None
    assert "R.matmul(" in caught.value.diagnostics[0].notes[0]
