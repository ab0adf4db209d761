"""What the README shows is true: its programs parse, its Python runs, its commands work."""

import re
import shlex
from pathlib import Path

import pytest

import relaxlang
from relaxlang.cli.main import main as relaxc
from relaxlang.repl.session import Session
from relaxlang.repl.transcript import matches, read_script, said

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


def test_the_session_shown_is_real(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    session = Session()
    for entry in read_script(next(b for b in blocks("text") if b.startswith("relax> "))).entries:
        assert matches(entry.output or "", said(session.execute(entry.text))), entry.text


@pytest.mark.parametrize("command", COMMANDS)
def test_command(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("model.rlx", "old.rlx"):
        (tmp_path / name).write_text(next(b for b in PYTHON if "class Module" in b))
    if "model.onnx" in command:
        onnx = pytest.importorskip("onnx")
        y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n"])
        x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n"])
        graph = onnx.helper.make_graph([onnx.helper.make_node("Exp", ["x"], ["y"])], "graph", [x], [y])
        onnx.save(
            onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)]), tmp_path / "model.onnx"
        )
    monkeypatch.chdir(tmp_path)
    assert relaxc(shlex.split(command)[1:]) == 0
