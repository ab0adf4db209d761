"""The example in the documentation of every operator gives what it says, interpreted and compiled."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import relaxlang
from relaxlang.base.diagnostics import Diagnostics
from relaxlang.base.source import Source
from relaxlang.ir.module import IRModule
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import Evaluator, Scope
from relaxlang.syntax.parser import parse_expression
from tests.unit.stdlib.harness import OPERATORS, run
from tests.unit.stdlib.native import function
from tests.unit.stdlib.table import Case
from tests.unit.stdlib.test_values import depth_is_known

_EXAMPLE = re.compile(r"^ *Example: (R\.[^\n]+(?:\n[^\n]*)*?)\n *$", re.MULTILINE)


def example(name: str) -> str:
    """The text of an operator's example, "" when it has none."""
    found = _EXAMPLE.search(OPERATORS.get(name).doc)
    return " ".join(found[1].split()) if found else ""


def parsed(text: str) -> tree.Expr:
    diagnostics = Diagnostics()
    expr = parse_expression(Source("example", text), diagnostics)
    diagnostics.check()
    assert expr is not None
    return expr


def value(node: tree.Expr) -> Any:
    return Evaluator().expr(node, Scope())


def array(data: Any) -> np.ndarray[Any, Any]:
    """A nested list as a tensor: float32, int32 or bool as its elements are."""
    made = np.array(data)
    return made.astype({"f": "float32", "i": "int32", "b": "bool"}[made.dtype.kind])


def argument(kinds: tuple[str, ...], data: Any) -> Any:
    if kinds[0] == "tensor" and data is not None:
        return array(data)
    return tuple(array(d) for d in data) if kinds[0] == "tensors" else data


NAMES = list(OPERATORS.names())


def case_of(name: str) -> Case:
    """The example as a case of the tables."""
    text = example(name)
    if not text:
        pytest.skip("no example")
    comparison = parsed(text)
    assert isinstance(comparison, tree.Compare)
    call, expected = comparison.left, value(comparison.comparators[0])
    assert isinstance(call, tree.Call) and call.func.span is not None and call.func.span.text == f"R.{name}"
    params = OPERATORS.get(name).params
    kinds = {p.name: p.kinds for p in params}
    args = tuple(argument(p.kinds, value(a)) for p, a in zip(params, call.args))
    attrs = {k.name: argument(kinds[k.name], value(k.value)) for k in call.keywords if k.name}
    return Case(name, args, attrs, expected, 2e-6)


def holds(result: Any, expected: Any) -> None:
    for got, want in zip(result, expected, strict=True) if isinstance(expected, tuple) else [(result, expected)]:
        assert np.shape(got) == np.shape(want)
        np.testing.assert_allclose(np.asarray(got).astype("float64"), np.asarray(want, "float64"), rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("name", NAMES)
def test_the_example_holds(name: str) -> None:
    case = case_of(name)
    holds(run(name, *case.args, **case.attrs), case.expected)
    compiled, args = function(case, "symbolic" if depth_is_known(case) else "static", "main")
    vm = relaxlang.VirtualMachine(relaxlang.build(IRModule({"main": compiled})), relaxlang.cpu())
    holds(vm["main"](*args), case.expected)
