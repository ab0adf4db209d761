"""Walks: what a rewriter enters, and what it leaves as it is."""

from __future__ import annotations

import re
from typing import Any

import pytest

from relaxlang.ir import prim, relax, tir
from relaxlang.ir.attrs import Attrs
from relaxlang.ir.prim import INT64, IntImm, Var
from relaxlang.ir.struct_info import OBJECT, TupleStructInfo, tensor_info
from relaxlang.ir.visit import WITHOUT_STATEMENTS, Rewriter, Visitor, children, on, substitute, walk

N = Var("n", INT64)
STATIC = tensor_info((IntImm(INT64, 2), IntImm(INT64, 3)))
DYNAMIC = tensor_info((N, IntImm(INT64, 3)))


class Doubled(Rewriter):
    @on(IntImm)
    def number(self, node: IntImm) -> IntImm:
        return IntImm(node.of, 2 * node.value)


def test_what_is_built_of_numbers_is_ground() -> None:
    assert STATIC.ground and OBJECT.ground and TupleStructInfo((STATIC, OBJECT)).ground and IntImm(INT64, 1).ground
    assert not DYNAMIC.ground and not TupleStructInfo((STATIC, DYNAMIC)).ground and not N.ground


def test_numbers_are_met_by_a_rewriter_that_asks_for_them() -> None:
    call = relax.Call(relax.Op("f"), (), Attrs({"k": IntImm(INT64, 4)}), (STATIC, DYNAMIC), STATIC)
    made = Doubled()(call)
    assert [d.value for d in made.sinfo_args[0].shape] == [4, 6] and made.attrs["k"].value == 8
    assert made.sinfo_args[1].shape[0] is N and made.struct_info.shape[1].value == 6


def test_variables_are_met_beside_what_is_ground() -> None:
    call = relax.Call(relax.Op("f"), (), sinfo_args=(STATIC, DYNAMIC))
    made = substitute(call, {N: IntImm(INT64, 5)})
    assert made.sinfo_args[0] is STATIC and made.sinfo_args[1].shape[0].value == 5
    assert substitute(call, {Var("m", INT64): N}) is call


def test_children_stand_in_order_of_fields() -> None:
    a, b = Var("a"), Var("b")
    loop = tir.For(a, IntImm(INT64, 0), b, "serial", tir.Evaluate(a), {"note": b, "plain": 3})
    assert children(loop)[:4] == [a, loop.min, b, loop.body] and children(loop)[4] is b
    assert [type(n).__name__ for n in walk(loop)][:5] == ["For", "Var", "IntImm", "Var", "Evaluate"]


@pytest.mark.parametrize("value", ["text", 3, None, {}])
def test_walks_begin_at_nodes(value: Any) -> None:
    with pytest.raises(TypeError, match="is walked through from one of its nodes"):
        children(value)


def test_classes_that_hold_no_nodes_have_no_parts() -> None:
    assert prim.IntImm.PARTS == () and tir.For.PARTS[:3] == ("loop_var", "min", "extent")


# --- what is not entered ----------------------------------------------------------------------------------------------
def _store(value: prim.PrimExpr) -> tir.BufferStore:
    return tir.BufferStore(tir.Buffer("A", (IntImm(INT64, 4),), prim.FLOAT32, Var("A", prim.HANDLE)), value, (N,))


class Serial(Rewriter):
    """Has a method for statements alone, and notes what it enters."""

    def __init__(self) -> None:
        self.entered: list[type] = []

    @on(tir.For)
    def loop(self, node: tir.For) -> tir.Stmt:
        return self.below(node).replace(kind="serial")

    def below(self, node: Any) -> Any:
        self.entered.append(type(node))
        return super().below(node)


def test_a_rewriter_of_statements_does_not_enter_expressions() -> None:
    loop = tir.For(N, IntImm(INT64, 0), N + 1, "unroll", tir.seq(_store(N * 2), _store(N * 3)))
    rewriter = Serial()
    made = rewriter(tir.IfThenElse(prim.LT(N, N + 1), loop))
    assert made.then_case.kind == "serial" and made.then_case.body is loop.body
    assert rewriter.entered == [tir.IfThenElse, tir.For, tir.SeqStmt]


def test_below_what_is_without_statements_there_are_none() -> None:
    classes = [cls for module in (prim, tir) for cls in vars(module).values() if isinstance(cls, type)]
    statements = {cls.__name__ for cls in classes if issubclass(cls, tir.Stmt)}
    for cls in classes:
        if issubclass(cls, WITHOUT_STATEMENTS):
            named = re.findall(r"\w+", " ".join(cls.__dict__.get("__annotations__", {}).values()))
            assert not {"object", "Any", "Node", *statements}.intersection(named), cls


class Names(Visitor):
    """Collects variables in the order in which it meets them."""

    def __init__(self) -> None:
        self.met: list[str] = []

    @on(Var)
    def var(self, node: Var) -> None:
        self.met.append(node.name)


def test_a_visitor_goes_through_tuples_and_mappings_in_order() -> None:
    a, b, c = Var("a"), Var("b"), Var("c")
    names = Names()
    names(tir.For(a, b, c, "serial", _store(c + a), {"note": b, "some": (a, 1)}))
    assert names.met == ["a", "b", "c", "c", "a", "n", "b", "a"]


def test_what_did_not_change_is_the_same_object() -> None:
    a, b = Var("a"), Var("b")
    body = tir.seq(_store(a), _store(b))
    made = substitute(body, {a: IntImm(prim.INT32, 1)})
    assert isinstance(made, tir.SeqStmt) and made.seq[0] is not body.seq[0] and made.seq[1] is body.seq[1]
