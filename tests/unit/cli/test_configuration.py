"""Settings of pyproject.toml and the environment: which counts, and what is wrong with them."""

import os
import pathlib

import pytest

from relaxlang.base.config import Config
from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.cli.configuration import SETTINGS, configure
from relaxlang.cli.options import find_option, read_command_line


def configured(*words, environ=None, **where):
    line = read_command_line(words)
    said = configure(line, Config(environ or {}), **where)
    return line, said


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Writes the table of a project; the current directory is below it."""
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)

    def write(table, head="[tool.other]\ncolor = 1\n\n[tool.relaxlang]\n"):
        (tmp_path / "pyproject.toml").write_text(head + table)

    return write


def test_precedence(project):
    project('color = "never"\nwidth = 80\nexecutor = "aot"\n')
    (pathlib.Path.cwd() / "pyproject.toml").write_text("[tool.other]\n")  # has no table: the search goes on
    environ = {"RELAXLANG_COLOR": "always", "RELAXLANG_EXECUTOR": "vm"}
    line, said = configured("--executor=graph", environ=environ)
    assert [line.value(n) for n in ("--executor", "--color", "--width")] == ["graph", "always", "80"]
    assert line.has("--width") and not line.typed("--width") and line.typed("--executor")
    assert sorted(said) == ["--color=always", "--no-config", "--width=80"]
    line, said = configured("--no-config", environ=environ)
    assert not line.has("--color") and said == []


def test_lists_add_up_and_folders_are_the_projects(project, tmp_path):
    project('define = ["N=1", "M=2"]\ninclude = "lib"\nskip = []\nverify-each = true\nverbose = false\n')
    line, _ = configured("-DN=4", environ={"RELAXLANG_DEFINE": "K=7,N=3"})
    assert [s.text for s in line.spans("-D")] == ["N=1", "M=2", "K=7", "N=3", "N=4"]
    assert line.value("--include") == str(tmp_path / "lib")
    assert line.has("--verify-each") and not line.has("--verbose") and not line.has("--skip")


def test_a_pipeline_replaces_a_level(project):
    project("opt-level = 3\n")
    assert configured()[0].value("--opt-level") == "3"
    assert not configured("-p", "minimum")[0].has("--opt-level")
    assert not configured(environ={"RELAXLANG_PIPELINE": "minimum"})[0].has("--opt-level")


def test_flags_in_the_environment(project):
    assert configured(environ={"RELAXLANG_VERIFY_EACH": "1"})[0].has("--verify-each")
    assert not configured(environ={"RELAXLANG_VERIFY_EACH": "off"})[0].has("--verify-each")
    assert not configured(environ={"RELAXLANG_COLOR": ""})[0].has("--color")


def test_values_have_places(project):
    project('target  =  "llvm -mcpu=x"\n')
    span = configured()[0].span("--target")
    assert (span.text, span.line, span.column) == ("llvm -mcpu=x", 5, 13)
    assert span.source.name == os.path.join("..", "..", "pyproject.toml")


@pytest.mark.parametrize(
    ("table", "code", "place", "words"),
    [
        ('colour = "never"\n', "RLX7010", (5, 1), "did you mean `color`?"),
        ("\n  run = true\n", "RLX7010", (6, 3), "command line only"),
        ("verify-each = 1\n", "RLX7010", (5, 15), "`true` or `false`"),
        ("target = true\n", "RLX7010", (5, 10), "a text or a number"),
        ('define = ["N=1", 2.5, {}]\n', "RLX7010", (5, 10), "a list of texts"),
        ('color = "alwys"\n', "RLX7002", (5, 10), "did you mean `always`?"),
        ('color = "never\n', "RLX7010", (5, 15), "no TOML"),
        ("color = " + "[" * 5000, "RLX7010", (1, 1), "nested too deeply"),
        ("[tool.relaxlang.passes]\n", "RLX7010", (4, 7), "no setting `passes`"),
    ],
)
def test_mistakes(project, table, code, place, words):
    project(table)
    with pytest.raises(DiagnosticError) as caught:
        configured()
    found = caught.value.diagnostics[0]
    assert found.code == code and words in found.message + found.help
    assert (found.span.line, found.span.column) == place


@pytest.mark.parametrize(("text", "words"), [("[tool]\nrelaxlang = 3\n", "no table"), ("[tool.relaxlang\n", "no TOML")])
def test_a_table_that_is_none(tmp_path, monkeypatch, text, words):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("pyproject.toml").write_text(text)
    with pytest.raises(DiagnosticError) as caught:
        configured()
    found = caught.value.diagnostics[0]
    assert (
        found.code == "RLX7010"
        and words in found.message
        and found.span.line == text.count("\n", 0, text.index("relaxlang")) + 1
    )


def test_settings_are_options():
    assert all(find_option(f"--{name}").name == f"--{name}" for name in SETTINGS)


def test_relaxc_heeds_settings(run, monkeypatch):
    pathlib.Path("pyproject.toml").write_text('[tool.relaxlang]\npipeline = "minimum"\nwidth = 60\ndefine = "N=128"\n')
    assert run("--dump-pipeline").out.startswith("to-non-dataflow,call-tir-rewrite")
    assert run("--dump-pipeline", "-O2").out.startswith("legalize-ops")
    assert "R.Tensor((128,)" in run("template.rlx", "--emit=rlx").out
    assert (
        "R.matmul(" in run("mlp.rlx", "--emit=rlx").out and "R.matmul(" not in run("mlp.rlx", "--emit=rlx", "-O0").out
    )
    assert run("mlp.rlx", "--emit=llvm").out.count("define i32 @rlx_") == 2
    assert "R.Tensor((7,)" in run("template.rlx", "--emit=rlx", "-DN=7").out
    assert max(map(len, run("mlp.rlx", "--fmt").out.splitlines())) <= 60
    monkeypatch.setenv("RELAXLANG_DIAGNOSTICS", "short")
    assert run("wrong.rlx", "--no-config").err.startswith("error[")
    assert run("wrong.rlx").err.startswith("wrong.rlx:3:9: ")  # and no word about `N`, which is another file's
    assert "RLX0147" in run("wrong.rlx", "-DN=1").err
    pathlib.Path("pyproject.toml").write_text("[tool.relaxlang]\nemit = 'rlx'\n")
    done = run("mlp.rlx", "--check")
    assert done.code == 2 and done.err.startswith("pyproject.toml:2:1: ") and "RLX7010" in done.err
    assert run("--help").code == 0


def test_reports_of_crashes_state_the_settings(run, monkeypatch):
    from relaxlang.cli import compilation

    def fail(c):
        raise KeyError("impossible")

    monkeypatch.setattr(compilation.Compilation, "scheduled", property(fail))
    pathlib.Path("pyproject.toml").write_text("[tool.relaxlang]\nopt-level = 1\n")
    line = run("mlp.rlx", "--emit=tir").err.strip()
    assert "# RUN: relaxc --opt-level=1 --no-config mlp.rlx" in pathlib.Path(line.rsplit(" ", 1)[1]).read_text()
