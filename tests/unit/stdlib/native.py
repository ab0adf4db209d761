"""Compiles calls of operators, each as a function of its own in one module."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

import relaxlang
from relaxlang.ir import relax
from relaxlang.ir.attrs import Attrs
from relaxlang.ir.module import IRModule
from tests.unit.stdlib.harness import OPERATORS, Dims, Inputs
from tests.unit.stdlib.table import Case
from tests.unit.stdlib.test_values import check


def function(case: Case, dims: str, name: str) -> tuple[relax.Function, list[Any]]:
    """A function that is the case's call alone, and its arguments."""
    inputs = Inputs(Dims(dims))
    call = inputs.call(case.name, case.args, case.attrs)
    out = relax.Var("out", OPERATORS.infer(call))
    body = relax.seq_expr([relax.VarBinding(out, call.replace(struct_info=out.struct_info))], out)
    made = relax.Function(tuple(inputs.arrays), body, out.struct_info, attrs=Attrs({"global_symbol": name}))
    return made, list(inputs.arrays.values())


def as_arrays(value: Any) -> Any:
    """The result of a run as numpy arrays."""
    return tuple(as_arrays(v) for v in value) if isinstance(value, (tuple, list)) else np.asarray(value)


def build(cases: Iterable[tuple[Case, str]], mode: Any = None) -> relaxlang.VirtualMachine:
    """The cases (each with what is known of its dimensions) compiled together, as the functions `case0`, `case1`, …"""
    return relaxlang.VirtualMachine(_module(cases), relaxlang.cpu(), exec_mode=mode)


def _module(cases: Iterable[tuple[Case, str]]) -> Any:
    functions = {f"case{k}": function(case, dims, f"case{k}")[0] for k, (case, dims) in enumerate(cases)}
    return relaxlang.build(IRModule(functions))


def strided(value: Any) -> Any:
    """The same values in memory with gaps."""
    if isinstance(value, (tuple, list)):
        return tuple(strided(v) for v in value)
    if not isinstance(value, np.ndarray) or value.ndim == 0:
        return value
    return value.repeat(2, axis=-1)[..., ::2]


def check_compiled(cases: Iterable[tuple[Case, str]]) -> None:
    """Compile the cases together, run them natively, on arrays with gaps, and as bytecode, and compare."""
    cases = list(cases)
    module = _module(cases)
    native, bytecode = (relaxlang.VirtualMachine(module, relaxlang.cpu(), exec_mode=m) for m in ("native", "bytecode"))
    for k, (case, dims) in enumerate(cases):
        args = function(case, dims, "")[1]
        runs = ((native, args), (native, [strided(a) for a in args]), (bytecode, args))
        for how, (vm, given) in zip(("natively", "on arrays with gaps", "as bytecode"), runs):
            try:
                check(as_arrays(vm[f"case{k}"](*given)), case.expected, case.rtol)
            except AssertionError as fault:
                raise AssertionError(f"{case} {how}: {fault}") from fault
