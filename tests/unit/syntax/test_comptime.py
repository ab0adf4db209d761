"""The compile-time language: values, limits, errors."""

from typing import Any

import pytest

from relaxlang.base.diagnostics import DiagnosticError, Diagnostics
from relaxlang.base.source import Source
from relaxlang.ir import prim
from relaxlang.syntax import comptime
from relaxlang.syntax.comptime import Evaluator, Scope
from relaxlang.syntax.parser import parse_expression

N = prim.Var("n", prim.INT64)


def evaluate(text: str, *, fold: bool = False) -> Any:
    """The value of an expression; `n` is an int64 variable."""
    diagnostics = Diagnostics()
    tree = parse_expression(Source("<test>", text), diagnostics)
    diagnostics.check()
    assert tree is not None
    return Evaluator(fold=fold).expr(tree, Scope({"n": N}))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3 - 8 // 3 % 2", 7),
        ("2 ** 10 >> 3", 128),
        ("1 < 2 <= 2 != 3", True),
        ("not (1 > 2) and 5", 5),
        ("0 or 7", 7),
        ("3 if [] else 4", 4),
        ("[i * j for i in range(3) if i for j in (1, 2)]", [1, 2, 2, 4]),
        ("{k: v for k, v in zip('ab', [1, 2])}", {"a": 1, "b": 2}),
        ("(*range(2), 5)", (0, 1, 5)),
        ("[1, 2, 3][-1]", 3),
        ("'abc'[1:]", "bc"),
        ("sum([1, 2, 3], 4)", 10),
        ("max(3, 1, 2)", 3),
        ("sorted([3, 1])", [1, 3]),
        ("len({1: 2})", 1),
        ("(lambda a, b=2: a * b)(4)", 8),
        ("(lambda *b, i, j: (b, i, j))(1, 2, 3, 4)", ((1, 2), 3, 4)),
        ("2 in (1, 2)", True),
        ("None is None", True),
        ("'{} of {}'.format(1, 2)", "1 of 2"),
        ("{'a': 3}.get('a')", 3),
        ("list(reversed(range(3)))", [2, 1, 0]),
        ("any([0, 1]) and all([])", True),
        ("float('-inf')", float("-inf")),
    ],
)
def test_plain_values(text: str, value: Any) -> None:
    assert evaluate(text) == value


def test_scalars_build_nodes() -> None:
    made = evaluate("n * 2 + 0")
    assert isinstance(made, prim.Add) and isinstance(made.a, prim.Mul)
    assert evaluate("n * 2 + 0", fold=True) == prim.Mul(N, prim.IntImm(prim.INT64, 2))
    assert isinstance(evaluate("1 < n < 8"), prim.And)
    assert isinstance(evaluate("max(n, 3, 4)"), prim.Max)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("nn", "RLX0101"),
        ("n.foo", "RLX0102"),
        ("3[0]", "RLX0110"),
        ("3(0)", "RLX0111"),
        ("'a' + 1", "RLX0112"),
        ("(lambda a: a)()", "RLX0113"),
        ("(lambda a: a)(b=1)", "RLX0114"),
        ("len(3)", "RLX0116"),
        ("1 if n else 2", "RLX0121"),
        ("[1][n]", "RLX0122"),
        ("[1][1]", "RLX0123"),
        ("[*3]", "RLX0124"),
        ("1 // 0", "RLX0125"),
        ("n / 2", "RLX0306"),
        ("[i for i, j in [(1, 2, 3)]]", "RLX0127"),
        ("n << 64", "RLX0308"),
        ("sum()", "RLX0113"),
        ("any([], [])", "RLX0113"),
        ("min()", "RLX0113"),
        ("min(1, 2, key=abs)", "RLX0114"),
        ("max((1, 2), 'x')", "RLX0116"),
        ("max(n, [1])", "RLX0116"),
        ("n.astype()", "RLX0113"),
        ("'a'.find()", "RLX0113"),
        ("{}.get([1])", "RLX0112"),
        ("{1: 2}[[1]]", "RLX0112"),
        ("{k: 1 for k in [[1]]}", "RLX0112"),
        ("{**3}", "RLX0112"),
    ],
)
def test_errors(text: str, code: str) -> None:
    with pytest.raises(DiagnosticError) as raised:
        evaluate(text)
    assert [d.code for d in raised.value.diagnostics] == [code]


@pytest.mark.parametrize(
    "text", ["9 ** 9 ** 9", "1 << 10 ** 9", "'a' * 10 ** 9", "list(range(10 ** 9))", "[0] * 10 ** 7"]
)
def test_results_are_limited(text: str) -> None:
    with pytest.raises(DiagnosticError) as raised:
        evaluate(text)
    assert raised.value.diagnostics[0].code == "RLX0120"


def test_steps_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comptime, "MAX_STEPS", 1000)
    with pytest.raises(DiagnosticError) as raised:
        evaluate("[i for i in range(1000) for j in range(1000)]")
    assert raised.value.diagnostics[0].code == "RLX0120"


def test_a_scalar_with_one_value_is_a_condition() -> None:
    assert evaluate("1 if n - n + 2 == 2 else 0") == 1


def test_long_chains_need_no_stack() -> None:
    made = evaluate(" + ".join(["n"] * 20_000))
    assert isinstance(made, prim.Add)


def test_literals() -> None:
    from relaxlang.base.dtype import dtype

    assert comptime.literal(dtype("float32"), "-inf", None) == prim.FloatImm(dtype("float32"), float("-inf"))
    assert comptime.literal(dtype("uint64"), 2**64 - 1, None) == prim.IntImm(dtype("uint64"), 2**64 - 1)
    with pytest.raises(DiagnosticError):
        comptime.literal(dtype("int8"), 128, None)
