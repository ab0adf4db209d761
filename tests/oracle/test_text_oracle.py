"""Text against apache-tvm, both ways: its prints are read here, ours are read there, and they mean the same.

Programs come from TVM's builders (`tvm_programs`) and from relaxlang's examples and random modules. Nothing is compared
by looking at our own output alone: TVM's structural equality judges what TVM reads.
"""

from __future__ import annotations

import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))
import relaxlang
from relaxlang.ir import relax, tir
from relaxlang.ir.module import IRModule
from relaxlang.ir.structural import assert_structural_equal
from relaxlang.ir.visit import walk

pytestmark = pytest.mark.extra("tvm")
DIALECT = "tvm-0.27"
UNREADABLE = ("explicit_memory", "scalars")
"""Programs of which TVM 0.27 does not read its own print: `ty_args` on allocations, `I.StringType()`."""
EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.rlx"))

if find_spec("tvm") is not None:
    from tests.oracle.tvm_programs import PROGRAMS
else:
    PROGRAMS = {}


def read_by_tvm(text: str) -> Any:
    """The `tvm.IRModule` that a text states."""
    from tvm.script import from_source

    return from_source(text)


def equal_in_tvm(a: Any, b: Any) -> None:
    """TVM's own structural equality."""
    import tvm

    tvm.ir.assert_structural_equal(a, b, map_free_vars=True)


# --- what a program consists of, seen through either API --------------------------------------------------------------
def our_census(mod: IRModule) -> Counter[str]:
    """How many loops, blocks, stores, bindings, … a module has."""
    found: Counter[str] = Counter(list(mod.functions))
    names: dict[type, str] = {
        tir.For: "For", tir.Block: "Block", tir.BufferStore: "BufferStore", tir.IfThenElse: "IfThenElse",
        tir.While: "While", relax.VarBinding: "VarBinding", relax.MatchCast: "MatchCast",
        relax.DataflowBlock: "DataflowBlock", relax.If: "If",
    }  # fmt: skip
    for function in mod.functions.values():
        for node in walk(function):
            if node.__class__ in names:
                found[names[node.__class__]] += 1
            elif isinstance(node, relax.Call) and isinstance(node.op, relax.Op):
                found[f"relax.{node.op.name}"] += 1
    return found


def their_census(mod: Any) -> Counter[str]:
    """The same counts of a `tvm.IRModule`."""
    from tvm import relax as rx
    from tvm import tirx

    found: Counter[str] = Counter(var.name_hint for var in mod.functions)
    names = {
        "SBlock": "Block",
        "For": "For",
        "BufferStore": "BufferStore",
        "IfThenElse": "IfThenElse",
        "While": "While",
    }

    def statement(node: Any) -> None:
        name = names.get(type(node).__name__)
        if name is not None:
            found[name] += 1
        inner = [getattr(node, part, None) for part in ("block", "init", "body", "then_case", "else_case")]
        for child in [*inner, *(getattr(node, "seq", None) or ())]:
            if child is not None:
                statement(child)

    @rx.expr_functor.visitor
    class Bindings(rx.PyExprVisitor):  # type: ignore[misc, name-defined]
        def visit_var_binding_(self, binding: Any) -> None:
            found["VarBinding"] += 1
            super().visit_var_binding_(binding)

        def visit_match_cast_(self, binding: Any) -> None:
            found["MatchCast"] += 1
            super().visit_match_cast_(binding)

        def visit_dataflow_block_(self, block: Any) -> None:
            found["DataflowBlock"] += 1
            super().visit_dataflow_block_(block)

        def visit_call_(self, call: Any) -> None:
            name = getattr(call.op, "name", "")
            if name.startswith("relax."):
                found[name] += 1
            super().visit_call_(call)

    for function in mod.functions.values():
        if isinstance(function, tirx.PrimFunc):
            statement(function.body)
        elif isinstance(function, rx.Function):
            Bindings().visit_expr(function)
    return found


# --- TVM's programs ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_tvm(name: str) -> None:
    theirs = PROGRAMS[name]()
    text = theirs.script()
    ours = relaxlang.parse(text, f"{name}.py")
    assert our_census(ours) == their_census(theirs)
    assert_structural_equal(relaxlang.parse(ours.script()), ours)

    again = read_by_tvm(ours.script(dialect=DIALECT))
    if name not in UNREADABLE:
        equal_in_tvm(again, read_by_tvm(text))
    assert_structural_equal(relaxlang.parse(again.script()), ours)


@pytest.mark.parametrize("name", PROGRAMS)
def test_printed_text_agrees(name: str) -> None:
    """Both roads to TVM's canonical text: its own print, and its print of what it read from ours."""
    if name in UNREADABLE:
        pytest.skip("TVM does not read its own print of it")
    text = PROGRAMS[name]().script()
    again = read_by_tvm(relaxlang.parse(text).script(dialect=DIALECT))
    assert again.script() == text


# --- our programs -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples(path: Path) -> None:
    """TVM reads our print; its own print of that is read here and printed again as what is the same program to TVM."""
    ours = relaxlang.load(path)
    theirs = read_by_tvm(ours.script(dialect=DIALECT))
    assert our_census(ours) == their_census(theirs)
    again = relaxlang.parse(theirs.script())
    equal_in_tvm(read_by_tvm(again.script(dialect=DIALECT)), theirs)
