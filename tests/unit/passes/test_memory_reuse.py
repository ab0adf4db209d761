"""Views and calls in place: never what is alive, never what belongs to the caller."""

import pytest
from checking import array, assert_same, check, module

import relaxlang
from relaxlang import transform as tr
from relaxlang.interp import Interpreter
from relaxlang.ir import relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.visit import walk


def calls(mod: IRModule, op: str) -> int:
    """How many calls of an operator `main` has."""
    return sum(isinstance(n, relax.Call) and n.op == relax.Op(op) for n in walk(mod["main"]))


# --- in place ---------------------------------------------------------------------------------------------------------
def test_chain_in_place() -> None:
    made = check(
        """
        @R.function
        def main(x: R.Tensor((n, 4), "float32"), b: R.Tensor((4,), "float32")) -> R.Tensor((n, 4), "float32"):
            with R.dataflow():
                a = R.add(x, b)
                c = R.exp(a)
                d = R.multiply(c, x)
                e = R.nn.softmax(d)
                R.output(e)
            return e
        """,
        tr.DataflowUseInplaceCalls(),
        (array(3, 4), array(4)),
    )
    assert calls(made, "call_tir_inplace") == 2


def test_views_are_other_names() -> None:
    made = check(
        """
        @R.function
        def main(x: R.Tensor((5,), "float32")) -> R.Tensor((3, 5), "float32"):
            with R.dataflow():
                y = R.exp(x)
                upper = R.reshape(y, (1, 5))
                lower = R.expand_dims(y, axis=0)
                total = R.add(upper, lower)
                out = R.concat([lower, total, lower], axis=0)
                R.output(out)
            return out
        """,
        lambda m: tr.DataflowUseInplaceCalls()(m),
        (array(5),),
    )
    assert calls(made, "call_tir_inplace") == 0


@pytest.mark.parametrize("legal", [False, True])
def test_fields_branches_and_the_callers_memory(legal: bool) -> None:
    mod = module(
        """
        @R.function
        def main(c: R.Tensor((), "bool"), p: R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32"))) -> R.Tuple(
            R.Tensor((4,), "float32"), R.Tensor((4,), "float32"), R.Tensor((4,), "float32")
        ):
            with R.dataflow():
                first = p[0]
                a = R.exp(first)
                t = (a, first)
                b = R.negative(first)
                d = R.add(a, b)
                u = R.negative(R.const([1, 2, 3, 4], "float32"))
                R.output(t, d, u)
            if c:
                with R.dataflow():
                    e = R.exp(d)
                    f = R.exp(e)
                    R.output(f)
                r = f
            else:
                r = d
            with R.dataflow():
                g = R.add(r, u)
                h = t[0]
                R.output(g, h)
            return (g, h, d)
        """
    )
    if legal:
        mod = tr.LegalizeOps()(mod)
    pair = (array(4), array(4, seed=1))
    made = check(mod, tr.DataflowUseInplaceCalls(), (relaxlang.array(True), pair), (relaxlang.array(False), pair))
    # `b` dies in `d` (`a` lives on in `t`); `e` in `f`; `u` in the last sum.
    assert calls(made, "call_tir_inplace") == 3


def test_argument_twice() -> None:
    made = check(
        """
        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            with R.dataflow():
                a = R.exp(x)
                b = R.add(a, a)
                R.output(b)
            return b
        """,
        tr.DataflowUseInplaceCalls(),
        (array(4),),
    )
    assert calls(made, "call_tir_inplace") == 0


# --- views ------------------------------------------------------------------------------------------------------------
def test_symbolic_reshapes_become_views() -> None:
    mod = module(
        """
        @R.function
        def main(x: R.Tensor((n, 6), "float32")) -> R.Tuple(R.Tensor((n * 6,), "float32"), R.Tensor((n, 6), "float32")):
            with R.dataflow():
                a = R.reshape(x, (n, 2, 3))
                b = R.permute_dims(a, (0, 2, 1))
                c = R.reshape(b, (n * 6,))
                d = R.expand_dims(a, axis=1)
                e = R.squeeze(d, axis=1)
                f = R.reshape(e, (n, 6))
                g = R.flatten(R.exp(f))
                h = R.reshape(g, (n, 6))
                k = R.add(h, f)
                out = R.add(c, g)
                R.output(out, k)
            return (out, k)
        """
    )
    made = check(tr.LegalizeOps()(mod), tr.RewriteDataflowReshape(), (array(4, 6),), (array(1, 6),))
    assert calls(made, "call_pure_packed") == 7


def test_results_are_no_views_of_arguments() -> None:
    mod = module(
        """
        @R.function
        def main(x: R.Tensor((2, 3), "float32")) -> R.Tuple(R.Tensor((6,), "float32"), R.Tensor((3, 2), "float32")):
            with R.dataflow():
                a = R.reshape(x, (6,))
                b = R.reshape(x, (3, 2))
                t = (a, b)
                R.output(t)
            return t
        """
    )
    legal = tr.LegalizeOps()(mod)
    assert tr.RewriteDataflowReshape()(legal) is legal


def test_views_and_calls_in_place_together() -> None:
    mod = module(
        """
        @R.function
        def main(x: R.Tensor((n, 4), "float32")) -> R.Tensor((n * 4,), "float32"):
            with R.dataflow():
                a = R.exp(x)
                v = R.reshape(a, (n * 4,))
                b = R.negative(a)
                c = R.negative(v)
                d = R.reshape(b, (n * 4,))
                e = R.subtract(c, d)
                R.output(e)
            return e
        """
    )
    x = array(3, 4)
    want = Interpreter(mod).run("main", x)
    for order in ((tr.DataflowUseInplaceCalls(), tr.RewriteDataflowReshape()),
                  (tr.RewriteDataflowReshape(), tr.DataflowUseInplaceCalls())):  # fmt: skip
        made = tr.Sequential(order)(tr.LegalizeOps()(mod))
        assert_same(Interpreter(made, verify=True).run("main", x), want)
        assert calls(made, "call_tir_inplace") == 2


def test_later_passes_respect_calls_in_place() -> None:
    mod = module(
        """
        @R.function
        def main(x: R.Tensor((n, 4), "float32")):
            with R.dataflow():
                a = R.exp(x)
                k = R.negative(R.const([1, 2, 3, 4], "float32"))
                b = R.exp(x)
                early = R.multiply(a, x)
                c = R.add(a, x)
                d = R.add(b, c)
                late = R.add(early, d)
                m = R.add(k, R.const([1, 1, 1, 1], "float32"))
                out = R.add(late, m)
                R.output(out)
            return out
        """
    )
    x = array(3, 4)
    want = Interpreter(mod).run("main", x)
    made = tr.DataflowUseInplaceCalls()(mod)
    assert calls(made, "call_tir_inplace") >= 3
    for step in tr.pipeline("default").passes:
        made = step(made)
        assert_same(Interpreter(made).run("main", x), want)
