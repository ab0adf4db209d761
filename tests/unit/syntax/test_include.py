"""Files that include files: templates, names, roots, circles."""

import os
import pathlib

import numpy as np
import pytest

import relaxlang
from relaxlang.base.diagnostics import DiagnosticError

PART = """N = I.param(int)
@T.prim_func(private=True)
def twice(A: T.Buffer((N,), "float32"), B: T.Buffer((N,), "float32")):
    for i in range(N):
        with T.block("b"):
            vi = T.axis.spatial(N, i)
            B[vi] = A[vi] * T.float32(2)
@R.function
def main(x: R.Tensor((N,), "float32")) -> R.Tensor((N,), "float32"):
    y = R.call_tir(twice, (x,), out_sinfo=R.Tensor((N,), "float32"))
    return y
"""
WHOLE = """part = I.include("part.rlx", N=8)
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((8,), "float32")):
        y = part.main(x)
        z = R.call_tir(part.twice, (y,), out_sinfo=R.Tensor((8,), "float32"))
        return z
"""
EMPTY = "\n@R.function\ndef f(x: R.Object):\n    return x\n"


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("part.rlx", PART)
    write("whole.rlx", WHOLE)


def write(name: str, text: str) -> None:
    path = pathlib.Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def codes(name: str, **options: object) -> list[tuple[str, str]]:
    with pytest.raises(DiagnosticError) as caught:
        relaxlang.load(name, **options)
    return [(d.code, d.message) for d in caught.value.diagnostics]


def test_functions_come_along_once():
    module = relaxlang.load("whole.rlx")
    assert list(module) == ["main", "part_main", "twice"]
    assert "global_symbol" in module["main"].attrs and "global_symbol" not in module["part_main"].attrs
    relaxlang.assert_structural_equal(relaxlang.parse(module.script()), module)
    x = np.arange(8, dtype="float32")
    assert np.array_equal(relaxlang.VirtualMachine(relaxlang.build(module), relaxlang.cpu())["main"](x), x * 4)


def test_two_instances_of_a_template():
    write("two.rlx", WHOLE.replace("part = ", 'small = I.include("part.rlx", N=2)\npart = ').replace(
        "        z =", "        w = small.main(R.zeros((2,), \"float32\"))\n        z ="))  # fmt: skip
    module = relaxlang.load("two.rlx")
    assert list(module) == ["main", "part_main", "twice", "small_main", "small_twice"]


def test_values_and_faults_of_the_included_file():
    write("less.rlx", WHOLE.replace(", N=8", ""))
    assert codes("less.rlx")[0][0] == "RLX0147"
    write("most.rlx", WHOLE.replace("N=8", "N=8, M=3"))
    with pytest.raises(DiagnosticError, match=r"`part.rlx` has no parameter `M`\n +--> most.rlx:"):
        relaxlang.load("most.rlx")
    write("more.rlx", WHOLE.replace("part.twice", "part.twise"))
    assert codes("more.rlx") == [("RLX0101", "the module `part` has no function `twise`")]
    write("args.rlx", 'a = I.include("part.rlx", 8)' + EMPTY)
    assert codes("args.rlx")[0][0] == "RLX0150"
    write("inside.rlx", EMPTY.replace("return x", 'y = I.include("part.rlx")\n    return x'))
    assert codes("inside.rlx")[0][0] == "RLX0150"


@pytest.mark.parametrize("path", ["/etc/hostname", "../outside.rlx", "sub/../../outside.rlx", "link.rlx"])
def test_outside_of_the_roots(tmp_path, path):
    (tmp_path.parent / "outside.rlx").write_text(EMPTY)
    os.symlink(tmp_path.parent / "outside.rlx", "link.rlx")
    write("sub/x.rlx", "")
    write("bad.rlx", f'a = I.include("{path}")' + EMPTY)
    assert codes("bad.rlx") == [("RLX0150", f"`{path}` is outside of the folders that may be included from")]
    if not path.startswith("/etc"):
        relaxlang.load("bad.rlx", roots=[str(tmp_path.parent)])


def test_roots():
    write("lib/part2.rlx", PART)
    text = WHOLE.replace("part.rlx", "part2.rlx")
    assert "main" in relaxlang.parse(text, roots=["lib"])
    with pytest.raises(DiagnosticError) as caught:
        relaxlang.parse(text)
    assert "in no file" in caught.value.diagnostics[0].message
    write("deep/a.rlx", 'b = I.include("b.rlx")' + EMPTY)
    write("deep/b.rlx", EMPTY)
    write("c.rlx", 'a = I.include("deep/a.rlx")' + EMPTY)
    relaxlang.load("c.rlx")


def test_circles():
    write("a.rlx", 'b = I.include("b.rlx")' + EMPTY)
    write("b.rlx", 'a = I.include("a.rlx")' + EMPTY)
    assert codes("a.rlx") == [("RLX0151", "`a.rlx` includes itself")]
    for n in range(60):
        write(f"n{n}.rlx", f'a = I.include("n{n + 1}.rlx")' + EMPTY)
    assert codes("n0.rlx") == [("RLX0151", "files include each other more than 50 deep")]


def test_missing_file_with_a_fix():
    write("typo.rlx", WHOLE.replace("part.rlx", "parts.rlx"))
    with pytest.raises(DiagnosticError) as caught:
        relaxlang.load("typo.rlx")
    assert caught.value.diagnostics[0].fixes[0].replacement == "part"
