"""`--watch`, and the line that shows what is being done."""

import io
import os
import subprocess
import sys

import pytest

from relaxlang.cli.options import read_command_line
from relaxlang.cli.progress import DELAY, StatusLine
from relaxlang.cli.report import Reporter
from relaxlang.cli.timing import Clock
from relaxlang.cli.watch import stamps, watch


def test_work_is_done_again_when_a_file_changes(tmp_path, capsys):
    path = tmp_path / "a.rlx"
    path.write_text("first")
    seen, looks = [], iter(["same", "edit", "remove", "replace", "same", "stop"])

    def work():
        seen.append(path.read_text())
        return len(seen), [str(path), "nowhere"]

    def pause(seconds):
        what = next(looks)
        if what == "edit":
            path.write_text("second")
        elif what == "remove":
            path.unlink()
        elif what == "replace":
            (tmp_path / "new").write_text("third!")
            os.replace(tmp_path / "new", path)
        elif what == "stop":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        watch(read_command_line([str(path)]), Reporter("short"), work, pause)
    assert seen == ["first", "second", "third!"]
    assert "the last exit code is 2" in capsys.readouterr().err


def test_what_tells_that_a_file_changed(tmp_path):
    path = tmp_path / "a"
    assert stamps([str(path)]) == [None]
    path.write_text("x")
    first = stamps([str(path)])
    os.utime(path, ns=(1, 1))
    assert stamps([str(path)]) != first and stamps([str(path)]) == stamps([str(path)])


def test_relaxc_watches(run, monkeypatch, tmp_path):
    def pause(seconds):
        if "add" in (tmp_path / "mlp.rlx").read_text():
            raise KeyboardInterrupt
        (tmp_path / "mlp.rlx").write_text(
            "@R.function\ndef main(x: R.Tensor((2,), 'float32')):\n    return R.add(x, x)\n"
        )

    monkeypatch.setattr(watch, "__defaults__", (pause,))
    done = run("mlp.rlx", "--watch", "--emit=rlx")
    assert done.code == 130 and "R.matmul" in done.out and "R.add" in done.out
    assert run("-", "--watch").code == 2


def test_included_files_are_watched_too(run, monkeypatch, tmp_path):
    text = "@R.function\ndef f(x: R.Tensor((2,), 'float32')):\n    return R.{}(x)\n"
    whole = "part = I.include('part.rlx')\n" + text.replace("def f", "def main").format("add").replace(
        "R.add", "part.f"
    )
    (tmp_path / "part.rlx").write_text(text.format("exp"))
    (tmp_path / "all.rlx").write_text(whole)
    edits = iter(["other(", "negative"])

    def pause(seconds):
        edit = next(edits, None)
        if edit is None:
            raise KeyboardInterrupt
        (tmp_path / "part.rlx").write_text(text.format(edit))

    monkeypatch.setattr(watch, "__defaults__", (pause,))
    done = run("all.rlx", "--watch", "--emit=rlx")
    assert done.code == 130 and "R.exp" in done.out and "R.negative" in done.out
    assert "watching `all.rlx`, `part.rlx`; the last exit code is 1" in done.err


def test_the_status_line():
    now = [0.0]
    stream = io.StringIO()
    status = StatusLine(stream, lambda: now[0])
    clock = Clock(status)
    with clock.phase("m.rlx"), clock.phase("passes"):
        pass
    assert stream.getvalue() == ""  # it was quick
    now[0] = DELAY
    with clock.phase("m.rlx"):
        with clock.phase("passes"):
            assert stream.getvalue().endswith("m.rlx: passes") and status.shown
        assert stream.getvalue().endswith("\x1b[2K") and not status.shown


def test_nothing_is_shown_where_nobody_looks(run):
    assert "\x1b[2K" not in run("mlp.rlx", "--run", "--random=0", "--dim=n=2").err


def test_on_a_terminal_the_line_is_taken_back(tmp_path):
    pty = pytest.importorskip("pty")
    (tmp_path / "m.rlx").write_text("@R.function\ndef main(x: R.Tensor((2,), 'float32')):\n    return R.add(x, x)\n")
    script = "import sys; from relaxlang.cli.main import main; sys.exit(main(sys.argv[1:]))"
    ours, theirs = pty.openpty()
    words = ["m.rlx", "--run", "--random=0"]
    process = subprocess.Popen([sys.executable, "-c", script, *words], cwd=tmp_path, stdout=theirs, stderr=theirs,
                               env={**os.environ, "TERM": "xterm"})  # fmt: skip
    os.close(theirs)
    shown = b""
    try:
        while data := os.read(ours, 4096):
            shown += data
    except OSError:  # how Linux says that the other end is closed
        pass
    os.close(ours)
    text = shown.decode()
    assert process.wait(60) == 0
    assert "m.rlx: run" in text and "float32[2]" in text.rpartition("\x1b[2K")[2]
