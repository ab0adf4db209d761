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


def build(cases: Iterable[tuple[Case, str]]) -> relaxlang.VirtualMachine:
    """The cases (each with what is known of its dimensions) compiled together, as the functions `case0`, `case1`, …"""
    functions = {f"case{k}": function(case, dims, f"case{k}")[0] for k, (case, dims) in enumerate(cases)}
    return relaxlang.VirtualMachine(relaxlang.build(IRModule(functions)), relaxlang.cpu())


def check_compiled(cases: Iterable[tuple[Case, str]]) -> None:
    """Compile the cases together, run them, and compare."""
    cases = list(cases)
    vm = build(cases)
    for k, (case, dims) in enumerate(cases):
        args = function(case, dims, "")[1]
        try:
            check(as_arrays(vm[f"case{k}"](*args)), case.expected, case.rtol)
        except AssertionError as fault:
            raise AssertionError(f"{case}: {fault}") from fault
