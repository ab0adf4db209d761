"""relaxc from the outside: exit codes, what goes to which stream, files that appear or do not."""

import json
import os
import pathlib
import sys

import numpy as np
import pytest

import relaxlang
from relaxlang import driver
from relaxlang.cli import compilation


def files():
    return {name for name in os.listdir() if not name.endswith(".rlx") or name.startswith("relaxc-crash")}


# --- outputs ----------------------------------------------------------------------------------------------------------
def test_success_is_silent(run):
    assert run("mlp.rlx") == (0, "", "")
    assert files() == {"mlp.rlxe"}
    assert run("mlp.rlx", "--check") == (0, "", "")


def test_texts_go_to_stdout(run):
    done = run("mlp.rlx", "--emit=rlx")
    assert done.code == 0 and not done.err and "R.matmul(x, w" in done.out
    relaxlang.parse(done.out)
    tir = run("mlp.rlx", "--emit=tir").out
    assert "T.prim_func" in tir and "call_tir" in tir and "vm." not in tir
    assert "define i32 @rlx_fused_matmul" in run("mlp.rlx", "--emit=llvm").out
    assert "rlx_fused_matmul_relu:" in run("mlp.rlx", "--emit=asm").out
    assert "@main(x, w)" in run("mlp.rlx", "--emit=vm").out
    both = run("mlp.rlx", "--emit=rlx,vm").out
    assert both.startswith("# rlx\n") and "\n# vm\n" in both
    assert files() == set()


def test_the_source_is_not_replaced_by_what_is_made_of_it(run):
    before = pathlib.Path("mlp.rlx").read_text()
    for words in (["-o", "mlp.rlx"], ["--emit=asm=./mlp.rlx"]):
        done = run("mlp.rlx", *words)
        assert done.code == 2 and "RLX7003" in done.err
    assert pathlib.Path("mlp.rlx").read_text() == before


@pytest.mark.parametrize("name", ["a.rlx", "a.ll", "a.s", "a.o", "a.so", "a.rlxe"])
def test_the_suffix_says_what(run, name):
    assert run("mlp.rlx", "-o", name) == (0, "", "")
    content = pathlib.Path(name).read_bytes()
    begins = {".rlx": b"@I", ".ll": b"", ".s": b"\t", ".o": b"\x7fELF", ".so": b"\x7fELF", ".rlxe": b"\x89RLXE"}
    assert content.startswith(begins[pathlib.Path(name).suffix])


def test_paths_in_emit(run):
    assert run("mlp.rlx", "--emit=vm=code.txt,obj,exe=p.so").code == 0
    assert files() == {"code.txt", "mlp.o", "p.so"}


def test_own_pipeline(run):
    assert "call_tir" in run("mlp.rlx", "--emit=rlx", "-p", "legalize-ops").out
    assert "call_tir" not in run("mlp.rlx", "--emit=rlx", "-p", "legalize-ops{skip=[matmul,nn.relu]}").out
    assert "call_tir" not in run("mlp.rlx", "--emit=tir", "--skip=legalize-ops").out
    assert "dataflow" in run("mlp.rlx", "--emit=rlx", "--stop-after=legalize-ops").out
    for chosen in ("--skip=fuse-ops", "--bisect-limit=1"):  # they ask for passes, so what these give is shown
        shown = run("mlp.rlx", "--emit=rlx", chosen).out
        assert "def relu(" in shown and "fused" not in shown
    # Whatever passes were asked for, lowering follows when code is wanted.
    assert run("mlp.rlx", "-p", "legalize-ops", "--run", "--random=0", "--dim=n=1").code == 0
    assert (
        run("--dump-pipeline", "-p", "minimum").out
        == "to-non-dataflow,call-tir-rewrite,vm-memory-lower,vm-shape-lower\n"
    )
    assert run("mlp.rlx", "--start-at=bind-params").code == 2


def test_built_programs(run):
    run("mlp.rlx", "-o", "p.rlxe")
    assert run("p.rlxe", "--run", "--arg=f32[1,4]=1", "--arg=f32[4,3]=2").out == "float32[1,3]\n[[8. 8. 8.]]\n"
    assert "@main(x, w)" in run("p.rlxe", "--emit=vm").out
    assert run("p.rlxe", "-o", "p.so").code == 0
    assert run("p.so", "--run", "--arg=f32[1,4]=1", "--arg=f32[4,3]=2").out == "float32[1,3]\n[[8. 8. 8.]]\n"
    before = pathlib.Path("p.rlxe").read_bytes()
    for words in (["p.rlxe"], ["p.rlxe", "--emit=tir"], ["p.rlxe", "--run", "--random=0"]):
        assert run(*words).code == 2
    assert pathlib.Path("p.rlxe").read_bytes() == before


def test_stdin(run, monkeypatch, tmp_path):
    for words, code in ((["-", "--emit=rlx"], 0), (["-"], 2), (["-", "-o", "x.rlxe"], 0)):
        with open("mlp.rlx") as stream:
            monkeypatch.setattr(sys, "stdin", stream)
            assert run(*words).code == code
    assert files() == {"x.rlxe"}


def test_nothing_is_written_when_something_fails(run, monkeypatch):
    monkeypatch.setattr(compilation.Compilation, "llvm", property(lambda c: relaxlang.parse("x = (")))
    assert run("mlp.rlx", "--emit=exe=a.rlxe,llvm=a.ll").code == 1
    assert files() == set()


def test_files_that_cannot_be_written(run):
    os.mkdir("folder")
    assert "cannot write `folder`" in run("mlp.rlx", "--emit=vm=folder").err
    assert run("mlp.rlx", "-o", "missing/x.o").code == 1


# --- mistakes ---------------------------------------------------------------------------------------------------------
def test_all_errors_and_a_last_line(run):
    done = run("wrong.rlx", "--check")
    assert done.code == 1 and done.out == ""
    assert "wrong.rlx:3:" in done.err and "wrong.rlx:4:" in done.err
    assert done.err.splitlines()[-1].startswith("error: 2 errors in 1 file")
    assert files() == set()


def test_styles(run):
    assert run("wrong.rlx", "--diagnostics=short").err.startswith("wrong.rlx:3:")
    rows = [json.loads(line) for line in run("wrong.rlx", "--diagnostics=json").err.splitlines()]
    assert [row["span"]["start"]["line"] for row in rows] == [3, 4]
    assert run("wrong.rlx", "--diagnostics=github").err.startswith("::error file=wrong.rlx,line=3")
    assert "\033[" in run("wrong.rlx", "--color=always").err and "\033[" not in run("wrong.rlx").err


def test_bad_files(run, tmp_path):
    (tmp_path / "binary.rlx").write_bytes(bytes(range(256)))
    (tmp_path / "tabs.rlx").write_text("if x:\n        y = 1\n\tz = 2\n")
    (tmp_path / "deep.rlx").write_text("x = " + "(" * 300 + "1" + ")" * 300 + "\n")
    (tmp_path / "long.rlx").write_text("# " + "a" * 5_000_000 + "\nx = \n")
    (tmp_path / "cut.rlxe").write_bytes(b"\x89RLXE")
    expected = {
        "missing.rlx": "RLX0017", ".": "RLX0017", "binary.rlx": "RLX0012", "tabs.rlx": "RLX0007", "deep.rlx": "RLX0009",
        "long.rlx": "RLX0008", "cut.rlxe": "RLX6011",
    }  # fmt: skip
    for name, code in expected.items():
        done = run(name, "-o", "out.rlxe")
        assert done.code == 1 and f"error[{code}]" in done.err and "Traceback" not in done.err, name
    assert "out.rlxe" not in files()


def test_several_files(run):
    done = run("mlp.rlx", "wrong.rlx", "missing.rlx", "--emit=rlx")
    assert done.code == 1 and "R.matmul" in done.out and "RLX0017" in done.err


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["-p", "legalize-ops,fuse-opz"], ["RLX3101", "--pipeline:1:14"]),
        (["-p", "legalize-ops{skp=1}"], ["RLX3102", "`skip`"]),
        (["-p", "legalize-ops{"], ["RLX0004"]),
        (["--emit=tri"], ["RLX7002", "did you mean `tir`?"]),
        (["--emit=tir="], ["RLX7002", "path is missing"]),
        (["--emit=rlx,tir", "-o", "x"], ["RLX7003"]),
        (["--emit=rlx=x,tir=x"], ["RLX7003", "two outputs go to `x`"]),
        (["-o", "x.foo"], ["RLX7002", "known suffixes"]),
        (["-o", "-"], ["RLX7003", "--emit"]),
        (["mlp.rlx", "-o", "x.o"], ["RLX7003", "several files"]),
        (["--target=cuda"], ["RLX5001"]),
        (["--target=llvm -mcpux=1"], ["RLX5002", "`mcpu`"]),
        (["--check", "--run"], ["RLX7003"]),
        (["--arg=i64=1"], ["RLX7003", "add `--run`"]),
        (["mlp.rlx", "--run", "--save-result=x.npy"], ["RLX7003", "several programs"]),
        (["--print-ir-after=foo"], ["RLX3101", "--print-ir-after:1:1"]),
        (["-D", "N"], ["RLX7002", "-D N=128"]),
        (["--run", "--dim=n"], ["RLX7002", "--dim n=16"]),
        (["--run=mian", "--random=0"], ["RLX7005", "did you mean `main`?"]),
        (["--explain=RLX9999"], ["no diagnostic code"]),
        (["--describe=matmull"], ["RLX7008", "did you mean `matmul`?"]),
        (["--list=pases"], ["RLX7002", "did you mean `passes`?"]),
    ],
)
def test_a_wrong_command_line_is_2(run, words, shown):
    done = run("mlp.rlx", *words)
    assert done.code == 2 and done.out == "" and all(text in done.err for text in shown), done.err
    assert files() == set()


def test_executors(run):
    plain, graph = (run("mlp.rlx", "--run", "--random=0", "--dim=n=2", *words) for words in ([], ["--executor=vm"]))
    assert plain.code == 0 and plain.out == graph.out
    refused = run("mlp.rlx", "--executor=graph", "-o", "out.rlxe")
    assert refused.code == 1 and "RLX5029" in refused.err and "`x`" in refused.err and "out.rlxe" not in files()
    shown = run("mlp.rlx", "--executor=graph", "--executor-graph-link-params", "--emit=tir").out
    assert '"Executor": {"kind": "graph", "link-params": True}' in shown
    old = run("mlp.rlx", "--target=c -executor=aot -unpacked-api", "--emit=tir")
    assert "deprecated" in old.err and '"unpacked-api": True' in old.out and '{"kind": "c"}' in old.out
    for words, text in ((["--list=executors"], "--executor-aot-unpacked-api"), (["--list=runtimes"], "crt")):
        assert text in run(*words).out


def test_graphs(run, tmp_path):
    (tmp_path / "static.rlx").write_text(
        '@R.function\ndef main(x: R.Tensor((2, 3), "float32")):\n    return R.nn.relu(x)\n'
    )
    plain = run("static.rlx", "--run", "--random=0")
    assert run("static.rlx", "--executor=graph", "--run", "--random=0").out == plain.out
    assert '"kernel": "relu"' in run("static.rlx", "--executor=graph", "--emit=graph").out
    assert run("static.rlx", "--executor=graph", "-o", "built.rlxe").code == 0
    assert run("built.rlxe", "--run", "--random=0").out == plain.out
    assert '"name": "x"' in run("built.rlxe", "--emit=graph").out
    assert "add `--executor=graph`" in run("static.rlx", "--emit=graph").err


def test_without_a_file(run):
    done = run()
    assert done.code == 2 and done.out == "" and done.err.startswith("usage: relaxc") and "no input file" in done.err


# --- compile-time values, watching passes -----------------------------------------------------------------------------
def test_definitions(run):
    assert run("template.rlx").code == 1
    assert "R.Tensor((128,)" in run("template.rlx", "-D", "N=128", "--emit=rlx").out
    assert run("template.rlx", "-DN=many").code == 1


def test_watching_passes(run):
    done = run("mlp.rlx", "--emit=none", "--print-ir-after=legalize-ops,call-dps-rewrite")
    heads = [line for line in done.err.splitlines() if line.startswith("# ")]
    assert done.out == "" and heads == ["# after legalize-ops", "# after call-tir-rewrite"]
    first = run("mlp.rlx", "--emit=none", "--print-ir-before=all").err
    assert first.startswith("# before legalize-ops\n@I.ir_module") and "# before vm-shape-lower" in first
    assert "# after attach-global-symbol" not in run("mlp.rlx", "--emit=none", "--print-ir-changed").err
    diff = run("mlp.rlx", "--emit=none", "--print-ir-diff").err
    assert "+            y = R.call_tir(cls.matmul" in diff and "# attach-global-symbol: no change" in diff
    run("mlp.rlx", "--emit=none", "--print-ir-dir=steps")
    assert sorted(os.listdir("steps"))[:2] == ["000-input.rlx", "001-legalize-ops.rlx"]
    bisect = run("mlp.rlx", "--emit=tir", "--bisect-limit=0")
    assert "bisect: not running pass 1: legalize-ops" in bisect.err and "call_tir" not in bisect.out


def test_timing(run):
    tree = run("mlp.rlx", "--emit=none", "--timing").err
    assert all(word in tree for word in ("total", "parse", "legalize-ops", "code", "ms"))
    total = json.loads(run("mlp.rlx", "--emit=none", "--timing=json").err)
    phases = total["phases"][0]["phases"]
    assert total["name"] == "total" and phases[0]["name"] == "parse"
    assert 0 < sum(p["seconds"] for p in phases) <= total["seconds"]


# --- running ----------------------------------------------------------------------------------------------------------
def test_values_against_numpy(run):
    rng = np.random.default_rng(1)
    x, w = rng.standard_normal((5, 4)).astype("float32"), rng.standard_normal((4, 3)).astype("float32")
    np.save("x.npy", x)
    np.savez("w.npz", w=w, other=x)
    np.save("y.npy", np.maximum(x @ w, 0))
    done = run("mlp.rlx", "--run", "--arg=@x.npy", "--arg=@w.npz", "--expect=@y.npy", "--save-result=r.npy")
    assert done.code == 0 and done.err == "" and done.out.startswith("float32[5,3]\n[[")
    np.testing.assert_allclose(np.load("r.npy"), np.maximum(x @ w, 0), rtol=1e-5, atol=1e-6)
    assert run("mlp.rlx", "--run", "--arg=@x.npy", "--arg=w=@w.npz:w", "--expect=y.npy").code == 0
    np.save("y.npy", np.maximum(x @ w, 0) + np.float32(1e-3))
    wrong = run("mlp.rlx", "--run", "--arg=@x.npy", "--arg=@w.npz", "--expect=y.npy")
    assert wrong.code == 3 and "15 of 15 elements differ" in wrong.err
    assert run("mlp.rlx", "--run", "--arg=@x.npy", "--arg=@w.npz", "--expect=y.npy", "--atol=1e-2").code == 0


def test_random_arguments(run):
    first = run("mlp.rlx", "--run", "--random=3", "--dim=n=2")
    assert first.code == 0 and first.err == "" and first.out.startswith("float32[2,3]")
    assert run("mlp.rlx", "--run", "--random=3", "--dim=n=2") == first
    assert run("mlp.rlx", "--run", "--random=4", "--dim=n=2") != first
    assert "note: n = 16" in run("mlp.rlx", "--run", "--random=3").err
    assert run("mlp.rlx", "--run", "--random=3", "--arg=f32[7,4]=1").out.startswith("float32[7,3]")
    assert "no dimension `m`" in run("mlp.rlx", "--run", "--random=3", "--dim=m=2").err


def test_every_kind_of_parameter(run):
    done = run("kinds.rlx", "--run", "--random=1", "--dim=n=2", "--dim=m=3", "--save-result=r.npy")
    heads = [line for line in done.out.splitlines() if ": " in line]
    kinds = ["0: bfloat16[2]", "1.0.0: int8[3,4]", "1.0.1: bool[]", "1.1: shape[2,3]"]
    assert done.code == 0 and heads[:-1] == kinds and heads[-1].startswith("1.2: int64 ")
    assert np.load("r.1.0.0.npy").shape == (3, 4) and np.load("r.0.npy").dtype == np.float32
    assert "no bfloat16" in done.err


def test_kernels(run):
    done = run("kernel.rlx", "--run=scale", "--arg=f32[1,4]=1,2,3,4", "--arg=f32=3")
    assert done == (0, "y: float32[1,4]\n[[ 3.  6.  9. 12.]]\n", "")
    assert run("kernel.rlx", "--run=scale", "--random=0", "--dim=n=2").out.startswith("y: float32[2,4]")


@pytest.mark.parametrize(
    ("words", "code", "shown"),
    [
        ([], 2, ["RLX7005", "`x`, `w`"]),
        (["--arg=f32[2,4]=1,2,3"], 2, ["RLX7004", "--arg:1:10"]),
        (["--arg=@no.npy"], 2, ["RLX7006"]),
        (["--random=0", "--arg=q=f32[1]=1"], 2, ["RLX7005", "there are `x`, `w`"]),
        (["--random=0", "--arg=x=f32[1,4]=1", "--arg=x=f32[1,4]=1"], 2, ["has a value already"]),
        (["--arg=f32[1,4]=1", "--arg=f32[4,3]=1", "--arg=i64=1"], 2, ["takes 2 arguments"]),
        (["--random=0", "--arg=f32[2,5]=1"], 3, ["RLX6005", "expected 4"]),
        (["--random=0", "--arg=f64[2,4]=1"], 3, ["RLX6003"]),
        (["--random=0", "--arg=i64=1"], 3, ["RLX6002"]),
    ],
)
def test_arguments_that_do_not_fit(run, words, code, shown):
    done = run("mlp.rlx", "--run", *words)
    assert done.code == code and done.out == "" and all(text in done.err for text in shown), done.err


def test_a_program_that_fails(run):
    assert run("assert.rlx", "--run", "--arg=bool[]=true").code == 0
    done = run("assert.rlx", "--run", "--arg=bool[]=false")
    assert done.code == 3 and "it is false" in done.err


def test_repeat(run):
    done = run("mlp.rlx", "--run", "--random=0", "--dim=n=1", "--repeat=3")
    assert done.code == 0 and done.err.startswith("3 runs: min ")


# --- lists ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("what", "name"),
    [
        ("passes", "legalize-ops"),
        ("ops", "nn.relu"),
        ("pipelines", "minimum"),
        ("targets", "llvm"),
        ("codes", "RLX0203"),
        ("intrinsics", "T.exp"),
        ("emit", "tir"),
    ],
)
def test_lists(run, what, name):
    assert any(line.split()[0] == name for line in run(f"--list={what}").out.splitlines())
    assert name in [row["name"] for row in json.loads(run(f"--list={what}", "--json").out)]


def test_descriptions(run):
    text = run("--describe", "legalize-ops").out
    assert "Before:" in text and "Options:" in text and "relaxlang/passes/relax/legalize_ops.py" in text
    assert "pass call-tir-rewrite" in run("--describe", "call-dps-rewrite").out
    text = run("--describe", "R.matmul").out
    assert "precision: always" in text and "gradient: matmul_gradient (stdlib/linalg/matmul.rlx:" in text
    assert "def matmul(x1" in text and "stdlib/linalg/matmul.rlx:" in text
    both = json.loads(run("--describe", "exp", "--json").out)
    assert [facts["kind"] for facts in both] == ["operator", "intrinsic"]
    assert run("--describe", "rlx0203").out == "code RLX0203\n\n" + run("--explain", "203").out


def test_version(run):
    assert run("--version").out == f"relaxc {relaxlang.__version__}\n"
    assert "numpy" in run("--version", "-v").out


def test_dimensions_are_given_sizes(run):
    shown = run("mlp.rlx", "--bind", "n=3", "--emit=rlx").out
    assert "(3, " in shown and "(n, " not in shown
    assert "RLX3112" in run("mlp.rlx", "--bind", "m=3").err and "RLX7002" in run("mlp.rlx", "--bind", "n=x").err
    assert run("mlp.rlx", "--bind=n=1", "--target=c", "--executor=aot", "--runtime=c", "-o", "mlp.c").code == 0


def test_memory(run):
    shown = run("mlp.rlx", "--emit=memory", "--dim=n=3")
    assert shown.code == 0 and shown.out.startswith("main: ") and "█" in shown.out
    assert "--dim n=…" in run("mlp.rlx", "--emit=memory").err and run("mlp.rlx", "--dim=n=3", "--emit=tir").code == 2
    assert run("mlp.rlx", "--emit=memory=m.html", "--dim=n=3").code == 0
    with open("m.html") as page:
        assert "<svg" in page.read()


def test_constants_are_folded_by_the_drivers_means(run, monkeypatch):
    ran = []

    def evaluate(func, args):
        ran.append(func)
        return known(func, args)

    known = driver.evaluate
    monkeypatch.setattr(driver, "evaluate", evaluate)
    with open("folded.rlx", "w") as file:
        file.write(
            "@R.function\ndef main():\n    with R.dataflow():\n"
            '        y = R.add(R.const([1.0, 2.0], "float32"), R.const([3.0, 4.0], "float32"))\n'
            "        R.output(y)\n    return y\n"
        )
    assert "R.const([4.0, 6.0]" in run("folded.rlx", "--pipeline=fold-constant", "--emit=rlx").out
    assert ran
