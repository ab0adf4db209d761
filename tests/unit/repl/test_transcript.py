"""Scripts: how they are read, run and compared; and the command line."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from relaxlang.repl.main import main
from relaxlang.repl.session import Session
from relaxlang.repl.transcript import blessed, chunks, matches, read_script
from relaxlang.testing.kinds import Mismatch
from relaxlang.testing.sessions import check_session, is_session

PROGRAM = """:load a.rlx
@R.function
def f(x: R.Tensor((n,), "float32")):
    y = x + x

    return y
@I.ir_module
class M:
    @R.function
    def g(
        x: R.Tensor((n,), "float32"),
    ):
        return x

f(rand(3,
  4))
x = 1
"""


def test_inputs_are_as_long_as_the_grammar_says() -> None:
    found = list(chunks(PROGRAM.splitlines(keepends=True)))
    assert [c.split("\n")[0] for c in found] == [":load a.rlx", "@R.function", "@I.ir_module", "f(rand(3,", "x = 1"]
    assert found[1].endswith("    return y") and found[3].endswith("4))")


def test_scripts_with_prompts() -> None:
    script = read_script("A heading.\n\nrelax> a\none\n\ntwo\nrelax> b\n  ...> c\nrelax>\n")
    assert script.heading == "A heading.\n"
    assert [tuple(e) for e in script.entries] == [("a", "one\n\ntwo", ""), ("b\nc", "", ""), ("", "", "")]


def test_prose_between_inputs_stays() -> None:
    text = 'Title.\nrelax> 1 + 1\n_1: R.Prim("int64")\n2\n\n## Why\nBecause.\n\nrelax> :undo 1 2\n…\n\n## The end.\n'
    script = read_script(text)
    assert [(e.text, e.prose) for e in script.entries] == [("1 + 1", ""), (":undo 1 2", "## Why\nBecause.\n")]
    assert script.ending == "## The end." and blessed(script) == text


@pytest.mark.parametrize(
    ("expected", "actual", "same"),
    [
        ("x   (1.5 ms)", "x   (20 µs)", True),
        ("x   (1.5 ms)", "x   (20 µs, compiled in 1.2 s)", True),
        ("x (3 s)", "y (3 s)", False),
        ("cpu … here", "cpu znver4 here", True),
        ("a\n…\nz", "a\nb\nc\nz", True),
        ("a\n…\nz", "a\nz", True),
        ("a\n…\nz", "a\nb", False),
        ("3 maps", "4 maps", False),
        ("", "x", False),
    ],
)
def test_times_and_ellipses_match(expected: str, actual: str, same: bool) -> None:
    assert matches(expected, actual) is same


def test_blessing_keeps_what_still_matches() -> None:
    script = read_script("Head.\nrelax> 1 + 1\n_1: …\n2\nrelax> 2\nwrong\n")
    assert blessed(script) == 'Head.\nrelax> 1 + 1\n_1: …\n2\nrelax> 2\n_2: R.Prim("int64")\n2\n'


# --- the command line -------------------------------------------------------------------------------------------------
def test_a_pipe_gives_a_transcript_and_stops_at_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("x = 3\r\nx + 1\ny\nx\n"))
    assert main([]) == 1
    out = capsys.readouterr().out
    assert out.startswith(
        'relax> x = 3\nx: R.Prim("int64")\nrelax> x + 1\n_1: R.Prim("int64")\n4\nrelax> y\nerror[RLX0101]'
    )
    assert "relax> x\n" not in out and "\r" not in out and "\x1b" not in out


def test_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-e", "y", "-e2 + 3", "--keep-going"]) == 1
    assert capsys.readouterr().out.endswith("5\n")
    assert main(["--json", "-e", "1 + 1", "-e", "zz"]) == 1
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first["value"] == 'R.Prim("int64")' and second["value"] is None
    assert first["ok"] and first["text"].endswith("\n2") and second["diagnostics"][0]["code"] == "RLX0101"
    assert main(["examples/own_kernel.rlx", "-e", ":list", "-e", ":quit", "-e", "zz"]) == 0
    assert "relax> :load examples/own_kernel.rlx\n" in capsys.readouterr().out
    assert main(["--help"]) == 0 and main(["--version"]) == 0


@pytest.mark.parametrize("words", [["--nothing"], ["-e"], ["a.rlx", "b.rlx"], ["--color=blue", "-e1"], ["no.session"]])
def test_wrong_command_lines(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert "error" in capsys.readouterr().err


def test_scripts_run_and_are_blessed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.session"
    path.write_text("relax> 1 + 1\nrelax> :quit\n")
    assert main(["--bless", str(path)]) == 0
    assert path.read_text() == 'relax> 1 + 1\n_1: R.Prim("int64")\n2\nrelax> :quit\n'
    assert main([str(path)]) == 0
    assert capsys.readouterr().out == path.read_text()


def test_an_internal_error_is_a_report_from_which_it_can_be_repeated(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(self: Session) -> None:
        raise ZeroDivisionError("planted")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Session, "result", broken)
    assert main(["-e", "x = 1", "-e", "x"]) == 70
    err = capsys.readouterr().err
    assert "internal error[RLX9001]" in err and "Traceback" not in err
    [report] = tmp_path.glob("relax-repl-crash-*.session")
    assert [e.text for e in read_script(report.read_text()).entries] == ["x = 1", "x"]


def test_session_files_are_checked_and_blessed(tmp_path: Path) -> None:
    path = tmp_path / "repl" / "a.session"
    path.parent.mkdir()
    path.write_text("relax> 1 + 1\nthree\n")
    assert is_session(path) and not is_session(tmp_path / "a.session")
    with pytest.raises(Mismatch, match=r"(?s)relax> 1 \+ 1.*-three"):
        check_session(path, False)
    check_session(path, True)
    check_session(path, False)


def test_a_script_shows_its_prose_and_goes_on_after_errors_that_it_expects(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.session"
    path.write_text(
        "Title.\nrelax> :undo\nerror[RLX7103]: there is nothing to undo\n\n## Then\nrelax> 1 + 1\n\n## End.\n"
    )
    assert main([str(path)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Title.\n\nrelax> :undo\nerror[RLX7103]") and said.endswith("2\n\n## End.\n\n")
    assert "\n## Then\n\nrelax> 1 + 1\n" in said
    path.write_text("relax> :undo\nno error\nrelax> 1 + 1\n")
    assert main([str(path)]) == 1
    assert "1 + 1" not in capsys.readouterr().out
