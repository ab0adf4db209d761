"""`--fmt`, `--fix`, `--dialect`: what is written, what is only shown, exit codes."""

import json
import pathlib

import pytest

import relaxlang

UGLY = "# kept\n@R.function\ndef main(x : R.Tensor((n,4),'float32')):\n  return R.add(x,x)   #beside\n"
PRETTY = '# kept\n@R.function\ndef main(x: R.Tensor((n, 4), "float32")):\n    return R.add(x, x)  # beside\n'
FAULTY = """@R.function
def main(x: R.Tensor((2, 4), "flot32")):
    y = R.matmull(x, R.permute_dims(x))
    z = R.sum(y, axs=1)
    return zz
"""
OLD = """# header
@tvm.script.ir_module
class Module:
    @T.prim_func
    def k(a: T.handle, b: T.handle):
        n = T.var("int64")
        A = T.match_buffer(a, (n, 4), "float32")
        B = T.match_buffer(b, (n, 4), "float32")
        for i, j in T.grid(n, 4):  # loops
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.float32(1)
"""


def write(name: str, text: str) -> pathlib.Path:
    path = pathlib.Path(name)
    path.write_bytes(text.encode())
    return path


# --- --fmt ------------------------------------------------------------------------------------------------------------
def test_fmt_prints(run):
    write("u.rlx", UGLY)
    assert run("--fmt", "u.rlx") == (0, PRETTY, "")
    assert pathlib.Path("u.rlx").read_text() == UGLY


def test_fmt_in_place(run):
    path = write("u.rlx", UGLY.replace("\n", "\r\n"))
    assert run("--fmt", "-i", "u.rlx") == (0, "", "")
    assert path.read_bytes().decode() == PRETTY.replace("\n", "\r\n")
    before = path.stat().st_mtime_ns
    assert run("--fmt", "-i", "u.rlx") == (0, "", "") and path.stat().st_mtime_ns == before


def test_fmt_check_and_diff(run):
    write("u.rlx", UGLY)
    write("p.rlx", PRETTY)
    assert run("--fmt", "--check", "p.rlx") == (0, "", "")
    done = run("--fmt", "--check", "p.rlx", "u.rlx")
    assert done.code == 1 and done.out == "" and done.err == "note: `u.rlx` is not formatted\n"
    done = run("--fmt", "--diff", "u.rlx")
    assert done.code == 0 and "\n-  return R.add(x,x)   #beside\n" in done.out
    assert run("--fmt", "--diff", "--check", "u.rlx").code == 1
    assert pathlib.Path("u.rlx").read_text() == UGLY


def test_fmt_width(run):
    write("u.rlx", "x = function_name(argument_one, argument_two, argument_three)\n")
    assert run("--fmt", "--width=50", "u.rlx").out.count("\n") == 5
    assert run("--fmt", "--width=5", "u.rlx").code == 2


def test_fmt_leaves_faulty_files_alone(run):
    path = write("u.rlx", "x = (1\n")
    done = run("--fmt", "-i", "u.rlx", "--diagnostics=short")
    assert done.code == 1 and "u.rlx:1:5: error[RLX0004]" in done.err and path.read_text() == "x = (1\n"
    assert run("--fmt", "missing.rlx").code == 1


def test_fmt_goes_with_nothing_else(run):
    write("u.rlx", UGLY)
    for words in (("--fmt", "--run"), ("--fmt", "--fix"), ("--fix", "--check"), ("--diff",), ("--fmt", "--emit=rlx")):
        done = run(*words, "u.rlx")
        assert done.code == 2 and "RLX7003" in done.err


# --- --fix ------------------------------------------------------------------------------------------------------------
def test_fix(run):
    path = write("f.rlx", FAULTY)
    done = run("--fix", "--diff", "f.rlx")
    assert '+def main(x: R.Tensor((2, 4), "float32")):' in done.out and path.read_text() == FAULTY
    done = run("--fix", "f.rlx")
    text = path.read_text()
    assert '"float32"' in text and "R.matmul(" in text and "axis=1" in text
    assert "note: made" in done.err
    assert done.code == (1 if "return zz" in text else 0)
    assert ("undefined name `zz`" in done.err) == ("return zz" in text)


def test_fix_until_nothing_is_wrong(run):
    path = write("f.rlx", FAULTY.replace("zz", "z"))
    done = run("--fix", "f.rlx")
    assert done == (0, "", "note: made 3 changes in `f.rlx`\n")
    relaxlang.load(path)
    assert run("--fix", "f.rlx") == (0, "", "")


@pytest.mark.parametrize("style", ["human", "short", "json", "github"])
def test_every_style_of_diagnostics(run, style):
    write("f.rlx", FAULTY)
    done = run("--check", "f.rlx", f"--diagnostics={style}")
    assert done.code == 1 and "RLX0205" in done.err
    if style == "json":
        rows = [json.loads(line) for line in done.err.splitlines()]
        assert rows[0]["fixes"][0]["replacement"] == "float32"
        assert rows[0]["fixes"][0]["span"]["start"] == {"line": 2, "col": 31, "offset": 42}
    for command in (("--fix", "--diff"), ("--fmt", "--check")):
        done = run(*command, "f.rlx", f"--diagnostics={style}")
        if style == "json":
            assert all(json.loads(line) for line in done.err.splitlines())


# --- --dialect --------------------------------------------------------------------------------------------------------
def test_dialect(run):
    write("old.rlx", OLD)
    done = run("--emit=rlx", "--dialect=tvm-0.27", "old.rlx")
    assert done.code == 0 and 'with T.sblock("b"):' in done.out and "# header" in done.out and "# loops" in done.out
    relaxlang.assert_structural_equal(relaxlang.parse(done.out), relaxlang.load("old.rlx"))
    assert run("--emit=rlx", "--dialect=tvm-0.28", "old.rlx").code == 2
    assert run("--check", "--dialect=tvm-0.27", "old.rlx").code == 2


def test_dialect_that_lacks_something(run):
    write("r.rlx", PRETTY)
    done = run("--emit=rlx=out.rlx", "--dialect=tvm-0.11", "r.rlx", "--diagnostics=short")
    assert done.code == 1 and done.err.startswith("r.rlx:2:1: error[RLX0160]: TVM 0.11 cannot say this")
    assert not pathlib.Path("out.rlx").exists()
