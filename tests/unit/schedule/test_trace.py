"""Traces: text, replaying, faults in the text."""

import pytest

import relaxlang
from relaxlang import DiagnosticError
from relaxlang.schedule import Schedule
from relaxlang.schedule.trace import run_lines
from tests.unit.schedule.kernels import MATMUL, SUM, module


def test_the_text_of_a_trace() -> None:
    sch = Schedule(module(MATMUL, M=16, N=32, K=8))
    block = sch.get_block("mm")
    i, j, _ = sch.get_loops(block)
    sch.split(i, [None, 8])
    sch.annotate(j, "note", 'some "text"')
    assert str(sch.trace).splitlines() == [
        'b0 = sch.get_block("mm")',
        "l1, l2, l3 = sch.get_loops(b0)",
        "l4, l5 = sch.split(l1, factors=[None, 8])",
        'sch.annotate(l2, "note", "some \\"text\\"")',
    ]
    assert sch.trace.as_python().startswith("def apply_schedule(sch):\n    b0 = ")


def test_a_trace_applies_to_another_size() -> None:
    sch = Schedule(module(MATMUL, M=16, N=32, K=8))
    i, j, k = sch.get_loops("mm")
    i0, i1 = sch.split(i, [None, 8])
    sch.reorder(i0, k, i1, j)
    other = Schedule(module(MATMUL, M=21, N=5, K=3))
    sch.trace.apply_to_schedule(other)
    assert "for i_0, k, i_1, j in T.grid(3, 3, 8, 5)" in other.mod.script()


def test_sampled_decisions_are_kept() -> None:
    mod = module(MATMUL, M=48, N=32, K=8)
    sch = Schedule(mod, seed=3)
    factors = sch.sample_perfect_tile(sch.get_loops("mm")[0], 2)
    sch.split(sch.get_loops("mm")[0], factors)
    again = Schedule(mod, seed=99)
    run_lines(again, sch.trace.lines())
    relaxlang.assert_structural_equal(again.mod, sch.mod)


def test_lookups_that_nobody_uses_are_dropped() -> None:
    sch = Schedule(module(SUM, M=4, N=8))
    sch.get_block("sum")
    i, _ = sch.get_loops("sum")
    sch.parallel(i)
    assert [one.method for one in sch.trace.simplified().instructions] == ["get_loops", "parallel"]


@pytest.mark.parametrize(
    "code, words, line",
    [
        ("RLX1014", "a line of a schedule is a call", "x = 3"),
        ("RLX1014", "no instruction `splat`", 'sch.splat("sum")'),
        ("RLX1014", "is called `l7`", "sch.parallel(l7)"),
        ("RLX1014", "does not take these arguments", "sch.parallel()"),
        ("RLX1014", "gives 2 values, not 3", 'a, b, c = sch.get_loops("sum")'),
        ("RLX1001", "no block `sam`", 'sch.get_block("sam")'),
        ("RLX1014", "an argument of an instruction", "sch.get_block(1 + 2)"),
    ],
)
def test_faults_in_the_text(code: str, words: str, line: str) -> None:
    with pytest.raises(DiagnosticError) as fault:
        run_lines(Schedule(module(SUM, M=4, N=8)), [line])
    assert fault.value.diagnostics[0].code == code
    assert words in str(fault.value)
