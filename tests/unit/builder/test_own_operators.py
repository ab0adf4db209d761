"""A module's own operators are known wherever its functions are built, rewritten, checked and reduced."""

from __future__ import annotations

import numpy as np

import relaxlang
from relaxlang import BlockBuilder, dpl
from relaxlang.debug.check_passes import check_passes
from relaxlang.ir import relax
from relaxlang.ir.module import IRModule
from relaxlang.passes.pipelines import pipeline

TEXT = """
@R.op("my.gated")
def gated(x: R.Tensor(S, D), gain: float = 2.0) -> R.Tensor(S, D):
    return T.compute(S, lambda *i: T.max(x[*i], T.cast(0, D)) * T.cast(gain, D))

@R.rewriter
class ReluIsGated:
    @R.function
    def pattern(x: R.Tensor((n, m), "float32")):
        y = R.nn.relu(x)
        return y

    @R.function
    def replacement(x: R.Tensor((n, m), "float32")):
        y = R.my.gated(x, gain=1.0)
        return y

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32"):
        with R.dataflow():
            y = R.my.gated(x)
            z = R.nn.relu(R.add(y, y))
            R.output(z)
        return z
"""
X = np.array([[-1, 2, 3, -4]], np.float32)


def main(mod: IRModule) -> relax.Function:
    made = mod["main"]
    assert isinstance(made, relax.Function)
    return made


def operators(func: relax.Function) -> list[str]:
    calls = [b.value for block in func.body.blocks for b in block.bindings]
    return [c.op.name for c in calls if isinstance(c, relax.Call) and isinstance(c.op, relax.Op)]


def test_builder() -> None:
    bb = BlockBuilder(relaxlang.parse(TEXT))
    x = bb.var("x", 'R.Tensor((3,), "float32")')
    with bb.function("other", [x]):
        bb.emit_func_output(bb.op.my.gated(x, gain=1.5))
    got = relaxlang.interpret(bb.finalize(), "other", np.array([1, -1, 2], np.float32))
    assert got.tolist() == [1.5, 0, 3]


def test_rewrite_call() -> None:
    mod = relaxlang.parse(TEXT)
    bb, x = BlockBuilder(mod), dpl.wildcard()
    func = dpl.rewrite_call(dpl.is_op("my.gated")(x), lambda call, found: relaxlang.op.exp(found[x]), main(mod), mod)
    assert operators(func) == ["exp", "add", "nn.relu"]
    func = dpl.rewrite_call(dpl.is_op("exp")(x), lambda call, found: bb.op.my.gated(found[x]), func, mod)
    assert operators(func) == ["my.gated", "add", "nn.relu"]


def test_rules_beside_the_module() -> None:
    mod = relaxlang.parse(TEXT)
    made = relaxlang.transform.ApplyRewrites()(mod)
    assert operators(main(made)) == ["my.gated", "add", "my.gated"]
    assert np.array_equal(relaxlang.interpret(made, "main", X), relaxlang.interpret(mod, "main", X))
    again = relaxlang.parse(made.script())
    assert relaxlang.structural_equal(again, made) and list(again.rules) == ["ReluIsGated"]


def test_check_passes() -> None:
    mod = relaxlang.parse(TEXT)
    assert check_passes(mod, pipeline("default").passes, "main", [X]) is None
