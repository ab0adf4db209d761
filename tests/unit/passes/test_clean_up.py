"""Passes that shorten programs: by values, and on odd cases."""

import numpy as np
import pytest
from checking import array, assert_same, check, module

import relaxlang
from relaxlang import transform as tr
from relaxlang.ir import relax
from relaxlang.ir.module import IRModule, function_info


def bindings(mod: IRModule, name: str = "main") -> list[relax.Binding]:
    func = mod[name]
    assert isinstance(func, relax.Function)
    return [b for block in func.body.blocks for b in block.bindings]


def params(mod: IRModule, name: str) -> list[str]:
    func = mod[name]
    assert isinstance(func, relax.Function)
    return [p.name for p in func.params]


# --- RemoveUnusedParameters -------------------------------------------------------------------------------------------
def test_parameter_that_owns_a_dimension_becomes_a_shape() -> None:
    made = check(
        """
        @R.function(private=True)
        def helper(unused: R.Tensor((n,), "float32"), y: R.Tensor((3,), "float32")) -> R.Tensor((n, 3), "float32"):
            z = R.zeros(R.shape([n, 3]), dtype="float32")
            o = R.add(z, y)
            return o

        @R.function
        def main(x: R.Tensor((m, 2), "float32"), y: R.Tensor((3,), "float32")) -> R.Tensor((m * 2, 3), "float32"):
            cls = Module
            flat = R.reshape(x, (m * 2,))
            r = cls.helper(flat, y)
            return r
        """,
        tr.RemoveUnusedParameters(),
        (array(4, 2), array(3)),
    )
    assert params(made, "helper") == ["y", "symbols"]


def test_parameter_whose_check_matters_stays() -> None:
    made = check(
        """
        @R.function(private=True)
        def helper(unused: R.Tensor((4,), "float32"), y: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
            return y

        @R.function
        def main(x: R.Tensor(ndim=1, dtype="float32"), y: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
            cls = Module
            r = cls.helper(x, y)
            return r
        """,
        tr.RemoveUnusedParameters(),
        (array(4), array(3)),
    )
    assert params(made, "helper") == ["unused", "y"]


def test_function_used_as_a_value_keeps_its_parameters() -> None:
    made = check(
        """
        @R.function(private=True)
        def helper(unused: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            return y

        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            cls = Module
            f = R.make_closure(cls.helper, (x,))
            r = R.invoke_pure_closure(f, (x,), sinfo_args=R.Tensor((4,), "float32"))
            return r
        """,
        tr.RemoveUnusedParameters(),
    )
    assert params(made, "helper") == ["unused", "y"]


# --- RemoveUnusedOutputs ----------------------------------------------------------------------------------------------
def test_outputs_of_a_branch_and_of_recursion() -> None:
    made = check(
        """
        @R.function(private=True)
        def three(c: R.Tensor((), "bool"), x: R.Tensor((n,), "float32")) -> R.Tuple(
            R.Tensor((n,), "float32"), R.Tensor((n,), "float32"), R.Tensor((n,), "float32")
        ):
            if c:
                t = (x, R.exp(x), R.negative(x))
            else:
                t = (R.exp(x), x, R.add(x, x))
            return t

        @R.function
        def main(c: R.Tensor((), "bool"), x: R.Tensor((5,), "float32")) -> R.Tuple(
            R.Tensor((5,), "float32"), R.Tensor((5,), "float32")
        ):
            cls = Module
            t = cls.three(c, x)
            a = t[2]
            b = t[0]
            return (a, b)
        """,
        tr.RemoveUnusedOutputs(),
        (relaxlang.array(True), array(5)),
        (relaxlang.array(False), array(5)),
    )
    func = made["three"]
    assert isinstance(func, relax.Function) and str(func.ret_struct_info).count("Tensor") == 2


def test_result_used_as_a_whole_stays() -> None:
    text = """
        @R.function(private=True)
        def two(x: R.Tensor((n,), "float32")) -> R.Tuple(R.Tensor((n,), "float32"), R.Tensor((n,), "float32")):
            y = R.exp(x)
            return (x, y)

        @R.function
        def main(x: R.Tensor((5,), "float32")) -> R.Tuple(R.Tensor((5,), "float32"), R.Tensor((5,), "float32")):
            cls = Module
            t = cls.two(x)
            a = t[1]
            return t
        """
    assert tr.RemoveUnusedOutputs()(before := module(text)) is before


# --- CanonicalizeBindings ---------------------------------------------------------------------------------------------
def test_names_tuples_and_dimensions() -> None:
    made = check(
        """
        @R.function
        def main(x: R.Tensor((n, 4), "float32"), s: R.Shape(["k"])) -> R.Tensor(ndim=2, dtype="float32"):
            k = T.int64()
            m = T.int64()
            with R.dataflow():
                sh = R.shape_of(x)
                named = R.match_cast(sh, R.Shape([m, 4]))
                t = (x, sh)
                again = t[0]
                two = R.add(again, x)
                u = (two, again)
                v = u
                w = (v[0], v[1])
                first = w[0]
                y = R.reshape(first, R.shape([m * 4 // 2, 2]))
                out = y
                R.output(out)
            return out
        """,
        tr.CanonicalizeBindings(),
        (array(3, 4), relaxlang.ShapeTuple([9])),
    )
    assert [str(b.var.name) for b in bindings(made)] == ["sh", "two", "out"]


def test_cast_that_checks_stays() -> None:
    made = check(
        """
        @R.function
        def main(x: R.Tensor((n,), "float32"), y: R.Tensor((m,), "float32")) -> R.Tensor((n,), "float32"):
            z = R.match_cast(y, R.Tensor((n,), "float32"))
            o = R.add(x, z)
            return o
        """,
        tr.CanonicalizeBindings(),
        (array(3), array(3, seed=1)),
    )
    assert any(isinstance(b, relax.MatchCast) for b in bindings(made))


def test_dataflow_variable_is_not_used_outside_its_block() -> None:
    check(
        """
        @R.function(pure=False)
        def main(x: R.Tensor((3,), "float32")) -> R.Tuple(R.Tensor((3,), "float32"), R.Tensor((3,), "float32")):
            with R.dataflow():
                a = R.exp(x)
                b = a
                c = a
                R.output(b, c)
            _ = R.print(b, format="")
            d = (b, c)
            e = d[1]
            return (e, b)
        """,
        tr.CanonicalizeBindings(),
        (array(3),),
    )


# --- ConvertToDataflow ------------------------------------------------------------------------------------------------
def test_runs_around_effects_and_in_branches() -> None:
    made = check(
        """
        @R.function(pure=False)
        def main(c: R.Tensor((), "bool"), x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
            a = R.exp(x)
            b = R.add(a, x)
            _ = R.print(b, format="")
            d = R.negative(a)
            if c:
                e = R.add(d, d)
                f = R.multiply(e, b)
                r = R.add(f, e)
            else:
                r = R.exp(d)
            g = R.add(r, r)
            return g
        """,
        tr.ConvertToDataflow(),
        (relaxlang.array(True), array(3)),
        (relaxlang.array(False), array(3)),
    )
    func = made["main"]
    assert isinstance(func, relax.Function)
    assert [type(b).__name__ for b in func.body.blocks] == ["DataflowBlock", "BindingBlock"]
    conditional = next(b.value for b in bindings(made) if isinstance(b.value, relax.If))
    assert isinstance(conditional.true_branch.blocks[0], relax.DataflowBlock)


def test_variable_captured_by_an_inner_function_stays_plain() -> None:
    check(
        """
        @R.function
        def main(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
            a = R.exp(x)
            b = R.add(a, x)
            @R.function
            def inner(y: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
                z = R.add(y, b)
                return z
            r = inner(a)
            return r
        """,
        tr.ConvertToDataflow(),
        (array(3),),
    )


# --- RemoveRedundantReshape -------------------------------------------------------------------------------------------
def test_reshapes() -> None:
    made = check(
        """
        @R.function
        def main(x: R.Tensor((n, 6), "float32")) -> R.Tuple(
            R.Tensor((n, 2, 3), "float32"), R.Tensor((n, 6), "float32"), R.Tensor((n, 6), "float32")
        ):
            with R.dataflow():
                a = R.flatten(x)
                b = R.reshape(a, (n, 2, 3))
                c = R.reshape(b, (n, 6))
                d = R.add(c, x)
                e = R.reshape(x, (n, 6))
                R.output(b, d, e)
            return (b, d, e)
        """,
        tr.RemoveRedundantReshape(),
        (array(4, 6),),
    )
    calls = [str(b.value.op) for b in bindings(made) if isinstance(b.value, relax.Call)]
    assert calls == ["R.flatten", "R.reshape", "R.add", "R.reshape"]


# --- BindSymbolicVars -------------------------------------------------------------------------------------------------
def test_dimensions_become_numbers() -> None:
    mod = module(
        """
        @R.function
        def main(x: R.Tensor((n, m), "float32")) -> R.Tensor((n, m * 2), "float32"):
            y = R.concat((x, x), axis=1)
            z = R.match_cast(y, R.Tensor((n, m * 2), "float32"))
            return z
        """
    )
    made = tr.BindSymbolicVars(binding_map=(("n", 3),))(mod)
    assert str(function_info(made["main"])).endswith('R.Tensor((3, m * 2), "float32"), True)')
    check(mod, lambda m: tr.BindSymbolicVars(binding_map=(("n", 3),))(m) if m is mod else m, (array(3, 2),))
    with pytest.raises(relaxlang.DiagnosticError, match="symbolic dimension `k`"):
        tr.BindSymbolicVars(binding_map=(("k", 3),))(mod)


# --- InlinePrivateFunctions -------------------------------------------------------------------------------------------
def test_inlined_twice_with_a_branch_and_a_cast() -> None:
    made = check(
        """
        @R.function(private=True)
        def pick(c: R.Tensor((), "bool"), x: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
            if c:
                r = R.exp(x)
            else:
                with R.dataflow():
                    h = R.add(x, x)
                    r = R.add(h, R.zeros((n,), "float32"))
                    R.output(r)
            return r

        @R.function(private=True)
        def both(c: R.Tensor((), "bool"), x: R.Tensor((k,), "float32")) -> R.Tensor((k,), "float32"):
            cls = Module
            a = cls.pick(c, x)
            b = cls.pick(c, a)
            return b

        @R.function
        def main(c: R.Tensor((), "bool"), x: R.Tensor(ndim=1, dtype="float32")) -> R.Tensor(ndim=1, dtype="float32"):
            cls = Module
            r = cls.both(c, x)
            return r
        """,
        tr.InlinePrivateFunctions(),
        (relaxlang.array(True), array(3)),
        (relaxlang.array(False), array(3)),
    )
    assert list(made.functions) == ["main"]


def test_recursion_stays() -> None:
    text = """
        @R.function(private=True)
        def loop(n: R.Tensor((), "int64"), x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
            cls = Module
            more = R.greater(n, R.const(0, "int64"))
            if more:
                y = R.add(x, x)
                m = R.subtract(n, R.const(1, "int64"))
                r = cls.loop(m, y)
            else:
                r = x
            return r

        @R.function
        def main(n: R.Tensor((), "int64"), x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
            cls = Module
            r = cls.loop(n, x)
            return r
        """
    check(text, tr.InlinePrivateFunctions(), (relaxlang.array(3), array(3)))


def test_closures_of_an_inlined_function() -> None:
    check(
        """
        @R.function(private=True)
        def outer(x: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
            @R.function
            def inner(y: R.Tensor((k,), "float32")) -> R.Tensor((k,), "float32"):
                z = R.add(y, y)
                return z
            r = inner(x)
            return r

        @R.function
        def main(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
            cls = Module
            a = cls.outer(x)
            b = cls.outer(a)
            return b
        """,
        tr.InlinePrivateFunctions(),
        (array(3),),
    )


# --- EliminateCommonSubexpr -------------------------------------------------------------------------------------------
def test_dataflow_variables_do_not_outlive_their_block() -> None:
    check(
        """
        @R.function
        def main(c: R.Tensor((), "bool"), x: R.Tensor((3,), "float32")) -> R.Tuple(
            R.Tensor((3,), "float32"), R.Tensor((3,), "float32")
        ):
            with R.dataflow():
                a = R.exp(x)
                b = R.add(a, a)
                R.output(b)
            if c:
                d = R.exp(x)
                r = R.add(d, b)
            else:
                r = R.exp(x)
            return (r, b)
        """,
        tr.EliminateCommonSubexpr(),
        (relaxlang.array(True), array(3)),
        (relaxlang.array(False), array(3)),
        again=False,
    )


# --- FoldConstant -----------------------------------------------------------------------------------------------------
def test_large_constants_are_folded_by_compiled_code() -> None:
    mod = module(
        """
        @R.function
        def main(x: R.Tensor((1, 200), "float32"), w: R.Tensor((150, 200), "float32")):
            y = R.matmul(x, R.exp(R.permute_dims(w)))
            return y
        """
    )
    x, w = array(1, 200), array(150, 200)
    bound = relaxlang.lower(tr.BindParams(params=(("w", w),))(mod))
    kernels = [n for n, _ in bound.prim_funcs() if "shape_func" not in n]
    assert kernels == ["matmul"]
    run = relaxlang.VirtualMachine(relaxlang.build(mod, params={"w": w}), relaxlang.cpu())["main"]
    assert_same(run(x), x @ np.exp(w.T), rtol=1e-4, atol=1e-3)


# --- BindParams -------------------------------------------------------------------------------------------------------
def test_bound_parameters_keep_the_values_they_had() -> None:
    mod = module(
        """
        @R.function
        def main(x: R.Tensor((4,), "float32"), w: R.Tensor((4,), "float32"), b: R.Tensor((4,), "float32")):
            y = R.add(R.multiply(x, w), b)
            return y
        """
    )
    x, w, b = array(4), array(4), array(4)
    want = x * w + b
    b.flags.writeable = False
    bound = tr.BindParams(params=(("w", w), ("b", b)))(mod)
    run = relaxlang.VirtualMachine(relaxlang.build(bound), relaxlang.cpu())["main"]
    w[:] = 0
    assert_same(run(x), want)
    constants = [
        a.data for c in bound["main"].body.blocks[0].bindings for a in c.value.args if isinstance(a, relax.Constant)
    ]
    assert any(np.shares_memory(c, b) for c in constants), "read-only arrays are not copied"
