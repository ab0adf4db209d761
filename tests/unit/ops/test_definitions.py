"""Operators of one's own: what a definition may say, what is refused, how it runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relaxlang.base.diagnostics import DiagnosticError, Diagnostics
from relaxlang.base.dtype import from_numpy
from relaxlang.base.source import Source
from relaxlang.interp import Interpreter
from relaxlang.ir import prim, relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.prim import INT64
from relaxlang.ir.struct_info import tensor_info
from relaxlang.ops import Operators, default_operators
from relaxlang.syntax.parser import parse_surface


def table(text: str) -> Operators:
    """The standard operators and those of a text."""
    diagnostics = Diagnostics()
    body = parse_surface(Source("own.rlx", text), diagnostics).body
    diagnostics.check()
    return default_operators().extended(body)


def run(operators: Operators, name: str, *arrays: np.ndarray[Any, Any], **attrs: Any) -> Any:
    """The result of a call, by the reference interpreter."""
    params = [
        relax.Var(f"x{k}", tensor_info(tuple(prim.IntImm(INT64, n) for n in a.shape), from_numpy(a.dtype)))
        for k, a in enumerate(arrays)
    ]
    call = operators.make_call(name, list(params), attrs, None)
    out = relax.Var("out", operators.infer(call))
    body = relax.seq_expr([relax.VarBinding(out, call.replace(struct_info=out.struct_info))], out)
    main = relax.Function(tuple(params), body, out.struct_info)
    return Interpreter(IRModule({"main": main}), operators.lower).run("main", *arrays)


OWN = '''
def half(D):
    return T.cast(0.5, D)


@R.op("my.scaled")
def scaled(x: R.Tensor(S, D), by: float = 2.0) -> R.Tensor(S, D):
    """relu(x) * by / 2, with another operator inlined."""
    y = R.nn.relu(x)
    return T.compute(S, lambda *i: y[*i] * T.cast(by, D) * half(D))


@R.op("my.both")
def both(x: R.Tensor((N, M), D)) -> R.Tuple([R.Tensor((M,), D), R.Tensor((N,), D)]):
    """Sums over both axes; two results of one kernel."""
    k, r = T.reduce_axis(N), T.reduce_axis(M)
    return (T.compute((M,), lambda j: T.sum(x[k, j], axis=k)), T.compute((N,), lambda i: T.sum(x[i, r], axis=r)))


@R.op("my.second_largest")
def second_largest(x: R.Tensor((N,), D)) -> R.Tensor((), D):
    """With a reducer of two values."""
    assert N >= 2, "at least 2 elements are needed, not {}".format(N)
    k = T.reduce_axis(N)
    top = T.comm_reducer(
        lambda a, b, c, d: (T.max(a, c), T.max(T.min(a, c), T.max(b, d))), (lowest(D), lowest(D)))
    found = T.compute((), lambda: top(x[k], lowest(D), axis=k))
    return found[1]


@R.op("my.history")
def history(x: R.Tensor((*B, N), D)) -> R.Tensor((*B, N), D):
    """A TensorIR function inside, for any number of leading dimensions."""
    @T.prim_func
    def steps(X: T.Buffer((*B, N), D), Y: T.Buffer((*B, N), D)):
        for *b, j in T.grid(*B, N):
            Y[*b, j] = X[*b, j]
            if j > 0:
                Y[*b, j] = Y[*b, j] + Y[*b, j - 1] * half(D)

    return R.call_tir(steps, (x,), R.Tensor((*B, N), D))
'''


def test_operators_of_ones_own_run() -> None:
    operators = table(OWN)
    x = np.array([[-1.0, 2.0, 3.0], [4.0, -5.0, 6.0]], "float32")
    np.testing.assert_allclose(run(operators, "my.scaled", x, by=3.0), np.maximum(x, 0) * 1.5)
    columns, rows = run(operators, "my.both", x)
    np.testing.assert_allclose(columns, x.sum(0))
    np.testing.assert_allclose(rows, x.sum(1))
    assert run(operators, "my.second_largest", x[1]) == 4.0
    want = x.copy()
    for j in (1, 2):
        want[:, j] += want[:, j - 1] / 2
    np.testing.assert_allclose(run(operators, "my.history", x), want)


def test_an_assertion_of_ones_own_is_a_diagnostic() -> None:
    with pytest.raises(DiagnosticError, match="at least 2 elements are needed, not 1"):
        run(table(OWN), "my.second_largest", np.zeros(1, "float32"))


def test_the_table_knows_names_and_prefixes() -> None:
    operators = table(OWN)
    assert operators.has("my") and operators.has("my.both") and not operators.has("my.b")
    assert operators.is_pure("my.both") and not operators.is_pure("print")
    assert operators.sugar("@") == "matmul" and operators.sugar("?") is None
    assert "my.both" in operators.names() and "nn.relu" in operators.names()


FAULTS = {
    "RLX0131": "@R.op\ndef f(x: R.Tensor(S, D)):\n    return x\n",
    "RLX0132": "@R.op\ndef f(a: int, x: R.Tensor(S, D)) -> R.Tensor(S, D):\n    return x\n",
    "RLX0133": "@R.op\ndef f(x) -> R.Tensor(S, D):\n    return x\n",
    "RLX0130": "@R.op(name='f')\ndef f(x: R.Tensor(S, D)) -> R.Tensor(S, D):\n    return x\n",
}


@pytest.mark.parametrize("code", FAULTS)
def test_definitions_that_are_not_well_made(code: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        table(FAULTS[code])
    assert caught.value.diagnostics[0].code == code


BODIES = {
    "RLX0134": "    while True:\n        pass\n    return x",
    "RLX0135": "    return T.compute(S, lambda i, j, k: x[i, j])",
    "RLX0136": "    return T.compute(S, lambda *i: 'text')",
    "RLX0138": "    return T.compute(S, lambda *i: T.sum(x[*i], axis=3))",
    "RLX0139": "    return 3",
    "RLX0140": "    return R.call_tir(x, (x,), R.Tensor(S, D))",
    "RLX0301": "    return T.compute(S, lambda *i: x[0])",
    "RLX0302": "    return T.compute(S, lambda *i: x[0, 1.5])",
    "RLX0101": "    return T.compute(S, lambda *i: y[*i])",
}


@pytest.mark.parametrize("code", BODIES)
def test_bodies_that_are_not_well_made(code: str) -> None:
    operators = table(f"@R.op\ndef f(x: R.Tensor(S, D)) -> R.Tensor(S, D):\n{BODIES[code]}\n")
    with pytest.raises(DiagnosticError) as caught:
        run(operators, "f", np.zeros((2, 3), "float32"))
    assert caught.value.diagnostics[0].code == code


def test_faults_of_a_nested_kernel_are_all_reported() -> None:
    body = """
    @T.prim_func
    def k(X: T.Buffer(S, D), Y: T.Buffer(S, D)):
        for i, j in T.grid(*S):
            Y[i, j] = Z[i, j]
            Y[i] = X[i, j]

    return R.call_tir(k, (x,), R.Tensor(S, D))
"""
    operators = table(f"@R.op\ndef f(x: R.Tensor(S, D)) -> R.Tensor(S, D):{body}")
    with pytest.raises(DiagnosticError) as caught:
        run(operators, "f", np.zeros((2, 3), "float32"))
    assert [d.code for d in caught.value.diagnostics] == ["RLX0101", "RLX0301"]


def test_compile_time_recursion_ends_in_a_diagnostic() -> None:
    operators = table(
        "def g(n):\n    return g(n + 1)\n\n@R.op\ndef f(x: R.Tensor(S, D)) -> R.Tensor(S, D):\n    return g(0)\n"
    )
    with pytest.raises(DiagnosticError, match="more than 100 deep"):
        run(operators, "f", np.zeros((2, 3), "float32"))


@pytest.mark.parametrize(
    ("stated", "body", "code"),
    [
        ("R.Tensor((N, 3), D)", "return x", "RLX0186"),
        ("R.Tensor((N, 6), 'float16')", "return x", "RLX0186"),
        ("R.Tensor((N,), D)", "return x", "RLX0186"),
        ("R.Tuple([R.Tensor((N, 6), D)])", "return x", "RLX0186"),
        ("R.Tensor((N,), D)", "return T.compute((N,), lambda i: T.sum(x[i, 0]))", "RLX0138"),
        ("R.Tensor((N,), D)", "return T.compute((N,), lambda i: T.sum(x[i, k], axis=k) + T.cast(1, D))", "RLX0136"),
        ("R.Tensor((N,), D)", "return T.compute((N,), lambda i: x[i, k])", "RLX0136"),
        ("R.Tensor((N, 6), D)", "return T.compute((N, 6), lambda i, j: T.sqroot(x[i, j]))", "RLX0102"),
    ],
)
def test_what_a_body_makes(stated: str, body: str, code: str) -> None:
    text = f"@R.op('my.f')\ndef f(x: R.Tensor((N, 6), D)) -> {stated}:\n    k = T.reduce_axis(6)\n    {body}\n"
    with pytest.raises(DiagnosticError) as caught:
        run(table(text), "my.f", np.zeros((2, 6), "float32"))
    (found,) = caught.value.diagnostics
    assert found.code == code and "R.my.f" in found.message
    assert found.span is not None and found.span.source.name == "own.rlx"


def test_one_name_is_defined_once() -> None:
    text = "@R.op('my.f')\ndef f(x: R.Tensor(S, D)) -> R.Tensor(S, D):\n    return x\n"
    with pytest.raises(DiagnosticError, match=r"`my\.f` is defined twice"):
        table(text + text)
