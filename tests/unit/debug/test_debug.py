"""Comparing programs, finding the pass at fault, reducing programs."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import indent

import numpy as np
import pytest

import relaxlang
from relaxlang.analysis.well_formed import well_formed
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.debug.check_passes import check_passes
from relaxlang.debug.compare import compare_modules
from relaxlang.debug.reduce import (
    changes_result,
    command_succeeds,
    compile_fault,
    fails_to_compile,
    measure,
    random_args,
    reduce_module,
)
from relaxlang.ir import prim, relax, tir
from relaxlang.ir.module import IRModule
from relaxlang.ir.visit import Rewriter, on
from relaxlang.passes.base import Pass, PassContext
from relaxlang.passes.pipelines import pipeline


def module(text: str) -> IRModule:
    return relaxlang.parse("@I.ir_module\nclass Module:\n" + indent(text.strip("\n"), "    ") + "\n")


NET = module("""
@R.function
def main(x: R.Tensor((n, 8), "float32"), w: R.Tensor((8, 16), "float32"), c: R.Tensor((), "bool")):
    with R.dataflow():
        a = R.matmul(x, w)
        b = R.nn.relu(a)
        s = R.sum(b, axis=1)
        R.output(b, s)
    if c:
        t = R.exp(b)
        r = R.tanh(t)
    else:
        r = R.negative(b)
    q = R.concat((r, b), axis=0)
    return (q, s)

@R.function
def other(x: R.Tensor((n,), "float32")):
    y = R.exp(x)
    return y
""")


class _Wrong(Rewriter):
    @on(relax.Call)
    def call(self, node: relax.Call) -> relax.Call:
        """tanh becomes sinh."""
        wrong = isinstance(node.op, relax.Op) and node.op.name == "tanh"
        return node.replace(op=relax.Op("sinh")) if wrong else self.below(node)


@dataclass(frozen=True)
class WrongTanh(Pass):
    """A pass with a fault."""

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        return mod.with_functions({n: _Wrong()(f) for n, f in mod.functions.items()})


@dataclass(frozen=True)
class Vague(Pass):
    """A pass that says more of a variable than is true."""

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        func = mod["main"]
        assert isinstance(func, relax.Function)
        params = func.params[:1] + func.params[1:]
        return mod.with_function("main", func.replace(params=params, ret_struct_info=relaxlang.struct_info("R.Tensor")))


def steps(*extra: Pass) -> list[Pass]:
    return [*extra, *pipeline("default").passes]


def args(mod: IRModule, seed: int = 0) -> list[object]:
    func = mod["main"]
    assert isinstance(func, relax.Function)
    made = random_args(func, seed)
    return [np.array(True) if isinstance(a, np.ndarray) and a.dtype == bool else a for a in made]


# --- comparing --------------------------------------------------------------------------------------------------------
def test_names_do_not_count() -> None:
    text = NET.script()
    renamed = text.replace("lv", "value").replace(" q ", " last ").replace("(q,", "(last,")
    assert compare_modules(NET, relaxlang.parse(renamed)) is None
    kernel = "@T.prim_func(private=True)\ndef {0}(A: T.Buffer((4,), 'float32')):\n    for i in range(4):\n" \
             "        A[i] = 0.0\n\n@R.function(pure=False)\ndef main(x: R.Tensor((4,), 'float32')):\n" \
             "    cls = Module\n    cls.{0}(x)\n    return x\n"  # fmt: skip
    assert compare_modules(module(kernel.format("zero")), module(kernel.format("clear"))) is None


def test_the_first_difference_stands_in_both_texts() -> None:
    found = compare_modules(NET, relaxlang.parse(NET.script().replace("R.tanh", "R.sinh")))
    assert found is not None
    left, _, right = str(found).partition("right:")
    assert "R.tanh(t)" in left and "R.sinh(t)" in right and "^^^" in left and "^^^" in right


# --- checking passes --------------------------------------------------------------------------------------------------
def test_a_sound_pipeline_has_no_finding() -> None:
    assert check_passes(NET, steps(), "main", args(NET)) is None


def test_the_pass_at_fault_and_the_binding() -> None:
    found = check_passes(NET, steps(WrongTanh()), "main", args(NET))
    assert found is not None and found.step == "wrong-tanh" and "changes the result" in found.message
    assert found.binding is not None and found.binding.var.name == "r"
    assert "`wrong-tanh`" in str(found.error()) and "RLX3130" in str(found.error())


def test_a_broken_rule_is_a_finding() -> None:
    found = check_passes(NET, steps(Vague()), "main", args(NET))
    assert found is not None and found.step == "vague" and "RLX0220" in found.message


# --- reducing ---------------------------------------------------------------------------------------------------------
def test_a_changed_result_is_reduced_to_the_call() -> None:
    func = NET["main"]
    assert isinstance(func, relax.Function)
    seed = next(s for s in range(20) if random_args(func, s)[2])  # the branch with the call is taken
    shows = changes_result([WrongTanh()], "main", seed=seed)
    made = reduce_module(NET, shows)
    assert shows(made) and not [d for d in well_formed(made) if d.level == "error"]
    func = made["main"]
    assert isinstance(func, relax.Function) and list(made.functions) == ["main"]
    calls = [b.value for block in func.body.blocks for b in block.bindings]
    assert len(calls) == 1 and isinstance(calls[0], relax.Call) and calls[0].op == relax.Op("tanh")
    assert len(func.params) == 1 and str(func.params[0].struct_info) == 'R.Tensor((1, 1), "float32")'
    assert measure(made) < measure(NET)


FAULTY = module("""
@T.prim_func
def main(A: T.Buffer((64, 32), "float32"), B: T.Buffer((64, 32), "float32")):
    for i, j in T.grid(64, 32):
        B[i, j] = T.exp(A[i, j]) + 1.0
    for i in T.thread_binding(64, thread="threadIdx.x"):
        for j in range(32):
            if j > 3:
                B[i, j] = B[i, j] * 2.0
                B[i, j] = B[i, j] + A[i, j]
""")


def test_a_compile_error_is_reduced_in_tir() -> None:
    passes = steps()
    fault = compile_fault(FAULTY, passes)
    assert fault.startswith("RLX50")
    made = reduce_module(FAULTY, fails_to_compile(fault, passes))
    func = made["main"]
    assert isinstance(func, tir.PrimFunc) and compile_fault(made, passes) == fault
    text = made.script()
    assert text.count("for ") == 1 and text.count("B[") == 1 and "exp" not in text and "if " not in text
    assert all(isinstance(d, prim.IntImm) and d.value <= 2 for b in func.buffer_map.values() for d in b.shape)


def test_a_command_decides() -> None:
    made = reduce_module(NET, command_succeeds("grep -q R.concat {}"))
    func = made["main"]
    assert isinstance(func, relax.Function) and "R.concat" in str(func) and "R.matmul" not in str(func)


def test_nothing_to_reduce() -> None:
    with pytest.raises(DiagnosticError, match="RLX3131"):
        reduce_module(NET, lambda mod: False)
