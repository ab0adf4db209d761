"""Sessions: what inputs change, and that what fails or is interrupted changes nothing."""

from __future__ import annotations

import sys
import types
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from relaxlang.ir import relax
from relaxlang.ir.module import IRModule
from relaxlang.passes import PASSES
from relaxlang.passes.base import FunctionPass, PassContext
from relaxlang.repl import comparison
from relaxlang.repl.session import Result, Session
from relaxlang.repl.stages import Stages
from relaxlang.repl.state import RESULTS

TWICE = """@R.function
def twice(x: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
    y = x + x
    return y
"""


def run(session: Session, *texts: str) -> Result:
    """Run inputs that must all succeed; the last result."""
    result = None
    for text in texts:
        result = session.execute(text)
        assert result.ok, [d.message for d in result.diagnostics]
    assert result is not None
    return result


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("R.nn.reluu(x)", "RLX0103"),
        (":apply normalize,nothing", "RLX3101"),
        (":load nowhere.rlx", "RLX0017"),
        (":undo 9", "RLX7103"),
        ("y = 1\nR.matmul(x, x)\n", "RLX0210"),
        (TWICE.replace("x + x", "x + z"), "RLX0101"),
        (":set q = x @ x", "RLX0210"),
        ("while x: pass", "RLX7104"),
        ("if", "RLX0008"),
        (":nothing", "RLX7101"),
        ("x.size", "RLX0102"),
        ("R", "RLX7105"),
        ("(" * 400, "RLX0009"),
        ("\0", "RLX0012"),
    ],
)
def test_what_fails_changes_nothing(text: str, code: str) -> None:
    session = Session()
    run(session, TWICE, "x = rand(2, 3)")
    before = session.state
    result = session.execute(text)
    assert not result.ok and code in [d.code for d in result.diagnostics]
    assert session.state is before


def test_an_interrupt_leaves_the_session_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session()
    run(session, TWICE)
    before = session.state

    def interrupt(self: Stages) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Stages, "lowered", property(interrupt))
        with pytest.raises(KeyboardInterrupt):
            session.execute("y = twice(ones(2))")
    assert session.state is before
    assert np.array_equal(run(session, "twice(ones(2))").value, [2, 2])


def test_values_are_numpys() -> None:
    session = Session()
    x = run(session, "x = rand(3, 4)").value
    w = run(session, "w = rand(4, 2)").value
    np.testing.assert_allclose(run(session, "R.exp(x @ w) - 1.0").value, np.exp(x @ w) - 1, rtol=1e-5)
    assert np.array_equal(run(session, "_1[1:, 0]").value, run(session, "_1").value[1:, 0])
    assert run(session, "(x, 2)").value[1] == 2
    assert run(session, "x.shape").value == (3, 4)
    assert not np.array_equal(x, run(session, "rand(3, 4)").value)


def test_results_are_numbered_and_the_latest_are_kept() -> None:
    session = Session()
    for k in range(RESULTS + 3):
        run(session, str(k))
    assert run(session, "_").value == RESULTS + 2
    assert run(session, f"_{RESULTS}").value == RESULTS - 1
    assert not session.execute("_1").ok


def test_time_travel_keeps_every_branch() -> None:
    session = Session()
    run(session, TWICE, ":snapshot begin", ":apply legalize-ops", ":undo", ":apply to-non-dataflow,call-tir-rewrite")
    assert [s.parent for s in session.state.history.steps] == [0, 0, 1, 1]
    first, second = (session.state.history.steps[k].module for k in (2, 3))
    run(session, ":checkout 2")
    assert session.module is first
    run(session, ":undo", ":redo")
    assert session.module is second
    run(session, ":checkout begin")
    assert session.module is session.state.history.steps[1].module
    assert "from step 1" in run(session, ":history").text


def test_a_failed_run_leaves_its_frames() -> None:
    session = Session()
    run(session, TWICE)
    assert not session.execute(":run twice(ones(2, 2))").ok
    assert session.places == ()  # refused before the function began
    session.execute(":load examples/packed_function.rlx")
    assert not session.execute(":run main(ones(2, 3))").ok
    assert run(session, ":print R.sum(x)").value == 6


def test_an_interrupted_debugger_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session()
    run(session, TWICE, ":debug twice(ones(2))")
    assert session.debugger is not None

    class Interrupted:
        def get(self) -> None:
            raise KeyboardInterrupt

    monkeypatch.setattr(session.debugger, "_stops", Interrupted())
    with pytest.raises(KeyboardInterrupt):
        session.execute(":step")
    assert not session.execute(":step").ok
    run(session, "twice(ones(2))")


def test_breakpoints_count_while_a_program_has_stopped() -> None:
    session = Session()
    run(session, TWICE.replace("y = x + x", "z = x + x\n    y = z + x"), ":debug twice(ones(2))", ":break twice:y")
    assert "y = " in run(session, ":continue").text and session.debugger is not None
    run(session, ":abandon", ":debug twice(ones(2))", ":delete", ":continue")
    assert session.debugger is None  # what was deleted stops nothing


# --- files ------------------------------------------------------------------------------------------------------------
def test_saving(tmp_path: Path) -> None:
    session = Session()
    run(session, TWICE, 'x = arange(3, dtype="float32")')
    assert not session.execute(":save").ok
    run(session, f":save {tmp_path / 'm.rlx'}", ":save", f":save session {tmp_path / 's.session'}")
    assert (tmp_path / "m.rlx").read_text() == session.module.script()
    other = Session()
    run(other, f":load {tmp_path / 'm.rlx'}", "twice(ones(2))")
    assert not other.execute(":save").ok  # it was loaded, not written, by this session
    from relaxlang.repl.transcript import read_script

    entries = read_script((tmp_path / "s.session").read_text()).entries
    assert [e.text for e in entries] == [
        TWICE.rstrip(),
        'x = arange(3, dtype="float32")',
        *[e.text for e in entries[2:]],
    ]


def test_parameters_of_modules_and_reloading(tmp_path: Path) -> None:
    path = tmp_path / "p.rlx"
    path.write_text("N = I.param(int)\n" + TWICE.replace("(n,)", "(N,)"))
    session = Session()
    assert not session.execute(f":load {path}").ok
    run(session, f":load {path} N=3", "twice(ones(3))")
    assert not session.execute("twice(ones(4))").ok
    path.write_text(path.read_text().replace("x + x", "x + x + x"))
    run(session, ":reload")
    assert np.array_equal(run(session, "twice(ones(3))").value, [3, 3, 3])


def test_editing() -> None:
    session = Session()
    run(session, TWICE)
    assert not session.execute(":edit twice").ok  # there is no editor here
    session.editor = lambda text: text.replace("R.add(x, x)", "x * x * x")
    assert run(session, ":edit twice").text == "replaced twice"
    assert np.array_equal(run(session, "twice(array([2.0]))").value, [8])
    session.editor = lambda text: text.replace("def twice", "def thrice")
    run(session, ":edit")
    assert list(session.module) == ["thrice"]
    assert run(session, ":edit thrice").text != ""


# --- faults that are planted ------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class SpoilAdd(FunctionPass):
    """Turns sums into products."""

    def run_function(self, func: relax.Function, mod: IRModule, ctx: PassContext) -> relax.Function:
        from relaxlang.ir.visit import Rewriter, on

        class Spoil(Rewriter):
            @on(relax.Call)
            def call(self, node: relax.Call) -> relax.Call:
                wrong = isinstance(node.op, relax.Op) and node.op.name == "add"
                return node.replace(op=relax.Op("multiply")) if wrong else node

        made: relax.Function = Spoil()(func)
        return made


@pytest.fixture
def spoil(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a pass that is wrong."""
    module = types.ModuleType("relaxlang.passes.relax.spoil_add")
    module.SpoilAdd = SpoilAdd  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(PASSES, "spoil-add", "relax.spoil_add:SpoilAdd")
    return "spoil-add"


def test_bisect_finds_the_pass_that_broke_the_module(spoil: str) -> None:
    session = Session()
    run(session, TWICE, ":apply normalize", f":apply {spoil},legalize-ops")
    said = run(session, ":bisect twice(array([3.0, 5.0]))").text
    assert said.startswith(f"`{spoil}` changes the result") and "9.0 instead of 6.0" in said


def test_bisect_looks_at_the_pipeline_when_nothing_was_applied(spoil: str) -> None:
    session = Session()
    run(session, TWICE, f":pipeline normalize,{spoil},legalize-ops")
    assert f"`{spoil}` changes" in run(session, ":bisect twice(array([3.0]))").text


def test_compare_sees_a_wrong_pipeline(spoil: str) -> None:
    session = Session()
    run(session, TWICE, ":compare", f":pipeline {spoil},legalize-ops")
    result = session.execute(":compare twice(array([3.0]))")
    assert [d.code for d in result.diagnostics] == ["RLX7106"]
    assert "add" in run(session, ":watch y").text and "multiply" in run(session, ":watch y").text


def test_differences() -> None:
    a = np.array([1, 2, 3], "float32")
    assert comparison.differences(a, a * np.float32(1 + 1e-6)) == []
    assert "first at [1]" in comparison.differences(a, np.array([1, 2.1, 3], "float32"))[0]
    assert comparison.differences(np.array([np.nan]), np.array([np.nan])) == []
    assert comparison.differences(np.array([1]), np.array([2])) != []
    assert "float64" in comparison.differences(a, a.astype("f8"))[0]
    assert comparison.differences((a, 1), (a, 2), "result") == ["result[1]: 2 instead of 1"]


# --- measuring --------------------------------------------------------------------------------------------------------
def test_times_and_profiles() -> None:
    session = Session()
    run(session, TWICE)
    assert " calls)" in run(session, ":time twice(ones(8))").text
    assert " calls)" in run(session, ":time R.exp(ones(8))").text
    assert not session.execute(":time 3").ok
    table = run(session, ":profile twice(ones(8))").text.splitlines()
    assert table[0].split()[:5] == ["kernel", "calls", "µs", "share", "GFLOP/s"] and table[1].startswith("add")
    assert table[1].split()[-2:] == ["<input", "1>:3"] or "<input 1>:3 (y)" in table[1]


def test_stages() -> None:
    session = Session()
    run(session, TWICE)
    assert "T.block" in run(session, ":show tir").text
    assert "define" in run(session, ":show llvm twice").text
    assert "# add" in run(session, ":show asm").text
    assert run(session, ":show vm twice").text.startswith("@twice(x)")
    assert run(session, ":show twice").language == "rlx"
