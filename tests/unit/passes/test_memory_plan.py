"""Memory planning: values on random programs, and storages where they can be foreseen."""

import random

import numpy as np
import pytest
from checking import array, assert_same, check, in_order, module

import relaxlang
from relaxlang import transform as tr
from relaxlang.analysis.memory import memory_use
from relaxlang.interp import Interpreter
from relaxlang.ir import relax
from relaxlang.ir.module import IRModule
from relaxlang.ir.visit import walk

LOWERED = tr.Sequential((tr.LegalizeOps(), tr.RewriteDataflowReshape(), tr.ToNonDataflow(), tr.CallTIRRewrite()))


def lowered(text: str) -> IRModule:
    """A module with explicit allocations."""
    made: IRModule = LOWERED(module(text))
    return made


def count(mod: IRModule, op: str) -> int:
    """How many calls of an operator there are in `main`."""
    return sum(isinstance(n, relax.Call) and n.op == relax.Op(op) for n in walk(mod["main"]))


def run(mod: IRModule, *args: object) -> object:
    """The result of compiled code."""
    return relaxlang.VirtualMachine(relaxlang.build(mod, pipeline="minimum"), relaxlang.cpu())["main"](*args)


CHAIN = """
    @R.function
    def main(x: R.Tensor((n, 4), "float32"), y: R.Tensor((n, m), "float32")) -> R.Tensor((n, 4), "float32"):
        a = R.exp(x)
        b = R.negative(a)
        c = R.permute_dims(b)
        d = R.sum(c, axis=[0])
        e = R.add(R.exp(y), R.expand_dims(d, 1))
        f = R.sum(e, axis=[1])
        g = R.add(x, R.expand_dims(f, 1))
        return g
    """


def test_symbolic_sizes_are_shared_where_proved() -> None:
    mod = lowered(CHAIN)
    made = check(mod, tr.StaticPlanBlockMemory(), (array(3, 4), array(3, 5)), (array(1, 4), array(1, 1)))
    assert_same(run(made, array(3, 4), array(3, 5)), Interpreter(mod).run("main", array(3, 4), array(3, 5)))
    # n * 4 twice, n * m once or twice; d and f fit where n * 4 was.
    assert count(made, "memory.alloc_storage") <= 4
    before, after = (memory_use(m, dims={"n": 100, "m": 50}) for m in (mod, made))
    assert after.allocated < before.allocated and after.peak <= before.allocated


def test_upper_bounds_make_sizes_known() -> None:
    text = CHAIN.replace(") -> R.Tensor", ") -> R.Tensor").replace(
        "        a = R.exp(x)", '        R.func_attr({"tir_var_upper_bound": {"n": 64, "m": 32}})\n        a = R.exp(x)'
    )
    made = check(lowered(text), tr.StaticPlanBlockMemory(), (array(3, 4), array(3, 5)))
    storages = [n for n in walk(made["main"]) if isinstance(n, relax.Call) and n.op == relax.Op("memory.alloc_storage")]
    assert all("uint8" in str(s.args[3]) for s in storages) and len(storages) <= 4


def test_lower_bounds_prove_nothing() -> None:
    text = CHAIN.replace(
        "        a = R.exp(x)", '        R.func_attr({"tir_var_lower_bound": {"n": 2, "m": 9}})\n        a = R.exp(x)'
    )
    check(lowered(text), tr.StaticPlanBlockMemory(), (array(300, 4), array(300, 9)))


def test_what_leaves_keeps_its_own_memory() -> None:
    mod = lowered(
        """
        @R.function
        def main(c: R.Tensor((), "bool"), x: R.Tensor((4,), "float32")):
            a = R.exp(x)
            if c:
                b = R.negative(a)
                d = R.exp(b)
                t = (d, a)
            else:
                e = R.exp(a)
                t = (e, x)
            f = t[0]
            g = R.add(f, x)
            h = R.add(g, g)
            return (t, h)
        """
    )
    inputs = [(relaxlang.array(c), array(4)) for c in (True, False)]
    made = check(mod, lambda m: tr.KillAfterLastUse()(tr.StaticPlanBlockMemory()(m)), *inputs)
    for args in inputs:
        assert_same(run(made, *args), Interpreter(mod).run("main", *args))
    assert count(made, "builtin.alloc_tensor") >= 3


def test_closures_keep_what_they_captured() -> None:
    mod = lowered(
        """
        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            a = R.exp(x)
            @R.function
            def inner(y: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
                z = R.add(y, a)
                w = R.exp(z)
                return w
            b = R.negative(x)
            c = R.negative(b)
            d = R.negative(c)
            e = inner(d)
            return e
        """
    )
    made = check(mod, lambda m: tr.KillAfterLastUse()(tr.StaticPlanBlockMemory()(m)), (array(4),))
    assert_same(run(made, array(4)), Interpreter(mod).run("main", array(4)))


def test_kills_follow_the_last_use_under_any_name() -> None:
    mod = lowered(
        """
        @R.function
        def main(x: R.Tensor((n, 6), "float32")) -> R.Tensor((n, 6), "float32"):
            with R.dataflow():
                a = R.exp(x)
                v = R.reshape(a, (n, 2, 3))
                b = R.negative(x)
                w = R.sum(v, axis=[1])
                c = R.add(R.reshape(R.concat([w, w], axis=1), (n, 6)), b)
                R.output(c)
            return c
        """
    )
    made = check(mod, lambda m: tr.KillAfterLastUse()(tr.StaticPlanBlockMemory()(m)), (array(2, 6),))
    assert_same(run(made, array(2, 6)), Interpreter(mod).run("main", array(2, 6)))
    names = [str(b.var.name) for block in _body(made).blocks for b in block.bindings]
    assert count(made, "memory.kill_tensor") >= 4 and names


def _body(mod: IRModule) -> relax.SeqExpr:
    main = mod["main"]
    assert isinstance(main, relax.Function)
    return main.body


# --- random programs --------------------------------------------------------------------------------------------------
SHAPES = ("(n, 4)", "(4, n)", "(n * 4,)", "(n, 2, 2)", "(4,)", "(n,)")


def program(rng: random.Random, length: int) -> str:
    """A random program over tensors of a few shapes: kernels, views, tuples, a branch."""
    lines: list[str] = []
    there: dict[str, list[str]] = {s: [] for s in SHAPES}
    there["(n, 4)"].append("x")

    def new(shape: str, value: str) -> None:
        name = f"v{len(lines)}"
        lines.append(f"{name} = {value}")
        there[shape].append(name)

    def some() -> tuple[str, str]:
        shape = rng.choice([s for s, names in there.items() if names])
        return shape, rng.choice(there[shape][-4:])

    for _ in range(length):
        shape, a = some()
        kind = rng.random()
        if kind < 0.3:
            new(shape, f"R.{rng.choice(['negative', 'nn.relu', 'tanh'])}({a})")
        elif kind < 0.5:
            new(shape, f"R.add({a}, {rng.choice(there[shape])})")
        elif kind < 0.75 and shape not in ("(4,)", "(n,)"):
            to = rng.choice(SHAPES[:4])
            new(to, f"R.reshape({a}, {to})")
        elif kind < 0.85 and shape in ("(n, 4)", "(4, n)"):
            axis = 0 if shape == "(n, 4)" else 1
            new("(4,)", f"R.sum({a}, axis=[{axis}])")
            new("(n,)", f"R.max({a}, axis=[{1 - axis}])")
        else:
            pair = f"t{len(lines)}"
            lines.append(f"{pair} = ({a}, x)")
            new(shape, f"{pair}[0]")
    results = [some()[1] for _ in range(3)]
    inside = "\n".join(f"                {line}" for line in lines)
    used = ", ".join(dict.fromkeys(r for r in results if r != "x")) or "v0"
    return f"""
        @R.function
        def main(c: R.Tensor((), "bool"), x: R.Tensor((n, 4), "float32")):
            with R.dataflow():
{inside}
                R.output({used})
            if c:
                p = R.negative(x)
                q = R.tanh(p)
                r = R.add(q, x)
            else:
                r = R.tanh(x)
            return ({", ".join(results)}, r)
        """


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed: int) -> None:
    rng = random.Random(seed)
    mod = module(program(rng, 25))
    args = (relaxlang.array(seed % 2 == 0), array(3, 4, seed=seed))
    want = Interpreter(mod).run("main", *args)
    steps = tr.Sequential((
        tr.DataflowUseInplaceCalls(), tr.LegalizeOps(), tr.FuseOps(max_depth=3), tr.FuseTIR(),
        tr.RewriteDataflowReshape(), tr.DataflowUseInplaceCalls(), tr.ToNonDataflow(), tr.CallTIRRewrite(),
        tr.StaticPlanBlockMemory(), tr.KillAfterLastUse(),
    ))  # fmt: skip
    made = steps(mod)
    in_order(made)
    assert_same(Interpreter(made, verify=True).run("main", *args), want)
    assert_same(run(made, *args), want)
    assert_same(relaxlang.VirtualMachine(relaxlang.build(mod), relaxlang.cpu())["main"](*args), want)


def test_a_bound_that_nobody_stated_is_not_allocated() -> None:
    mod = relaxlang.parse("""
@R.function
def main(x: R.Tensor((n, 4, 8, 8), "float32"), w: R.Tensor((4, 4, 3, 3), "float32")):
    with R.dataflow():
        a = R.strided_slice(x, axes=[0], begin=[0], end=[1000000000])
        b = R.nn.conv2d(a, w, padding=1)
        c = R.nn.conv2d(b, w, padding=1)
        R.output(c)
    return c
""")
    vm = relaxlang.VirtualMachine(relaxlang.build(mod))
    assert vm["main"](np.ones((2, 4, 8, 8), "float32"), np.ones((4, 4, 3, 3), "float32")).shape == (2, 4, 8, 8)
