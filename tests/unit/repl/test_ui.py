"""The line editor, fed with keys and without a screen; and the whole program at a pseudo-terminal."""

from __future__ import annotations

import os
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

from relaxlang.repl.session import Session
from relaxlang.repl.ui import Prompt


@pytest.fixture
def keys() -> Iterator[PipeInput]:
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        yield pipe


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RELAXLANG_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state"


def play(keys: PipeInput, text: str, **options: bool) -> Session:
    """A session in which these keys were typed, and Ctrl-D in the end."""
    session = Session()
    keys.send_text(text + "\x04")
    assert Prompt(session, input=keys, output=DummyOutput(), **options).run() == 0
    return session


def test_enter_submits_what_is_whole(keys: PipeInput, capsys: pytest.CaptureFixture[str]) -> None:
    session = play(keys, "x = rand(2,\r3)\r:set\r")
    assert session.state.inputs == ("x = rand(2,\n3)",)
    assert 'x = R.Tensor((2, 3), "float32")' in capsys.readouterr().out


def test_blocks_are_indented_and_end_with_an_empty_line(keys: PipeInput) -> None:
    session = play(keys, '@R.function\rdef f(x: R.Tensor((n,), "float32")):\ry = x + x\rreturn y\r\r')
    assert list(session.module) == ["f"]


def test_a_pasted_file_is_one_input(keys: PipeInput) -> None:
    text = Path("examples/digits.rlx").read_text()
    session = play(keys, f"\x1b[200~{text}\x1b[201~\r")
    assert list(session.module) == ["main"] and session.count == 1


def test_errors_have_carets_and_the_session_goes_on(keys: PipeInput, capsys: pytest.CaptureFixture[str]) -> None:
    session = play(keys, "R.nn.reluu(3)\r1 + 1\r")
    out = capsys.readouterr().out
    assert "^^^^^^^^^^" in out and "did you mean `R.nn.relu`?" in out and session.state.results == ((1, 2),)


def test_a_schedule_has_a_prompt_of_its_own(keys: PipeInput) -> None:
    text = Path("examples/walkthroughs/matmul.rlx").read_text()
    session = play(keys, f"\x1b[200~{text}\x1b[201~\r:schedule\rsplit i 8\runroll i_1\r")
    assert session.prompt == "schedule> " and session.state.scheduling is not None
    assert session.state.scheduling.lines[1:] == ("l3, l4 = sch.split(l0, factors=[None, 8])", "sch.unroll(l4)")


def test_history_outlives_the_session(keys: PipeInput, state: Path) -> None:
    play(keys, "41\r")
    assert "+41" in (state / "repl_history").read_text()
    again = play(keys, "\x1b[A + 1\r")
    assert [value for _, value in again.state.results] == [42]


def test_ctrl_c_drops_the_line_and_quit_ends(keys: PipeInput) -> None:
    session = play(keys, "x = \x03y = 2\r:quit\rz = 3\r")
    assert session.state.variables == {"y": 2}


def test_the_keys_of_vi(keys: PipeInput) -> None:
    assert play(keys, "x = 12\x1bhxA3\r", vi=True).state.variables == {"x": 23}


def test_an_interrupted_run(
    keys: PipeInput, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from relaxlang.repl.stages import Stages

    def interrupt(self: Stages) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Stages, "lowered", property(interrupt))
    session = play(keys, "y = R.exp(ones(2))\rz = 1\r")
    assert session.state.variables == {"z": 1} and "interrupted" in capsys.readouterr().out


# --- a real terminal --------------------------------------------------------------------------------------------------
PROGRAM = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from relaxlang.repl.main import main
sys.exit(main([]))
"""


class Terminal:
    """`relax-repl` at a pseudo-terminal of 80 columns."""

    def __init__(self, folder: Path, term: str) -> None:
        import fcntl
        import pty
        import struct
        import termios

        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        environment = {**os.environ, "TERM": term, "RELAXLANG_STATE_DIR": str(folder), "NO_COLOR": "1"}
        # The program itself takes the terminal: Python between fork and exec (`preexec_fn`) stands still for ever when
        # a thread of this process, such as one that compiles, holds a lock at the fork.
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM], stdin=slave, stdout=slave, stderr=slave, env=environment,
            start_new_session=True,
        )  # fmt: skip
        os.close(slave)

    log = b""
    pending = b""
    answered = 0

    def send(self, keys: str) -> None:
        """Type."""
        os.write(self.master, keys.encode())

    def until(self, pattern: str, seconds: float = 60) -> str:
        """What is printed until a pattern occurs in it, without control sequences."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if not select.select([self.master], [], [], 0.1)[0]:
                continue
            try:
                self._read()
            except OSError:  # how Linux says that the other side is closed
                break
            text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.pending.decode(errors="replace"))
            if re.search(pattern, text):
                self.pending = b""
                return text
        # What came is kept: on a busy machine the rest of the pattern may come later.
        raise AssertionError(f"{pattern!r} did not come:\n{self.pending.decode(errors='replace')}")

    def _read(self) -> None:
        found = os.read(self.master, 65536)
        self.log += found
        self.pending += found
        asked = self.log.count(b"\x1b[6n")
        if asked > self.answered:  # a terminal answers where its cursor is
            os.write(self.master, b"\x1b[1;1R" * (asked - self.answered))
            self.answered = asked

    def interrupt(self, pattern: str) -> None:
        """Press Ctrl-C until a pattern is printed: while the line editor still reads keys, it does nothing."""
        for _ in range(30):
            self.send("\x03")
            try:
                self.until(pattern, 2)
            except AssertionError:
                continue
            return
        raise AssertionError("Ctrl-C was not heard")

    def close(self) -> int:
        """End it, by force if need be; its exit code."""
        try:
            return self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
        finally:
            os.close(self.master)


SPIN = """@T.prim_func
def spin(x: T.Buffer((1,), "int32")):
    while x[0] < 100000000:
        x[0] = x[0] + 1

"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
@pytest.mark.parametrize("term", ["xterm-256color", "dumb"])
def test_at_a_terminal(tmp_path: Path, term: str) -> None:
    terminal = Terminal(tmp_path, term)
    try:
        terminal.until("relax> ")
        terminal.send("x = [1,\r")
        terminal.until(r"\.\.\.> ")
        terminal.send("41]\r")
        terminal.until(r"x: R\.Tuple[^\n]*\n(.|\n)*relax> ")
        terminal.send("sum(x)\r")
        terminal.until(r"42\r?\n(.|\n)*relax> ")
        if term != "dumb":
            terminal.send(":load examples/digits.r\t")
            terminal.until("lx")
            terminal.send("\r")
            terminal.until(r"1 Relax function(.|\n)*relax> ")
        # The interpreter would take minutes; Ctrl-C ends it, and the session is as before.
        terminal.send(SPIN.replace("\n", "\r") if term == "dumb" else f"\x1b[200~{SPIN}\x1b[201~\r")
        terminal.until(r"defined spin\r?\n(.|\n)*relax> ")
        terminal.send(":compare spin\r")
        terminal.interrupt(r"interrupted(.|\n)*relax> ")
        terminal.send("x\r")
        terminal.until(r"\[1, 41\]\r?\n(.|\n)*relax> ")
        terminal.send(":quit\r")
    finally:
        code = terminal.close()
    assert code == 0, terminal.log.decode(errors="replace")


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_in_tmux_at_80_columns(tmp_path: Path) -> None:
    socket = str(tmp_path / "tmux")
    command = f"{sys.executable} -m relaxlang.repl.main examples/walkthroughs/matmul.rlx"

    def tmux(*words: str) -> str:
        done = subprocess.run(["tmux", "-S", socket, *words], capture_output=True, check=True, timeout=60)
        return done.stdout.decode()

    def until(pattern: str) -> None:
        end, screen = time.monotonic() + 120, ""
        while time.monotonic() < end:
            screen = tmux("capture-pane", "-p", "-t", "a")
            if re.search(pattern, screen, re.MULTILINE):
                return
            time.sleep(0.2)
        raise AssertionError(f"{pattern!r} did not come:\n{screen}")

    tmux("new-session", "-d", "-x", "80", "-y", "40", "-s", "a", command)
    try:
        until("^relax>")
        tmux("send-keys", "-t", "a", ":schedule", "Enter")
        until("^schedule>")
        tmux("send-keys", "-t", "a", "spl", "Tab")
        until("^schedule> split *$")
        until("^split LOOP EXTENT…")  # the signature, in the toolbar
        tmux("send-keys", "-t", "a", " j 8", "Enter")
        until(r"^time: .* \(before")
        tmux("send-keys", "-t", "a", "vectorize j", "Tab")
        until(r"^ +j_0 .*\n +j_1 ")
    finally:
        tmux("kill-server")
