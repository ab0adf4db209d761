"""split, fuse, reorder, parallel, vectorize, unroll."""

import pytest

from relaxlang import DiagnosticError
from relaxlang.schedule import Schedule
from tests.unit.schedule.kernels import CHAIN, MATMUL, STENCIL, SUM, module, same

SIZES = [(1, 1, 1), (3, 17, 5), (8, 32, 16), (13, 63, 7)]


def texts(sch: Schedule) -> str:
    return sch.mod.script()


@pytest.mark.parametrize("m, n, k", SIZES)
def test_tiles_of_any_size(m: int, n: int, k: int) -> None:
    mod = module(MATMUL, M=m, N=n, K=k)
    sch = Schedule(mod)
    i, j, r = sch.get_loops("mm")
    i0, i1 = sch.split(i, [None, 4])
    j0, j1 = sch.split(j, [None, 8])
    r0, r1 = sch.split(r, [None, 2])
    sch.reorder(i0, j0, r0, r1, i1, j1)
    sch.parallel(i0)
    sch.unroll(r1)
    sch.vectorize(j1)
    same(mod, sch)


@pytest.mark.parametrize("m, n", [(1, 1), (5, 9), (64, 33), (7, 128)])
def test_symbolic_sizes(m: int, n: int) -> None:
    mod = module(MATMUL, M="m", N="n", K="k")
    sch = Schedule(mod)
    i, j, k = sch.get_loops("mm")
    i0, i1 = sch.split(i, [None, 8])
    j0, j1 = sch.split(j, [None, 16])
    sch.reorder(i0, j0, k, i1, j1)
    sch.vectorize(j1)
    sch.unroll(i1)
    assert "T.where" in texts(sch)
    same(mod, sch, m=m, n=n, k=6)


def test_an_exact_split_has_no_condition() -> None:
    sch = Schedule(module(MATMUL, M=8, N=32, K=4))
    sch.split(sch.get_loops("mm")[1], [4, 8])
    assert "T.where" not in texts(sch)


def test_split_in_three_with_a_computed_factor() -> None:
    sch = Schedule(module(MATMUL, M=8, N=60, K=4))
    loops = sch.split(sch.get_loops("mm")[1], [None, 3, 5])
    assert [sch.get(s).extent.value for s in loops] == [4, 3, 5]


@pytest.mark.parametrize("m, n", [(4, 6), (5, 7)])
def test_fuse_and_split_again(m: int, n: int) -> None:
    mod = module(CHAIN, M=m, N=n)
    sch = Schedule(mod)
    for name in "BCD":
        line = sch.fuse(*sch.get_loops(name))
        a, b = sch.split(line, [None, 16])
        sch.vectorize(b)
        sch.parallel(a)
    same(mod, sch, rtol=1e-5)


def test_fusing_what_was_split_gives_the_loop_back() -> None:
    mod = module(SUM, M=12, N=4)
    sch = Schedule(mod)
    i, _ = sch.get_loops("sum")
    sch.fuse(*sch.split(i, [3, 4]))
    assert 'vi, vk = T.axis.remap("SR", [i_0_i_1_fused, k])' in texts(sch)
    same(mod, sch)


@pytest.mark.parametrize(
    "code, words, act",
    [
        ("RLX1005", "make 12 iterations, and it has 13", lambda s, i, j, k: s.split(i, [3, 4])),
        ("RLX1005", "only one factor", lambda s, i, j, k: s.split(i, [None, None])),
        ("RLX1005", "factors are positive", lambda s, i, j, k: s.split(i, [0, None])),
        ("RLX1003", "does not stand directly in", lambda s, i, j, k: s.fuse(i, k)),
        ("RLX1003", "given twice", lambda s, i, j, k: s.reorder(i, i)),
        ("RLX1007", "it is a reduction", lambda s, i, j, k: s.parallel(k)),
        ("RLX1007", "it is a reduction", lambda s, i, j, k: s.vectorize(k)),
        ("RLX1001", "did you mean `mm`", lambda s, i, j, k: s.get_block("mn")),
        ("RLX1002", "no longer there", lambda s, i, j, k: (s.split(i, [None, 4]), s.unroll(i))),
    ],
)
def test_preconditions(code: str, words: str, act: object) -> None:
    sch = Schedule(module(MATMUL, M=13, N=8, K=4))
    with pytest.raises(DiagnosticError) as fault:
        act(sch, *sch.get_loops("mm"))  # type: ignore[operator]
    assert fault.value.diagnostics[0].code == code
    assert words in str(fault.value)


def test_a_fault_shows_the_program_at_its_place() -> None:
    sch = Schedule(module(MATMUL, M=13, N=8, K=4))
    with pytest.raises(DiagnosticError) as fault:
        sch.parallel(sch.get_loops("mm")[2])
    shown = str(fault.value).splitlines()
    at = next(n for n, line in enumerate(shown) if "^^^" in line)
    assert 'with T.block("mm")' in shown[at - 1]


def test_a_refused_instruction_changes_nothing() -> None:
    sch = Schedule(module(MATMUL, M=13, N=8, K=4))
    i, _, k = sch.get_loops("mm")
    before = sch.mod, len(sch.trace)
    with pytest.raises(DiagnosticError):
        sch.fuse(i, k)
    assert (sch.mod, len(sch.trace)) == before


def test_a_parallel_loop_may_not_hand_on() -> None:
    mod = module(STENCIL, M=34, N=32)
    sch = Schedule(mod)
    (i,) = sch.get_loops("C")
    i0, _ = sch.split(i, [None, 8])
    sch.compute_at("B", i0)
    sch.parallel(i0)
    same(mod, sch)


def test_undo() -> None:
    mod = module(SUM, M=12, N=4)
    sch = Schedule(mod)
    i, k = sch.get_loops("sum")
    before = sch.mod
    sch.reorder(k, i)
    sch.undo()
    assert sch.mod is before
    sch.parallel(i)
    same(mod, sch)
