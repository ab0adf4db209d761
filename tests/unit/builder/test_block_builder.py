"""`BlockBuilder`: what it builds is well-formed, prints and parses to itself, and computes what numpy computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relaxlang
from relaxlang import BlockBuilder, op, te
from relaxlang.analysis.well_formed import well_formed
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.ir import relax
from relaxlang.ir.module import IRModule


def run(mod: IRModule, *args: Any) -> Any:
    """The result of `main`, compiled; the module must be in order and survive its text."""
    assert [d for d in well_formed(mod) if d.level == "error"] == []
    relaxlang.assert_structural_equal(relaxlang.parse(mod.script()), mod)
    return relaxlang.VirtualMachine(relaxlang.build(mod), relaxlang.cpu())["main"](*args)


def scaled(A: te.Tensor, factor: float) -> Any:
    return te.compute(A.shape, lambda *i: A(*i) * factor, name="scaled")


def test_dataflow_te_match_cast_and_tuples() -> None:
    bb = BlockBuilder()
    x = bb.var("x", 'R.Tensor((n, 8), "float32")')
    w = bb.var("w", 'R.Tensor((8, 3), "float32")')
    with bb.function("main", [x, w]):
        with bb.dataflow():
            h = bb.emit(op.add(op.matmul(x, w), np.ones(3, "float32")))
            h = bb.emit_te(scaled, bb.emit_te(scaled, h, 2.0), 2.0)
            y = bb.emit_output(op.nn.relu(h))
        known = bb.match_cast(op.unique(op.flatten(y)), 'R.Tensor((m,), "float32")')
        bb.emit_func_output([y, (known, bb.dim("m"))])
    mod = bb.finalize()
    assert [n for n, _ in mod.prim_funcs()] == ["scaled"]  # equal kernels are one
    a = np.arange(-20, 20, dtype="float32").reshape(5, 8)
    b = np.linspace(-1, 1, 24, dtype="float32").reshape(8, 3)
    got, (unique, length) = run(mod, a, b)
    want = np.maximum((a @ b + 1) * 4, 0)
    np.testing.assert_allclose(got, want, rtol=1e-5)
    assert length == len(unique)


def test_nested_expressions_are_bound_in_order_with_unique_names() -> None:
    bb = BlockBuilder()
    x = bb.var("gv", 'R.Tensor((2,), "float32")')
    with bb.function("main", [x]):
        last = bb.emit(op.add(op.exp(x), op.exp(x)))
        assert last.name == "gv3" and isinstance(bb.lookup_binding(last), relax.Call)
        bb.emit_func_output(last)
    assert str(bb.get()["main"].ret_struct_info) == 'R.Tensor((2,), "float32")'  # type: ignore[union-attr]
    np.testing.assert_allclose(run(bb.get(), np.zeros(2, "float32")), [2, 2])


def test_recursion_and_branches() -> None:
    bb = BlockBuilder()
    n = bb.var("n", 'R.Tensor((), "int64")')
    scalar = 'R.Tensor((), "int64")'
    with bb.function("main", [n], ret=scalar) as main:
        stop = bb.emit(op.less(n, relaxlang.const(1, "int64")))
        less = relax.Var("less", n.struct_info)
        rest = relax.Var("rest", n.struct_info)
        deeper = relax.seq_expr(
            [
                relax.VarBinding(less, op.subtract(n, relaxlang.const(1, "int64"))),
                relax.VarBinding(rest, relax.Call(main, (less,), struct_info=n.struct_info)),
            ],
            relax.Call(relax.Op("add"), (rest, n)),
        )
        found = bb.emit(relax.If(stop, relax.SeqExpr((), n), deeper))
        bb.emit_func_output(found)
    assert run(bb.get(), np.array(10)) == 55


def test_symbolic_scalars_and_shapes_reach_te() -> None:
    def ramp(shape: Any, first: Any) -> Any:
        return te.compute(shape, lambda i: te.cast(i + first, "float32"), name="ramp")

    bb = BlockBuilder()
    s = bb.var("s", "R.Shape([n])")
    k = bb.var("k", 'R.Prim(value="k")')
    with bb.function("main", [s, k]):
        bb.emit_func_output(bb.emit_te(ramp, s, k))
    np.testing.assert_array_equal(run(bb.get(), (4,), 10), np.arange(10, 14, dtype="float32"))


def test_functions_are_added_updated_and_named() -> None:
    bb = BlockBuilder(relaxlang.parse("@R.function\ndef f(x: R.Object):\n    return x\n"))
    assert bb.get_unique_name("f") == "f1"
    function = bb.get()["f"]
    assert bb.add_func(function, "f").name == "f1"
    assert bb.get()["f1"].attrs["global_symbol"] == "f1"  # type: ignore[union-attr]
    bb.update_func("f1", function.replace(is_pure=False))
    assert bb.get()["f1"].is_pure is False  # type: ignore[union-attr]


@pytest.mark.parametrize("misuse, code", [
    (lambda bb, x: bb.emit(x), "RLX0450"),
    (lambda bb, x: _in(bb, x, lambda: bb.emit_output(x)), "RLX0450"),
    (lambda bb, x: _in(bb, x, lambda: None), "RLX0450"),
    (lambda bb, x: _in(bb, x, lambda: bb.emit(object())), "RLX0451"),
    (lambda bb, x: _in(bb, x, lambda: bb.match_cast(x, "R.Shape([n])")), "RLX0220"),
    (lambda bb, x: _in(bb, x, lambda: bb.emit(op.add(x, relaxlang.const([1, 2, 3])))), "RLX0204"),
    (lambda bb, x: bb.var("y", "R.Tenso((n,))"), "RLX0103"),
])  # fmt: skip
def test_misuse_is_a_diagnostic(misuse: Any, code: str) -> None:
    bb = BlockBuilder()
    x = bb.var("x", 'R.Tensor((2,), "float32")')
    with pytest.raises(DiagnosticError) as caught:
        misuse(bb, x)
    assert caught.value.diagnostics[0].code == code


def _in(bb: BlockBuilder, x: relax.Var, body: Any) -> None:
    with bb.function("main", [x]):
        body()


def test_branches() -> None:
    bb = BlockBuilder()
    x, c = bb.var("x", 'R.Tensor((2,), "float32")'), bb.var("c", 'R.Tensor((), "bool")')
    with bb.function("main", [x, c]):
        with bb.sequence() as then:
            bb.emit_func_output(bb.emit(op.exp(x)))
        with bb.sequence() as orelse:
            bb.emit_func_output(bb.emit(op.negative(bb.emit(op.negative(x)))))
        bb.emit_func_output(bb.emit(relax.If(c, then[0], orelse[0])))
    data = np.array([0.0, 1.0], "float32")
    for flag, wanted in ((True, np.exp(data)), (False, data)):
        np.testing.assert_allclose(relaxlang.interpret(bb.get(), "main", data, np.array(flag)), wanted, rtol=1e-6)
