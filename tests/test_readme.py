"""What the README shows is true: its programs parse, its Python runs, its commands work."""

import re
import shlex
from pathlib import Path

import pytest

import relaxlang
from relaxlang.cli.main import main as relaxc

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


PYTHON = blocks("python")
COMMANDS = [
    line.split("  #")[0].strip() for block in blocks("sh") for line in block.splitlines() if line.startswith("relaxc ")
]


def test_the_program_shown_computes() -> None:
    text = next(b for b in PYTHON if "class Module" in b)
    assert relaxlang.build(relaxlang.parse(text))["create_executor"]()


@pytest.mark.parametrize("code", [b for b in PYTHON if "import relaxlang" in b])
def test_python(code: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    exec(compile(code, "README.md", "exec"), {})
    assert "def main" in capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_command(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.rlx").write_text(next(b for b in PYTHON if "class Module" in b))
    monkeypatch.chdir(tmp_path)
    assert relaxc(shlex.split(command)[1:]) == 0
