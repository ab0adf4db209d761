"""`--split-input` and `--verify-diagnostics`."""

import os
import pathlib

import pytest

import relaxlang
from relaxlang.base.source import Source
from relaxlang.cli.parts import split_input

GOOD = '@R.function\ndef main(x: R.Tensor((2,), "float32")):\n    y = R.{}(x)\n    return y\n'
BAD = '@R.function\ndef main(x: R.Tensor((2,), "float32")):\n    return R.add(x, other){}\n'


@pytest.mark.parametrize("separator", ["// -----\n", "# -----\n", "//-----  \n"])
def test_parts(separator):
    source = Source("a.rlx", separator + "a\n" + separator + "\n" + separator + "b # -----\n")
    parts = split_input(source)
    assert [source.text[p.start : p.end] for p in parts] == ["a\n", "b # -----\n"]
    assert [p.number for p in parts] == [1, 2]


def test_a_file_without_separators_is_one_part():
    assert split_input(Source("a.rlx", "")) == [(1, 0, 0)]
    assert split_input(Source("a.rlx", "a\n  # -----\n")) == [(1, 0, 12)]


def test_each_part_is_compiled_by_itself(run):
    pathlib.Path("two.rlx").write_text(GOOD.format("exp") + "// -----\n" + GOOD.format("negative"))
    assert run("two.rlx", "--check").code == 1  # `main` twice, and a line that is no statement
    done = run("two.rlx", "--split-input", "--emit=rlx")
    first, second = done.out.split("# -----\n")
    assert done.code == 0 and "R.exp" in first and "R.negative" in second
    for text in (first, second):
        relaxlang.parse(text)
    pathlib.Path("again.rlx").write_text(done.out)
    assert run("again.rlx", "--split-input", "--emit=rlx").out == done.out
    assert run("two.rlx", "--split-input").code == 0
    assert {"two.1.rlxe", "two.2.rlxe"} <= set(os.listdir())
    out = run("two.rlx", "--split-input", "--run", "--arg=f32[2]=0,1").out
    assert out == "float32[2]\n[1.        2.7182817]\n# -----\nfloat32[2]\n[-0. -1.]\n"
    run("two.rlx", "--split-input", "--emit=none", "--print-ir-dir=steps")
    assert "000-input.rlx" in os.listdir("steps/two.1") and "000-input.rlx" in os.listdir("steps/two.2")


def test_errors_of_a_part_stand_at_their_lines(run):
    pathlib.Path("two.rlx").write_text(BAD.format("") + "# -----\n" + GOOD.format("exp") + "# -----\n" + BAD.format(""))
    done = run("two.rlx", "--split-input", "--emit=rlx", "--diagnostics=short")
    places = [line.split(": ")[0] for line in done.err.splitlines()]
    assert done.code == 1 and places == ["two.rlx:3:21", "two.rlx:12:21"] and "R.exp" in done.out


@pytest.mark.parametrize("words", [["-o", "x.rlx"], ["--emit=rlx=x"], ["--run", "--random=0", "--save-result=x.npy"]])
def test_several_modules_do_not_go_into_one_file(run, words):
    done = run("mlp.rlx", "--split-input", *words)
    assert done.code == 2 and "RLX7003" in done.err and not os.path.exists("x")


def test_built_programs_have_no_parts(run):
    run("mlp.rlx", "-o", "m.rlxe")
    assert "`--split-input` is for text" in run("m.rlxe", "--split-input", "--emit=vm").err


def test_announced_diagnostics(run):
    pathlib.Path("a.rlx").write_text(BAD.format("  # error[RLX0101]: undefined name"))
    assert run("a.rlx", "--verify-diagnostics") == (0, "", "")
    assert not os.path.exists("a.rlxe")
    pathlib.Path("b.rlx").write_text(
        BAD.format("") + "# -----\n" + GOOD.format("exp").replace("(x)\n", "(x)  # error[RLX0203]\n")
    )
    done = run("a.rlx", "b.rlx", "--split-input", "--verify-diagnostics", "--diagnostics=short")
    first, second = done.err.splitlines()
    assert done.code == 1 and "RLX7009" in first and "RLX7009" in second
    assert "`b.rlx`, not expected: line 3: error[RLX0101]" in first
    assert "`b.rlx`, expected line 7: error[RLX0203]; not reported" in second


def test_what_is_found_later_can_be_announced_too(run):
    text = GOOD.format("nonzero").replace("return", "# error@-1[RLX3101]\n    return")
    pathlib.Path("a.rlx").write_text(text)
    done = run("a.rlx", "--verify-diagnostics", "--emit=none")
    assert done.code == 1 and "not reported" in done.err
    assert run("no.rlx", "--verify-diagnostics").code == 1
    assert run("mlp.rlx", "--verify-diagnostics", "-o", "x.foo").code == 2
