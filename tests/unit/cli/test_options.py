"""The option parser, and the rules about which options go together."""

import pytest

from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.cli.build_options import read_build
from relaxlang.cli.help import help_text
from relaxlang.cli.options import GROUPS, number, read_command_line, real, split
from relaxlang.ir.configuration.runtime import Runtime


def failure(function, *args):
    with pytest.raises(DiagnosticError) as caught:
        function(*args)
    return caught.value.diagnostics[0]


def test_spellings():
    line = read_command_line(["-o", "x.o", "-DN=1", "-D", "M=2", "--emit=tir", "--emit", "asm,vm", "a", "--", "-b"])
    assert line.value("--output") == "x.o"
    assert [s.text for s in line.spans("-D")] == ["N=1", "M=2"]
    assert [s.text for s in line.items("--emit")] == ["tir", "asm", "vm"]
    assert line.files == ["a", "-b"] and not line.has("--run")


def test_a_value_that_is_optional_does_not_take_the_file():
    line = read_command_line(["--run", "x.rlx", "-"])
    assert line.has("--run") and line.value("--run") == "" and line.files == ["x.rlx", "-"]
    assert read_command_line(["--run=f"]).value("--run") == "f"


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["--emti=rlx"], "RLX7001", "did you mean `--emit`?"),
        (["-q"], "RLX7001", "`-q`"),
        (["-hx"], "RLX7001", "`-hx`"),
        (["-O4"], "RLX7002", "`0`, `1`, `2`, `3`"),
        (["-o"], "RLX7002", "needs a value"),
        (["--check=1"], "RLX7002", "takes no value"),
        (["--color=alwys"], "RLX7002", "did you mean `always`?"),
        (["--timing=xml"], "RLX7002", "json"),
    ],
)
def test_mistakes(words, code, text):
    fault = failure(read_command_line, words)
    assert fault.code == code and text in fault.message + fault.help


def test_numbers():
    line = read_command_line(["--random=7", "--repeat=0", "--rtol=1e-3", "--atol=-1", "--bisect-limit=1_0"])
    assert number(line, "--random", 0) == 7 and real(line, "--rtol", 0.5) == 1e-3
    assert number(read_command_line([]), "--random", 0) is None
    for check, *args in ((number, "--repeat", 1), (real, "--atol", 0.0), (number, "--bisect-limit", 0)):
        assert failure(check, line, *args).span is not None


def test_parts_have_places():
    parts = list(split(read_command_line(["--skip= a , b,"]).spans("--skip")[0], ","))
    assert [(p.text, p.column) for p in parts] == [("a", 2), ("b", 6)]


def test_help():
    short, full = help_text(False), help_text(True)
    assert len(short.splitlines()) <= 2 * 24 and max(map(len, full.splitlines())) <= 120
    for options in GROUPS.values():
        assert all(o.name in full and (o.rare or o.name in short) for o in options)
    spelled = [name for options in GROUPS.values() for o in options for name in o.names]
    assert len(spelled) == len(set(spelled))


def test_options_composed_from_registries():
    words = ["--executor=aot", "--executor-aot-unpacked-api", "--executor-aot-interface-api", "c", "--mod-name=net"]
    build = read_build(read_command_line([*words, "--runtime=c", "--runtime-crt-link-params=1"]))
    assert build.executor["unpacked-api"] is True and build.executor["interface-api"] == "c"
    assert build.runtime == Runtime("c", {"link-params": True}) and build.mod_name == "net" and build.asked
    assert not read_build(read_command_line(["x.rlx"])).asked
    assert "--executor-graph-link-params[=0|1]" in help_text(True) and "--executor-graph" not in help_text(False)


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["--executor=aot", "--executor-aot-unpaked-api=1"], "RLX7001", "`--executor-aot-unpacked-api`"),
        (["--executor-aot-unpacked-api=1"], "RLX7003", "add `--executor=aot`"),
        (["--executor=vm", "--executor-graph-link-params"], "RLX7003", "not `vm`"),
        (["--executor=gaph"], "RLX5022", "did you mean `graph`?"),
        (["--runtime=rust"], "RLX5022", "`cpp`, `c`"),
        (["--executor=aot", "--executor-aot-unpacked-api=yes"], "RLX5024", "a truth value"),
        (["--executor=aot", "--executor-aot-interface-api=rust"], "RLX5024", "`packed` or `c`"),
    ],
)
def test_wrong_build_options(words, code, text):
    fault = failure(lambda: read_build(read_command_line(words)))
    assert fault.code == code and text in fault.message + fault.help
