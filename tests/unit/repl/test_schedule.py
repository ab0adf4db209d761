"""Scheduling by hand: what is typed changes the kernel, the trace replays, and what is wrong changes nothing."""

from __future__ import annotations

import numpy as np
import pytest

import relaxlang
from relaxlang.ir.structural import structural_equal
from relaxlang.ir.tir import PrimFunc
from relaxlang.passes.tir.schedule_cpu import ScheduleCPU
from relaxlang.repl.completion import choices
from relaxlang.repl.primitives import PRIMITIVES
from relaxlang.repl.scope import signature
from relaxlang.repl.session import Result, Session
from relaxlang.repl.stages import Stages
from relaxlang.schedule import Schedule

PROGRAM = """@I.ir_module
class M:
    @T.prim_func
    def f(A: T.Buffer((n, 32), "float32"), C: T.Buffer((n, 32), "float32")):
        B = T.alloc_buffer((n, 32), "float32")
        for i, j in T.grid(n, 32):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)
        for i, j in T.grid(n, 32):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] + T.float32(1)
"""
LINES = ("split C.j 8", "reorder j_0 C.i", "compute_at B j_0", "vectorize j_1", "parallel(j_0)")


def run(session: Session, *texts: str) -> Result:
    """Run inputs that must all succeed; the last result."""
    for text in texts:
        result = session.execute(text)
        assert result.ok, (text, [d.message for d in result.diagnostics])
    return result


@pytest.fixture
def session() -> Session:
    made = Session()
    run(made, PROGRAM, ":schedule f n=5")
    return made


def test_each_primitive_shows_what_it_changes_and_its_time(session: Session) -> None:
    said = run(session, "split C.j 8")
    assert said.language == "diff"
    assert (
        "-        for i, j in T.grid(n, 32):" in said.text
        and "+        for i, j_0, j_1 in T.grid(n, 4, 8):" in said.text
    )
    assert said.text.splitlines()[-1].startswith("time: ") and "GFLOP/s (before " in said.text
    assert session.prompt == "schedule> "


def test_the_scheduled_kernel_goes_into_the_module(session: Session) -> None:
    said = run(session, *LINES, ":done").text
    assert said.startswith("f is scheduled: ") and session.prompt == "relax> "
    assert "T.parallel" in session.module.script() and "T.vectorized" in session.module.script()
    x = np.arange(96, dtype="float32").reshape(3, 32)
    np.testing.assert_array_equal(run(session, ":run f(array([[1.0]]) + zeros(3, 32))").value, np.full((3, 32), 3))
    out = np.zeros_like(x)
    relaxlang.build(session.module)["f"](x, out)
    np.testing.assert_array_equal(out, 2 * x + 1)
    assert not session.execute(":export").ok  # no command line makes this kernel
    run(session, ":undo")
    assert "T.parallel" not in session.module.script()


def test_the_trace_is_python_and_the_attribute(session: Session) -> None:
    original = session.module
    run(session, *LINES)
    python, attribute = (run(session, f":trace {form}").text for form in ("python", "rlx"))
    run(session, ":done")
    wanted = session.module["f"]
    names = {"relaxlang": relaxlang, "mod": original}
    exec(python, names)
    assert structural_equal(names["mod"]["f"], wanted)
    text = PROGRAM.replace('"float32")):\n', f'"float32")):\n        {attribute.replace(chr(10), "")}\n', 1)
    assert structural_equal(ScheduleCPU()(relaxlang.parse(text))["f"], wanted)


def test_a_trace_can_be_typed(session: Session) -> None:
    run(session, *LINES)
    lines, text = run(session, ":trace").text, session.state.scheduling
    run(session, ":abandon", ":schedule f n=5", lines)
    assert session.state.scheduling is not None and text is not None
    assert session.state.scheduling.text == text.text


def test_several_lines_are_all_done_or_none(session: Session) -> None:
    assert run(session, "\n".join(LINES)).text.count("time: ") == len(LINES)
    run(session, ":undo")  # one line, not all of them
    before = session.state
    assert not session.execute("parallel j_0\nvectorize nothing").ok and session.state is before


def test_the_attribute_alone(session: Session) -> None:
    run(session, *LINES, ":done --attribute")
    f = session.module["f"]
    assert isinstance(f, PrimFunc) and len(f.attrs["schedule"]) == 6 and "T.parallel" not in str(f.body)


def test_undo_takes_a_line_back_with_its_look_ups(session: Session) -> None:
    run(session, "split C.j 8", "vectorize j_1", ":undo 2")
    assert run(session, ":trace").text == "no primitive yet"
    assert [d.code for d in session.execute(":undo").diagnostics] == ["RLX7103"]
    run(session, ":done")
    assert len(session.state.history.steps) == 2


def test_sizes_can_change(session: Session) -> None:
    run(session, "split C.j 8")
    assert session.execute(":schedule m=3").diagnostics[0].code == "RLX7005"
    run(session, ":schedule n=9")
    assert session.state.scheduling is not None
    assert session.state.scheduling.call.args[0].shape == (9, 32)


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("spilt C.j 8", "RLX1013", "there is no primitive `spilt`"),
        ("split j 8", "RLX1001", "there are 2 loops `j`"),
        ("split q 8", "RLX1001", "the function has no loop `q`"),
        ("compute_at D C.i", "RLX1001", "the function has no block `D`"),
        ("split C.j", "RLX1013", "`split` lacks its EXTENT"),
        ("vectorize C.j 8", "RLX1013", "there is one argument too many"),
        ("vectorize C.i", "RLX1006", "`vectorize` takes loops of a constant extent; `i` has n"),
        ("split C.j x", "RLX1014", "nothing before this line is called `x`"),
        ("split C.j (", "RLX0004", "`(`"),
        ("split(C.j", "RLX1013", "`(` is never closed"),
        ("compute_inline C", "RLX10", ""),
        ("reindex B over 0", "RLX1013", "`over` is neither"),
        ("compute_at B C.i colour=3", "RLX1013", "no option `colour`"),
        ("sch.nothing()", "RLX1014", "no instruction `nothing`"),
        ("x = 3", "RLX1013", "there is no primitive `x`"),
        (":trace lisp", "RLX7102", ""),
        (":schedule g", "RLX7103", "`f` is being scheduled"),
    ],
)
def test_what_is_wrong_changes_nothing(session: Session, line: str, code: str, said: str) -> None:
    before = session.state
    result = session.execute(line)
    assert not result.ok and result.diagnostics[0].code.startswith(code), result.diagnostics
    assert said in result.diagnostics[0].message and session.state is before


def test_what_cannot_be_scheduled() -> None:
    session = Session()
    run(session, ":load examples/digits.rlx")
    assert session.execute(":schedule main").diagnostics[0].code == "RLX7102"
    assert session.execute(":done").diagnostics[0].code == "RLX7103"
    assert session.execute(":trace").diagnostics[0].code == "RLX7103"


def test_completion_and_signatures(session: Session) -> None:
    assert "vectorize" in [c.text for c in choices(session, "vec")]
    assert {c.text for c in choices(session, "split ")} == {"B.i", "B.j", "C.i", "C.j"}
    assert {c.text for c in choices(session, "compute_at ")} == {"B", "C"}
    assert {c.text for c in choices(session, "compute_at B C.")} == {"C.i", "C.j"}
    assert {c.text for c in choices(session, "cache_read(B, ")} == {"A", "B", "C"}
    assert "done" in [c.text for c in choices(session, ":don")]
    assert signature(session, "split C.j ").startswith("split LOOP EXTENT…")


def test_every_primitive_can_be_typed() -> None:
    looked_up = {name for name in Schedule.INSTRUCTIONS if name.startswith(("get_", "sample_"))}
    assert set(PRIMITIVES) == set(Schedule.INSTRUCTIONS) - looked_up - {"work_on"}


def test_an_interrupt_leaves_the_schedule_as_it_was(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    run(session, "split C.j 8")
    before = session.state

    def interrupt(self: Stages) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Stages, "lowered", property(interrupt))
        with pytest.raises(KeyboardInterrupt):
            session.execute("vectorize j_1")
    assert session.state is before
    run(session, "vectorize j_1")
