"""The tables' cases as compiled code: all of one operator's in one module, with known and with symbolic shapes."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest

import relaxlang
from relaxlang.ir import relax
from relaxlang.ir.attrs import Attrs
from relaxlang.ir.module import IRModule
from tests.unit.stdlib import table_nn
from tests.unit.stdlib.harness import OPERATORS, Dims, Inputs
from tests.unit.stdlib.table import CASES, Case
from tests.unit.stdlib.test_values import check, depth_is_known

assert table_nn.__doc__  # its import enters its cases
BY_NAME: dict[str, list[Case]] = defaultdict(list)
for _case in CASES:
    BY_NAME[_case.name].append(_case)


def function(case: Case, dims: str, name: str) -> tuple[relax.Function, list[Any]]:
    """A function that is the case's call alone, and its arguments."""
    inputs = Inputs(Dims(dims))
    call = inputs.call(case.name, case.args, case.attrs)
    out = relax.Var("out", OPERATORS.infer(call))
    body = relax.seq_expr([relax.VarBinding(out, call.replace(struct_info=out.struct_info))], out)
    made = relax.Function(tuple(inputs.arrays), body, out.struct_info, attrs=Attrs({"global_symbol": name}))
    return made, list(inputs.arrays.values())


def as_arrays(value: Any) -> Any:
    return tuple(as_arrays(v) for v in value) if isinstance(value, (tuple, list)) else np.asarray(value)


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_compiled_code_agrees(name: str) -> None:
    functions, runs = {}, []
    for k, case in enumerate(BY_NAME[name]):
        for dims in ("static", "symbolic"):
            if dims == "static" or depth_is_known(case):
                symbol = f"{dims}{k}"
                functions[symbol], args = function(case, dims, symbol)
                runs.append((symbol, case, args))
    vm = relaxlang.VirtualMachine(relaxlang.build(IRModule(functions)), relaxlang.cpu())
    for symbol, case, args in runs:
        check(as_arrays(vm[symbol](*args)), case.expected, case.rtol)
