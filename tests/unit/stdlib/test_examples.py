"""The example in the documentation of every operator gives what it says."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from relaxlang.base.diagnostics import Diagnostics
from relaxlang.base.source import Source
from relaxlang.syntax import tree
from relaxlang.syntax.comptime import Evaluator, Scope
from relaxlang.syntax.parser import parse_expression
from tests.unit.stdlib.harness import OPERATORS, run

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


@pytest.mark.parametrize("name", NAMES)
def test_the_example_holds(name: str) -> None:
    text = example(name)
    if not text:
        pytest.skip("no example")
    comparison = parsed(text)
    assert isinstance(comparison, tree.Compare)
    call, expected = comparison.left, value(comparison.comparators[0])
    assert isinstance(call, tree.Call) and call.func.span is not None and call.func.span.text == f"R.{name}"
    params = OPERATORS.get(name).params
    kinds = {p.name: p.kinds for p in params}
    args = [argument(p.kinds, value(a)) for p, a in zip(params, call.args)]
    attrs = {k.name: argument(kinds[k.name], value(k.value)) for k in call.keywords if k.name}
    result = run(name, *args, **attrs)
    for got, want in zip(result, expected) if isinstance(expected, tuple) else [(result, expected)]:
        assert np.shape(got) == np.shape(want)
        np.testing.assert_allclose(np.asarray(got).astype("float64"), np.asarray(want, "float64"), rtol=2e-6, atol=1e-7)
