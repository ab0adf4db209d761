"""LegalizeOps: which operators are lowered, to what, and how kernels are named."""

from typing import Any

import numpy as np
import pytest
from checking import array, module

import relaxlang
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.ir import relax
from relaxlang.ir.module import IRModule
from relaxlang.passes.pipelines import pipeline
from relaxlang.transform import LegalizeOps

TEXT = """
@R.function
def main(x: R.Tensor((3, 4), "float32"), y: R.Tensor((4,), "float32")) -> R.Tensor((3, 4), "float32"):
    with R.dataflow():
        a = R.nn.relu(x)
        b = R.add(a, y)
        c = R.nn.relu(b)
        d = R.add(c, b)
        R.output(d)
    return d
"""
X, Y = array(3, 4), array(4)


def value(mod: IRModule) -> Any:
    return np.asarray(relaxlang.VirtualMachine(relaxlang.build(mod), relaxlang.cpu())["main"](X, Y))


def kernels(mod: IRModule) -> list[str]:
    return [name for name, _ in mod.prim_funcs()]


@pytest.mark.parametrize("option", ["skip", "only"])
def test_unknown_operators_are_diagnosed(option: str) -> None:
    with pytest.raises(DiagnosticError, match=r"there is no operator `nn.rellu`") as caught:
        pipeline(f"legalize-ops{{{option}=nn.rellu}}")(module(TEXT))
    (found,) = caught.value.diagnostics
    assert found.code == "RLX3104" and found.help == "did you mean `nn.relu`?"


def test_unknown_operator_in_the_customise_map() -> None:
    with pytest.raises(DiagnosticError, match=r"`customize_legalize_map`.*no operator `nope`"):
        LegalizeOps(customize_legalize_map={"nope": lambda bb, call: call})(module(TEXT))


def test_kernels_are_shared_and_named_after_operators() -> None:
    assert kernels(LegalizeOps()(module(TEXT))) == ["relu", "add", "add1"]
    assert kernels(LegalizeOps(skip=("relax.add",))(module(TEXT))) == ["relu"]
    assert kernels(LegalizeOps(only=("add",))(module(TEXT))) == ["add", "add1"]


def test_customised_lowering() -> None:
    """It may emit what it needs, add kernels, call operators, and leave calls alone; equal kernels are shared."""

    def twice(bb: relaxlang.BlockBuilder, call: relax.Call) -> relax.Expr:
        half = bb.emit_te(lambda t: relaxlang.te.compute(t.shape, lambda i, j: t[i, j] * 0.5), call.args[0])
        return bb.normalize(relaxlang.op.add(half, half))

    mod = LegalizeOps(customize_legalize_map={"relax.nn.relu": twice, "add": lambda bb, call: call})(module(TEXT))
    assert len(kernels(mod)) == 1 and "R.add" in mod.script() and "relu" not in mod.script()
    np.testing.assert_allclose(value(mod), 2 * (X + Y), rtol=1e-6)


def test_lowering_must_give_an_expression() -> None:
    nothing: Any = lambda bb, call: None  # noqa: E731
    with pytest.raises(DiagnosticError, match=r"the lowering of `R.nn.relu` gave a value of type `NoneType`"):
        LegalizeOps(customize_legalize_map={"nn.relu": nothing})(module(TEXT))
