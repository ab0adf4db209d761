"""What has no code is a diagnostic that names the place."""

import pytest
from compiled import compiled, module, prim_func

from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.base.dtype import dtype
from relaxlang.ir.module import IRModule
from relaxlang.ir.prim import HANDLE, BufferLoad, Call, IntImm, Var
from relaxlang.ir.tir import Buffer, BufferStore, PrimFunc

ONE = 'A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "int32")'


def fails(mod: IRModule, code: str, words: str, line: int = 0) -> None:
    with pytest.raises(DiagnosticError) as caught:
        compiled(mod)
    first = caught.value.diagnostics[0]
    assert first.code == code and words in first.message
    if line:
        assert caught.value.line == line


@pytest.mark.parametrize(
    "body, code, words",
    [
        ("for i in T.parallel(8):\n    A[0] = A[0] + A[i]", "RLX5011", "`i` carries a reduction"),
        ("for i in T.parallel(8):\n    if B[i] > 3:\n        break", "RLX5012", "break"),
        ('for i in T.thread_binding(8, thread="threadIdx.x"):\n    A[i] = T.float32(0)', "RLX5012", "GPU"),
        ('B[0] = T.call_extern("int32", "no_such_function", 1)', "RLX5014", "no_such_function"),
        ('A[0] = T.call_llvm_pure_intrin("float32", "llvm.nonsense", A[1])', "RLX5013", "llvm.nonsense"),
    ],
)
def test_statements_without_code(body: str, code: str, words: str) -> None:
    fails(prim_func(ONE, body), code, words)


@pytest.mark.parametrize("amount", [-1, 32, 33])
def test_shifts_by_constants_that_are_out_of_range(amount: int) -> None:
    of = dtype("int32")
    data = Buffer("A", (IntImm(of, 1),), of, Var("A", HANDLE))
    zero, param = IntImm(of, 0), Var("a", HANDLE)
    shifted = Call(of, "shift_right", (BufferLoad(data, (zero,)), IntImm(of, amount)))
    func = PrimFunc((param,), BufferStore(data, shifted, (zero,)), {param: data})
    fails(IRModule({"f": func}), "RLX5010", str(amount))


def test_reduction_axis_bound_to_a_parallel_loop() -> None:
    mod = prim_func(
        ONE,
        """
        for k in T.parallel(8):
            with T.block("acc"):
                vk = T.axis.reduce(8, k)
                A[0] = A[0] + A[vk]
        """,
    )
    fails(mod, "RLX5011", "the reduction axis `vk` of the block `acc`", line=5)


def test_a_dimension_that_no_parameter_gives() -> None:
    mod = prim_func(
        "a: T.handle",
        """
        n = T.int64()
        A = T.match_buffer(a, (n * 2,), "float32")
        for i in range(n):
            A[i] = T.float32(0)
        """,
    )
    fails(mod, "RLX5015", "`n`")


def test_calls_that_do_not_fit() -> None:
    mod = module(
        """
        @T.prim_func(private=True)
        def g(p: T.handle):
            n = T.int64()
            A = T.match_buffer(p, (n,), "float32")
            for i in range(n):
                A[i] = T.float32(0)

        @T.prim_func
        def f(A: T.Buffer((8,), "float32")):
            Module.g(A.data)
        """
    )
    fails(mod, "RLX5019", "the symbolic dimension `n`")
