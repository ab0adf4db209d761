"""Completion scripts: what bash offers, and that every option is in all of them."""

import os
import shutil
import subprocess

import pytest

from relaxlang.cli.completion import choices, completion
from relaxlang.cli.options import GROUPS, SHELLS, find_option

BASH = shutil.which("bash")


@pytest.mark.parametrize("shell", SHELLS)
def test_every_option_is_there(shell):
    script = completion(shell)
    for option in (o for options in GROUPS.values() for o in options):
        for name in option.names:
            spelled = {
                "bash": name,
                "zsh": f"{name}",
                "fish": f"-l {name[2:]}" if name[:2] == "--" else f"-s {name[1:]}",
            }
            assert spelled[shell] in script, name
    assert "--executor-aot-unpacked-api".removeprefix("" if shell != "fish" else "--") in script


def test_choices():
    assert "fuse-ops" in choices(find_option("--skip")) and "default" not in choices(find_option("--skip"))
    assert "O1" in choices(find_option("-p")) and "asm" in choices(find_option("--emit"))
    assert choices(find_option("--print-ir-after"))[0] == "all" and choices(find_option("--print-ir-dir")) == ()
    assert list(choices(find_option("--executor"))) == ["vm", "graph", "aot"] and choices(find_option("--arg")) == ()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["--emi"], ["--emit="]),
        (["--emit", "=", "as"], ["asm"]),
        (["--emit", "=", "rlx,as"], ["rlx,asm"]),
        (["--emit=as"], ["--emit=asm"]),
        (["-O", ""], ["0", "1", "2", "3"]),
        (["--timing", "=", ""], ["json"]),
        (["--timing", "m"], ["models", "m.rlx"]),
        (["--skip", "kill"], ["kill-after-last-use"]),
        (["--run", ""], ["models", "m.rlx", "n.onnx"]),
        (["-o", "te"], ["text.txt"]),
        (["--width", ""], []),
        (["--include", ""], ["models"]),
    ],
)
@pytest.mark.skipif(BASH is None, reason="`bash` is not installed")
def test_bash(words, offered, tmp_path):
    for name in ("m.rlx", "n.onnx", "text.txt"):
        (tmp_path / name).write_text("")
    (tmp_path / "models").mkdir()
    asked = (
        f'{completion("bash")}\nCOMP_WORDS=(relaxc "$@"); COMP_CWORD=$#; _relaxc; printf "%s\\n" "${{COMPREPLY[@]}}"'
    )
    command = [BASH, "--norc", "-c", asked, "relaxc", *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env={"PATH": os.environ["PATH"]})
    assert done.stderr == "" and sorted(done.stdout.split()) == sorted(offered)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_read_their_scripts(shell, tmp_path):
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"`{shell}` is not installed")
    (tmp_path / "script").write_text(completion(shell))
    done = subprocess.run([program, "-n", str(tmp_path / "script")], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_relaxc_prints_it(run):
    assert run("--completion=fish").out == completion("fish")
    done = run("--completion=csh")
    assert done.code == 2 and "`bash`, `zsh`, `fish`" in done.err
