"""The Python API says what is wrong with an argument at its boundary: never an error from inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import relaxlang
from relaxlang import BlockBuilder, dpl, te
from relaxlang.base.arguments import checked
from relaxlang.base.diagnostics import DiagnosticError, RelaxlangError
from relaxlang.ir.module import IRModule
from relaxlang.ir.visit import Rewriter, Visitor

X = relaxlang.Var("x", 'R.Tensor((3, 4), "float32")')
ODD: list[Any] = [
    None, 0, -1, 2**70, 1.5, float("nan"), True, "x", "R.Tensor((", b"b", [], (), [1, "a"], {1: 2}, {"a": 1}, set(),
    object(), int, np.zeros((2, 0)), np.array(["s"]), np.int64(3), 3 + 4j, "\0", "\ud800", slice(None), X,
    te.var("n"), dpl.wildcard(),
]  # fmt: skip


def built(step: Callable[[BlockBuilder], Any]) -> None:
    bb = BlockBuilder()
    with bb.function("main", [X]):
        step(bb)
        bb.emit_func_output(X)


CALLS: dict[str, Callable[[Any], Any]] = {
    "BlockBuilder": lambda v: BlockBuilder(v),
    "emit": lambda v: built(lambda bb: bb.emit(v)),
    "emit name": lambda v: built(lambda bb: bb.emit(X, v)),
    "match_cast": lambda v: built(lambda bb: bb.match_cast(X, v)),
    "emit_func_output": lambda v: built(lambda bb: bb.emit_func_output(v)),
    "emit_func_output params": lambda v: built(lambda bb: bb.emit_func_output(X, v)),
    "call_te": lambda v: built(lambda bb: bb.call_te(v)),
    "add_func": lambda v: BlockBuilder().add_func(v, "f"),
    "update_func": lambda v: BlockBuilder().update_func(v, v),
    "var": lambda v: BlockBuilder().var("x", v),
    "dim": lambda v: BlockBuilder().dim(v),
    "function": lambda v: BlockBuilder().function(v).__enter__(),
    "function params": lambda v: BlockBuilder().function("f", v).__enter__(),
    "const": lambda v: relaxlang.const(v),
    "const dtype": lambda v: relaxlang.const(1, v),
    "const wide": lambda v: relaxlang.const(v, "float32"),
    "struct_info": lambda v: relaxlang.struct_info(v),
    "IRModule": lambda v: IRModule(v),
    "parse": lambda v: relaxlang.parse(v),
    "parse values": lambda v: relaxlang.parse("", values=v),
    "parse roots": lambda v: relaxlang.parse("", roots=v),
    "load": lambda v: relaxlang.load(v),
    "load_module": lambda v: relaxlang.load_module(v),
    "interpret": lambda v: relaxlang.interpret(IRModule({}), v),
    "build": lambda v: relaxlang.build(IRModule({}), params=v),
    "lower": lambda v: relaxlang.lower(IRModule({}), context=v),
    "get_global_func": lambda v: relaxlang.get_global_func(v),
    "placeholder": lambda v: te.placeholder(v),
    "compute": lambda v: te.compute(v, lambda *i: 1.0),
    "compute function": lambda v: te.compute((3,), v),
    "te.exp": lambda v: te.exp(v),
    "te.Select": lambda v: te.Select(v, v),
    "reduce_axis": lambda v: te.reduce_axis(v),
    "create_prim_func": lambda v: te.create_prim_func(v),
    "is_op": lambda v: dpl.is_op(v),
    "is_tuple": lambda v: dpl.is_tuple(v),
    "has_shape": lambda v: dpl.wildcard().has_shape(v),
    "pattern call": lambda v: dpl.wildcard()(v),
    "rewrite_call": lambda v: dpl.rewrite_call(v, v, v),
    "read_rules": lambda v: dpl.read_rules(v),
    "Schedule": lambda v: relaxlang.Schedule(v),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_odd_arguments_are_refused_or_taken(name: str) -> None:
    for value in ODD:
        try:
            CALLS[name](value)
        except RelaxlangError as error:
            assert str(error)


def test_the_message_names_parameter_and_kinds() -> None:
    with pytest.raises(DiagnosticError) as caught:
        BlockBuilder().function("main", [X, 3])  # type: ignore[list-item]
    (found,) = caught.value.diagnostics
    assert found.code == "RLX0454"
    assert found.message == (
        "`params` of `BlockBuilder.function` takes `Sequence[relax.Var] | None`, not `list[Var, int]`"
    )


def test_missing_arguments_are_pythons_own_error() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        BlockBuilder().var()  # type: ignore[call-arg]


@checked
def _example(a: int, *rest: str, b: dict[str, float] | None = None, c: tuple[int, ...] = ()) -> int:
    return a


@pytest.mark.parametrize(
    ("args", "kwargs", "fits"),
    [
        ((1,), {}, True), ((np.int32(1),), {}, True), (("1",), {}, False), ((1.0,), {}, False),
        ((1, "a", "b"), {}, True), ((1, "a", 2), {}, False),
        ((1,), {"b": {"x": 1}}, True), ((1,), {"b": {"x": "1"}}, False), ((1,), {"b": []}, False),
        ((1,), {"c": (1, 2)}, True), ((1,), {"c": [1, 2]}, False), ((1,), {"c": (1, "2")}, False),
    ],
)  # fmt: skip
def test_what_annotations_accept(args: tuple[Any, ...], kwargs: dict[str, Any], fits: bool) -> None:
    if fits:
        assert _example(*args, **kwargs) == args[0]
    else:
        with pytest.raises(DiagnosticError, match="RLX0454"):
            _example(*args, **kwargs)


def test_visitors_start_from_nodes() -> None:
    for start in (Visitor(), Rewriter()):
        for value in (None, "x", IRModule({}), []):
            with pytest.raises(TypeError, match="walked through from one of its nodes"):
                start(value)
