"""Operators whose result has a length that depends on the data: a kernel, then a packed call that cuts its output."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relaxlang
from relaxlang.interp import Interpreter

TEXT = '''
@R.op("my.positive")
def positive(x: R.Tensor((N,), D), index: bool = False) -> R.Tuple(
    R.Tensor(dtype=D, ndim=1), R.Tensor(dtype="int64", ndim=1)
) if index else R.Tensor(dtype=D, ndim=1):
    """The elements above 0, and where they are."""

    @T.prim_func
    def positive(
        X: T.Buffer((N,), D), values: T.Buffer((N,), D), places: T.Buffer((N,), "int64"), count: T.Buffer((1,), "int64")
    ):
        count[0] = T.int64(0)
        for i in range(N):
            if X[i] > T.Cast(D, 0):
                values[count[0]] = X[i]
                places[count[0]] = i
                count[0] = count[0] + T.int64(1)

    P = R.Tensor((N,), "int64")
    values, places, count = R.call_tir(positive, (x,), R.Tuple(R.Tensor((N,), D), P, R.Tensor((1,), "int64")))
    info = R.Tensor(dtype=D, ndim=1)
    if not index:
        return R.call_pure_packed("relax.run.trim", values, count, sinfo_args=info)
    infos = R.Tuple(info, R.Tensor(dtype="int64", ndim=1))
    return R.call_pure_packed("relax.run.trim", values, count, places, count, sinfo_args=infos)


@R.function
def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(ndim=1, dtype="float32")):
    with R.dataflow():
        twice = R.add(x, x)
        some = R.my.positive(twice)
        both = R.my.positive(y, index=True)
        more = R.negative(some)
        R.output(both, more)
    return (more, both)
'''
X = np.array([1, -2, 3, 0, 5], "float32")


def check(run: Any) -> None:
    more, (values, places) = run(X, X[:3])
    assert np.asarray(more).tolist() == [-2, -6, -10]
    assert np.asarray(values).tolist() == [1, 3] and np.asarray(places).tolist() == [0, 2]
    more, (values, _) = run(X[:0], -X[:1])
    assert np.shape(more) == (0,) and np.shape(values) == (0,)


@pytest.mark.parametrize("pipeline", ["default", "minimum"])
@pytest.mark.parametrize("mode", ["native", "bytecode"])
def test_it_runs_compiled(pipeline: str, mode: str) -> None:
    built = relaxlang.build(relaxlang.parse(TEXT), pipeline=pipeline)
    check(relaxlang.VirtualMachine(built, relaxlang.cpu(), exec_mode=mode)["main"])


def test_the_interpreter_runs_it() -> None:
    mod = relaxlang.parse(TEXT)
    check(Interpreter(mod)["main"])
    lowered = relaxlang.transform.LegalizeOps()(mod)
    assert "R.my.positive" not in lowered.script() and "cls.positive" in lowered.script()
    check(Interpreter(lowered)["main"])
    assert relaxlang.parse(lowered.script()).script() == lowered.script()


def test_constants_are_not_folded_wrongly() -> None:
    text = TEXT.split("@R.function")[0] + (
        "@R.function\ndef main():\n    y = R.my.positive(R.const([1.0, -1.0, 2.0], 'float32'))\n    return y\n"
    )
    run = relaxlang.VirtualMachine(relaxlang.build(relaxlang.parse(text)), relaxlang.cpu())["main"]
    assert np.asarray(run()).tolist() == [1, 2]
