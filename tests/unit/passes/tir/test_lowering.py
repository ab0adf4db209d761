"""Lowering of TensorIR: what the passes refuse to do."""

from collections.abc import Callable
from textwrap import dedent, indent

import numpy as np
import pytest

import relaxlang
from relaxlang.arith.analyzer import Analyzer
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.ir import prim, tir
from relaxlang.ir.tir import PrimFunc
from relaxlang.ir.visit import walk
from relaxlang.passes.tir.check_parallel_loops import check_parallel_loops
from relaxlang.passes.tir.compact_buffer_allocation import compact_buffer_allocation
from relaxlang.passes.tir.hoist_if_then_else import HoistIfThenElse
from relaxlang.passes.tir.loop_partition import LoopPartition, loop_partition
from relaxlang.passes.tir.lower_init_block import lower_init_block
from relaxlang.passes.tir.lower_match_buffer import lower_match_buffer
from relaxlang.passes.tir.lowering import lower
from relaxlang.passes.tir.plan_and_update_buffer_allocation_location import plan_buffer_allocation
from relaxlang.passes.tir.reorder_reductions import reorder_reductions
from relaxlang.passes.tir.stmt_simplify import stmt_simplify
from relaxlang.passes.tir.vectorize_loop import vectorize_loop


def prim_func(params: str, body: str) -> PrimFunc:
    text = f"@T.prim_func\ndef f({params}):\n" + indent(dedent(body).strip(), "    ")
    func = relaxlang.parse("@I.ir_module\nclass Module:\n" + indent(text, "    ") + "\n")["f"]
    assert isinstance(func, PrimFunc)
    return func


def loops(func: PrimFunc) -> str:
    return " ".join(n.loop_var.name for n in walk(func.body) if isinstance(n, tir.For))


def reduction(kinds: str, order: str, store: str, bounds: str = "8, 8, 8") -> PrimFunc:
    return prim_func(
        'A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")',
        f"""
        for {order} in T.grid({bounds}):
            with T.block("b"):
                vi, vj, vk = T.axis.remap("{kinds}", [i, j, k])
                with T.init():
                    {store.split(" = ")[0]} = T.float32(0)
                {store}
        """,
    )


@pytest.mark.parametrize(
    "store, wanted",
    [
        ("C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]", "i k j"),
        ("C[vi, vj] = C[vi, vj] + A[vk, vi] * B[vk, vj]", "i k j"),
        ("C[vj, vi] = C[vj, vi] + A[vk, vi] * B[vk, vj]", "j k i"),
        ("C[vi, vj] = C[vi, vj] + A[vj, vk] * B[vk, vi]", "i j k"),  # no loop is contiguous everywhere
        ("C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]", "i j k"),  # dot products run along memory
    ],
)
def test_order_of_reductions(store: str, wanted: str) -> None:
    assert loops(reorder_reductions(reduction("SSR", "i, j, k", store))) == wanted


def test_init_goes_before_the_outermost_reduction_loop() -> None:
    func = lower_init_block(reduction("SSR", "i, k, j", "C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]"))
    assert loops(func) == "i j_init k j"


def test_condition_around_a_reduction_keeps_its_init_inside() -> None:
    func = prim_func(
        'A: T.Buffer((8, 8), "float32"), C: T.Buffer((8,), "float32")',
        """
        for i, k in T.grid(8, 8):
            if i < k:
                with T.block("b"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        C[vi] = T.float32(0)
                    C[vi] = C[vi] + A[vi, vk]
        """,
    )
    lowered = lower_init_block(func)
    assert loops(lowered) == "i k"
    (block,) = (n for n in walk(lowered.body) if isinstance(n, tir.Block) and n.name_hint == "b")
    assert isinstance(block.body, tir.SeqStmt) and isinstance(block.body.seq[0], tir.IfThenElse)


@pytest.mark.parametrize(
    "body",
    [
        "for i in T.parallel(8):\n    for j in range(8):\n        C[j, 0] = C[j, 0] + A[i, j]",
        "for i in T.parallel(8):\n    C[0, 0] = T.max(A[i, 0], C[0, 0])",
        "for i in T.parallel(8):\n    for j in T.parallel(8):\n        C[i, 0] = C[i, 0] + A[i, j]",
    ],
)
def test_parallel_loops_that_race(body: str) -> None:
    with pytest.raises(DiagnosticError, match="RLX5011"):
        check_parallel_loops(prim_func('A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")', body))


@pytest.mark.parametrize(
    "body",
    [
        "for i in T.parallel(8):\n    for j in range(8):\n        C[i, 0] = C[i, 0] + A[i, j]",
        "for i in T.parallel(8):\n    x: T.int32 = 7 - i\n    C[x, 0] = C[x, 0] + A[i, 0]",
        "for i in T.parallel(4):\n    for j in range(i * 2, i * 2 + 2):\n        C[j, 0] = C[j, 0] + A[i, 0]",
        'for i in T.parallel(8):\n    with T.block("b"):\n'
        '        B = T.alloc_buffer((1,), "float32")\n        B[0] = B[0] + A[i, 0]',
    ],
)
def test_parallel_loops_that_do_not_race(body: str) -> None:
    check_parallel_loops(prim_func('A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")', body))


@pytest.mark.parametrize(
    "body, vector",
    [
        ("C[j] = A[j] * A[0]", True),
        ('C[j * 2] = A[j] + T.Cast("float32", j)', True),
        ("if j < 3:\n    C[j] = A[j]", True),
        ("if A[j] < T.float32(3):\n    C[j] = A[j]", False),
        ("A[j + 1] = A[j]", False),
        ("C[j // 2] = C[j // 2] + A[j]", False),
        ("C[0] = A[j]", False),
    ],
)
def test_loops_with_and_without_vector_form(body: str, vector: bool) -> None:
    func = prim_func(
        'A: T.Buffer((32,), "float32"), C: T.Buffer((32,), "float32")',
        "for j in T.vectorized(8):\n" + indent(body, "    "),
    )
    assert (loops(vectorize_loop(func)) == "") == vector


def test_values_from_memory_are_not_simplified() -> None:
    text = "for i in range(8):\n    A[i] = A[i] * 2 // 2 + (i * 2) // 2"
    func = stmt_simplify(prim_func('A: T.Buffer((8,), "int32")', text))
    assert "A[i] = A[i] * 2 // 2 + i" in str(func)


def test_lowering_is_idempotent() -> None:
    func = lower(reduction("SSR", "i, j, k", "C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]"))
    relaxlang.assert_structural_equal(lower(func), func)


ARGMAX = """
@R.function
def main(x: R.Tensor((n, 3), "int64")) -> R.Tensor((n,), "int64"):
    return R.argmax(x, axis=1)
"""


@pytest.mark.parametrize("step", ["convert-blocks-to-opaque", "compact-buffer-allocation"])
def test_reductions_keep_their_start_value_in_any_order_of_passes(step: str) -> None:
    x = np.array([[0, 5, 1], [7, 2, 3], [1, 2, 8], [4, 9, 6]])
    mod = relaxlang.lower(relaxlang.parse(ARGMAX), f"legalize-ops,{step}")
    np.testing.assert_array_equal(relaxlang.interpret(mod, "main", x), x.argmax(1))
    np.testing.assert_array_equal(relaxlang.VirtualMachine(relaxlang.build(mod))["main"](x), x.argmax(1))


def test_full_tiles_of_an_inner_loop_end_with_it() -> None:
    """How many tiles are full depends on the outer loop, and is never more than the loop has."""
    mod = relaxlang.parse(
        """
@T.prim_func
def f(A: T.Buffer((40,), "int32")):
    for i in T.serial(3, annotations={"pragma_loop_partition_hint": 0}):
        for j in range(4):
            for k in range(4):
                if i * 16 + j * 4 + k < 40:
                    A[i * 16 + j * 4 + k] = A[i * 16 + j * 4 + k] + 1
"""
    )
    data = np.zeros(40, "int32")
    relaxlang.interpret(LoopPartition()(mod), "f", data)
    assert (data == 1).all()


@pytest.mark.parametrize("n", [0, 1, 70])
def test_what_follows_a_loop_runs_whether_or_not_the_loop_did(n: int) -> None:
    func = prim_func(
        'A: T.Buffer((n,), "float32"), B: T.Buffer((2,), "float32")',
        """
        for i in range(n):
            A[i] = T.float32(1)
        if 0 < n:
            B[0] = T.float32(5)
        B[1] = T.Cast("float32", T.Select(n > 0, 1, 2))
        """,
    )
    found = np.zeros(2, "float32")
    relaxlang.build(relaxlang.IRModule({"f": func}))["f"](np.zeros(n, "float32"), found)
    assert found.tolist() == ([5, 1] if n else [0, 2])


def test_conditions_stay_where_evaluating_them_earlier_may_do_harm() -> None:
    text = """
@I.ir_module
class M:
    @T.prim_func
    def f(A: T.Buffer((16,), "float32"), B: T.Buffer((1,), "int32"), n: T.int32):
        for i in range(n):
            if n > 3:
                A[i] = T.float32(1)
        for j in range(16):
            if B[0] > 3:
                A[j] = A[j] + T.float32(1)
        for k in range(16):
            if 16 // n > 3:
                A[k] = A[k] + T.float32(1)
"""
    mod = relaxlang.parse(text)
    relaxlang.assert_structural_equal(HoistIfThenElse()(mod), mod)


COPY = """
for i in range(7):
    with T.block("copy"):
        vi = T.axis.spatial(7, i)
        A[vi] = A[vi] * T.float32(2)
"""


@pytest.mark.parametrize("step", [lower_init_block, lower_match_buffer, plan_buffer_allocation, loop_partition,
                                  compact_buffer_allocation])  # fmt: skip
def test_passes_return_the_function_where_there_is_nothing_to_do(step: Callable[[PrimFunc], PrimFunc]) -> None:
    func = prim_func('A: T.Buffer((7,), "float32")', COPY)
    assert step(func) is func


def test_loops_beside_those_taken_apart_stay() -> None:
    func = prim_func(
        'A: T.Buffer((61,), "float32")',
        """
        for i in range(4):
            for j in T.vectorized(16):
                if i * 16 + j < 61:
                    A[i * 16 + j] = T.float32(0)
        for k in range(8):
            A[k] = A[k * 2 + 1]
        """,
    )
    made = loop_partition(func)
    assert loops(made) == "i j i j k"
    kept = [n for n in walk(func.body) if isinstance(n, tir.For) and n.loop_var.name == "k"]
    assert [n for n in walk(made.body) if isinstance(n, tir.For) and n.loop_var.name == "k"] == kept


def test_lanes_that_a_condition_leaves_out_are_read_where_inner_loops_show_that_they_exist() -> None:
    func = prim_func(
        'A: T.Buffer((64,), "float32"), n: T.int32',
        """
        L = T.allocate([64], "float32", "local")
        B = T.decl_buffer((64,), "float32", data=L, scope="local")
        for i in T.vectorized(16):
            for j in range(4):
                if i < n:
                    B[j * 16 + i] = A[j * 16 + i]
        """,
    )
    stores = [n for n in walk(vectorize_loop(func).body) if isinstance(n, tir.BufferStore)]
    assert len(stores) == 1 and stores[0].predicate is None and isinstance(stores[0].value, prim.Select)


@pytest.mark.parametrize("index", ["i * 8 + j", "(i + 1) * 8 + (j - 8)", "j + i * 4 + i * 4"])
def test_flat_indices_have_one_form(index: str) -> None:
    text = f"for i, j in T.grid(8, 8):\n    A[{index}] = A[i * 8 + j]"
    func = lower(prim_func('A: T.Buffer((64,), "float32")', text))
    (store,) = [n for n in walk(func.body) if isinstance(n, tir.BufferStore)]
    assert isinstance(store.value, prim.BufferLoad)
    assert Analyzer().can_prove_equal(store.indices[0], store.value.indices[0])
