"""Relax: functions, bindings, symbolic dimensions, branches, closures, calls; at several stages of lowering."""

import threading
from itertools import pairwise

import numpy as np
import pytest
from interpreted import module

from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.base.dtype import dtype
from relaxlang.base.source import Source, Span
from relaxlang.interp import Interpreter, run
from relaxlang.ir import prim, relax
from relaxlang.ir.attrs import Attrs
from relaxlang.ir.module import IRModule
from relaxlang.ir.prim import BOOL, INT64, IntImm
from relaxlang.ir.relax import (
    Call,
    Constant,
    DataTypeImm,
    ExternFunc,
    Function,
    GlobalVar,
    If,
    MatchCast,
    Op,
    PrimValue,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
    seq_expr,
)
from relaxlang.ir.struct_info import (
    OBJECT,
    FuncStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    TupleStructInfo,
    shape_info,
    tensor_info,
)
from relaxlang.runtime.ndarray import ShapeTuple

F32 = dtype("float32")

KERNELS = """
    @T.prim_func(private=True)
    def double(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        for i in range(n):
            B[i] = A[i] * T.float32(2)

    @T.prim_func(private=True)
    def shift(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32"), k: T.int64):
        for i in range(4):
            B[i] = A[i] + T.Cast("float32", k)
            C[i] = A[i] - T.Cast("float32", k)
"""


def dims(*sizes):
    return tuple(IntImm(INT64, s) if isinstance(s, int) else s for s in sizes)


def tensor(*sizes, of=F32):
    return tensor_info(dims(*sizes), of)


def size(name):
    return prim.Var(name, INT64)


def program(params, bindings, body, *, functions=None, kernels=False, pure=True):
    """A module whose `main` is these bindings: pairs of a variable and a value, or bindings."""
    made = [b if isinstance(b, relax.Binding) else VarBinding(*b) for b in bindings]
    main = Function(tuple(params), seq_expr(made, body), None, pure)
    return IRModule({**(module(KERNELS).functions if kernels else {}), **(functions or {}), "main": main})


def op(name, *args, out=(), **attrs):
    return Call(Op(name), args, Attrs(attrs), tuple(out))


def fails(code, words, mod, *args):
    with pytest.raises(DiagnosticError, match=words) as caught:
        Interpreter(mod).run("main", *args)
    assert caught.value.diagnostics[0].code == code
    return caught.value.diagnostics[0]


def vector(*numbers):
    return np.array(numbers, "float32")


# --- calls ------------------------------------------------------------------------------------------------------------
def test_call_tir_with_one_and_with_several_results() -> None:
    n, x, y, z = size("n"), Var("x", tensor(size("n"))), Var("y"), Var("z")
    x = Var("x", tensor(n))
    mod = program([x], [(y, op("call_tir", GlobalVar("double"), Tuple((x,)), out=[tensor(n)]))], y, kernels=True)
    np.testing.assert_array_equal(run(mod, "main", vector(1, 2, 3)), [2, 4, 6])
    v = Var("v", tensor(4))
    out = [TupleStructInfo((tensor(4), tensor(4)))]
    call = op("call_tir", GlobalVar("shift"), Tuple((v,)), ShapeExpr(dims(3)), out=out)
    mod = program([v], [(z, call)], Tuple((TupleGetItem(z, 1), TupleGetItem(z, 0))), kernels=True)
    lower, upper = run(mod, "main", vector(1, 2, 3, 4))
    assert lower.tolist() == [-2, -1, 0, 1] and upper.tolist() == [4, 5, 6, 7]


def test_call_tir_takes_a_tuple_variable() -> None:
    v, args, y = Var("v", tensor(4)), Var("args"), Var("y")
    call = op("call_tir", GlobalVar("double"), args, out=[tensor(4)])
    mod = program([v], [(args, Tuple((v,))), (y, call)], y, kernels=True)
    assert run(mod, "main", vector(1, 2, 3, 4)).tolist() == [2, 4, 6, 8]


def test_call_tir_inplace_writes_to_its_argument() -> None:
    v, y = Var("v", tensor(4)), Var("y")
    call = op("call_tir_inplace", GlobalVar("bump"), Tuple((v,)), out=[tensor(4)], inplace_indices=[0])
    bump = module("""
        @T.prim_func(private=True)
        def bump(A: T.Buffer((4,), "float32")):
            for i in range(4):
                A[i] = A[i] + T.float32(1)
    """)
    mod = program([v], [(y, call)], y, functions=bump.functions)
    array = vector(1, 2, 3, 4)
    assert run(mod, "main", array).tolist() == array.tolist() == [2, 3, 4, 5]


def test_an_operator_is_computed_by_its_definition_for_the_shapes_at_hand() -> None:
    x, y, z = Var("x", tensor_info(None, F32, 2)), Var("y", tensor_info(None, F32, 2)), Var("z")
    mod = program([x, y], [(z, op("matmul", x, y, out_dtype=None))], z)
    a, b = np.random.rand(3, 5).astype("float32"), np.random.rand(5, 2).astype("float32")
    np.testing.assert_allclose(Interpreter(mod).run("main", a, b), a @ b, rtol=1e-6)
    with pytest.raises(DiagnosticError, match=r"5.*2|2.*5"):
        Interpreter(mod).run("main", a, a.T[:2].copy())


def test_packed_functions() -> None:
    x, y = Var("x", tensor(3)), Var("y")
    calls = []

    def triple(array, factor, text):
        calls.append((factor, text))
        return array.numpy() * factor

    def into(source, target):
        target[...] = source + 1

    pure = op(
        "call_pure_packed", ExternFunc("triple"), x, PrimValue(IntImm(INT64, 3)), StringImm("hi"), out=[tensor(3)]
    )
    z = Var("z")
    mod = program([x], [(y, pure), (z, op("call_dps_packed", ExternFunc("into"), Tuple((y,)), out=[tensor(3)]))], z)
    found = {"triple": triple, "into": into}.get
    assert Interpreter(mod, packed=found).run("main", vector(1, 2, 3)).tolist() == [4, 7, 10]
    assert calls == [(3, "hi")]
    fails("RLX6008", "there is no packed function `triple`", mod, vector(1, 2, 3))


def test_an_exception_of_a_packed_function_names_it() -> None:
    def broken():
        raise ValueError("no luck")

    y = Var("y")
    mod = program([], [(y, Call(ExternFunc("broken"), ()))], y)
    with pytest.raises(DiagnosticError, match="packed function `broken` raised ValueError: no luck"):
        Interpreter(mod, packed={"broken": broken}.get).run("main")


def test_functions_of_the_module_bind_their_own_dimensions() -> None:
    n, m = size("n"), size("m")
    p, x, y = Var("p", tensor(n)), Var("x", tensor(m, m)), Var("y")
    shape = Function((p,), seq_expr([], ShapeExpr((n, n * 2))), None)
    mod = program([x], [(y, Call(GlobalVar("shape"), (TupleGetItem(Var("t"), 0),)))], y, functions={"shape": shape})
    t = mod["main"].body.blocks[0].bindings[0].value.args[0].tuple_value
    mod = program([x, t], [(y, Call(GlobalVar("shape"), (TupleGetItem(t, 0),)))], y, functions={"shape": shape})
    assert run(mod, "main", np.zeros((2, 2), "float32"), (vector(1, 2, 3), 5)) == ShapeTuple([3, 6])


# --- dimensions -------------------------------------------------------------------------------------------------------
def test_arguments_are_checked_against_the_parameters() -> None:
    n = size("n")
    x, y = Var("x", tensor(n, 3)), Var("y", tensor(n))
    mod = program([x, y], [], Tuple(()))
    good = np.zeros((2, 3), "float32")
    assert run(mod, "main", good, vector(1, 2)) == ()
    fails("RLX6001", "`main` takes 2 arguments", mod, good)
    fails("RLX6003", "parameter `x` of `main`: expected dtype float32", mod, good.astype("float64"), vector(1, 2))
    fails("RLX6004", "parameter `x` of `main`: expected 2 dimensions, got 1", mod, vector(1), vector(1))
    fails(
        "RLX6005",
        "parameter `x` of `main`: dimension 1 is 4, expected 3",
        mod,
        np.zeros((2, 4), "float32"),
        vector(1, 2),
    )
    fails("RLX6005", "parameter `y` of `main`: dimension 0 is 3, expected `n` = 2", mod, good, vector(1, 2, 3))
    fails("RLX6002", "parameter `y` of `main`: expected a tensor, got", mod, good, "text")


def test_expressions_wait_until_their_variables_are_known() -> None:
    h = size("h")
    rows, extra = Var("rows", tensor(h - 1, 2)), Var("extra", shape_info((h,)))
    mod = program([rows, extra], [], ShapeExpr((h,)))
    assert run(mod, "main", np.zeros((4, 2), "float32"), (5,)) == (5,)
    fails("RLX6005", "parameter `rows` of `main`: dimension 0 is 4, expected", mod, np.zeros((4, 2), "float32"), (6,))


def test_match_cast_of_tensors_shapes_scalars_and_tuples_defines_variables() -> None:
    n, m, k = size("n"), size("m"), size("k")
    x, s, p = Var("x", tensor_info(None, None, -1)), Var("s", ShapeStructInfo(None)), Var("p", PrimStructInfo(INT64))
    info = TupleStructInfo((tensor(n, m), shape_info((m, k)), PrimStructInfo(INT64, k)))
    y = Var("y")
    mod = program([x, s, p], [MatchCast(y, Tuple((x, s, p)), info)], ShapeExpr((n, m, k)))
    assert run(mod, "main", np.zeros((2, 3), "float32"), (3, 7), 7) == (2, 3, 7)
    fails(
        "RLX6005",
        "element 1 of match_cast of `y` in `main`: dimension 0 is 4",
        mod,
        np.zeros((2, 3), "float32"),
        (4, 7),
        7,
    )
    fails(
        "RLX6005",
        "element 2 of match_cast of `y` in `main`: expected the value 7, got 8",
        mod,
        np.zeros((2, 3), "float32"),
        (3, 7),
        8,
    )


def test_products_wait_for_their_factors_over_several_match_casts() -> None:
    n, m = size("n"), size("m")
    x, y = Var("x", tensor_info(None, F32, 1)), Var("y", tensor_info(None, F32, 2))
    casts = [MatchCast(Var("a"), x, tensor(n * m)), MatchCast(Var("b"), y, tensor(n, m))]
    mod = program([x, y], casts, ShapeExpr((n, m)))
    assert run(mod, "main", np.zeros(6, "float32"), np.zeros((2, 3), "float32")) == (2, 3)
    fails(
        "RLX6005",
        "match_cast of `a` in `main`: dimension 0 is 7",
        mod,
        np.zeros(7, "float32"),
        np.zeros((2, 3), "float32"),
    )


def test_a_dimension_without_a_value_is_reported() -> None:
    mod = program([], [], ShapeExpr((size("n"),)))
    fails("RLX6032", "the variable `n` has no value here", mod)


def test_shape_held_by_a_variable() -> None:
    s = Var("s", ShapeStructInfo(None))
    x = Var("x", tensor_info(s, F32))
    mod = program([s, x], [], x)
    run(mod, "main", (3,), vector(1, 2, 3))
    fails("RLX6005", "dimension 0 is 3, expected 4", mod, (4,), vector(1, 2, 3))


# --- control ----------------------------------------------------------------------------------------------------------
def test_if_takes_tensors_and_scalars_as_condition() -> None:
    for info, yes, no in ((tensor(of=BOOL), np.array(True), np.array(False)), (PrimStructInfo(BOOL), True, False)):
        c = Var("c", info)
        branch = If(c, seq_expr([], ShapeExpr(dims(1))), seq_expr([], ShapeExpr(dims(2))))
        r = Var("r")
        mod = program([c], [(r, branch)], r)
        assert (run(mod, "main", yes), run(mod, "main", no)) == ((1,), (2,))


def countdown(limit):
    """`main(n)` calls itself until n is `limit`."""
    n = size("n")
    p, c, r = Var("p", PrimStructInfo(INT64, n)), Var("c"), Var("r")
    again = Call(GlobalVar("main"), (PrimValue(n - 1),))
    branch = If(c, seq_expr([], PrimValue(n)), seq_expr([], again))
    return program([p], [(c, PrimValue(prim.EQ(n, IntImm(INT64, limit)))), (r, branch)], r)


def test_recursion_and_its_limit() -> None:
    assert run(countdown(3), "main", 1500) == 3
    fails("RLX6010", "recursion too deep: `main`", countdown(-1), -5)


def test_closures_keep_what_they_captured() -> None:
    a, b, f, g, r = Var("a", tensor(2)), Var("b", tensor(2)), Var("f"), Var("g"), Var("r")
    inner = Function((b,), seq_expr([], Tuple((a, b))), None)
    make = Function((a,), seq_expr([], inner), None)
    x, y = Var("x", tensor(2)), Var("y", tensor(2))
    mod = program(
        [x, y],
        [(f, Call(GlobalVar("make"), (x,))), (g, Call(GlobalVar("make"), (y,))), (r, Call(f, (y,)))],
        Tuple((r, g)),
        functions={"make": make},
    )
    (first, second), closure = run(mod, "main", vector(1, 2), vector(3, 4))
    assert (first.tolist(), second.tolist()) == ([1, 2], [3, 4])
    assert [v.tolist() for v in closure(vector(5, 6))] == [[3, 4], [5, 6]]


def test_lifted_closures() -> None:
    p, q, x, f, r = Var("p", tensor(2)), Var("q", tensor(2)), Var("x", tensor(2)), Var("f"), Var("r")
    lifted = Function((p, q), seq_expr([], Tuple((p, q))), None)
    bindings = [
        (f, op("make_closure", GlobalVar("lifted"), Tuple((x,)))),
        (r, op("invoke_closure", f, Tuple((x,)), out=[OBJECT])),
    ]
    mod = program([x], bindings, r, functions={"lifted": lifted})
    assert [v.tolist() for v in run(mod, "main", vector(1, 2))] == [[1, 2], [1, 2]]


def test_function_parameters() -> None:
    f, x, r = Var("f", FuncStructInfo(None, OBJECT)), Var("x", tensor(2)), Var("r")
    mod = program([f, x], [(r, Call(f, (x,)))], r)
    assert run(mod, "main", lambda v: v, vector(1, 2)).tolist() == [1, 2]
    fails("RLX6002", "parameter `f` of `main`: expected a function", mod, 3, vector(1, 2))


# --- later stages -----------------------------------------------------------------------------------------------------
def test_allocated_outputs_and_memory() -> None:
    n = size("n")
    x, s, t = Var("x", tensor(n)), Var("s"), Var("t")
    of, device = DataTypeImm(F32), PrimValue(IntImm(INT64, 0))
    for bindings in (
        [(t, op("builtin.alloc_tensor", ShapeExpr((n,)), of, device, StringImm("global")))],
        [
            (
                s,
                op(
                    "memory.alloc_storage",
                    ShapeExpr((n * 4,)),
                    device,
                    StringImm("global"),
                    DataTypeImm(dtype("uint8")),
                ),
            ),
            (t, op("memory.alloc_tensor", s, device, ShapeExpr((n,)), of, device)),
            (Var("_"), op("memory.kill_storage", s)),
        ],
        [
            (s, op("vm.alloc_storage", ShapeExpr((n * 4,)), device, DataTypeImm(dtype("uint8")), StringImm("global"))),
            (t, op("vm.alloc_tensor", s, device, ShapeExpr((n,)), of, device)),
        ],
    ):
        mod = program([x], [*bindings, (Var("_"), Call(GlobalVar("double"), (x, t)))], t, kernels=True, pure=False)
        assert run(mod, "main", vector(1, 2, 3)).tolist() == [2, 4, 6]


def test_lowered_shapes() -> None:
    x, heap, s = Var("x", tensor_info(None, F32, 2)), Var("heap"), Var("s")
    kernels = module("""
        @T.prim_func(private=True)
        def shape_func(H: T.Buffer((T.int64(3),), "int64")):
            H[T.int64(2)] = H[T.int64(0)] * H[T.int64(1)]
    """)

    def imm(*numbers):
        return [PrimValue(IntImm(INT64, v)) for v in numbers]

    place = StringImm("parameter `x` of `main`")
    bindings = [
        (
            heap,
            op("call_builtin_with_ctx", ExternFunc("vm.builtin.alloc_shape_heap"), Tuple(tuple(imm(3))), out=[OBJECT]),
        ),
        (Var("_"), Call(ExternFunc("vm.builtin.check_tensor_info"), (x, *imm(2), DataTypeImm(F32), place))),
        (Var("_"), Call(ExternFunc("vm.builtin.match_shape"), (x, heap, *imm(2, 1, 0, 1, 1), place))),
        (Var("_"), Call(GlobalVar("shape_func"), (heap,))),
        (s, Call(ExternFunc("vm.builtin.make_shape"), (heap, *imm(2, 1, 2, 0, 9)))),
    ]
    mod = program([x], bindings, s, functions=kernels.functions, pure=False)
    assert run(mod, "main", np.zeros((3, 4), "float32")) == (12, 9)


def test_shapes_as_values() -> None:
    x, s, t, r = Var("x", tensor_info(None, F32, 2)), Var("s"), Var("t"), Var("r")
    mod = program(
        [x], [(s, op("shape_of", x)), (t, op("shape_to_tensor", s)), (r, op("tensor_to_shape", t))], Tuple((s, t, r))
    )
    shape, as_tensor, back = run(mod, "main", np.zeros((3, 4), "float32"))
    assert shape == back == (3, 4) and as_tensor.tolist() == [3, 4] and as_tensor.dtype == "int64"


def test_print_and_assert(capsys: pytest.CaptureFixture[str]) -> None:
    c = Var("c", tensor(of=BOOL))
    bindings = [
        (Var("_"), op("print", PrimValue(IntImm(INT64, 7)), format="seven is {}")),
        (Var("_"), op("assert_op", c, format="flag was false")),
    ]
    mod = program([c], bindings, Tuple(()), pure=False)
    assert run(mod, "main", np.array(True)) == ()
    assert capsys.readouterr().out == "seven is 7\n"
    fails("RLX6009", "assertion failed: flag was false", mod, np.array(False))


# --- errors, traces, threads ------------------------------------------------------------------------------------------
def test_an_error_carries_the_place_of_its_binding() -> None:
    source = Source("demo.rlx", "y = f(x)\nz = g(y)\n")
    y = Var("y")
    binding = VarBinding(y, TupleGetItem(Tuple(()), 3), span=Span(source, 9, 17))
    diagnostic = fails("RLX6018", "a tuple of 0 has no element 3", program([], [binding], y))
    assert diagnostic.span is not None and diagnostic.span.line == 2


def test_constants_are_shared_and_not_written_to() -> None:
    c, y = Constant(vector(1, 2, 3, 4)), Var("y")
    assert run(program([], [(y, c)], y), "main").tolist() == [1, 2, 3, 4]
    call = op("call_tir_inplace", GlobalVar("double"), Tuple((c, c)), out=[tensor(4)], inplace_indices=[1])
    fails("RLX6015", "`B` is written to, but its memory is read-only", program([], [(y, call)], y, kernels=True))


def test_trace_sees_each_binding() -> None:
    x, y, z = Var("x", tensor(1)), Var("y"), Var("z")
    seen = []
    mod = program([x], [(y, Tuple((x,))), (z, TupleGetItem(y, 0))], z)
    Interpreter(mod, trace=lambda binding, value: seen.append((binding.var.name, value))).run("main", vector(7))
    assert [name for name, _ in seen] == ["y", "z"] and seen[1][1].tolist() == [7]


def test_one_interpreter_serves_many_threads() -> None:
    interpreter, results = Interpreter(countdown(0)), []
    threads = [threading.Thread(target=lambda: results.append(interpreter.run("main", 600))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [0] * 8


def test_long_chains_of_bindings_and_deep_expressions() -> None:
    x = Var("x", tensor(1))
    variables = [x] + [Var(f"v{i}") for i in range(20_000)]
    bindings = [(new, old) for old, new in pairwise(variables)]
    assert run(program([x], bindings, variables[-1]), "main", vector(3)).tolist() == [3]
    n = size("n")
    deep = n
    for _ in range(5000):
        deep = prim.Add(deep, n)
    p = Var("p", PrimStructInfo(INT64, n))
    assert run(program([p], [], PrimValue(deep)), "main", 1) == 5001


def test_verification_holds_values_against_struct_info() -> None:
    n = size("n")
    x, y = Var("x", tensor(n)), Var("y", tensor(n + 1))
    mod = program([x], [(y, x)], y)
    assert run(mod, "main", vector(1, 2)).tolist() == [1, 2]
    with pytest.raises(DiagnosticError, match="variable `y` of `main`: dimension 0 is 2, expected"):
        Interpreter(mod, verify=True).run("main", vector(1, 2))


def test_what_nests_too_deeply_is_a_diagnostic() -> None:
    n = size("n")
    deep = n
    for _ in range(100_000):
        deep = prim.Add(deep, n)
    fails("RLX6034", "nests too deeply", program([Var("p", PrimStructInfo(INT64, n))], [], PrimValue(deep)), 1)


def test_operands_that_do_not_fit_are_named_with_symbols_and_values() -> None:
    mod = module(
        """
        @R.function
        def main(x: R.Tensor((n, 4), "float32"), y: R.Tensor((m, 4), "float32")):
            z = R.add(x, y)
            return z
        """
    )
    with pytest.raises(DiagnosticError) as caught:
        run(mod, "main", np.zeros((2, 4), np.float32), np.zeros((3, 4), np.float32))
    (found,) = caught.value.diagnostics
    assert found.message == "`R.add`: cannot broadcast dimension 2 with 3"
    assert "`x` is (n, 4), `y` is (m, 4) with n = 2, m = 3" in found.notes
