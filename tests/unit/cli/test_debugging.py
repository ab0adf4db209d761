"""`--compare-ir`, `--check-passes`, `--reduce`, `--why-not` from the outside."""

import pathlib

import relaxlang


def test_compare_ir(run):
    text = pathlib.Path("mlp.rlx").read_text()
    pathlib.Path("same.rlx").write_text(text.replace(" y ", " product ").replace("(y)", "(product)"))
    pathlib.Path("other.rlx").write_text(text.replace("R.nn.relu", "R.exp"))
    assert run("--compare-ir", "mlp.rlx", "same.rlx") == (0, "", "")
    done = run("--compare-ir", "mlp.rlx", "other.rlx")
    assert done.code == 1 and "R.nn.relu(y)" in done.err and "R.exp(y)" in done.err and "^^^" in done.err
    assert run("--compare-ir", "mlp.rlx").code == 2


def test_check_passes(run):
    done = run("mlp.rlx", "--check-passes", "--dim", "n=3", "--random", "5")
    assert done.code == 0 and "keep what `main` computes" in done.out
    assert run("kernel.rlx", "--check-passes", "--arg", "s=f32=2").code == 0
    assert run("mlp.rlx", "--check-passes=1").code == 2


def test_reduce(run):
    done = run("mlp.rlx", "--reduce=grep -q relu {}", "-o", "small.rlx")
    assert done.code == 0 and "reduced from" in done.err
    small = relaxlang.load("small.rlx")
    assert "relu" in small.script() and "matmul" not in small.script()
    done = run("mlp.rlx", "--reduce")
    assert done.code == 1 and "RLX3131" in done.err


def test_why_not(run):
    assert run("mlp.rlx", "--why-not=fuse y z") == (0, "`y` and `z` are computed together, by one kernel\n", "")
    text = pathlib.Path("mlp.rlx").read_text()
    pathlib.Path("needed.rlx").write_text(
        text.replace("output(z)", "output(y, z)")
        .replace('-> R.Tensor((n, 3), "float32")', "")
        .replace("return z", "return (y, z)")
    )
    done = run("needed.rlx", "--why-not", "fuse y z")
    assert done.code == 0 and done.out.startswith("`y` is needed outside its dataflow block")
    assert run("mlp.rlx", "--why-not=fuse y nope").code == 1
    for question in ("fuse y", "share y z", ""):
        done = run("mlp.rlx", f"--why-not={question}")
        assert done.code == 2 and "RLX7002" in done.err
