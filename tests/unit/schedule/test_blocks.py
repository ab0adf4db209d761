"""Where blocks are computed: compute_at, inlining, caches, reductions taken apart, layouts."""

import numpy as np
import pytest

import relaxlang
from relaxlang import DiagnosticError
from relaxlang.schedule import Schedule
from relaxlang.schedule.tensor_intrin import TensorIntrin
from tests.unit.schedule.kernels import CHAIN, MATMUL, STENCIL, SUM, module, same


@pytest.mark.parametrize("n", [1, 8, 30, 61])
@pytest.mark.parametrize("unit", [False, True])
def test_compute_at_of_a_stencil(n: int, unit: bool) -> None:
    mod = module(STENCIL, M=n + 2, N=n)
    sch = Schedule(mod)
    i0, _ = sch.split(sch.get_loops("C")[0], [None, 8])
    sch.compute_at("B", i0, preserve_unit_loops=unit)
    same(mod, sch)


def test_compute_at_computes_what_is_read() -> None:
    sch = Schedule(module(STENCIL, M=34, N=32))
    i0, _ = sch.split(sch.get_loops("C")[0], [None, 8])
    sch.compute_at("B", i0)
    assert sch.get(sch.get_loops("B")[-1]).extent.value == 10


@pytest.mark.parametrize("m, n", [(1, 1), (5, 19), (16, 32)])
def test_chain_in_one_loop(m: int, n: int) -> None:
    mod = module(CHAIN, M=m, N=n)
    sch = Schedule(mod)
    i, j = sch.get_loops("D")
    j0, _ = sch.split(j, [None, 8])
    sch.compute_at("C", j0)
    sch.compute_at("B", i)
    sch.parallel(i)
    same(mod, sch, rtol=1e-5)


def test_reverse_compute_at() -> None:
    mod = module(CHAIN, M=9, N=20)
    sch = Schedule(mod)
    _, j = sch.get_loops("B")
    j0, _ = sch.split(j, [None, 8])
    sch.reverse_compute_at("C", j0)
    sch.reverse_compute_at("D", sch.get_loops("B")[0])
    same(mod, sch, rtol=1e-5)


@pytest.mark.parametrize("m, n, k", [(1, 1, 1), (13, 35, 7), (16, 32, 8)])
def test_register_tile(m: int, n: int, k: int) -> None:
    mod = module(MATMUL, M=m, N=n, K=k)
    sch = Schedule(mod)
    i, j, r = sch.get_loops("mm")
    out = sch.cache_write("mm", 0, "local")
    i0, i1 = sch.split(i, [None, 4])
    j0, j1 = sch.split(j, [None, 16])
    sch.reorder(i0, j0, r, i1, j1)
    sch.reverse_compute_at(out, j0)
    copy = sch.cache_read("mm", 1, "local")
    sch.compute_at(copy, j0)
    sch.decompose_reduction("mm", r)
    sch.vectorize(j1)
    sch.unroll(i1)
    sch.parallel(i0)
    same(mod, sch)


def test_inlining() -> None:
    mod = module(CHAIN, M=5, N=7)
    sch = Schedule(mod)
    sch.compute_inline("B")
    sch.compute_inline("C")
    assert list(sch.state.blocks) == ["root", "D"] and "alloc_buffer" not in sch.mod.script()
    same(mod, sch, rtol=1e-5)


def test_reverse_inlining() -> None:
    mod = module(CHAIN, M=5, N=7)
    sch = Schedule(mod)
    sch.compute_inline("B")
    sch.reverse_compute_inline("D")
    assert list(sch.state.blocks) == ["root", "C"]
    same(mod, sch, rtol=1e-5)


def test_reverse_inlining_through_a_transpose() -> None:
    mod = relaxlang.parse("""
@T.prim_func
def main(A: T.Buffer((5, 7), "float32"), C: T.Buffer((7, 5), "float32")):
    B = T.alloc_buffer((5, 7), "float32")
    for i, j in T.grid(5, 7):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(7, 5):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vj, vi]
""")
    sch = Schedule(mod)
    sch.reverse_compute_inline("C")
    assert list(sch.state.blocks) == ["root", "B"]
    same(mod, sch)


@pytest.mark.parametrize("n", [5, 16, 61])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("inner", [False, True])
def test_rfactor(n: int, axis: int, inner: bool) -> None:
    mod = module(SUM, M=3, N=n)
    sch = Schedule(mod)
    loops = sch.split(sch.get_loops("sum")[1], [None, 4])
    partial = sch.rfactor(loops[inner], axis)
    assert sch.get(partial).name_hint == "sum_rf"
    same(mod, sch)


FIRST = [("B[vi] + A[vi, vk]", "T.float32(5)"), ("B[vi] * A[vi, vk]", "C[vi]"), ("T.min(B[vi], A[vi, vk])", "C[vi]")]


@pytest.mark.parametrize("update, first", FIRST)
def test_what_a_reduction_begins_with_counts_once(update: str, first: str) -> None:
    mod = module(
        f"""
        @T.prim_func
        def main(A: T.Buffer((3, 24), "float32"), C: T.Buffer((3,), "float32"), B: T.Buffer((3,), "float32")):
            for i, k in T.grid(3, 24):
                with T.block("total"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        B[vi] = {first}
                    B[vi] = {update}
        """
    )
    sch = Schedule(mod)
    sch.rfactor(sch.split(sch.get_loops("total")[1], [None, 8])[1], 1)
    same(mod, sch, rtol=1e-4)


def test_partial_results_in_vectors() -> None:
    mod = module(SUM, M="m", N="n")
    sch = Schedule(mod)
    _i, k = sch.get_loops("sum")
    _, lanes = sch.split(k, [None, 8])
    partial = sch.rfactor(lanes, 1)
    inner = sch.get_loops(partial)
    sch.reorder(*inner[:1], *inner[1:])
    sch.vectorize(inner[-1])
    for m, n in [(1, 1), (3, 7), (2, 64), (5, 61)]:
        same(mod, sch, m=m, n=n)


@pytest.mark.parametrize("at", [0, 1, 2])
def test_decompose_reduction(at: int) -> None:
    mod = module(MATMUL, M=3, N=5, K=4)
    sch = Schedule(mod)
    init = sch.decompose_reduction("mm", sch.get_loops("mm")[at])
    assert sch.get(init).name_hint == "mm_init" and "mm_update" in sch.state.blocks
    same(mod, sch)


def test_layout_of_a_copy() -> None:
    mod = module(MATMUL, M=4, N=32, K=6)
    sch = Schedule(mod)
    copy = sch.cache_read("mm", 1, "global")
    sch.transform_layout(copy, ("write", 0), lambda k, j: (j // 8, k, j % 8))
    assert 'T.alloc_buffer((4, 6, 8), "float32")' in sch.mod.script()
    same(mod, sch)


def test_reindex() -> None:
    mod = module(MATMUL, M=4, N=9, K=6)
    sch = Schedule(mod)
    sch.reindex("mm", ("read", 0))
    sch.reindex("mm", ("write", 0))
    same(mod, sch)


def test_blockize() -> None:
    mod = module(MATMUL, M=8, N=16, K=4)
    sch = Schedule(mod)
    i, j, k = sch.get_loops("mm")
    i0, i1 = sch.split(i, [2, 4])
    j0, j1 = sch.split(j, [2, 8])
    sch.reorder(i0, j0, i1, j1, k)
    outer = sch.blockize(i1)
    assert sch.get(outer).name_hint == "mm_o"
    same(mod, sch)


def test_annotations() -> None:
    mod = module(SUM, M=4, N=8)
    sch = Schedule(mod)
    i, _ = sch.get_loops("sum")
    sch.annotate(i, "pragma_note", 3)
    sch.annotate("sum", "note", "text")
    assert sch.get(i).annotations["pragma_note"] == 3
    sch.unannotate(i, "pragma_note")
    sch.storage_align("sum", 0, 0, 32, 8)
    same(mod, sch)


def test_sampled_tiles_multiply_to_the_extent() -> None:
    mod = module(MATMUL, M=48, N=16, K=4)
    sch = Schedule(mod, seed=7)
    i, j, _ = sch.get_loops("mm")
    factors = sch.sample_perfect_tile(i, 3, max_innermost_factor=8)
    assert int(np.prod([sch.get(f) for f in factors])) == 48
    sch.split(i, factors)
    width = sch.sample_categorical([2, 4, 8], [0.2, 0.3, 0.5])
    sch.split(j, [None, width])
    same(mod, sch)


@pytest.mark.parametrize(
    "code, words, act",
    [
        ("RLX1010", "writes an output", lambda s: s.compute_at("D", s.get_loops("B")[0])),
        ("RLX1010", "the consumer `C` of `B` is not below", lambda s: s.compute_at("B", s.get_loops("D")[0])),
        ("RLX1010", "already", lambda s: s.compute_at("B", s.get_loops("B")[0])),
        ("RLX1010", "no producer of `D` is below", lambda s: s.reverse_compute_at("D", s.get_loops("B")[0])),
        ("RLX1009", "writes an output", lambda s: s.compute_inline("D")),
        ("RLX1009", "no producer whose values it alone uses", lambda s: s.reverse_compute_inline("B")),
        ("RLX1004", "it has no init", lambda s: s.decompose_reduction("B", s.get_loops("B")[0])),
        ("RLX1008", "has no read buffer 5", lambda s: s.cache_read("B", 5, "local")),
        ("RLX1012", "is a parameter", lambda s: s.transform_layout("D", ("write", 0), lambda i, j: (j, i))),
        ("RLX1012", "is a parameter", lambda s: s.set_scope("D", 0, "local")),
        (
            "RLX1012",
            "`transform_layout` of `B`",
            lambda s: s.transform_layout("B", ("write", 0), lambda i, j: (i + j,)),
        ),
        ("RLX1013", "no annotation `x`", lambda s: s.unannotate("B", "x")),
    ],
)
def test_preconditions(code: str, words: str, act: object) -> None:
    sch = Schedule(module(CHAIN, M=5, N=7))
    with pytest.raises(DiagnosticError) as fault:
        act(sch)  # type: ignore[operator]
    assert fault.value.diagnostics[0].code == code
    assert words in str(fault.value)


def test_an_unfinished_reduction_is_not_used() -> None:
    sch = Schedule(module(MATMUL, M=8, N=8, K=8))
    out = sch.cache_write("mm", 0, "local")
    i, j, k = sch.get_loops("mm")
    sch.reorder(k, i, j)
    with pytest.raises(DiagnosticError, match="not finished"):
        sch.reverse_compute_at(out, i)


def test_decomposing_inside_of_the_reduction_is_refused() -> None:
    sch = Schedule(module(MATMUL, M=8, N=8, K=8))
    i, j, k = sch.get_loops("mm")
    sch.reorder(k, i, j)
    with pytest.raises(DiagnosticError, match="belongs to the reduction"):
        sch.decompose_reduction("mm", i)


# --- pad_einsum -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("m, n, k", [(1, 1, 1), (3, 17, 5), (13, 65, 7), (16, 32, 8)])
def test_pad_einsum_makes_extents_that_tiles_divide(m: int, n: int, k: int) -> None:
    mod = module(MATMUL, M=m, N=n, K=k)
    sch = Schedule(mod)
    sch.pad_einsum("mm", [4, 16, 2])
    extents = [s.extent.value for s in map(sch.get, sch.get_loops("mm"))]
    assert extents == [-(-m // 4) * 4, -(-n // 16) * 16, -(-k // 2) * 2]
    same(mod, sch)


def test_pad_einsum_may_repeat_the_last_element() -> None:
    mod = module(MATMUL, M=13, N=17, K=5)
    sch = Schedule(mod)
    sch.pad_einsum("mm", [4, 16, 1], repeat=[0])
    text = sch.mod.script()
    assert "A_pad[v0, v1] = A[T.min(v0, " in text and "B_pad[v0, v1] = T.if_then_else(" in text
    same(mod, sch)
    with pytest.raises(DiagnosticError, match="RLX1013"):
        Schedule(mod).pad_einsum("mm", [4, 16, 1], repeat=[2])


def test_pad_einsum_of_symbolic_sizes() -> None:
    mod = module(MATMUL, M="m", N="n", K="k")
    sch = Schedule(mod)
    sch.pad_einsum("mm", [4, 16, 1])
    for m, n, k in [(1, 1, 1), (5, 17, 3), (8, 16, 2)]:
        same(mod, sch, m=m, n=n, k=k)


def test_pad_einsum_refuses_what_is_no_sum_of_products() -> None:
    with pytest.raises(DiagnosticError, match="RLX1004"):
        Schedule(module(STENCIL, M=10, N=8)).pad_einsum("C", [4])
    with pytest.raises(DiagnosticError, match="RLX1013"):
        Schedule(module(MATMUL, M=3, N=4, K=5)).pad_einsum("mm", [4, 4])
    sch = Schedule(module(MATMUL, M=3, N=4, K=5))
    sch.split(sch.get_loops("mm")[0], [None, 2])
    with pytest.raises(DiagnosticError, match="RLX1004"):
        sch.pad_einsum("mm", [4, 4, 4])


# --- tile and tensorize -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("m, n", [(1, 1), (17, 63), (16, 64)])
def test_tile(m: int, n: int) -> None:
    mod = module(MATMUL, M=m, N=n, K=3)
    sch = Schedule(mod)
    i, j, _ = sch.get_loops("mm")
    tiles = sch.tile(i, j, 4, 16)
    assert [sch.get(t).loop_var.name for t in tiles] == ["i_0", "j_0", "i_1", "j_1"]
    same(mod, sch)


DOT = """
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((8, 16), "float32"), C: T.Buffer((4, 16), "float32")):
    for i, j, k in T.grid(4, 16, 8):
        with T.block("update"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""
DOT_BY_VECTORS = """
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((8, 16), "float32"), C: T.Buffer((4, 16), "float32")):
    for k in range(8):
        for i in T.unroll(4):
            for j in T.vectorized(16):
                C[i, j] = C[i, j] + A[i, k] * B[k, j]
"""


def test_tensorize() -> None:
    TensorIntrin.register("test.dot", module(DOT)["main"], module(DOT_BY_VECTORS)["main"], override=True)
    mod = module(MATMUL, M=8, N=32, K=24)
    sch = Schedule(mod)
    i, j, k = sch.get_loops("mm")
    i0, j0, i1, j1 = sch.tile(i, j, 4, 16)
    k0, k1 = sch.split(k, [None, 8])
    sch.reorder(i0, j0, k0, i1, j1, k1)
    sch.decompose_reduction("mm", k0)
    sch.tensorize(i1, "test.dot")
    assert "T.match_buffer" in sch.mod.script() and "T.vectorized(16)" in sch.mod.script()
    same(mod, sch)


def test_tensorize_refuses_what_the_intrinsic_does_not_describe() -> None:
    TensorIntrin.register("test.dot", module(DOT)["main"], module(DOT_BY_VECTORS)["main"], override=True)
    sch = Schedule(module(MATMUL, M=8, N=32, K=24))
    with pytest.raises(DiagnosticError, match="RLX1018"):
        sch.tensorize(sch.get_loops("mm")[0], "test.dot")
    with pytest.raises(DiagnosticError, match="RLX1001"):
        sch.tensorize(sch.get_loops("mm")[0], "test.dott")
    with pytest.raises(DiagnosticError, match="RLX1013"):
        TensorIntrin.register("test.dot", module(DOT)["main"], module(DOT_BY_VECTORS)["main"])


INSIDE = """
@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    with T.block("b"):
        total_data = T.allocate([1], "float32", "global")
        total = T.Buffer((1,), "float32", data=total_data)
        total[0] = T.float32(0)
        for i in range(8):
            total[0] = total[0] + A[i]
            B[i] = total[0]
"""


def test_memory_made_inside_of_a_block_is_not_among_its_regions() -> None:
    sch = Schedule(relaxlang.parse(INSIDE))
    block = sch.get(sch.get_block("b"))
    assert [r.buffer.name for r in block.reads] == ["A"]
    assert [w.buffer.name for w in block.writes] == ["B"]
