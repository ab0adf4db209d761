"""relaxc as a process: what start-up imports, pipes that close, Ctrl-C; and what becomes of internal errors."""

import os
import pathlib
import signal
import subprocess
import sys

import pytest

from relaxlang.cli import compilation

SCRIPT = "import sys; from relaxlang.cli.main import main; code = main(sys.argv[1:]); "


def modules(*words):
    """The modules that a run of relaxc imports."""
    script = SCRIPT + "print(*sys.modules, file=sys.stderr); sys.exit(code)"
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_imports(run):
    assert not {"argparse", "numpy", "lark", "llvmlite", "dataclasses"} & modules("--help")
    heavy = {"llvmlite", "prompt_toolkit", "relaxlang.codegen", "relaxlang.interp"}
    assert not heavy & modules("mlp.rlx", "--emit=rlx")
    assert "llvmlite" not in modules("mlp.rlx", "--emit=tir", "-p", "legalize-ops")
    assert not {*heavy, "numpy", "relaxlang.passes.pipelines"} & modules("mlp.rlx", "--check")


def test_a_closed_pipe_is_no_error():
    script = SCRIPT + "sys.exit(code)"
    command = [sys.executable, "-c", script, "--list=codes", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    assert process.wait(60) == 141 and process.stderr.read() == b""
    process.stderr.close()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
def test_a_full_disk():
    script = SCRIPT + "sys.exit(code)"
    for words in (["--version"], ["--list=codes", "--json"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [sys.executable, "-c", script, *words], stdout=full, stderr=subprocess.PIPE, text=True
            )
        assert done.returncode == 1 and done.stderr == "error: cannot write the output: no space left on device\n"


def test_interrupt(run):
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT + "sys.exit(code)", "-", "--check", "--timing"],
        stdin=reader,
        stderr=subprocess.PIPE,
    )
    os.write(writer, b"x = 1\n" * 1000)
    # The process waits for more; that it has begun to read shows in what is left in the pipe.
    while not drained(reader):
        pass
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130 and b"Traceback" not in process.stderr.read()
    for end in (reader, writer):
        os.close(end)
    process.stderr.close()


def drained(reader):
    import fcntl
    import struct
    import termios
    import time

    time.sleep(0.05)
    return struct.unpack("i", fcntl.ioctl(reader, termios.FIONREAD, b"\0" * 4))[0] == 0


@pytest.fixture
def broken(monkeypatch):
    def fail(c):
        _ = c.parsed
        raise KeyError("impossible")

    monkeypatch.setattr(compilation.Compilation, "scheduled", property(fail))


def test_internal_errors(run, broken, monkeypatch):
    done = run("mlp.rlx", "--emit=tir", "-D", "x=1 2")
    assert done.code == 70 and done.out == ""
    line = done.err.strip()
    assert "\n" not in line and line.startswith("internal error[RLX9001]: KeyError: 'impossible'")
    report = pathlib.Path(line.rsplit(" ", 1)[1])
    text = report.read_text()
    assert "# RUN: relaxc mlp.rlx --emit=tir -D 'x=1 2'" in text and "# KeyError: 'impossible'" in text
    assert text.endswith(pathlib.Path("mlp.rlx").read_text())
    assert run(str(report), "--check").code == 0  # the report is a program itself
    monkeypatch.setenv("RELAXLANG_TRACEBACK", "1")
    assert "Traceback" in run("mlp.rlx", "--emit=tir").err


def test_a_report_that_cannot_be_written_here(run, broken, monkeypatch, tmp_path):
    monkeypatch.setattr("os.curdir", str(tmp_path / "missing"))
    line = run("mlp.rlx", "--emit=tir").err.strip()
    report = pathlib.Path(line.rsplit(" ", 1)[1])
    assert report.is_absolute() and report.exists()
    report.unlink()
